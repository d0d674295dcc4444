"""Hints for an AttributeError of a view: the replacement of a former name, or a name that is spelled similarly."""

from __future__ import annotations

_MOVED_TO_KERNEL = {
    "apply": 'apply("UPCAST(0, 4)")',
    "undo": "undo()",
    "set_opts": "set_opts(…)",
    "hand_code": "use_heuristics()",
    "search": "search()",
    "edit": "edit(stage, text)",
    "edit_text": "edit_text(stage)",
    "available_opts": "available_opts()",
    "branch": "branch",
    "why_opts": "why_opts()",
    "debug": "debug()",
    "memory_stream": "memory_stream()",
    "caches": "caches()",
    "throughput": "throughput()",
    "gpu": "gpu()",
    "rosetta": "translate()",
    "reproducer": "reproducer()",
}
_PANELS = ("code", "memory", "modules", "roofline", "shape", "stepper", "timeline", "timing", "tuner")
_ELSEWHERE = {
    "branches": "view.whatif.branches, view.kernels[0].branches",
    "do": "view.whatif.do(command)",
    "branch_trace": "view.whatif.trace_of(branch)",
    "compare_branches": "view.whatif.compare(a, b)",
    "playground": "view.rules",
    "where": "view.trace.where(…)",
    "shape_of": "view.panels.shape_of(node)",
    "open": "view.show(link)",
    "link": "view.panels.link()",
    "predict": "view.question(…)",
    "searches": "view.kernels[0].beam",
    "svg": "view.trace.svg(), view.save('picture.svg')",
    "error": "view.capture.error",
    "title": "view.capture.title",
    "repeat": "view.capture.repeat",
    "measure_ceilings": "view.panels.roofline, which measures them",
    "why": "view.verdict() (is it fast, and if not, why), view.why_not(node) (rules), view.why_kernels(a, b) (fusion), "
    "view.kernels[0].why_opts()",
    "speed": "view.verdict()",
    "time": "view.kernels, view.trace.runs",
    "nodes": "view.trace.nodes",
}


def find_replacement(name: str) -> str:
    """Returns the replacement of a former name of `Explorer`; "" for a name that it never had."""
    if name in _MOVED_TO_KERNEL:
        return f"view.kernels[0].{_MOVED_TO_KERNEL[name]}"
    if name in _PANELS:
        return f"view.panels.{name}"
    return _ELSEWHERE.get(name, "")


def suggest_replacement(name: str) -> str:
    """Returns a hint for an attribute that no `Explorer` has: "; use …", or ""."""
    moved = find_replacement(name)
    return f"; use {moved}" if moved else ""


KERNEL_REPLACEMENTS = {
    "why": "verdict() (is it fast, and if not, why), why_opts() (its loops)",
    "time": "run.median_us",
    "source": "listing()",
    "code": "listing()",
    "asm": 'listing("asm")',
}
"""Names that a user may try on a kernel, with the replacement of each."""

FORMER = (*_MOVED_TO_KERNEL, *_PANELS, *_ELSEWHERE)

__all__ = ["FORMER", "KERNEL_REPLACEMENTS", "find_replacement", "suggest_replacement"]
