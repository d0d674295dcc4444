"""WGSL: naga takes every golden text, kernels compute what NumPy does, and what WGSL has not is said."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tests.golden.__main__ import path_of
from tests.golden.gpu import REFUSED
from tests.golden.record import read
from tests.support.webgpu import computed, parsed, webgpu
from tinyexplore import Tensor, dtypes
from tinyexplore.codegen import lower
from tinyexplore.device import Device
from tinyexplore.kernel import Kernel
from tinyexplore.renderer import RenderError
from tinyexplore.schedule import create_schedule
from tinyexplore.util import Context

RANDOM = np.random.default_rng(0)
A, B = (RANDOM.standard_normal((37, 53)).astype("float32") for _ in range(2))
K, L = (RANDOM.integers(-50, 50, (37, 53)).astype("int32") for _ in range(2))
U = RANDOM.integers(0, 1 << 32, (37, 53)).astype("uint32")
PROGRAMS: dict[str, tuple[Callable[..., Tensor], tuple[np.ndarray, ...]]] = {
    "elementwise": (lambda a, b: (a + b * 2).exp(), (A, B)),
    "functions": (lambda a: a.sin() + a.cos() + (a * 10).tanh() + a.abs().log2() + a.erf(), (A,)),
    "powers, of what is below 0 too": (lambda a, k: a**k, (A, (L % 5).astype("float32"))),
    "NaN and infinities": (lambda a: a.log().maximum(a) + (a > 2).where(float("inf"), a), (A,)),
    "roundings, which compilers may cancel": (lambda a: (a * 10).round() + (a * 10).trunc() + a.floor(), (A,)),
    "integers, divided by 0 too": (lambda a, b: a // b + a % b + ((a << 3) >> 1) + (a ^ b), (K, L)),
    "unsigned": (lambda a: (a * a + 7).cast(dtypes.float32) + (-a).cast(dtypes.float32), (U,)),
    "conversions": (lambda a: (a * 10).cast(dtypes.int32) + a.bitcast(dtypes.int32), (A,)),
    "conditions": (lambda a, b: ((a > 0) ^ (b > 0)).where(a.isnan().where(1, a), b), (A, B)),
    "padding": (lambda a: a.pad(((1, 2), (3, 4))), (A,)),
    "reductions in shared memory": (lambda a: a.softmax(1) + a.max(0), (A,)),
    "places": (lambda a: a.argmax(1), (A,)),
    "a product": (lambda a, b: a @ b.T, (A, B)),
    "a gather": (lambda a, k: a[k.abs() % 37], (A, K[0])),
}


@pytest.mark.parametrize(
    "title", [title for title, text in read(path_of("wgsl")).items() if not text.startswith(REFUSED)]
)
def test_naga_takes_every_text(title: str) -> None:
    assert parsed(read(path_of("wgsl"))[title]) is not None


@pytest.mark.parametrize("name", PROGRAMS)
def test_wgsl_computes_what_numpy_and_the_cpu_do(name: str) -> None:
    webgpu()
    program, arrays = PROGRAMS[name]
    wanted = program(*[Tensor(one) for one in arrays]).numpy().ravel()
    for with_opts in (True, False):
        with Context(TARGET="webgpu", DEVICE="LLVM"):
            result = program(*[Tensor(one) for one in arrays])
        np.testing.assert_allclose(computed(result, with_opts=with_opts), wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("program", "words"),
    [
        (lambda: Tensor(A).cast(dtypes.float64), "float64: webgpu does not compute with it; cast to another type"),
        (lambda: Tensor(A).cast(dtypes.float16), "float16: webgpu does not compute with it"),
        (lambda: Tensor(K).cast(dtypes.int8), "int8: webgpu does not compute with it"),
        (lambda: Tensor(K).cast(dtypes.int64), "int64: WGSL has integers of 32 bits, and these may need more; cast to"),
        (lambda: Tensor(A) > 0, "bool: elements of a buffer of bools have 8 bits, and memory of WGSL has none below"),
    ],
)
def test_types_that_wgsl_has_not_are_an_error_at_the_call(program: Callable[[], Tensor], words: str) -> None:
    with Context(TARGET="webgpu", DEVICE="LLVM"):
        (item,) = create_schedule([program().lazydata])
        kernel = Kernel.of(item.ast, Device["LLVM"].target)
        with pytest.raises(RenderError, match=words):
            Device["LLVM"].renderer.render(kernel.name, lower(kernel))
