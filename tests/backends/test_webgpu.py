"""The WEBGPU device: naga accepts every golden text, kernels agree with NumPy, and missing features raise errors."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.backends.programs import GPUS, call, compiled, device, elementwise
from tests.golden.__main__ import path_of
from tests.golden.gpu import REFUSED
from tests.golden.record import read
from tests.support.limits import is_declared
from tinyexplore import Context, Device, Tensor, TinyJit, Variable, dtypes, explore
from tinyexplore.codegen import lower
from tinyexplore.device import DeviceUnavailable
from tinyexplore.engine import compile_optimized, create_schedule
from tinyexplore.execute.execitem import ExecItem
from tinyexplore.kernel import Kernel, apply_heuristics
from tinyexplore.renderer import ProgramSpec, RenderError
from tinyexplore.renderer.gpu import wgsl
from tinyexplore.renderer.program import Launch
from tinyexplore.runtime import webgpu
from tinyexplore.runtime.errors import CompileError
from tinyexplore.trace import SourceLine
from tinyexplore.uop import Ops, UOp

has_driver = pytest.mark.skipif(
    "WEBGPU" not in GPUS, reason="no Vulkan driver; Debian: apt-get install mesa-vulkan-drivers"
)
RANDOM = np.random.default_rng(0)
A, B = (RANDOM.standard_normal((37, 53)).astype("float32") for _ in range(2))
K, L = (RANDOM.integers(-50, 50, (37, 53)).astype("int32") for _ in range(2))
U = RANDOM.integers(0, 1 << 32, (37, 53)).astype("uint32")
PROGRAMS: dict[str, tuple[Callable[..., Tensor], tuple[np.ndarray, ...]]] = {
    "elementwise": (lambda a, b: (a + b * 2).exp(), (A, B)),
    "functions": (lambda a: a.sin() + a.cos() + (a * 10).tanh() + a.abs().log2() + a.erf(), (A,)),
    "powers, of what is below 0 too": (lambda a, k: a**k, (A, (L % 5).astype("float32"))),
    "NaN and infinities": (lambda a: a.log().maximum(a) + (a > 2).where(float("inf"), a) + a.sqrt().isnan(), (A,)),
    "roundings, which compilers may cancel": (lambda a: (a * 10).round() + (a * 10).trunc() + a.floor(), (A,)),
    "remainders, exact": (lambda a, b: (a * 1e20) % b, (A, B)),
    "integers, divided by 0 too": (lambda a, b: a // b + a % b + ((a << 3) >> 1) + (a ^ b), (K, L)),
    "unsigned": (lambda a: (a * a + 7).cast(dtypes.float32) + (-a).cast(dtypes.float32), (U,)),
    "conversions": (lambda a: (a * 10).cast(dtypes.int32) + a.bitcast(dtypes.int32), (A,)),
    "conditions": (lambda a, b: ((a > 0) ^ (b > 0)).where(a.isnan().where(1, a), b), (A, B)),
    "bools in memory": (lambda a, b: (a > 0).contiguous() & (b > 0).contiguous(), (A, B)),
    "padding": (lambda a: a.pad(((1, 2), (3, 4))), (A,)),
    "reductions in shared memory": (lambda a: a.softmax(1) + a.max(0), (A,)),
    "places": (lambda a: a.argmax(1), (A,)),
    "a product": (lambda a, b: a @ b.T, (A, B)),
    "a gather": (lambda a, k: a[k.abs() % 37], (A, K[0])),
}


@has_driver
@pytest.mark.parametrize(
    "title", [title for title, text in read(path_of("wgsl")).items() if not text.startswith(REFUSED)]
)
def test_naga_accepts_every_text(title: str) -> None:
    opened: webgpu.WebGPU = device("WEBGPU").compile.__self__  # type: ignore[attr-defined]
    assert opened.device.create_shader_module(code=read(path_of("wgsl"))[title]) is not None


@has_driver
@pytest.mark.parametrize("name", PROGRAMS)
def test_webgpu_agrees_with_the_cpu(name: str) -> None:
    program, arrays = PROGRAMS[name]
    wanted = program(*[Tensor(one, device="LLVM") for one in arrays]).numpy()
    for noopt in (0, 1):
        with Context(NOOPT=noopt):
            found = program(*[Tensor(one, device="WEBGPU") for one in arrays]).numpy()
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)


@has_driver
def test_more_groups_than_one_dimension_has_are_counted_in_one_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wgsl, "MAX_GROUPS", 7)
    array = A[:31, :47].copy()  # of a shape that no other test has: a program is compiled once in a process
    x = Tensor(array, device="WEBGPU")
    np.testing.assert_array_equal((x * 3).numpy(), array * 3)  # one dimension
    np.testing.assert_array_equal(x.T.contiguous().numpy(), array.T)  # two
    np.testing.assert_allclose((x + 1).sum(1).numpy(), (array + 1).sum(1), rtol=1e-5)  # with barriers
    with Context(NOOPT=1):  # where the runtime says what a group is
        np.testing.assert_array_equal((x.T + 1).contiguous().numpy(), array.T + 1)
    size = Variable("size", 1, 31)
    assert abs((x[: size.bind(20)] * 2).sum().item() - array[:20].sum() * 2) < 1e-3


def test_groups_are_counted_in_one_number_where_a_dimension_is_too_large() -> None:
    with Context(TARGET="webgpu", DEVICE="LLVM"):
        for size, spread in ((1 << 20, False), (1 << 27, True)):
            (item,) = create_schedule([(Tensor.empty(size) + 1).lazydata])
            uops = lower(apply_heuristics(Kernel.of(item.ast, Device["LLVM"].target)))
            launch = Launch.of(uops)
            assert wgsl.is_spread(launch) is spread
            assert max(wgsl.group_counts(launch)) <= 65_535
            assert np.prod(wgsl.group_counts(launch)) >= np.prod(launch.sizes())


@has_driver
def test_a_jit_replays_and_variables_are_uniforms() -> None:
    @TinyJit
    def step(x: Tensor) -> Tensor:
        return (x * 2 + 1).softmax().realize()

    for factor in range(1, 5):
        x = Tensor(A * factor, device="WEBGPU")
        np.testing.assert_allclose(step(x).numpy(), (x.to("LLVM") * 2 + 1).softmax().numpy(), rtol=1e-4, atol=1e-6)
    size = Variable("size", 1, 37)
    x = Tensor(A, device="WEBGPU")
    for bound in (1, 20, 37):
        assert abs((x[: size.bind(bound)] * 2).sum().item() - A[:bound].sum() * 2) < 1e-3
    assert Tensor.zeros(0, 3, device="WEBGPU").sum().item() == 0
    Device["WEBGPU"].synchronize()


@has_driver
def test_kernels_are_timed_by_the_devices_clock() -> None:
    """Where it has one; copies of buffers are not counted."""
    opened: webgpu.WebGPU = device("WEBGPU").compile.__self__  # type: ignore[attr-defined]
    (item,) = create_schedule([(Tensor(A, device="WEBGPU") @ Tensor(B.T.copy(), device="WEBGPU")).lazydata])
    assert item.ast is not None
    runner = compile_optimized("WEBGPU", apply_heuristics(Kernel.of(item.ast, device("WEBGPU").target)))
    ready = ExecItem(item, runner, None, item.buffers)
    (seconds,) = ready.measure(1)
    bound: Any = ready.bound
    assert bound is not None
    if opened.nanoseconds:
        assert 0 < seconds and 0 < bound.timed()
    else:
        assert bound.timed() == 0 < seconds


@has_driver
def test_the_explorer_shows_its_kernels() -> None:
    view = explore(lambda x: (x + 1).sum(1), Tensor(A, device="WEBGPU"))
    last = len(view.trace.kernels) - 1
    assert "wgsl" in [program.language for program in view.trace.programs if program.kernel == last]


# *** what it lacks ***


@has_driver
@pytest.mark.parametrize(
    ("program", "words"),
    [
        (lambda x, k: x.cast(dtypes.float64), "float64: .*cast to"),
        (lambda x, k: x.cast(dtypes.float16), "float16: .* does not compute with it"),
        (lambda x, k: k.cast(dtypes.int8), "int8: .* does not compute with it"),
        (lambda x, k: k.cast(dtypes.int64), "int64: .*32 bits.*cast to"),
    ],
)
def test_dtypes_that_wgsl_lacks_raise_an_error_at_the_call(program: Callable[..., Tensor], words: str) -> None:
    with pytest.raises(RenderError, match=words) as found:
        program(Tensor(A, device="WEBGPU"), Tensor(K, device="WEBGPU")).realize()
    assert is_declared("WEBGPU", found.value)


@has_driver
def test_a_text_that_does_not_compile_is_an_error_with_its_line() -> None:
    uops, _ = elementwise([dtypes.float32], lambda x: [x[0] * 2.0], 8)
    opened = device("WEBGPU")
    spec: ProgramSpec = opened.renderer.render("wrong", uops)
    lines = [line._replace(text=line.text.replace(": f32 =", ": i32 =")) for line in spec.lines]
    edited = SimpleNamespace(uops=spec.uops, writes=spec.writes, name=spec.name, source=_source(lines))
    with pytest.raises(CompileError, match=r"(?s)could not compile.*\nline \d+: let v\d+: i32 = "):
        opened.compile(edited)


def _source(lines: list[SourceLine]) -> str:
    return "\n".join(line.text for line in lines)


@has_driver
def test_too_many_buffers_or_too_much_memory_raise_an_error() -> None:
    opened: webgpu.WebGPU = device("WEBGPU").compile.__self__  # type: ignore[attr-defined]
    count = opened.limits["max-storage-buffers-per-shader-stage"]
    uops, _ = elementwise([dtypes.float32] * count, lambda x: [_sum(x)], 4)
    with pytest.raises(CompileError, match=rf"{count + 1} buffers, and .* supports {count}"):
        compiled("WEBGPU", uops)
    with pytest.raises(MemoryError, match=r"[\d,]+ bytes exceeds the limit"):
        (Tensor.empty(opened.most_bytes // 4 + 64, device="WEBGPU") + 1).realize()


def _sum(values: list[UOp]) -> UOp:
    total = values[0]
    for value in values[1:]:
        total = total.alu(Ops.ADD, value)
    return total


@has_driver
def test_elements_that_a_kernel_does_not_write_are_unchanged() -> None:
    from tests.backends.programs import end, linear, load, loop, pointer, store

    for dtype, one in ((dtypes.float32, 5.0), (dtypes.bool, True)):
        out, source = pointer(0, dtype, 9), pointer(1, dtype, 4)
        step = loop(4)
        uops = linear(out, source, step, store(out, step * 2, load(source, step)), end(step))
        (found,) = call(compiled("WEBGPU", uops), [(dtype, [one] * 9)], [(dtype, [type(one)(0)] * 4)])
        assert found == [one if place % 2 or place == 8 else type(one)(0) for place in range(9)]


def test_a_missing_package_or_driver_raises_an_error_with_a_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    with Context(TARGET="sm_80"), pytest.raises(DeviceUnavailable, match="the WEBGPU device runs WGSL, not cuda"):
        webgpu.open_webgpu()
    monkeypatch.setitem(sys.modules, "wgpu", None)
    with pytest.raises(DeviceUnavailable, match=r"pip install 'tinyexplore\[webgpu\]'"):
        webgpu.open_webgpu()
    without_driver = SimpleNamespace(gpu=SimpleNamespace(enumerate_adapters_sync=list))
    monkeypatch.setitem(sys.modules, "wgpu", without_driver)
    monkeypatch.setitem(sys.modules, "wgpu.backends.wgpu_native.extras", None)
    with pytest.raises(DeviceUnavailable, match="Debian: apt-get install mesa-vulkan-drivers"):
        webgpu.open_webgpu()


@has_driver
def test_drivers_print_no_warning_without_a_display() -> None:
    asked = "import os; from tinyexplore import Device; Device['WEBGPU']; assert 'XDG_RUNTIME_DIR' not in os.environ"
    bare = {name: value for name, value in os.environ.items() if name != "XDG_RUNTIME_DIR"}
    done = subprocess.run([sys.executable, "-c", asked], env=bare, capture_output=True, text=True, check=True)
    assert done.stderr == ""
