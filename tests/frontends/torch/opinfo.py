"""PyTorch's own samples of its operations (OpInfo), traced to ATen and computed by the front end.

    python -m tests.frontends.torch.opinfo --dtype float32 --first 0 --count 100 --write part.json
    python -m tests.frontends.torch.opinfo --gradients --dtype float32 --most 2
    python -m tests.frontends.torch.opinfo --sum part*.json

Needs PyTorch and `expecttest`. A sample is one of:

- here: Tensors compute all of its operations, and the result is right
- parts: Tensors compute some of them, ATen the others, and the result is right
- aten: ATen computes all
- wrong: the result differs
- unstable: the result differs, and PyTorch's own changes by more than the tolerance if the inputs change by rounding
- untraced: PyTorch cannot trace it or run the trace, or its inputs or results are complex or sparse
"""

from __future__ import annotations

import argparse
import collections
import json
import signal
import sys
import time
import warnings
from functools import partial
from pathlib import Path
from typing import Any

RANDOM = ("rand", "bernoulli", "dropout", "multinomial", "normal", "uniform", "exponential", "geometric", "cauchy")
UNDEFINED = ("empty",)
TOLERANCE = {"float32": 1e-4, "float64": 1e-7, "bfloat16": 3e-2, "float16": 3e-3}


class TooManyAccessesError(Exception):
    """A sample took longer than its time."""


def _alarm(*_: Any) -> None:
    raise TooManyAccessesError


def flat_tensors(value: Any) -> list[Any]:
    import torch
    from torch.utils import _pytree

    return [one for one in _pytree.tree_leaves(value) if isinstance(one, torch.Tensor)]


def _is_dense(tensors: list[Any]) -> bool:
    import torch

    return all(not one.is_complex() and one.layout == torch.strided and not one.is_quantized for one in tensors)


def difference(got: list[Any], want: list[Any], dtype: str, exact: bool = True) -> str:
    """The difference as text: shapes, dtypes, or values beyond the tolerance; "" if they agree."""
    import torch

    if len(got) != len(want):
        return f"{len(got)} results, not {len(want)}"
    for found, expected in zip(got, want):
        if found.shape != expected.shape or found.dtype != expected.dtype:
            return f"{found.dtype}{list(found.shape)}, not {expected.dtype}{list(expected.shape)}"
        if not exact or expected.numel() == 0:
            continue
        if not expected.dtype.is_floating_point:
            if not torch.equal(found, expected):
                return f"{int((found != expected).sum())} of {expected.numel()} integers differ"
            continue
        a, b = found.detach().double(), expected.detach().double()
        if not torch.equal(a.isnan(), b.isnan()) or not torch.equal(a.isinf(), b.isinf()):
            return "NaN or infinity elsewhere"
        finite = b.isfinite()
        if not bool(finite.any()):
            continue
        largest = float(b[finite].abs().max())
        error = float((a[finite] - b[finite]).abs().max())
        if error > TOLERANCE.get(dtype, 1e-4) * largest + 1e-12:
            return f"error {error:.3g} of {largest:.3g}"
    return ""


class Sample:
    """One sample as a function of its tensors alone."""

    def __init__(self, info: Any, sample: Any, gradients: bool) -> None:
        from torch.utils import _pytree

        self.info, self.gradients = info, gradients
        self.leaves, self.spec = _pytree.tree_flatten(((sample.input, *sample.args), sample.kwargs))
        import torch

        self.tensors = [one for one in self.leaves if isinstance(one, torch.Tensor)]

    def __call__(self, *tensors: Any) -> Any:
        import torch
        from torch.utils import _pytree

        given = iter(tensors)
        leaves = [next(given) if isinstance(one, torch.Tensor) else one for one in self.leaves]
        args, kwargs = _pytree.tree_unflatten(leaves, self.spec)
        if not self.gradients:
            return self.info(*args, **kwargs)
        found = [one for one in flat_tensors(self.info(*args, **kwargs)) if one.requires_grad]
        targets = [one for one in tensors if one.requires_grad]
        if not found or not targets:
            return ()
        seeds = [torch.ones_like(one) for one in found]
        return torch.autograd.grad(found, targets, seeds, allow_unused=True)

    def inputs(self) -> list[Any]:
        copies = [one.detach().clone() for one in self.tensors]
        if self.gradients:
            for copy, one in zip(copies, self.tensors):
                copy.requires_grad_(one.requires_grad)
        return copies


