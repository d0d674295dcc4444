"""Where the names are that an Explorer had before it became a small object: for the message of an AttributeError."""

from __future__ import annotations

from difflib import get_close_matches

_OF_KERNEL = {
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
}


def replacement_of(name: str) -> str:
    """What replaced a former name of `Explorer`; "" for a name that it never had."""
    if name in _OF_KERNEL:
        return f"view.kernels[0].{_OF_KERNEL[name]}"
    if name in _PANELS:
        return f"view.panels.{name}"
    return _ELSEWHERE.get(name, "")


def where_it_is(name: str, names: tuple[str, ...] = ()) -> str:
    """The message of an AttributeError: what replaced `name`, or the similar ones of `names`."""
    start = f"'Explorer' object has no attribute {name!r}"
    if moved := replacement_of(name):
        return f"{start}; use {moved}"
    similar = get_close_matches(name, names)
    return f"{start}; similar: {', '.join(similar)}" if similar else start


FORMER = (*_OF_KERNEL, *_PANELS, *_ELSEWHERE)

__all__ = ["FORMER", "replacement_of", "where_it_is"]
