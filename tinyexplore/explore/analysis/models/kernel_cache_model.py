"""Builds the cache model of a captured kernel, with its own opts or with others."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from tinyexplore.codegen import lower
from tinyexplore.explore.analysis.models.caches import CacheModel, model_caches
from tinyexplore.explore.analysis.models.lru import Cache
from tinyexplore.explore.analysis.opts import to_opt
from tinyexplore.explore.recording.captured_kernel import CapturedKernel
from tinyexplore.explore.recording.row_builders import opt_text
from tinyexplore.kernel import Kernel, Opt, apply_opt
from tinyexplore.renderer import ProgramSpec
from tinyexplore.uop import UOp


def model_of(
    captured: CapturedKernel,
    opts: Iterable[Opt | str] | None = None,
    caches: Sequence[Cache] | None = None,
    render: Callable[[str, Sequence[UOp]], ProgramSpec] | None = None,
) -> CacheModel:
    """Returns the caches of one run of `captured`, or of the program that it would be with `opts`.

    render: renders that program, so that its source lines have traffic too.
    """
    spec, kernel = captured.spec, captured.make_kernel()
    bindings = dict(zip(spec.variables, captured.values))
    if opts is None:
        uops, source, name, applied = captured.uops, spec.lines, spec.name, kernel.applied
    else:
        other, uops = lower_with_opts(kernel, opts)
        name, applied = other.name, other.applied
        source = () if render is None else render(name, uops).lines
    return model_caches(
        name,
        uops,
        spec.target,
        values=bindings,
        contents=captured.contents,
        caches=caches,
        source=source,
        opts=map(opt_text, applied),
    )


def lower_with_opts(kernel: Kernel, opts: Iterable[Opt | str]) -> tuple[Kernel, tuple[UOp, ...]]:
    """Returns `kernel` with `opts` instead of its own, and its linear program."""
    other = Kernel(kernel.original, kernel.target, kernel.original, kernel.original)
    for opt in opts:
        other = apply_opt(other, to_opt(opt) if isinstance(opt, str) else opt)
    return other, tuple(lower(other))


__all__ = ["lower_with_opts", "model_of"]
