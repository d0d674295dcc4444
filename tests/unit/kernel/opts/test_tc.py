"""TC: sums of products of bfloat16 and int8 by dot instructions, if the CPU has them, otherwise by arithmetic."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.ops.support import thorough
from tinyexplore import Context, Device, Tensor, dtypes
from tinyexplore.codegen import lower
from tinyexplore.compile.compiler import choose_opts
from tinyexplore.kernel import Kernel, Opt, OptError, OptOps, apply_heuristics, apply_opt, available_opts, undo_opt
from tinyexplore.uop import OpGroups, Ops
from tinyexplore.uop.semantics import evaluate


def product(dtype: str, m: int, n: int, k: int, device: str = "LLVM") -> tuple[Tensor, np.ndarray]:
    """A product of random matrices, the second one transposed in memory, and what it should be."""
    rng = np.random.default_rng(m * 1000003 + n * 1009 + k)
    a, b = rng.integers(-128, 128, (m, k)), rng.integers(-128, 128, (n, k))
    x, y = (Tensor(one.astype(np.int8), device=device) for one in (a, b))
    if dtype == "bfloat16":
        x, y = x.cast(dtypes.bfloat16).realize(), y.cast(dtypes.bfloat16).realize()
        return x.matmul(y.T, acc_dtype=dtypes.float32), a @ b.T
    return x.matmul(y.T, acc_dtype=dtypes.int32), a @ b.T


def opts_of(result: Tensor) -> list[OptOps]:
    (item,) = result.schedule()
    assert item.ast is not None
    return [opt.op for opt in choose_opts(item.device, item.ast).applied]


@thorough
@given(
    st.sampled_from(["bfloat16", "int8"]), *[st.integers(1, 90)] * 3, st.sampled_from([0, 1]), st.sampled_from([1, 2])
)
def test_products_with_remainders_are_exact(dtype: str, m: int, n: int, k: int, opt: int, tc: int) -> None:
    """Whole numbers of 8 bits: every sum of their products is exact in float32, in any order."""
    with Context(TC=tc, TC_OPT=opt):
        found, expected = product(dtype, m, n, k)
        np.testing.assert_array_equal(found.numpy(), expected)


@pytest.mark.parametrize("device", ["LLVM", "CLANG", "PYTHON"])
@pytest.mark.parametrize("dtype", ["bfloat16", "int8"])
def test_devices_without_dot_products_use_plain_operations(device: str, dtype: str) -> None:
    if device not in Device.available():
        pytest.skip(f"{device} does not open here")
    with Context(TC=2):
        found, expected = product(dtype, 20, 32, 44, device)
        np.testing.assert_array_equal(found.numpy(), expected)


def test_large_products_use_dot_products_and_read_narrow_operands_directly() -> None:
    for dtype, amount in (("bfloat16", 2), ("int8", 4)):
        with Context(TC=2):
            found, _ = product(dtype, 64, 64, 64)
            assert OptOps.TC in opts_of(found)
            odd, _ = product(dtype, 64, 64, 64 + amount - 1)
            assert len(odd.schedule()) > 1, "TC_OPT=0 wants sums without a rest"
            with Context(TC_OPT=1):
                assert OptOps.TC in opts_of(product(dtype, 64, 64, 64 + amount - 1)[0])
        with Context(TC=0):
            found, expected = product(dtype, 64, 64, 64)
            assert len(found.schedule()) == 3, "both factors are converted first"
            np.testing.assert_array_equal(found.numpy(), expected)


def test_legal_tensor_core_opts_and_errors_of_illegal_ones() -> None:
    with Context(TC=2):
        (item,) = product("bfloat16", 32, 48, 64)[0].schedule()
        assert item.ast is not None
        kernel = Kernel.of(item.ast, Device["LLVM"].target)
        assert [opt for opt in available_opts(kernel) if opt.op is OptOps.TC and opt.amount < 32] == [
            Opt(OptOps.TC, 2, 2)
        ]
        assert undo_opt(apply_opt(kernel, Opt(OptOps.TC, 2, 2))).ast is kernel.ast
        with pytest.raises(OptError, match="a word holds 2"):
            apply_opt(kernel, Opt(OptOps.TC, 2, 4))
        with pytest.raises(OptError, match="needs a reduction loop"):
            apply_opt(kernel, Opt(OptOps.TC, 0, 2))
        (plain,) = (Tensor.ones(32, 32).contiguous().realize() @ Tensor.ones(32, 32).contiguous().realize()).schedule()
        assert plain.ast is not None
        with pytest.raises(OptError, match="LLVM has a dot instruction"):
            apply_opt(Kernel.of(plain.ast, Device["LLVM"].target), Opt(OptOps.TC, 2, 2))


def test_dot_products_of_words_follow_their_definition() -> None:
    x, y = (int.from_bytes(np.int8(one).tobytes(), "little") for one in ([1, -2, 127, -128], [5, 6, -128, -128]))
    assert evaluate(Ops.DOT_I8, dtypes.int32, x, y, 7) == 7 + 5 - 12 - 127 * 128 + 128 * 128
    assert evaluate(Ops.DOT_U8, dtypes.int32, x, y, 7) == 7 + 5 + 254 * 6 - 127 * 128 - 128 * 128
    word = (0x4040 << 16) | 0x3F80  # 3 and 1
    assert evaluate(Ops.DOT_BF16, dtypes.float32, word, word, 0.5) == 10.5


def test_sums_of_unsigned_factors_are_corrected_at_the_end() -> None:
    """One sum of the second factor for all rows, outside their loop, and no subtraction inside."""
    with Context(TARGET="cascadelake,threads=2,l1=32K,l2=1M"):
        found, _ = product("int8", 64, 64, 64)
        (item,) = found.schedule()
        kernel = apply_heuristics(Kernel.of(item.ast, Device["LLVM"].target))
    assert OptOps.TC in [opt.op for opt in kernel.applied]
    program = lower(kernel)
    dots = [node for node in program if node.op in OpGroups.DOT]
    assert {node.op for node in dots} == {Ops.DOT_U8}
    columns = [node for node in dots if node.src[0].op is Ops.CONST]
    assert len(dots) > 4 * len(columns) > 0
    assert all(node.src[2].op is Ops.DEFINE_ACC for node in dots)
    with Context(TC=2):
        assert not [node for node in lower(kernel) if node.op in OpGroups.DOT]


@pytest.mark.parametrize("shape", [(1, 64, 512), (6, 64, 512), (96, 80, 260), (64, 64, 2048), (7, 16, 40)])
def test_the_extremes_of_bytes_sum_exactly(shape: tuple[int, int, int]) -> None:
    m, n, k = shape
    for a, b in ((-128, -128), (127, -128), (-128, 127)):
        x, y = (Tensor(np.full(one, value, np.int8)) for one, value in (((m, k), a), ((k, n), b)))
        np.testing.assert_array_equal(x.matmul(y, acc_dtype=dtypes.int32).numpy(), np.full((m, n), k * a * b))


def test_infinities_and_nans_of_bfloat16_pass_through() -> None:
    a = np.zeros((16, 64), np.float32)
    a[0, 3], a[1, 5], a[2, 7] = np.inf, np.nan, 1e30
    b = np.ones((64, 64), np.float32)
    with np.errstate(invalid="ignore"):
        found = (Tensor(a).bfloat16().realize() @ Tensor(b).bfloat16().realize()).float().numpy()
    assert np.isinf(found[0]).all() and np.isnan(found[1]).all() and (found[3:] == 0).all()
    np.testing.assert_allclose(found[2], 1e30, rtol=1e-2)
