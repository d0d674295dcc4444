"""LLVM's passes as stages with texts: a trace of their own, or below the stages of another compiler."""

from __future__ import annotations

from collections.abc import Callable

from tinyexplore.explore.analysis.passes.sequence import LLVMPasses, PassLine
from tinyexplore.explore.tracefile.line_origins import origins
from tinyexplore.explore.tracefile.model import (
    TRACE_VERSION,
    Dialect,
    Frame,
    Language,
    Level,
    Message,
    Node,
    Source,
    Stage,
    StageText,
    TextLine,
)
from tinyexplore.explore.tracefile.trace import Trace

STAGE_LANGUAGES = (Language("llvm", "LLVM IR"), Language("mir", "Machine IR"), Language("asm", "Assembly"))
_KEYS = {"IR": "llvm", "machine IR": "mir", "assembly": "asm"}


def pass_tables(
    passes: LLVMPasses,
    stage: int,
    text: int,
    nodes_of: Callable[[PassLine], tuple[int, ...]],
    *,
    parent: int | None = None,
    kernel: int | None = None,
    started_us: float = 0.0,
) -> tuple[tuple[Stage, ...], tuple[StageText, ...]]:
    """Returns the passes as rows of `Trace.stages`, from id `stage` on, and of `Trace.stage_texts`, from id `text` on.

    A pass without a change has a stage and no text.

    Args:
        passes: LLVM's passes.
        stage: the id of the first stage.
        text: the id of the first text.
        nodes_of: returns the nodes of a line.
        parent: the stage that contains all passes.
        kernel: the kernel that was compiled.
        started_us: when the first pass began, in microseconds.
    """
    stages: list[Stage] = []
    texts: list[StageText] = []
    now_us = started_us
    last: StageText | None = None
    for llvm_pass in passes:
        time_us = (llvm_pass.seconds or 0.0) * 1e6
        # a pass that changed nothing has only the name of its option
        stages.append(
            _make_stage(stage + len(stages), llvm_pass.argument or llvm_pass.name, parent, kernel, now_us, time_us)
        )
        now_us += time_us
        if not llvm_pass.changed:
            continue
        language = _KEYS[llvm_pass.stage]
        before = last if last is not None and last.language == language else None
        from_line: list[int | None] = [None] * len(llvm_pass.lines)
        if before is not None:
            from_line = origins([line.text for line in before.lines], [line.text for line in llvm_pass.lines])
        lines = tuple(
            TextLine(line.text, nodes_of(line), python_line)
            for line, python_line in zip(llvm_pass.lines, from_line, strict=True)
        )
        last = StageText(text + len(texts), stages[-1].id, language, lines, "", None if before is None else before.id)
        texts.append(last)
    return tuple(stages), tuple(texts)


def _make_stage(number: int, name: str, parent: int | None, kernel: int | None, at_us: float, took_us: float) -> Stage:
    return Stage(number, name, parent, kernel, (), (), at_us, took_us, (), (), ())


def trace_of(passes: LLVMPasses) -> Trace:
    """Returns the passes as a trace of their own, for the explorer.

    Its source is the original IR, and each line links to the line of the IR from which it was derived.
    """
    first = passes[0]
    line_of: dict[int, int] = {}
    for number, line in enumerate(first.lines, 1):
        if line.uop is not None:
            line_of.setdefault(line.uop, number)
    line_of_uop = {uop: position for position, uop in enumerate(line_of)}
    frames = tuple(Frame(position, 0, number, passes.kernel) for position, number in enumerate(line_of.values()))
    nodes = tuple(
        _make_node(position, first.lines[number - 1].text) for position, number in enumerate(line_of.values())
    )
    stages, texts = pass_tables(
        passes, 0, 0, lambda line: () if line.uop is None or line.uop not in line_of_uop else (line_of_uop[line.uop],)
    )
    notes = tuple(Message("note", f"{passes.kernel}: {remark.as_text()}", None) for remark in passes.remarks[:20])
    return Trace(
        version=TRACE_VERSION,
        title=f"{passes.kernel} in LLVM",
        options=(("cpu", passes.cpu), ("pipeline", passes.pipeline)),
        sources=(Source(0, f"{passes.kernel}.ll", first.text),),
        frames=frames,
        nodes=nodes,
        rules=(),
        stages=stages,
        links=(),
        kernels=(),
        programs=(),
        runs=(),
        buffers=(),
        messages=notes,
        stage_texts=texts,
        dialect=Dialect(
            "LLVM",
            passes.llvm,
            (Level("instruction", "instruction", "instructions", "lines"),),
            STAGE_LANGUAGES,
            ("rewrites", "history", "timeline", "glossary"),
        ),
    )


def _make_node(number: int, text: str) -> Node:
    """Returns a node for a line of the original IR."""
    return Node(number, "instruction", "", (), "", None, "", text.strip(), number, text.strip(), "", "alu")


__all__ = ["STAGE_LANGUAGES", "pass_tables", "trace_of"]
