"""The API names with a row in the table, and the reasons why the others have none."""

from __future__ import annotations

from collections.abc import Sequence

from tests.support.api_coverage import api_names
from tests.torch.compare import Row

SECTIONS = ("Tensor", "Tensor operators", "Tensor, later", "nn", "nn.optim", "nn.state", "dtypes")

NO_EQUAL = {
    "random: only shapes and distributions can be compared": (
        "dropout glorot_uniform kaiming_normal kaiming_uniform manual_seed multinomial normal randint randperm "
        "scaled_uniform uniform rand randn rand_like randn_like"
    ),
    "about this engine": (
        "contiguous_backward from_node schedule schedule_with_vars shard shard_ to_ llvm clang python cuda gpu "
        "llvm_bf16_cast replace from_blob from_url"
    ),
    "says or keeps something, computes nothing": "__hash__ __init__ __repr__ gradient",
    "PyTorch has none": (
        "rearrange LARS LAMB OptimizerGroup safe_load_metadata safe_load safe_save get_state_dict get_parameters "
        "load_state_dict gguf_load"
    ),
    "PyTorch's rounds to bfloat16 on the way and averages the momentum": "Muon",
    "other names of dtypes, or made by this library": (
        "char default_float default_int double half long pyint short uchar uint ulong ushort from_py as_const fields "
        "imageh imagef min max"
    ),
}


def missing(rows: Sequence[Row]) -> list[str]:
    """Names without a row or a reason, and reasons for names that there are not."""
    covered = {name for row in rows for name in row.names}
    excused = {name for names in NO_EQUAL.values() for name in names.split()}
    names = {name for section, names in api_names().items() if section in SECTIONS for name in names}
    return sorted(names - covered - excused) + sorted(f"{name} (no such name)" for name in excused - names)
