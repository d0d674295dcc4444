"""The wide table: common operations and layers that are in no list of aims, with a module for each engine.

`DIFFERENTIATED` maps families to the inputs whose gradients are the results. The gradients are those of sum(output ·
g), or of the output if there is no input g. A family whose name ends in `_bf16` has its floats in bfloat16.
"""

from __future__ import annotations

DIFFERENTIATED: dict[str, tuple[str, ...]] = {
    "group_norm_bwd": ("x", "w", "b"),
    "batch_norm_bwd": ("x", "w", "b"),
    "layer_norm_bwd": ("x", "w", "b"),
    "linear_gelu_bwd": ("x", "w", "b"),
    "conv3x3_bwd": ("x", "w", "b"),
    "max_pool_bwd": ("x",),
    "embedding_bwd": ("table",),
    "attention_bwd": ("q", "k", "v"),
    "cross_entropy_bwd": ("x",),
}
NORM_GROUPS = 8
TOP = 10
LEVELS_PER_UNIT = 20  # levels per unit of a value that is quantized to int8


def is_bfloat16(family: str) -> bool:
    return family.endswith("_bf16")
