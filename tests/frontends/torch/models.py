"""Models of other packages compared with eager PyTorch: the result, and the gradients of one training step.

    python -m tests.frontends.torch.models torchvision timm transformers --write
    python -m tests.frontends.torch.models timm --only resnet10t --seconds 600

Needs PyTorch and the packages. Weights are random; nothing is downloaded. All errors are against eager PyTorch in
float64, as a share of the largest value: those of this package, and of eager PyTorch in float32. `--write` puts the
rows into docs/torch_models.md, which keeps those of other runs.
"""

from __future__ import annotations

import argparse
import copy
import gc
import re
import statistics
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

LIMIT = 1e-4
LARGEST = 650_000_000  # parameters of a model: 645 million need 22 GB
PAGE = Path(__file__).parents[3] / "docs" / "torch_models.md"
ROW = re.compile(r"^\| (\w+) \| (\S+) \|.*\|$", re.MULTILINE)
HEAD = (
    "| package | model | parameters | result | eager | gradients | eager | first result, s | ATen computes |\n"
    "|---|---|---:|---:|---:|---:|---:|---:|---|"
)
TIMM = (
    "resnet10t mobilenetv3_small_050 lcnet_050 tinynet_e mnasnet_small regnetx_002 ghostnet_050 repghostnet_050 "
    "convnext_atto vit_tiny_patch16_224 deit_tiny_patch16_224 mixer_s32_224 gmlp_ti16_224 resmlp_12_224 "
    "poolformer_s12 pvt_v2_b0 edgenext_xx_small mobilevit_xxs levit_128s dla46_c skresnet18 xcit_nano_12_p16_224 "
    "convit_tiny efficientvit_b0 mobileone_s0 starnet_s1 repvit_m0_9 fastvit_t8 semnasnet_075 hardcorenas_a "
    "efficientnet_b0 selecsls42 ese_vovnet19b_dw visformer_tiny tiny_vit_5m_224"
).split()
SMALL = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64, "vocab_size": 99}
CONFIGURATIONS: dict[str, dict[str, Any]] = {
    "gpt2": {"n_embd": 32, "n_layer": 2, "n_head": 2, "n_positions": 64, "vocab_size": 99},
    "bert": {**SMALL, "max_position_embeddings": 64},
    "llama": {**SMALL, "num_key_value_heads": 1},
    "distilbert": {"dim": 32, "n_layers": 2, "n_heads": 2, "hidden_dim": 64, "vocab_size": 99},
    "roberta": {**SMALL, "max_position_embeddings": 64},
    "albert": {**SMALL, "embedding_size": 16, "max_position_embeddings": 64},
    "electra": {**SMALL, "embedding_size": 16, "max_position_embeddings": 64},
    "qwen3": {**SMALL, "num_key_value_heads": 1, "head_dim": 16},
    "mistral": {**SMALL, "num_key_value_heads": 1, "head_dim": 16},
    "gemma2": {**SMALL, "num_key_value_heads": 1, "head_dim": 16},
    "phi": SMALL,
    "gpt_neox": SMALL,
    "opt": {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "ffn_dim": 64, "vocab_size": 99,
            "word_embed_proj_dim": 32, "max_position_embeddings": 64},
    "mamba": {"hidden_size": 32, "num_hidden_layers": 2, "state_size": 4, "vocab_size": 99},
    "t5": {"d_model": 32, "d_kv": 16, "d_ff": 64, "num_layers": 2, "num_heads": 2, "vocab_size": 99},
    "vit": {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64,
            "image_size": 32, "patch_size": 8},
}  # fmt: skip
Made = tuple[Any, dict[str, Any]]  # a module, and its arguments by name


def share(found: Any, expected: Any, largest: float = 0.0) -> float:
    """The largest difference as a share of the largest value."""
    if not expected.numel():
        return 0.0
    return float((found - expected).abs().max()) / max(largest or float(expected.abs().max()), 1e-12)


# *** the models ***


def of_torchvision(name: str) -> Made:
    import torch
    import torchvision

    kwargs = {"init_weights": True} if name in ("googlenet", "inception_v3") else {}
    size = {"inception_v3": 299, "maxvit_t": 224}.get(name, 224 if name.startswith("vit") else 64)
    return torchvision.models.get_model(name, **kwargs), {"x": torch.randn(2, 3, size, size)}


def of_timm(name: str) -> Made:
    import timm
    import torch

    size = 64
    try:
        model = timm.create_model(name, num_classes=10, img_size=size)
    except TypeError:
        model = timm.create_model(name, num_classes=10)
        if model.default_cfg.get("fixed_input_size"):
            size = model.default_cfg["input_size"][-1]
    return model, {"x": torch.randn(2, 3, size, size)}


