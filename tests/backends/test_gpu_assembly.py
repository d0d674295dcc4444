"""PTX and AMDGCN: LLVM compiles every operation, ptxas accepts it, and the source IR gives correct results."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.backends.programs import elementwise, from_bytes, to_bytes
from tests.backends.test_arithmetic import SIZE, apply, cancels, meaning, operations, same, values_of, written_out
from tests.backends.test_webgpu import PROGRAMS
from tests.support import nvidia
from tests.support.gpu_ir import Loaded, run
from tests.support.item_by_item import computed_by
from tinyexplore import Tensor, Variable
from tinyexplore.codegen import lower
from tinyexplore.dtype import DType, dtypes
from tinyexplore.engine import create_schedule
from tinyexplore.explore import explore
from tinyexplore.kernel import Kernel, Opt, OptOps, apply_opt
from tinyexplore.renderer import RenderError
from tinyexplore.renderer.program import spec_of
from tinyexplore.runtime.gpu import gpu_target
from tinyexplore.runtime.gpu_assembly import GPUAssembler, assembly_listings
from tinyexplore.target import GPUS, Target
from tinyexplore.uop import Ops, UOp
from tinyexplore.util import Context

LACKING = {dtypes.float64: (Ops.SIN, Ops.COS, Ops.ERF, Ops.POW)}  # a declared limit


def target_of(name: str) -> Target:
    return gpu_target("LLVM", GPUS[name], name, name)


def all_of(dtype: DType, target: Target) -> tuple[list[UOp], list[DType], list[Ops]]:
    """A program of one work-item with every operation on a dtype."""
    ops = [op for op in operations(dtype) if op not in LACKING.get(dtype, ())]
    uops, outputs = elementwise([dtype] * 3, lambda xyz: [written_out(apply(op, *xyz), target) for op in ops], SIZE)
    return uops, outputs, ops


@pytest.mark.parametrize(
    "name, types", [("sm_75", dtypes.all), ("gfx1100", (dtypes.bool, dtypes.int64, dtypes.float32))]
)
def test_every_operation_on_every_dtype_is_assembled(name: str, types: tuple[DType, ...], tmp_path: Path) -> None:
    target = target_of(name)
    for dtype in types:
        uops, _, _ = all_of(dtype, target)
        spec = GPUAssembler(target).render("all_of_them", uops)
        (tmp_path / f"{dtype.name}.ptx").write_text(spec.source)
        assert spec.lines[-1].text.split()[0] == ("}" if spec.language == "ptx" else "s_endpgm")
    if spec.language == "ptx":
        assert name in nvidia.known_machines("ptxas")
        for path in sorted(tmp_path.iterdir()):
            assert not nvidia.refusal([nvidia.tool("ptxas"), "-arch", name, str(path), "-o", str(tmp_path / "out")])


@cache
def loaded(dtype: DType) -> tuple[Loaded, list[DType], list[Ops]]:
    """The same program, as the IR that PTX is made of, for this machine's processor."""
    uops, outputs, ops = all_of(dtype, target_of("sm_80"))
    return Loaded(spec_of("all_of_them", target_of("sm_80"), uops, "cuda", (), "")), outputs, ops


@pytest.mark.parametrize("dtype", dtypes.all, ids=lambda dtype: dtype.name)
@settings(max_examples=3, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_the_ir_of_every_operation_follows_its_definition(dtype: DType, data: st.DataObject) -> None:
    columns = [data.draw(st.lists(values_of(dtype), min_size=SIZE, max_size=SIZE)) for _ in range(3)]
    program, outputs, ops = loaded(dtype)
    empty = [np.zeros(SIZE * out.itemsize, np.uint8) for out in outputs]
    given_bytes = [np.frombuffer(to_bytes(column, dtype), np.uint8) for column in columns]
    for op, out, found in zip(ops, outputs, program([*empty, *given_bytes])):
        for row, value in enumerate(from_bytes(found.tobytes(), out)):
            x, y, z = (column[row] for column in columns)
            if op is Ops.MULACC and dtypes.is_float(dtype) and cancels(x, y, z):
                continue  # rounded once or twice
            expected = meaning(op, dtype, x, y, z)
            assert same(value, expected, dtype, op), f"{op.name}({x!r}, {y!r}, {z!r}): {value!r}, expected {expected!r}"


@pytest.mark.parametrize(
    "name, target", [*((name, "sm_80") for name in PROGRAMS), ("reductions in shared memory", "gfx90a")]
)
def test_the_ir_of_kernels_agrees_with_the_cpu(name: str, target: str) -> None:
    program, arrays = PROGRAMS[name]
    wanted = program(*[Tensor(one) for one in arrays]).numpy().ravel()
    for with_opts in (True, False):
        with Context(TARGET=target, DEVICE="LLVM"):
            result = program(*[Tensor(one) for one in arrays])
        found = computed_by(run, target, result, with_opts=with_opts)
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)