def tried(info: Any, sample: Any, dtype: str, gradients: bool) -> tuple[str, str]:
    """The kind of one sample, and what there is to say of it."""
    import torch
    from torch.func import functionalize
    from torch.fx.experimental.proxy_tensor import make_fx
    from torch.nn.attention import SDPBackend, sdpa_kernel

    from tinyexplore.frontends.torch.backend import decompositions
    from tinyexplore.frontends.torch.program import TorchProgram

    one = Sample(info, sample, gradients)
    if not _is_dense(one.tensors):
        return "untraced", "complex or sparse"
    torch.manual_seed(0)
    try:
        want = flat_tensors(one(*one.inputs()))
    except TooManyAccessesError:
        raise
    except Exception as error:  # of what this build of PyTorch has not
        return "untraced", f"eager: {type(error).__name__}: {error}"
    if not _is_dense(want):
        return "untraced", "complex or sparse"
    if gradients and not want:
        return "untraced", "nothing to differentiate"
    function = one if gradients else functionalize(one, remove="mutations_and_views")
    try:
        with sdpa_kernel(SDPBackend.MATH), torch.backends.mkldnn.flags(enabled=False):
            trace = partial(
                make_fx, decomposition_table=decompositions(), tracing_mode="fake", _allow_non_fake_inputs=True
            )
            module = trace(function)(*one.inputs())
            if gradients:
                module = without_writes(trace, module, one.inputs())
    except TooManyAccessesError:
        raise
    except Exception as error:
        return "untraced", f"{type(error).__name__}: {str(error)[:100]}"
    module.graph.eliminate_dead_code()
    for node in module.graph.nodes:
        if node.op == "output":
            node.args = (flat_nodes(node.args),)
    program = TorchProgram(module, replay=False)
    torch.manual_seed(0)
    try:
        with torch.no_grad():
            got = [value for value in program(*one.inputs()) if isinstance(value, torch.Tensor)]
    except TooManyAccessesError:
        raise
    except Exception:
        if again(module, one.inputs()) is None:
            return "untraced", "PyTorch cannot run the trace"
        raise
    left = sorted({f"{node.target}: {why}" for node, why in program.left.items()})
    name = info.name.rpartition(".")[2]
    exact = not any(part in info.name for part in RANDOM) and not any(name.startswith(part) for part in UNDEFINED)
    exact = exact and not any("empty" in str(node.target) for node in module.graph.nodes)
    said = difference(got, want, dtype, exact)
    if said:  # the decompositions may differ from the operation itself
        traced = again(module, one.inputs())
        assert traced is not None
        said = difference(got, traced, dtype, exact)
    if said:
        moved = again(module, [rounded(value) for value in one.inputs()])
        if moved is not None and difference(moved, traced, dtype, exact):
            return "unstable", f"{said}; {left}"
        return "wrong", f"{said}; {left}"
    if any(runner.is_left for runner in program._runners.values()):
        return ("parts" if len(program.parts) > 1 else "aten"), f"kernels failed; {left}"
    if not left:
        return "here", ""
    return ("parts" if program.calls else "aten"), "; ".join(left)[:300]


def without_writes(trace: Any, module: Any, inputs: list[Any]) -> Any:
    """A graph with the writes of autograd itself (in the gradient of as_strided, for example) replaced by operations
    without writes, as AOTAutograd does; the same graph if PyTorch cannot."""
    from torch.func import functionalize

    try:
        return trace(functionalize(module, remove="mutations_and_views"))(*[value.detach() for value in inputs])
    except TooManyAccessesError:
        raise
    except Exception:
        return module


def again(module: Any, inputs: list[Any]) -> list[Any] | None:
    """The result of a traced graph in PyTorch itself; None if it cannot run it."""
    import torch

    torch.manual_seed(0)
    try:
        with torch.no_grad():
            return flat_tensors(torch.fx.Interpreter(module).run(*inputs))
    except TooManyAccessesError:
        raise
    except Exception:
        return None


def rounded(value: Any) -> Any:
    """A tensor whose floats are changed by a rounding error."""
    import torch

    if not value.dtype.is_floating_point:
        return value
    with torch.no_grad():
        return value.detach() * (1 + torch.finfo(value.dtype).eps)


def flat_nodes(value: Any) -> tuple[Any, ...]:
    from torch.utils import _pytree

    return tuple(_pytree.tree_leaves(value))