def of_transformers(name: str) -> Made:
    import torch
    import transformers

    config = transformers.AutoConfig.for_model(name, **CONFIGURATIONS[name])
    if hasattr(config, "use_cache"):
        config.use_cache = False
    words = torch.randint(3, 90, (2, 12))
    if name == "vit":
        return transformers.AutoModel.from_config(config), {"pixel_values": torch.randn(2, 3, 32, 32)}
    if name == "t5":
        model = transformers.AutoModel.from_config(config)
        return model, {"input_ids": words, "decoder_input_ids": torch.randint(3, 90, (2, 7))}
    return transformers.AutoModel.from_config(config), {"input_ids": words}


def names_of(package: str) -> list[str]:
    """The models of a package that are compared; those of torchvision with fewer parameters first."""
    if package == "timm":
        return TIMM
    if package == "transformers":
        return list(CONFIGURATIONS)
    import torchvision

    names = torchvision.models.list_models(torchvision.models)
    sizes = {name: torchvision.models.get_model_weights(name).DEFAULT.meta["num_params"] for name in names}
    return sorted(names, key=lambda name: (sizes[name], name))


MAKERS: dict[str, Callable[[str], Made]] = {
    "torchvision": of_torchvision,
    "timm": of_timm,
    "transformers": of_transformers,
}


# *** comparing ***


def floats(value: Any) -> list[Any]:
    """The floating-point tensors in a result."""
    import torch
    from torch.utils import _pytree

    leaves = value.values() if hasattr(value, "to_tuple") else _pytree.tree_leaves(value)
    return [one for one in leaves if isinstance(one, torch.Tensor) and one.is_floating_point()]


def loss(found: Any) -> Any:
    """A number that depends on all of a result, on each element with another weight."""
    import torch

    total = 0.0
    for one in floats(found):
        weights = torch.cos(torch.arange(one.numel(), dtype=torch.float64)).to(one.dtype).reshape(one.shape)
        total = total + (one * weights).sum()
    return total


def without_chance(module: Any) -> None:
    """What is random cannot be compared: dropout of all kinds does nothing."""
    for part in module.modules():
        for name in ("p", "drop_prob", "dropout", "attention_dropout"):
            if type(getattr(part, name, None)) is float:
                setattr(part, name, 0.0)


def without_zeros(module: Any) -> None:
    """Weights that are all zero (the last layer of some models) become random: they would hide every error."""
    import torch

    for parameter in module.parameters():
        if parameter.ndim > 1 and not parameter.any():
            torch.nn.init.normal_(parameter, std=0.02)


def median_of_seeds(make: Callable[[str], Made], name: str) -> dict[str, Any]:
    """The errors for one set of weights, or medians for three if the first is not right.

    A rounding error can change the sign of an input of a ReLU. Gradients then differ by more than rounding, in eager
    PyTorch as well: its errors are then the largest of five, four of them with rounding errors in the input.
    """
    row = compared(make, name)
    if is_right(row):
        return row
    rows = [compared(make, name, seed, rounded=4) for seed in (0, 1, 2)]
    errors = ("result", "eager", "gradients", "eager gradients")
    return {**row, **{key: statistics.median(one[key] for one in rows) for key in errors}}


def compared(make: Callable[[str], Made], name: str, seed: int = 0, rounded: int = 0) -> dict[str, Any]:
    """The errors of a model and of eager PyTorch in float32, both against eager PyTorch in float64.

    rounded: how many further gradients of eager PyTorch are computed, each with rounding errors in the input.
    """
    import torch

    from tinyexplore.frontends.torch.backend import PartCompiler, compiled

    torch._dynamo.reset()
    torch.manual_seed(seed)
    model, args = make(name)
    without_zeros(model)
    count = sum(one.numel() for one in model.parameters())
    if count > LARGEST:
        raise MemoryError(f"{count:,} parameters")
    without_chance(model)
    exact_args = {key: one.double() if one.is_floating_point() else one for key, one in args.items()}
    compiler = PartCompiler()

    def step_of(module: Any) -> Any:
        return torch.compile(module, backend=partial(compiled, compiler), dynamic=False)

    row: dict[str, Any] = {"parameters": count}
    model.eval()
    with torch.no_grad():
        expected = floats(copy.deepcopy(model).double()(**exact_args))
        eager = floats(model(**args))
        began = time.perf_counter()
        found = floats(step_of(model)(**args))
        row["seconds"] = time.perf_counter() - began
    row["result"] = max(map(share, found, expected))
    row["eager"] = max(map(share, eager, expected))
    torch._dynamo.reset()
    model.train()
    without_chance(model)
    inputs = [("exact", exact_args), ("here", args), ("eager", args)]
    inputs += [("eager", with_rounding_errors(args)) for _ in range(rounded)]
    errors: dict[str, list[float]] = {"here": [], "eager": []}
    exact: dict[str, Any] = {}
    for kind, given in inputs:  # one after the other, so that a copy and two sets of gradients exist at most
        other = copy.deepcopy(model)
        if kind == "exact":
            other = other.double()
        loss((step_of(other) if kind == "here" else other)(**given)).backward()
        grads = {key: one.grad for key, one in other.named_parameters() if one.grad is not None}
        del other
        torch._dynamo.reset()
        gc.collect()
        if kind == "exact":
            exact, largest = grads, max(float(one.abs().max()) for one in grads.values())
            continue
        assert grads.keys() == exact.keys(), "other parameters have gradients"
        errors[kind].append(max(share(one, exact[key], largest) for key, one in grads.items()))
    row["gradients"], row["eager gradients"] = errors["here"][0], max(errors["eager"])
    row["aten"] = sorted({str(node.target) for program in compiler.programs for node in program.left})
    return row


