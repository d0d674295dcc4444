"""`explore(f, *args)`: capture a function, a Tensor or a PyTorch module as a whole."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import CodeType
from typing import Any

from tinyexplore.explore.notebook.explorer import EXPLORE_REPEAT, Explorer, capture, run_captured
from tinyexplore.explore.notebook.frontends import explore_torch
from tinyexplore.explore.notebook.options import check_text
from tinyexplore.explore.recording.names import class_name
from tinyexplore.explore.recording.sources import lambda_text
from tinyexplore.tensor import Tensor


def explore(f: Callable[..., Any] | Any, *args: Any, title: str = "", **options: Any) -> Explorer:
    """Captures `f(*args)` and returns its Explorer.

    `f` is called, its result is realized, and each launch is sampled `repeat` times (default 10). `f` may also be a
    Tensor, or Tensors in lists, tuples and dicts: their realization is captured. A PyTorch module, or a function with
    PyTorch tensors as arguments, runs on Tensors; see `explore.torch`.

    If `f` raises, the exception has the partial capture as its attribute `explorer`. For the options see `capture`.
    """
    if "torch" in sys.modules and callable(f):  # otherwise no argument can come from PyTorch
        view = explore_torch(f, args, title=title, **options)
        if view is not None:
            return view
    options.setdefault("repeat", EXPLORE_REPEAT)
    is_data = issubclass(type(f), (Tensor, list, tuple, dict))
    if not is_data and not callable(f):
        raise TypeError(
            f"explore({type(f).__name__}): expected a function, a Tensor, or Tensors in a list, tuple or dict"
        )
    if is_data and args:
        raise TypeError(f"explore of a {type(f).__name__} takes no more arguments; {len(args)} were given")
    session = capture(title=check_text("title", title) or _title_of(f), **options)
    if is_data:
        session.capture.result = f
        return run_captured(session, None)
    return run_captured(session, f, args)


def _title_of(f: Any) -> str:
    if issubclass(type(f), Tensor):
        return f"Tensor {'×'.join(map(str, f.shape)) or 'scalar'}"
    try:
        name = getattr(f, "__name__", None)
    except Exception:
        name = None
    name = name if type(name) is str and name else class_name(f)
    if name != "<lambda>":
        return name
    code = getattr(f, "__code__", None)
    return (lambda_text(code) if type(code) is CodeType else "") or "explore"


__all__ = ["explore"]
