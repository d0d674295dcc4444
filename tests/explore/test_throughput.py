"""The throughput of a loop: loops of which one knows by hand what bounds them."""

from __future__ import annotations

import shutil

import pytest

from tests.support.kernels import MACHINE
from tinyexplore import Tensor, explore
from tinyexplore.explore.byhand import throughput as module
from tinyexplore.explore.byhand.throughput import (
    InstructionCost,
    Throughput,
    ThroughputError,
    analyse,
    measured_cycles,
    model_for,
)
from tinyexplore.uop import Axis, AxisKind, Ops

needs_tool = pytest.mark.skipif(shutil.which("llvm-mca") is None, reason="llvm-mca is not installed")


def loop(*instructions: str) -> Throughput:
    return analyse([".LBB0_1:", *(f"    {text}" for text in instructions)], "x86_64", "skylake")


@needs_tool
def test_sums_in_many_registers_are_bound_by_the_ports_that_multiply():
    found = loop(*[f"vfmadd231ps ymm{k}, ymm14, ymm15" for k in range(10)])
    assert found.bound == "ports" and abs(found.cycles - 5) < 0.3  # ten, two a cycle
    assert sorted(name for name, cycles in found.port_cycles.items() if cycles > 4) == ["SKLPort0", "SKLPort1"]
    assert [one.latency for one in found.instructions] == [4] * 10


@needs_tool
def test_a_sum_in_one_register_is_bound_by_its_latency():
    found = loop("vfmadd231ps ymm0, ymm14, ymm15")
    assert found.bound == "dependencies" and abs(found.cycles - 4) < 0.2
    assert found.reciprocal_throughput == 0.5 and "wait for each other's results" in found.reason


@needs_tool
def test_loads_are_bound_by_the_ports_that_load():
    found = loop(*[f"vmovups ymm{k}, ymmword ptr [rdx + {32 * k}]" for k in range(8)])
    assert found.bound == "ports" and abs(found.cycles - 4) < 0.3
    assert {name for name, used in found.port_cycles.items() if used > 3.5} == {"SKLPort2", "SKLPort3"}


@needs_tool
def test_what_needs_no_port_is_bound_by_the_front_end():
    found = loop(*["nop"] * 12)
    assert found.bound == "front end" and found.front_end_cycles == 2  # six a cycle


@needs_tool
def test_a_captured_kernels_loop_is_analysed_with_its_measured_cycles():
    a, b = Tensor.rand(64, 64).realize(), Tensor.rand(64, 64).realize()
    view = explore(lambda: a @ b, repeat=3, target="native", threads=1)
    found = view.throughput(0)
    assert found.cycles > 0 and found.bound in ("ports", "front end", "dependencies")
    assert any("fma" in one.text for one in found.instructions) and found.lines is not None
    text = str(found)
    assert f"cycles an iteration on {found.cpu} (llvm-mca " in text and found.instructions[0].text in text
    assert found.measured_cycles is None or any(note.startswith("measured: ") for note in found.notes)


@needs_tool
def test_what_is_no_assembly_is_told_in_the_tools_words():
    with pytest.raises(ThroughputError, match="cannot analyse this loop"):
        loop("no_such_instruction ymm0")
    with pytest.raises(ThroughputError, match="no instruction"):
        analyse(["label:"], "x86_64", "skylake")


def test_where_the_tool_is_missing_one_is_told_how_to_get_it(monkeypatch):
    monkeypatch.setenv("LLVM_MCA", "nobody-has-this-program")
    x = Tensor.rand(64).realize()
    view = explore(lambda: x + 1, repeat=1)
    with pytest.raises(ThroughputError, match="llvm-mca is not installed; it comes with LLVM"):
        view.throughput(0)


def test_a_cpu_that_is_not_known_has_one_in_its_place():
    from dataclasses import replace

    target = replace(MACHINE, arch="x86_64", cpu="emeraldrapids", features="+avx2,+avx512f")
    known = frozenset({"skylake", "icelake-server", "skylake-avx512"})
    cpu, note = model_for(target, known)
    assert cpu == "icelake-server" and note == (
        "emeraldrapids is not known to this llvm-mca: icelake-server stands in its place"
    )
    assert model_for(replace(target, cpu="skylake"), known) == ("skylake", "")


