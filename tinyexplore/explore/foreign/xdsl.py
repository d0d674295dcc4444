"""Records xDSL: the module after each pass, and after each pattern that fired in it. `mlir.read` reads the dump."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tinyexplore.explore.foreign.dump import Dump

FILE = "passes.mlir"
_TEXT = 160  # most characters of a pattern's first line


def record(module: str, passes: str, *, title: str = "") -> Dump:
    """Runs an xDSL pipeline over the text of a module, and returns the dump.

    Args:
        module: MLIR as text.
        passes: the pipeline as `xdsl-opt -p` takes it: "convert-linalg-to-loops,canonicalize".
        title: the title of the trace; by default the passes.

    Raises:
        ModuleNotFoundError: xDSL is not installed.
        ValueError: a pass is unknown.
    """
    from importlib import metadata  # only `record` needs xDSL

    from xdsl.context import Context
    from xdsl.dialects import get_all_dialects
    from xdsl.parser import Parser
    from xdsl.passes import PassPipeline
    from xdsl.transforms import get_all_passes

    context = Context()
    for name, factory in get_all_dialects().items():
        context.register_dialect(name, factory)
    parsed = Parser(context, module).parse_module()
    sections: list[str] = []

    def after(last: Any, current: Any, following: Any) -> None:
        name, options = ("input", "") if last is None else (last.name, last.pipeline_pass_spec())
        sections.append(f"// -----// IR Dump After {name}: {options} //----- //")
        sections.append(_text(current))

    with _watch_patterns(sections):
        PassPipeline.parse_spec(get_all_passes(), passes, after).apply(context, parsed)
    return Dump("xdsl", metadata.version("xdsl"), title or passes, {FILE: "\n".join(sections) + "\n"})


@contextmanager
def _watch_patterns(sections: list[str]) -> Iterator[None]:
    """Appends each pattern that fires inside the `with` block to `sections`, with the module after it."""
    from xdsl.pattern_rewriter import GreedyRewritePatternApplier, PatternRewriteWalker

    rewrite_region, match_one = PatternRewriteWalker.rewrite_region, GreedyRewritePatternApplier.match_and_rewrite

    def watched_region(self: Any, region: Any) -> Any:
        pattern = self.pattern
        self.pattern = _ReportingPattern(pattern, sections)
        try:
            return rewrite_region(self, region)
        finally:
            self.pattern = pattern

    def watched_match(self: Any, op: Any, rewriter: Any) -> None:
        patterns = self.rewrite_patterns
        self.rewrite_patterns = [_ReportingPattern(pattern, sections) for pattern in patterns]
        try:
            match_one(self, op, rewriter)
        finally:
            self.rewrite_patterns = patterns

    PatternRewriteWalker.rewrite_region = watched_region
    GreedyRewritePatternApplier.match_and_rewrite = watched_match
    try:
        yield
    finally:
        PatternRewriteWalker.rewrite_region = rewrite_region
        GreedyRewritePatternApplier.match_and_rewrite = match_one


class _ReportingPattern:
    """A pattern that reports each firing. For nested patterns, the innermost one reports it."""

    def __init__(self, pattern: Any, sections: list[str]) -> None:
        self._pattern = pattern
        self._sections = sections

    def match_and_rewrite(self, op: Any, rewriter: Any) -> None:
        count = len(self._sections)
        module = op
        while module.parent_op() is not None:
            module = module.parent_op()
        self._pattern.match_and_rewrite(op, rewriter)
        if rewriter.has_done_action and len(self._sections) == count:
            self._sections += [_write_header(type(self._pattern)), _text(module)]


def _write_header(kind: type) -> str:
    """Returns the header of a pattern: its class, its position, and the first paragraph of its docstring."""
    try:
        file = inspect.getsourcefile(kind) or "unknown"
        line = inspect.getsourcelines(kind)[1]
    except (OSError, TypeError):
        file, line = "unknown", 0
    says = " ".join(inspect.cleandoc(kind.__dict__.get("__doc__") or kind.__name__).split("\n\n")[0].split())[:_TEXT]
    path = f"xdsl/{file.rpartition('/xdsl/')[2]}"
    return f"// -----// Pattern {kind.__name__} ({path}:{line}) {says} //----- //"


def _text(module: Any) -> str:
    from io import StringIO

    from xdsl.printer import Printer

    out = StringIO()
    Printer(stream=out, print_debuginfo=True).print_op(module)
    return out.getvalue()


__all__ = ["record"]
