"""`python -m tests.support.operator_tables` writes docs/onnx_operators.md: the translation of each operator."""

from __future__ import annotations

from pathlib import Path
from typing import Any

PAGE = Path(__file__).parents[2] / "docs" / "onnx_operators.md"
HEAD = """# ONNX operators

This page answers: is an operator of the ONNX standard supported, and how is it computed?

Written by `python -m tests.support.operator_tables` for onnx {version}; do not edit.

- A file: it has a function on Tensors there.
- *its body*: the standard defines it by a graph of other operators, and that graph is evaluated.
- *its graphs*: control flow; the graphs in the node are evaluated.
- *refused*: a model that needs it raises `UnsupportedOperator`.

`tinyexplore frontends --operators` prints the supported operators.

| operator | since version | computed by |
|---|---:|---|
"""


def _link(function: Any) -> str:
    """The file of an operator's function, as a link."""
    path = function.__module__.replace(".", "/") + ".py"
    return f"[{Path(path).name}](../{path})"


def table() -> str:
    """The page as it should be."""
    import onnx

    from tinyexplore.frontends.onnx.node import OPERATORS
    from tinyexplore.frontends.onnx.supported import supported_operators

    supported_operators()  # imports the functions
    rows = []
    for schema in sorted(onnx.defs.get_all_schemas(), key=lambda one: (one.domain, one.name)):
        name = f"{schema.domain}.{schema.name}" if schema.domain else schema.name
        has_body = schema.has_function or schema.has_context_dependent_function  # type: ignore[attr-defined]
        function = OPERATORS.get((schema.domain, schema.name))
        how = _link(function) if function is not None else "its body" if has_body else "refused"
        how = "its graphs" if name in ("If", "Loop", "Scan") else how
        rows.append(f"| `{name}` | {schema.since_version} | {how} |")
    return HEAD.format(version=onnx.__version__) + "\n".join(rows) + "\n"


if __name__ == "__main__":
    PAGE.write_text(table(), "utf-8")
