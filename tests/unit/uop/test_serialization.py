"""UOps as plain data: reading returns the same objects, and rejects all others."""

from __future__ import annotations

import json
import math
from random import Random

import pytest

from tests.fuzz.programs import PROGRAMS
from tinyexplore.dtype import dtypes
from tinyexplore.engine import create_schedule
from tinyexplore.uop import Ops, UOp
from tinyexplore.uop.serialization import from_plain, to_plain


@pytest.mark.parametrize("name", sorted(PROGRAMS))
def test_kernels_round_trip_to_the_same_objects(name: str) -> None:
    node = PROGRAMS[name](Random(1), "LLVM").lazydata.base
    asts = [item.ast for item in create_schedule([node]) if item.ast is not None] if node.buffer is None else []
    assert from_plain(json.loads(json.dumps(to_plain(asts)))) == tuple(asts)


@pytest.mark.parametrize("value", [0.0, -0.0, math.nan, math.inf, -math.inf, 0.1, True, 1, 2**63 - 1])
def test_constants_keep_their_value_and_their_sign(value: float) -> None:
    dtype = {bool: dtypes.bool, int: dtypes.int64, float: dtypes.float64}[type(value)]
    nodes = (UOp.const(dtype, value), UOp.const(dtypes.float32.vec(4), value))
    assert from_plain(json.loads(json.dumps(to_plain(nodes)))) == nodes


@pytest.mark.parametrize(
    "data",
    [
        [],
        [[["NO_SUCH_OP", ["float32", 1], [], None]], [0]],
        [[["CONST", ["float33", 1], [], 1]], [0]],
        [[["NEG", ["float32", 1], [0], None]], [0]],
        [[["CONST", ["float32", 1], [], {"pickle": "…"}]], [0]],
        [[["CONST", ["float32", 1], [], 1]], [3]],
        {"nodes": 1},
    ],
)
def test_invalid_graphs_are_refused(data: object) -> None:
    with pytest.raises(ValueError):
        from_plain(data)  # type: ignore[arg-type]


def test_an_arg_of_an_unknown_kind_is_named() -> None:
    with pytest.raises(TypeError, match="another process"):
        to_plain([UOp(Ops.SINK, dtypes.void, (), frozenset({1}))])