def run(asked: argparse.Namespace) -> int:
    import torch
    from torch.testing._internal.common_methods_invocations import op_db

    warnings.simplefilter("ignore")
    signal.signal(signal.SIGALRM, _alarm)
    dtype = getattr(torch, asked.dtype)
    infos = [info for info in op_db if dtype in (info.supported_dtypes("cpu") if not asked.gradients else
             info.supported_backward_dtypes("cpu"))]  # fmt: skip
    if asked.gradients:
        infos = [info for info in infos if info.supports_autograd]
    if asked.only:
        infos = [info for info in infos if info.formatted_name in asked.only or info.name in asked.only]
    infos = infos[asked.first : asked.first + asked.count]
    began, results = time.monotonic(), {}
    for info in infos:
        if asked.seconds and time.monotonic() - began > asked.seconds:
            break
        results[info.formatted_name] = entry(info, dtype, asked)
        if asked.write:
            Path(asked.write).write_text(json.dumps(results, indent=1))
        if asked.verbose or results[info.formatted_name]["wrong"]:
            print(info.formatted_name, json.dumps(results[info.formatted_name]), flush=True)
    report(results)
    return 1 if any(one["wrong"] for one in results.values()) else 0


def entry(info: Any, dtype: Any, asked: argparse.Namespace) -> dict[str, Any]:
    """The outcome of the samples of one operation."""
    counts: dict[str, Any] = dict.fromkeys(("here", "parts", "aten", "unstable", "wrong", "untraced", "late"), 0)
    said: dict[str, str] = {}
    ends = time.monotonic() + asked.entry_seconds
    try:
        samples = list(info.sample_inputs("cpu", dtype, requires_grad=asked.gradients))
    except Exception as error:
        return {**counts, "said": {"untraced": f"no samples: {error}"[:200]}}
    if asked.most and len(samples) > asked.most:
        samples = [samples[round(number * (len(samples) - 1) / max(asked.most - 1, 1))] for number in range(asked.most)]
    for number, sample in enumerate(samples):
        if time.monotonic() > ends:
            counts["late"] += len(samples) - number
            break
        signal.alarm(60)
        try:
            kind, text = tried(info, sample, asked.dtype, asked.gradients)
        except TooManyAccessesError:
            kind, text = "late", "more than 60 s"
        except NotImplementedError as error:
            kind, text = "untraced", str(error)
        except Exception as error:
            kind, text = "wrong", f"{type(error).__name__}: {error}"
        finally:
            signal.alarm(0)
        counts[kind] += 1
        if text:
            said.setdefault(kind, f"sample {number}: {text}"[:400])
    return {**counts, "said": said}


def report(results: dict[str, Any]) -> None:
    """The figures of all entries."""
    kinds = ("here", "parts", "aten", "unstable", "wrong", "untraced", "late")
    total = {kind: sum(one[kind] for one in results.values()) for kind in kinds}
    print(f"{len(results)} entries; samples: " + ", ".join(f"{count} {kind}" for kind, count in total.items()))
    ran = {name: one for name, one in results.items() if sum(one[kind] for kind in kinds[:5])}
    right = [name for name, one in ran.items() if not one["wrong"] and not one["late"]]
    here = [name for name in right if not ran[name]["parts"] and not ran[name]["aten"]]
    some = [name for name in right if ran[name]["here"] or ran[name]["parts"]]
    print(
        f"{len(ran)} entries that PyTorch can trace: {len(right)} right on all samples; {len(here)} without ATen"
        f", {len(some)} with kernels of this package; {sum(bool(one['wrong']) for one in ran.values())} wrong"
    )
    left: collections.Counter[str] = collections.Counter()
    for one in results.values():
        for kind in ("parts", "aten"):
            for text in one["said"].get(kind, "").partition(": ")[2].split("; "):
                left[text.partition(":")[0]] += 1
    print("left to ATen most often: " + ", ".join(f"{name} {count}" for name, count in left.most_common(15) if name))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--gradients", action="store_true")
    parser.add_argument("--first", type=int, default=0, help="the first entry")
    parser.add_argument("--count", type=int, default=10_000, help="entries")
    parser.add_argument("--most", type=int, default=0, help="samples of an entry; 0: all")
    parser.add_argument("--seconds", type=float, default=0, help="no new entry after that; 0: no limit")
    parser.add_argument("--entry-seconds", type=float, default=120, help="no new sample of an entry after that")
    parser.add_argument("--only", nargs="*")
    parser.add_argument("--write", help="a file for the results")
    parser.add_argument("--sum", nargs="*", help="files with results, to be reported together")
    parser.add_argument("--verbose", action="store_true")
    asked = parser.parse_args()
    if asked.sum:
        results: dict[str, Any] = {}
        for path in asked.sum:
            results.update(json.loads(Path(path).read_text()))
        report(results)
        return 0
    return run(asked)


if __name__ == "__main__":
    sys.exit(main())
