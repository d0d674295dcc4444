"""TARGET: names, their valid suffixes, and their effect on code generation."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

import tinyexplore.devices  # noqa: F401  makes the devices known
from tests.graphs import from_numpy, matmul, numbers
from tests.support import cpu_table
from tests.support.kernels import compile_all
from tinyexplore import Tensor
from tinyexplore.codegen import lower
from tinyexplore.compile.lowering import further_listings
from tinyexplore.compile.program_cache import lowering_key
from tinyexplore.device import Device, DeviceUnavailable
from tinyexplore.dtype import dtypes
from tinyexplore.engine import create_schedule
from tinyexplore.kernel import Kernel, apply_heuristics
from tinyexplore.lazy import LazyBuffer
from tinyexplore.renderer import ProgramSpec
from tinyexplore.runtime.llvm import compiler_for
from tinyexplore.target import LEVELS, Target, UnknownTarget, choice_of, machine, nearest_level
from tinyexplore.target.caches import CACHES
from tinyexplore.target.choice import features_of
from tinyexplore.target.cpus import AARCH64, LLVM_VERSION, RISCV64, X86_64
from tinyexplore.uop import Ops
from tinyexplore.util import Context
from tinyexplore.util.config import config_from_environment

on_x86 = pytest.mark.skipif(machine() != "x86_64", reason="levels of x86-64")
STATED = ",threads=4,l1=32K,l2=512K"


def product() -> ProgramSpec:
    """The source of a matrix product for the TARGET in force."""
    (item,) = create_schedule([matmul(from_numpy(numbers(64, 48)), from_numpy(numbers(48, 96)))])
    assert item.ast is not None
    kernel = apply_heuristics(Kernel.of(item.ast, Device["LLVM"].target))
    return Device["LLVM"].renderer.render("product", lower(kernel))


def target_of(text: str) -> Target:
    with Context(TARGET=text):
        return Device["LLVM"].target


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("znver9", "CPU named 'znver9'; .*: znver5"),
        ("x86-64-v33", "close to it: x86-64-v3"),
        ("???", "for example: native, x86-64"),
        ("znver3,cores=4", "'cores=4' is not a CPU option.*threads=8"),
        ("znver3,l1=much", "'l1=much' is not a CPU option"),
        ("znver3,threads=0", "'threads=0' is not a CPU option"),
        ("i486", "LLVM has no CPU named 'i486'"),
    ],
)
def test_an_unknown_cpu_is_refused_at_once(text: str, words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UnknownTarget, match=words.replace("?", r"\?")):
        Context(TARGET=text)
    monkeypatch.setenv("TARGET", text)
    with pytest.raises(UnknownTarget):
        config_from_environment()


def test_the_target_of_a_cpu_name_does_not_depend_on_the_machine() -> None:
    choice = choice_of("znver3, threads=8, l1=32K, l2=1M")
    assert (choice.cpu, choice.threads, choice.l1_bytes, choice.l2_bytes) == ("znver3", 8, 32 << 10, 1 << 20)
    found = target_of("znver3,threads=8,l1=32K,l2=1M")
    assert (found.threads, found.l1_bytes, found.l2_bytes) == (8, 32 << 10, 1 << 20)
    assert (found.cpu, found.vector_bytes, found.vector_registers, found.fuses_multiply_add) == ("znver3", 32, 16, True)


def test_a_named_cpu_has_its_own_caches_by_default() -> None:
    assert all(name in {*X86_64, *AARCH64, *RISCV64} and len(sizes) == 3 for name, sizes in CACHES.items())
    found = target_of("znver4,threads=8,l2=512K")
    assert (found.l1_bytes, found.l2_bytes, found.l3_bytes) == (32 << 10, 512 << 10, 32 << 20)
    assert target_of("apple-m1").l1_bytes == 4 * target_of("znver3").l1_bytes == 128 << 10


def test_cores_and_caches_default_to_those_of_the_machine() -> None:
    here, named = target_of("native"), target_of("x86-64-v2")
    assert (named.threads, named.l1_bytes, named.l2_bytes) == (here.threads, here.l1_bytes, here.l2_bytes)


@pytest.mark.parametrize(
    ("text", "vector_bytes", "registers", "fuses", "scales", "dots"),
    [
        ("x86-64", 16, 16, False, False, 0),
        ("x86-64-v2", 16, 16, False, False, 0),
        ("x86-64-v3", 32, 16, True, False, 0),
        ("x86-64-v4", 64, 32, True, True, 0),
        ("cascadelake", 64, 32, True, True, 1),
        ("znver4", 64, 32, True, True, 2),
        ("knl", 64, 32, True, False, 0),
        ("neoverse-n1", 16, 32, True, False, 0),
        ("sifive-p670", 16, 32, True, False, 0),
        ("sifive-x280", 64, 32, True, False, 0),
        ("sifive-u74", 0, 32, True, False, 0),
    ],
)
def test_a_cpu_name_determines_the_features(
    text: str, vector_bytes: int, registers: int, fuses: bool, scales: bool, dots: int
) -> None:
    found = target_of(text)
    has = (found.vector_bytes, found.vector_registers, found.fuses_multiply_add, found.has_scale, len(found.dots))
    assert has == (vector_bytes, registers, fuses, scales, dots)


def test_different_sources_have_different_cache_keys() -> None:
    sources, keys, lowerings = set(), set(), set()
    (item,) = create_schedule([from_numpy(numbers(64)).alu(Ops.NEG)])
    assert item.ast is not None
    for cpu in (*LEVELS, "znver3", "neoverse-n1"):
        with Context(TARGET=cpu + STATED):
            spec = product()
            sources.add(spec.source)
            keys.add(spec.key)
            lowerings.add(lowering_key("LLVM", item.ast))
    assert len(keys) == len(lowerings) == 6
    assert len(sources) == 4  # x86-64 and v2 have the same vectors, v3 and znver3 too


@on_x86
def test_every_lesser_level_runs_here_on_llvm_and_in_one_process() -> None:
    values = np.arange(200, dtype=np.float32)
    runs = 0
    for level in LEVELS:
        with Context(TARGET=level):
            try:
                found = (Tensor(values, device="LLVM") * 0.5).exp2().numpy()
            except DeviceUnavailable as error:
                assert "which lacks" in str(error)
                continue
            runs += 1
        np.testing.assert_allclose(found, np.exp2(values * 0.5), rtol=1e-5)
    assert runs >= 1


def test_foreign_code_is_generated_and_refused_at_execution() -> None:
    foreign = "neoverse-n1" if machine() == "x86_64" else "znver3"
    with Context(TARGET=foreign):
        texts = dict(further_listings(product()))
        assert any("fmla" in line.text or "vfmadd" in line.text for line in texts["asm"])
        with pytest.raises(DeviceUnavailable, match=f"code for {foreign} .*cannot run"):
            Tensor([1.0, 2.0], device="LLVM").exp().tolist()
    assert Tensor([1.0, 2.0], device="LLVM").relu().tolist() == [1.0, 2.0]


@on_x86
def test_listings_are_for_the_target_of_the_program_whatever_is_in_force() -> None:
    with Context(TARGET="x86-64-v3"):
        spec = product()
    with Context(TARGET="x86-64-v4"):
        assembly = dict(further_listings(spec))["asm"]
    assert any("ymm" in line.text for line in assembly) and not any("zmm" in line.text for line in assembly)


def test_the_environment_chooses_for_the_whole_process() -> None:
    code = (
        "from tinyexplore import Tensor, Device\n"
        "from tinyexplore.runtime.llvm import shared_compiler\n"
        "print((Tensor.ones(4096) + Tensor.ones(4096).realize()).sum().item(), Device['LLVM'].target.target_setting)\n"
        "print(shared_compiler().choice.cpu)"
    )
    lesser = "x86-64-v2" if machine() == "x86_64" else "native"
    done = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, "TARGET": lesser}, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["8192.0", lesser, lesser]


def test_a_cpu_has_one_compiler_for_all_its_targets() -> None:
    with Context(TARGET=""):
        compilers = {id(Device["LLVM"].compile.__self__)}  # type: ignore[attr-defined]
    for text in ("native", "native,threads=3", "native,l1=16K"):
        with Context(TARGET=text):
            compilers.add(id(Device["LLVM"].compile.__self__))  # type: ignore[attr-defined]
    assert compilers == {id(compiler_for("native"))}
    assert compiler_for("native") is not compiler_for("x86-64")


def test_compiling_for_two_targets_gives_two_programs() -> None:
    with Context(CACHELEVEL=0):
        (plain,) = compile_all(create_schedule([from_numpy(numbers(999)).alu(Ops.NEG)]))
        with Context(TARGET="x86-64" if machine() == "x86_64" else "native,l1=16K"):
            (other,) = compile_all(create_schedule([from_numpy(numbers(999)).alu(Ops.NEG)]))
    assert plain.spec.target.target_setting != other.spec.target.target_setting


def test_levels_are_nested_and_the_nearest_is_found() -> None:
    assert [nearest_level(features_of(cpu)) for cpu in ("x86-64", "nehalem", "znver3", "skx", "sapphirerapids")] == [
        "x86-64",
        "x86-64-v2",
        "x86-64-v3",
        "x86-64-v4",
        "x86-64-v4",
    ]
    for less, more in zip(LEVELS, LEVELS[1:]):
        assert features_of(less) < features_of(more)


def test_the_table_equals_the_cpus_of_llvm() -> None:
    import llvmlite.binding as llvm

    if llvm.llvm_version_info[0] == LLVM_VERSION:
        assert sorted(X86_64) == [
            name for name in cpu_table.known_names("x86_64") if name not in (*cpu_table.NARROW, "generic")
        ]
        assert sorted(AARCH64) == [name for name in cpu_table.known_names("aarch64") if name != "generic"]
        assert {name: " ".join(cpu_table.riscv_features_of(name)) for name in cpu_table.wide_riscv_names()} == RISCV64
    for name in (*LEVELS, "haswell", "znver3", "znver4", "sapphirerapids", "knl", "sandybridge"):
        assert set(cpu_table.features_of(name)) == features_of(name), name


def test_the_last_cache_determines_the_size_of_a_memory_bound_buffer() -> None:
    """A large sum is divided into stretches of memory, a large result stored past the caches, from the same size on."""
    small, usual = (target_of(f"x86-64-v3{STATED}{more}") for more in (",l3=8M", ""))
    assert (small.min_memory_bytes, usual.min_memory_bytes) == (6 << 20, 24 << 20)
    sources = []
    for more in (",l3=8M", ""):
        with Context(TARGET=f"x86-64-v3{STATED}{more}"):
            node = LazyBuffer.iota(4096 * 512, dtypes.float32, "LLVM").reshape((4096, 512)).contiguous()
            doubled = node.alu(Ops.ADD, node).contiguous()
            (*_, item) = create_schedule([doubled])
            assert item.ast is not None
            kernel = apply_heuristics(Kernel.of(item.ast, Device["LLVM"].target))
            sources.append(Device["LLVM"].renderer.render("doubled", lower(kernel)).source)
            partial = create_schedule([node.reduce(Ops.ADD, (0, 1))])[-2].outputs[0]
            assert partial.src[0].src[0].shape == ((8, 256, 2, 512) if more else (1, 256, 16, 512))
    assert ["nontemporal" in source for source in sources] == [True, False]
