"""Writes `tinyexplore/uop/matchers.py`: python -m tinyexplore.codegen.matchers [--check].

A kernel's first lowering asks some fifty rules for their matching functions, and Python takes 0.1 ms to compile one.
Those of the passes' own rules are therefore written out, where Python compiles them once and for all. What is not
found there, a rule of a notebook's say, is compiled when it is first tried: nothing depends on the file being current
but time.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tinyexplore.codegen.passes import Rewrite
from tinyexplore.codegen.pipeline import PASSES
from tinyexplore.uop import matchers
from tinyexplore.uop.known import KNOWN
from tinyexplore.uop.pattern import form_name, matcher_text

HEAD = '''"""Matching functions of the passes' rules, by the digest of their text: what they ask for are their globals.

Made by `python -m tinyexplore.codegen.matchers`, which says why; not to be changed by hand.
"""
'''


def written() -> str:
    """The module's text: one function for each form that a pattern of some pass, or of a known result, has."""
    tables = (KNOWN, *[step.table for step in PASSES if isinstance(step, Rewrite)])
    rules = [rule for table in tables for rule in table.rules]
    texts = sorted({matcher_text(rule, is_candidate=True)[0] for rule in rules})
    functions = [f"def {form_name(text)}(root, function, ctx):\n{text}\n" for text in texts]
    return "\n\n".join([HEAD, *functions])


def main(arguments: list[str] | None = None) -> int:
    """Write the file, or compare it (`--check`: exit status 1 where it is stale)."""
    parser = argparse.ArgumentParser(prog="python -m tinyexplore.codegen.matchers", description=__doc__)
    parser.add_argument("--check", action="store_true", help="compare instead of writing")
    options = parser.parse_args(arguments)
    file = Path(matchers.__file__)
    text = written()
    if not options.check:
        file.write_text(text, encoding="utf-8")
    elif file.read_text(encoding="utf-8") != text:
        sys.stderr.write(f"{file} does not say what the rules say; run: python -m tinyexplore.codegen.matchers\n")
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