def test_measured_cycles_are_time_by_clock_by_iterations(monkeypatch):
    x = Tensor.rand(64, 64).realize()
    view = explore(lambda: x.sum(0), repeat=1, noopt=1)
    uops = view.kept(0).uops
    monkeypatch.setattr(module, "clock_mhz", lambda: 2000.0)
    cycles, how = measured_cycles(uops, 10.0)
    assert cycles == round(10 * 2000 / 4096, 3) and how.startswith("measured: 10 µs × 2000 MHz")
    assert not any(node.op is Ops.RANGE and node.arg.kind is AxisKind.THREAD for node in uops)
    monkeypatch.setattr(module, "clock_mhz", lambda: None)
    assert measured_cycles(uops, 10.0) == (
        None,
        "no cycles were measured: this system does not tell the clock of its CPU",
    )


FOUND = Throughput(
    lines=(4, 6),
    instructions=(
        InstructionCost("vfmadd231ps ymm0, ymm1, ymm2", 1, 4, 0.5, {"SKLPort0": 0.5, "SKLPort1": 0.5}, 4),
        InstructionCost("add rax, 64", 1, 1, 0.25, {"SKLPort0": 0.5, "SKLPort1": 0.0, "SKLPort5": 0.5}, 5),
        InstructionCost("jne .LBB0_1", 1, 1, 0.5, {"SKLPort6": 1.0}, 6),
    ),
    cycles=4.02,
    reciprocal_throughput=1.0,
    port_cycles={"SKLPort0": 1.0, "SKLPort1": 0.5, "SKLPort5": 0.5, "SKLPort6": 1.0, "SKLDivider": 0.0},
    front_end_cycles=0.5,
    bound="dependencies",
    reason="instructions wait for each other's results; without that it took 1.00",
    cpu="skylake",
    tool="llvm-mca 14.0.6",
    measured_cycles=4.4,
    notes=("measured: 10 µs × 2000 MHz",),
    kernel="r_64",
)


def test_a_loop_is_told_as_data_and_as_a_picture():
    data = FOUND.as_data()
    assert data["instructions"][0] == [
        "vfmadd231ps ymm0, ymm1, ymm2", 1, 4, [("SKLPort0", 0.5), ("SKLPort1", 0.5)], 4
    ]  # fmt: skip
    assert data["ports"] == [["SKLPort0", 1.0], ["SKLPort1", 0.5], ["SKLPort5", 0.5], ["SKLPort6", 1.0]]
    assert data["measured"] == 4.4 and data["bound"] == "dependencies"
    picture = FOUND._repr_mimebundle_()["image/svg+xml"]
    for words in ("r_64: 4.02 cycles an iteration, bound by dependencies", "SKLPort6", "measured: 4.40 cycles"):
        assert words in picture
    assert "SKLDivider" not in picture


def test_what_was_asked_goes_with_a_page_and_a_kernel_of_threads_has_its_share_of_the_cycles(monkeypatch):
    x = Tensor.rand(64, 64).realize()
    view = explore(lambda: x.sum(0), repeat=1, noopt=1)
    asked = []

    def found(assembly, target, uops, time_us, *, threads, kernel):
        asked.append((len(assembly), len(uops), threads, kernel))
        return FOUND

    monkeypatch.setattr(module, "throughput", found)
    name = view.trace.kernels[0].name
    assert '"throughputs":{}' in view.to_html() and 'data-chunk="throughput"' not in view.to_html()
    assert view.throughput(0) is FOUND and asked[0][2:] == (1, name)
    branch = view.set_opts(0, "UPCAST(0, 4)")
    view.throughput(0, branch)
    assert asked[1][0] > 0 and asked[1][1] != asked[0][1]
    page = view.to_html()
    assert '"throughputs":{"0":' in page and f'"0:{branch.id}":' in page and 'data-chunk="throughput"' in page
    monkeypatch.setattr(module, "clock_mhz", lambda: 2000.0)
    threaded = [
        node.replace(arg=Axis(0, AxisKind.THREAD)) if node.op is Ops.RANGE else node for node in view.kept(0).uops
    ]
    cycles, how = measured_cycles(threaded, 10.0, threads=4)
    assert cycles == round(10 * 2000 / 1024, 3) and "on each of 4 threads" in how