def with_rounding_errors(args: dict[str, Any]) -> dict[str, Any]:
    """The inputs with a random relative error of one rounding of float32 in each number."""
    import torch

    return {
        key: one * (1 + 2.0**-23 * torch.randn_like(one)) if one.is_floating_point() else one
        for key, one in args.items()
    }


def is_right(row: dict[str, Any]) -> bool:
    """Whether the errors are small, or no larger than a few of eager PyTorch's own in float32."""
    pairs = (("result", "eager"), ("gradients", "eager gradients"))
    return all(row[ours] <= max(LIMIT, 4 * row[theirs]) for ours, theirs in pairs)


def as_text(package: str, name: str, row: dict[str, Any]) -> str:
    figures = [f"{row[key]:.1e}" for key in ("result", "eager", "gradients", "eager gradients")]
    left = ", ".join(row["aten"]).replace(".default", "") or "nothing"
    return f"| {package} | {name} | {row['parameters']:,} | {' | '.join(figures)} | {row['seconds']:.1f} | {left} |"


# *** the page ***


def known() -> dict[tuple[str, str], str]:
    """The rows of the page, by package and name."""
    text = PAGE.read_text(encoding="utf-8") if PAGE.is_file() else ""
    return {(found[1], found[2]): found[0] for found in ROW.finditer(text) if found[1] in MAKERS}


def versions() -> Iterator[str]:
    from importlib.metadata import version

    for package in ("torch", *MAKERS):
        try:
            yield f"{package} {version(package)}"
        except ModuleNotFoundError:
            pass


def write(rows: dict[tuple[str, str], str]) -> None:
    """Puts rows into the page, beside those of other runs."""
    merged = {**known(), **rows}
    order = {package: number for number, package in enumerate(MAKERS)}
    lines = [merged[key] for key in sorted(merged, key=lambda key: (order[key[0]], key[1]))]
    counts = [f"{sum(key[0] == package for key in merged)} of {package}" for package in MAKERS]
    PAGE.write_text(
        "# Models of other packages\n\n"
        "This page answers: which models of torchvision, timm and transformers give the results of eager PyTorch?\n\n"
        "Written by `python -m tests.frontends.torch.models torchvision timm transformers --write`.\n"
        "Weights are random. Images have 64 × 64 pixels, or the size that a model insists on.\n"
        "Errors are against eager PyTorch in float64, as a share of the largest value.\n"
        "The result is in evaluation mode, the gradients are of one step in training mode, without dropout.\n"
        "If the errors are above the limit, they are medians of three sets of weights.\n"
        "Eager's gradient error is then the largest of five, four of them with rounding errors in the input.\n"
        "The time is of the first result, on two cores beside other work.\n\n"
        "Of torchvision's models only `vit_h_14` is missing: its comparison needs more than 24 GB of memory.\n\n"
        f"{', '.join(counts)}; {', '.join(versions())}.\n\n{HEAD}\n" + "\n".join(lines) + "\n",
        encoding="utf-8",
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("packages", nargs="*", choices=[*MAKERS, []], help="packages; all by default")
    parser.add_argument("--only", nargs="*", help="names of models")
    parser.add_argument("--missing", action="store_true", help="only models that the page does not have")
    parser.add_argument("--seconds", type=float, default=0.0, help="no new model after that; 0: no limit")
    parser.add_argument("--write", action="store_true", help=f"write {PAGE.name}")
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    began, wrong, count = time.monotonic(), 0, 0
    there = known() if asked.missing else {}
    for package in asked.packages or MAKERS:
        for name in names_of(package):
            if (asked.only and name not in asked.only) or (package, name) in there:
                continue
            if asked.seconds and time.monotonic() - began > asked.seconds:
                break
            count += 1
            try:
                row = median_of_seeds(MAKERS[package], name)
            except Exception as error:
                print(f"FAILED {package} {name}: {type(error).__name__}: {str(error)[:300]}", flush=True)
                wrong += 1
                continue
            print(f"{'right' if is_right(row) else 'WRONG'} {as_text(package, name, row)}", flush=True)
            wrong += not is_right(row)
            if asked.write and is_right(row):
                write({(package, name): as_text(package, name, row)})
    print(f"{count - wrong} of {count} right")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
