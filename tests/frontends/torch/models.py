"""Models of torchvision beside eager PyTorch: the result, and the gradients of one training step.

    python -m tests.frontends.torch.models resnet18 mobilenet_v2        # all classification models without names

Needs PyTorch and torchvision. Weights are random. Of each model: the largest difference of the result in evaluation
mode and of the gradients, as a share of the largest value, with the operations that ATen computed.
"""

from __future__ import annotations

import copy
import sys
import time
import warnings
from functools import partial
from typing import Any

SIZE = {"inception_v3": 80, "maxvit_t": 224}
LIMIT = 1e-4


def share(found: Any, expected: Any) -> float:
    """The largest difference as a share of the largest value."""
    return float((found - expected).abs().max()) / max(float(expected.abs().max()), 1e-12)


def compared(name: str) -> dict[str, Any]:
    """The errors of a model and of eager PyTorch in float32, both against eager PyTorch in float64."""
    import torch
    import torchvision
    from torch.nn import functional

    from tinyexplore.frontends.torch.backend import Compiler, compiled

    torch._dynamo.reset()
    torch.manual_seed(0)
    kwargs = {"init_weights": True} if name in ("googlenet", "inception_v3") else {}
    size = SIZE.get(name, 224 if name.startswith("vit") else 64)
    model = torchvision.models.get_model(name, **kwargs).eval()
    x = torch.randn(2, 3, size, size)
    compiler = Compiler()
    with torch.no_grad():
        began = time.perf_counter()
        step = torch.compile(model, backend=partial(compiled, compiler), dynamic=False)
        found = step(x)
        seconds = time.perf_counter() - began
        exact = copy.deepcopy(model).double()(x.double())
        row: dict[str, Any] = {"forward": share(found, exact), "eager": share(model(x), exact)}
    for module in model.modules():  # what is random or depends on the batch alone cannot be compared
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
    torch._dynamo.reset()
    grads = []
    for kind in ("exact", "eager", "here"):
        other = copy.deepcopy(model)
        other = other.double() if kind == "exact" else other
        function = torch.compile(other, backend=partial(compiled, compiler), dynamic=False) if kind == "here" else other
        given = x.double() if kind == "exact" else x
        functional.cross_entropy(function(given), torch.tensor([1, 2])).backward()
        grads.append([p.grad for p in other.parameters() if p.grad is not None])
    largest = max(float(g.abs().max()) for g in grads[0])
    apart = [max(float((a - b).abs().max()) for a, b in zip(grads[0], g)) / largest for g in grads[1:]]
    left = sorted({str(node.target) for program in compiler.programs for node in program.left})
    return {**row, "backward": apart[1], "eager backward": apart[0], "seconds": seconds, "by ATen": left}


def main() -> int:
    import torchvision

    warnings.simplefilter("ignore")
    wrong = 0
    names = sys.argv[1:] or torchvision.models.list_models(torchvision.models)
    for name in names:
        try:
            row = compared(name)
        except Exception as error:
            print(f"{name}: {type(error).__name__}: {str(error)[:200]}", flush=True)
            wrong += 1
            continue
        good = row["forward"] <= LIMIT and row["backward"] <= max(LIMIT, 4 * row["eager backward"])
        wrong += not good
        text = ", ".join(f"{key} {value:.2g}" for key, value in row.items() if isinstance(value, float))
        print(
            f"{'right' if good else 'WRONG'} {name}: {text}; ATen: {', '.join(row['by ATen']) or 'nothing'}", flush=True
        )
    print(f"{len(names) - wrong} of {len(names)} right")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