def kernel_for(target: str, result: Tensor, *opts: Opt) -> tuple[str, list[UOp]]:
    """The one kernel of a tensor made where TARGET is in force, with these opts and no other."""
    (item,) = create_schedule([result.lazydata])
    kernel = Kernel.of(item.ast, target_of(target))
    for opt in opts:
        kernel = apply_opt(kernel, opt)
    return kernel.name, lower(kernel)


@pytest.mark.parametrize("target", ["sm_80", "gfx90a"])
def test_surplus_work_items_of_a_chosen_group_do_nothing(target: str) -> None:
    n = Variable("n", 1, 1000).bind(300)
    numbers = np.arange(1000, dtype=np.float32)
    with Context(TARGET=target, DEVICE="LLVM"):
        name, uops = kernel_for(target, Tensor(numbers).shrink(((0, n),)) + 1, Opt(OptOps.NOLOCALS, 0, 0))
    program = Loaded(spec_of(name, target_of(target), uops, "cuda", (), ""))
    (found, _) = program([np.zeros(1000, np.float32), numbers], [300])
    np.testing.assert_array_equal(found, np.where(np.arange(1000) < 300, numbers + 1, 0))
    assert GPUAssembler(target_of(target)).render(name, uops).lines


@pytest.mark.parametrize("name", ["sm_80", "gfx90a"])
@pytest.mark.parametrize("op", LACKING[dtypes.float64])
def test_a_function_that_the_gpu_lacks_raises_an_error(op: Ops, name: str) -> None:
    target = target_of(name)
    uops, _ = elementwise([dtypes.float64] * 3, lambda xyz: [apply(op, *xyz)], SIZE)
    with pytest.raises(RenderError, match=f"(SIN|{op.name}) of dtypes.float64: .*cast to float32"):
        GPUAssembler(target).render("k", uops)
    ((language, (line,)),) = assembly_listings(spec_of("k", target, uops, target.arch, (), ""))
    assert language in ("ptx", "amdgcn") and "no function of it" in line.text


def test_a_kernel_is_shown_as_ptx_each_line_with_its_uops(tmp_path: Path) -> None:
    a = Tensor.rand(64, 64).realize()
    trace = explore(lambda: a.softmax(1), target="sm_80", repeat=1).trace
    (ptx,) = [one for one in trace.programs if one.language == "ptx"]
    ops = {line.text.split()[0]: {trace.nodes[node].op for node in line.nodes} for line in ptx.lines if line.nodes}
    assert (
        ops["ld.global.nc.b32"] == {"LOAD"} and ops["st.global.b32"] == {"STORE"} and ops["st.shared.b32"] == {"STORE"}
    )
    assert ops["bar.sync"] == {"BARRIER"} and ops["ex2.approx.f32" if "ex2.approx.f32" in ops else "min.NaN.f32"] == {
        "EXP"
    }
    assert {"DEFINE_GLOBAL", "SPECIAL", "STORE"} <= ops[".visible"]
    path = tmp_path / "kernel.ptx"
    path.write_text("\n".join(line.text for line in ptx.lines) + "\n")
    assert not nvidia.refusal([nvidia.tool("ptxas"), "-arch", "sm_80", str(path), "-o", str(tmp_path / "out")])
    assert not any(re.search(r"\.loc|\.file|//", line.text) for line in ptx.lines)


def test_amd_assembly_is_shown_and_other_gpus_have_none() -> None:
    a = Tensor.rand(64, 64).realize()
    languages = {
        target: [one.language for one in explore(lambda: a.sum(1), target=target, repeat=1).trace.programs]
        for target in ("gfx1100", "opencl")
    }
    assert languages["gfx1100"][:3] == ["uops", "hip", "amdgcn"]
    assert not {"ptx", "amdgcn"} & set(languages["opencl"])
