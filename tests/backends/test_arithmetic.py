"""Every operation on every dtype, on all devices, scalar and vector, against its definition."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.backends.programs import DEVICES, EMULATED, GPUS, OPENCL_CPUS, WIDTHS_OF_OPENCL, call, compiled, elementwise
from tests.backends.programs import device as open_device
from tests.support.limits import OPERATIONS, TYPES, WGSL_ERRORS, has, has_operation, is_declared
from tinyexplore import Tensor
from tinyexplore.codegen import PASSES
from tinyexplore.codegen.lowering import Lowering
from tinyexplore.dtype import DType, dtypes
from tinyexplore.renderer import RenderError
from tinyexplore.target import Target
from tinyexplore.uop import OpGroups, Ops, UOp
from tinyexplore.uop.semantics import cast, evaluate, to_dtype_range

SIZE = 16
SMALLEST_NORMAL = 2.0**-126  # of float32
EXACT_FLOAT = (Ops.NEG, Ops.FLOOR, Ops.ADD, Ops.MUL, Ops.FDIV, Ops.SQRT, Ops.MAX, Ops.MIN)
CLOSE_FLOAT = (Ops.EXP, Ops.EXP2, Ops.LOG, Ops.LOG2, Ops.SIN, Ops.COS, Ops.TANH, Ops.ERF, Ops.POW, Ops.MOD, Ops.MULACC)
COMPARE = (Ops.CMPLT, Ops.CMPLE, Ops.CMPEQ, Ops.CMPNE)
INT = (Ops.NEG, Ops.ADD, Ops.MUL, Ops.IDIV, Ops.MOD, Ops.MAX, Ops.MIN, Ops.AND, Ops.OR, Ops.XOR, Ops.MULACC)
BOOL = (Ops.ADD, Ops.MUL, Ops.MAX, Ops.MIN, Ops.AND, Ops.OR, Ops.XOR, Ops.MULACC)


def operations(dtype: DType, device: str = "") -> tuple[Ops, ...]:
    return tuple(op for op in all_operations(dtype) if has_operation(device, dtype, op))


def all_operations(dtype: DType) -> tuple[Ops, ...]:
    if dtypes.is_float(dtype):
        return (*EXACT_FLOAT, *CLOSE_FLOAT, *COMPARE, Ops.WHERE)
    if dtypes.is_bool(dtype):
        return (*BOOL, *COMPARE, Ops.WHERE)
    return (*INT, *COMPARE, Ops.WHERE, Ops.SHL, Ops.SHR)


def arity(op: Ops) -> int:
    return 1 if op in OpGroups.UNARY else 3 if op in OpGroups.TERNARY else 2


def apply(op: Ops, x: UOp, y: UOp, z: UOp) -> UOp:
    if op is Ops.WHERE:
        return (x < y).where(y, z)
    if op in (Ops.SHL, Ops.SHR):
        return x.alu(op, y & (x.dtype.bits - 1))  # type: ignore[union-attr]
    return x.alu(op, *(y, z)[: arity(op) - 1])


def meaning(op: Ops, dtype: DType, x: Any, y: Any, z: Any) -> Any:
    if op is Ops.WHERE:
        return y if x < y else z
    if op in (Ops.SHL, Ops.SHR):
        y = to_dtype_range(y & (dtype.bits - 1), dtype)
    result = dtypes.bool if op in OpGroups.COMPARE else dtype
    return evaluate(op, result, *(x, y, z)[: arity(op)], src_dtypes=(dtype,) * arity(op))


def values_of(dtype: DType) -> st.SearchStrategy[Any]:
    """Anything that `dtype` holds, the extreme and the special ones often."""
    if dtypes.is_bool(dtype):
        return st.booleans()
    if dtypes.is_int(dtype):
        low, high = int(dtypes.min(dtype)), int(dtypes.max(dtype))
        special = st.sampled_from(sorted({low, low + 1, 0, 1, high - 1, high, 7, max(low, -1), max(low, -7)}))
        return special | st.integers(low, high)
    special = [
        0.0,
        -0.0,
        1.0,
        -1.0,
        0.5,
        2.0,
        -2.5,
        3.0,
        math.inf,
        -math.inf,
        math.nan,
        1e-40,
        -1e30,
        1e5,
        65504.0,
        65520.0,
    ]
    everyday = st.floats(-30, 30)
    return (st.sampled_from(special) | everyday | st.floats()).map(lambda value: to_dtype_range(value, dtype))


def same(found: Any, expected: Any, dtype: DType, op: Ops) -> bool:
    if not isinstance(expected, float):
        return type(found) is type(expected) and found == expected
    if math.isnan(expected) or math.isnan(found):
        return math.isnan(expected) and math.isnan(found)
    if found == expected:
        signed = expected != 0 or math.copysign(1, found) == math.copysign(1, expected)
        return signed or op in (Ops.MAX, Ops.MIN, Ops.MULACC)  # which zero they give is not said
    digits = {dtypes.float16: 10, dtypes.bfloat16: 7, dtypes.float32: 23, dtypes.float64: 52}[dtype]
    least = {dtypes.float16: 2.0**-24, dtypes.bfloat16: 2.0**-133, dtypes.float32: 2.0**-149, dtypes.float64: 5e-324}[
        dtype
    ]
    return op in CLOSE_FLOAT and abs(found - expected) <= 4 * max(abs(expected) * 2.0**-digits, least)


def written_out(value: UOp, target: Target) -> UOp:
    """`value` as the passes leave it that write out what the target lacks."""
    for step in PASSES:
        if step.name in ("widen small floats", "transcendental functions"):
            value = step.run(value, Lowering(target))
    return value


@cache
def program(device: str, dtype: DType, lanes: int) -> Any:
    target = open_device(device).target

    def results(xyz: list[UOp]) -> list[UOp]:
        found = [apply(op, *xyz) for op in operations(dtype, device)]
        return [written_out(value, target) for value in found] if device in ("WASM", "WEBGPU") else found

    uops, outputs = elementwise([dtype] * 3, results, SIZE, lanes)
    return compiled(device, uops, f"all_of_{dtype.name}"), outputs


WITH_LANES = [*((device, lanes) for device in DEVICES for lanes in (1, 4)), *((gpu, 1) for gpu in (EMULATED, *GPUS))]


EVERYTHING = [(*pair, dtype) for dtype in dtypes.all for pair in WITH_LANES if has(pair[0], dtype)]
SELECTED_TYPES = (dtypes.float32, dtypes.float16, dtypes.int64, dtypes.bool, dtypes.uint8, dtypes.float64)
OF_OPENCL = [
    (device, lanes, dtype)
    for device in OPENCL_CPUS
    for place, dtype in enumerate(dtypes.all if WIDTHS_OF_OPENCL else SELECTED_TYPES)
    for lanes in WIDTHS_OF_OPENCL or ((16, 4, 8, 2)[place % 4],)
]
EVERYTHING += OF_OPENCL


@pytest.mark.parametrize("device, lanes, dtype", EVERYTHING, ids=lambda value: getattr(value, "name", str(value)))
@settings(max_examples=12, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_every_operation_is_equal_on_every_device(device: str, dtype: DType, lanes: int, data: st.DataObject) -> None:
    columns = [data.draw(st.lists(values_of(dtype), min_size=SIZE, max_size=SIZE)) for _ in range(3)]
    ready, outputs = program(device, dtype, lanes)
    results = call(ready, [(out, SIZE) for out in outputs], [(dtype, column) for column in columns])
    for op, found in zip(operations(dtype, device), results, strict=True):
        for row, value in enumerate(found):
            x, y, z = (column[row] for column in columns)
            expected = meaning(op, dtype, x, y, z)
            if op is Ops.MULACC and dtypes.is_float(dtype) and cancels(x, y, z):
                continue  # rounded once or twice: where product and summand cancel, the two have little in common
            if device == "WEBGPU" and dtypes.is_float(dtype) and as_wgsl_may(value, expected, op, x, y, z):
                continue
            assert same(value, expected, dtype, op), f"{op.name}({x!r}, {y!r}, {z!r}): {value!r}, expected {expected!r}"


def as_wgsl_may(found: Any, expected: Any, op: Ops, *given: float) -> bool:
    """Whether a float32 is what WGSL allows: less exact than elsewhere, and 0 for what is subnormal."""
    if any(0 < abs(x) < SMALLEST_NORMAL for x in given):
        return True
    if isinstance(expected, bool) or op not in (*WGSL_ERRORS, Ops.MUL, Ops.MULACC, Ops.MOD):
        return False
    if found == 0 and abs(expected) <= SMALLEST_NORMAL:
        return True
    if op not in WGSL_ERRORS or not math.isfinite(expected) or not math.isfinite(given[0]):
        return False
    return abs(found - expected) <= WGSL_ERRORS[op](given[0], given[1], abs(expected)) + SMALLEST_NORMAL


@pytest.mark.parametrize("device, dtype", [pair for pair in OPERATIONS if pair[0] in DEVICES], ids=str)
def test_an_operation_that_a_device_lacks_is_an_error_that_names_it(device: str, dtype: DType) -> None:
    x = Tensor([0.5, 1.5], dtype=dtype, device=device)
    calls = {Ops.SIN: x.sin, Ops.COS: x.cos, Ops.ERF: x.erf, Ops.POW: lambda: x**x}
    assert set(calls) == set(OPERATIONS[device, dtype])
    for op, call_it in calls.items():
        with pytest.raises(RenderError, match=f"(SIN|{op.name}) of dtypes.float64: .* cast to float32") as found:
            call_it().numpy()
        assert is_declared(device, found.value)


@pytest.mark.parametrize(
    "device, dtype", [(device, dtype) for device in TYPES if device in GPUS for dtype in TYPES[device]], ids=str
)
def test_a_type_that_a_device_lacks_is_an_error_that_names_it(device: str, dtype: DType) -> None:
    x = Tensor([1, 2], dtype=dtype, device=device)
    for program in (lambda: (x + x).realize(), lambda: Tensor([1, 2], device=device).cast(dtype).realize()):
        with pytest.raises(RenderError, match=f"^{dtype.name}: ") as found:
            program()
        assert is_declared(device, found.value)


def cancels(x: float, y: float, z: float) -> bool:
    product = x * y
    return not abs(product + z) > 0.2 * abs(product) or not math.isfinite(product) or abs(product) > 6e4


ON_VECTORS = [("PYTHON", 1), ("PYTHON", 4), *(("LLVM", lanes) for lanes in (2, 4, 8, 16))]
ON_VECTORS += [(device, lanes) for device in DEVICES if device.startswith("CLANG") for lanes in (1, 8)]
ON_VECTORS += [(device, lanes) for device in OPENCL_CPUS for lanes in WIDTHS_OF_OPENCL or (8,)]


@pytest.mark.parametrize("dtype", [dtypes.float32, dtypes.float64], ids=lambda dtype: dtype.name)
@pytest.mark.parametrize("device, lanes", ON_VECTORS)
def test_scale_and_table(device: str, dtype: DType, lanes: int) -> None:
    """Where they are an instruction each, and elsewhere: results that are subnormal, too large, or NaN."""
    target = open_device(device).target
    if device == "LLVM" and not target.has_scale:
        pytest.skip(f"{target.describe()}: no instructions for them")
    lanes = min(lanes, 64 // dtype.itemsize)
    numbers = tuple(to_dtype_range(2 ** (k / 7), dtype) for k in range(64 // dtype.itemsize))
    bits = dtypes.int32 if dtype is dtypes.float32 else dtypes.int64
    uops, outputs = elementwise(
        [dtype, dtype, bits],
        lambda x: [x[0].alu(Ops.SCALE, x[1]), UOp(Ops.TABLE, dtype.vec(lanes), (x[2],), numbers)],
        64,
        lanes,
    )
    least, most = (-149, 127) if dtype is dtypes.float32 else (-1074, 1023)
    xs = [to_dtype_range(x, dtype) for x in (1.0, -1.1, 1.9999, 0.0, -0.0, math.inf, math.nan, 2.0**-126 / 3)] * 8
    ns = [n for n in (0.0, -0.5, 3.9, least, least + 5.5, most, most + 1, -1e30) for _ in range(8)]
    places = [7 * k - 100 for k in range(64)]
    ready = compiled(device, uops)
    found, looked_up = call(ready, [(out, 64) for out in outputs], [(dtype, xs), (dtype, ns), (bits, places)])
    for x, n, result in zip(xs, ns, found, strict=True):
        expected = evaluate(Ops.SCALE, dtype, x, n)
        assert same(result, expected, dtype, Ops.SCALE), f"{x} * 2**floor({n}) is {result}, expected {expected}"
    assert looked_up == [numbers[place % len(numbers)] for place in places]


@cache
def casts(device: str, source: DType, lanes: int) -> Any:
    uops, outputs = elementwise(
        [source], lambda x: [x[0].cast(target.vec(lanes)) for target in dtypes.all if has(device, target)], SIZE, lanes
    )
    return compiled(device, uops, f"casts_of_{source.name}"), outputs


CASTS = [(device, lanes) for device in DEVICES for lanes in (1, 8)] + [(gpu, 1) for gpu in (EMULATED, *GPUS)]


@pytest.mark.parametrize(
    "device, lanes, source",
    [*[(*pair, dtype) for dtype in dtypes.all for pair in CASTS if has(pair[0], dtype)], *OF_OPENCL],
    ids=lambda value: getattr(value, "name", str(value)),
)
@settings(max_examples=15, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_every_conversion_is_equal_on_every_device(device: str, source: DType, lanes: int, data: st.DataObject) -> None:
    of_source = values_of(source)
    if dtypes.is_float(source):  # around the limits of the integers
        limits = [
            sign * 2.0**n + step
            for n in (7, 8, 15, 16, 31, 32, 63, 64, 70)
            for sign in (1, -1)
            for step in (0, -1, 0.5)
        ]
        of_source |= st.sampled_from([to_dtype_range(value, source) for value in limits])
    values = data.draw(st.lists(of_source, min_size=SIZE, max_size=SIZE))
    ready, outputs = casts(device, source, lanes)
    results = call(ready, [(out, SIZE) for out in outputs], [(source, values)])
    for target, found in zip([one for one in dtypes.all if has(device, one)], results, strict=True):
        for value, result in zip(values, found, strict=True):
            expected = cast(value, target, source)
            assert same(result, expected, target, Ops.CAST), f"{target.name}({value!r}): {result!r}, not {expected!r}"


PAIRS = [(a, b) for a in dtypes.all for b in dtypes.all if a.itemsize == b.itemsize and dtypes.bool not in (a, b)]


@pytest.mark.parametrize(
    "device, lanes",
    [*((device, lanes) for device in (*DEVICES, *OPENCL_CPUS) for lanes in (1, 4)), *((gpu, 1) for gpu in GPUS)],
)
def test_bitcast_preserves_bits(device: str, lanes: int) -> None:
    sources = (dtypes.float16, dtypes.bfloat16, dtypes.float32, dtypes.float64, dtypes.int8, dtypes.uint64)
    for source in [one for one in sources if has(device, one)]:
        targets = [b for a, b in PAIRS if a is source]
        uops, outputs = elementwise([source], lambda x, to=targets: [x[0].bitcast(t.vec(lanes)) for t in to], 4, lanes)
        values = [0.5, -2.0, 1.0, -0.0] if dtypes.is_float(source) else [1, 100, 0, 27]
        results = call(compiled(device, uops, "bits"), [(out, 4) for out in outputs], [(source, values)])
        for target, found in zip(targets, results, strict=True):
            expected = [evaluate(Ops.BITCAST, target, value, src_dtypes=(source,)) for value in values]
            assert [repr(x) for x in found] == [repr(x) for x in expected]
