"""The throughput of loops whose bottleneck is known by manual calculation."""

from __future__ import annotations

import shutil
from dataclasses import replace

import pytest

from tests.support.kernels import MACHINE
from tests.support.pages import responses_in
from tinyexplore import Tensor, explore
from tinyexplore.explore.analysis.comparisons.instructions import hot_loop
from tinyexplore.explore.analysis.models import throughput as module
from tinyexplore.explore.analysis.models.ports import describe_port
from tinyexplore.explore.analysis.models.throughput import (
    InstructionCost,
    Throughput,
    ThroughputError,
    analyze,
    loop_of_program,
    loop_weights,
    measured_cycles,
    model_for,
    without_doubtful_bound,
)
from tinyexplore.uop import Axis, AxisKind, Ops

needs_tool = pytest.mark.skipif(shutil.which("llvm-mca") is None, reason="llvm-mca is not installed")


def loop(*instructions: str) -> Throughput:
    return analyze([".LBB0_1:", *(f"    {text}" for text in instructions)], "x86_64", "skylake")


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
def test_instructions_without_a_port_are_bound_by_the_front_end():
    found = loop(*["nop"] * 12)
    assert found.bound == "front end" and found.front_end_cycles == 2  # six a cycle


@needs_tool
def test_a_captured_kernels_loop_is_analyzed_with_its_measured_cycles():
    a, b = Tensor.rand(64, 64).realize(), Tensor.rand(64, 64).realize()
    view = explore(lambda: a @ b, repeat=3, target="native", threads=1)
    found = view.kernels[0].throughput()
    assert found.cycles > 0 and found.bound in ("ports", "front end", "dependencies", "unknown")
    assert any("fma" in one.text for one in found.instructions) and found.lines is not None
    text = str(found)
    assert f"cycles an iteration on {found.cpu} (llvm-mca " in text and found.instructions[0].text in text
    assert found.measured_cycles is None or any(note.startswith("measured: ") for note in found.notes)


@needs_tool
def test_invalid_assembly_raises_an_error_with_the_tools_message():
    with pytest.raises(ThroughputError, match="cannot analyze this loop"):
        loop("no_such_instruction ymm0")
    with pytest.raises(ThroughputError, match="no instruction"):
        analyze(["label:"], "x86_64", "skylake")


def test_a_missing_tool_raises_an_error_with_its_installation(monkeypatch):
    monkeypatch.setenv("LLVM_MCA", "nobody-has-this-program")
    x = Tensor.rand(64).realize()
    view = explore(lambda: x + 1, repeat=1)
    with pytest.raises(ThroughputError, match="llvm-mca is not installed"):
        view.kernels[0].throughput()


def test_an_unknown_cpu_has_a_substitute():
    from dataclasses import replace

    target = replace(MACHINE, arch="x86_64", cpu="emeraldrapids", features="+avx2,+avx512f")
    known = frozenset({"skylake", "icelake-server", "skylake-avx512"})
    cpu, note = model_for(target, known)
    assert cpu == "icelake-server" and "emeraldrapids" in note
    assert model_for(replace(target, cpu="skylake"), known) == ("skylake", "")


def test_measured_cycles_are_time_times_clock_per_iteration():
    x = Tensor.rand(64, 64).realize()
    view = explore(lambda: x.sum(0), repeat=1, noopt=1)
    uops = view.capture.analyses.captured(0).uops
    cycles, how = measured_cycles(uops, 10.0, clock_ghz=2.0)
    assert cycles == round(10 * 2000 / 4096, 3) and how.startswith("measured: 10 µs × 2.00 GHz")
    assert measured_cycles(uops, 10.0, clock_ghz=2.0, unrolled=4)[0] == pytest.approx(4 * cycles, abs=0.002)
    assert not any(node.op is Ops.RANGE and node.arg.kind is AxisKind.THREAD for node in uops)
    assert measured_cycles(uops, 10.0)[0] is None and "clock" in measured_cycles(uops, 10.0)[1]


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
    reason="instructions wait for each other's results; without waiting it took 1.00",
    cpu="skylake",
    tool="llvm-mca 14.0.6",
    measured_cycles=4.4,
    notes=("measured: 10 µs × 2000 MHz",),
    kernel="r_64",
)


def test_a_loop_has_data_and_a_picture():
    data = FOUND.as_data()
    assert data.instructions[0] == (
        "vfmadd231ps ymm0, ymm1, ymm2", 1, 4, (("SKLPort0", 0.5), ("SKLPort1", 0.5)), 4
    )  # fmt: skip
    assert data.ports == (("SKLPort0", 1.0), ("SKLPort1", 0.5), ("SKLPort5", 0.5), ("SKLPort6", 1.0))
    assert data.measured == 4.4 and data.bound == "dependencies"
    picture = FOUND._repr_mimebundle_()["image/svg+xml"]
    for words in ("r_64: 4.02 cycles an iteration, bound by dependencies", "SKLPort6", "measured: 4.40 cycles"):
        assert words in picture
    assert "SKLDivider" not in picture


def test_a_page_stores_analyzed_loops_and_threads_divide_the_cycles(monkeypatch):
    x = Tensor.rand(64, 64).realize()
    view = explore(lambda: x.sum(0), repeat=1, noopt=1)
    asked = []

    def found(assembly, target, uops, time_us, *, threads, kernel, clock_ghz):
        asked.append((len(assembly), len(uops), threads, kernel))
        return FOUND

    monkeypatch.setattr(module, "throughput", found)
    name = view.trace.kernels[0].name
    page = view.to_html()
    assert responses_in(page, "throughput") == {} and 'data-chunk="throughput"' not in page
    assert view.kernels[0].throughput() is FOUND and asked[0][2:] == (1, name)
    branch = view.kernels[0].set_opts("UPCAST(0, 4)")
    view.kernels[0].throughput(branch)
    assert asked[1][0] > 0 and asked[1][1] != asked[0][1]
    page = view.to_html()
    assert (
        list(responses_in(page, "throughput"))
        == [
            '{"ask":"throughput"}',
            f'{{"ask":"throughput","branch":{branch.id}}}',
        ]
        and 'data-chunk="throughput"' in page
    )
    threaded = [
        node.replace(arg=Axis(0, AxisKind.THREAD)) if node.op is Ops.RANGE else node
        for node in view.capture.analyses.captured(0).uops
    ]
    cycles, how = measured_cycles(threaded, 10.0, threads=4, clock_ghz=2.0)
    assert cycles == round(10 * 2000 / 1024, 3) and "on each of 4 threads" in how


@pytest.mark.parametrize(("measured", "bound"), [(4.02, "dependencies"), (8.0, "dependencies"), (8.1, "unknown")])
def test_a_model_that_is_off_by_more_than_2x_names_no_bottleneck(measured, bound):
    found = without_doubtful_bound(replace(FOUND, measured_cycles=measured))
    assert found.bound == bound
    assert (found.reason == FOUND.reason) == (bound != "unknown")


def test_a_model_that_takes_more_than_twice_the_measured_cycles_names_none_either():
    found = without_doubtful_bound(replace(FOUND, measured_cycles=1.9, bound="ports"))
    assert found.bound == "unknown" and "memory" not in found.reason
    assert without_doubtful_bound(replace(FOUND, measured_cycles=None)).bound == "dependencies"


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("ICXPort5", "shuffle port 5"),
        ("SKXPort0", "arithmetic port 0"),
        ("HWPort7", "store address port 7"),
        ("SPRPort11", "load port 11"),
        ("SBPort23.\x00", "load and store address port"),
        ("ICXFPDivider", "divider"),
        ("Zn3ALU2", "integer port 2"),
        ("Zn4FP1", "vector port 1"),
        ("Zn2AGU0", "address unit 0"),
        ("N1UnitL", "load port"),
        ("A57UnitX", "vector port X"),
        ("Zn3Load.\x01", "load port"),
        ("N2UnitV0", "vector port 0"),
        ("V1UnitM0", "integer multiply and divide port 0"),
        ("Unheard5", "Unheard5"),
    ],
)
def test_ports_have_a_description(name, words):
    assert describe_port(name) == words


MAIN_WITH_COLD_PATH = """
f:
.LBB0_1:
    vmovups zmm0, zmmword ptr [rdi]
    vmulps zmm0, zmm0, zmm1
    vptestmd k0, zmm0, zmm2
    jne .LBB0_3
.LBB0_2:
    vmovups zmmword ptr [rsi], zmm0
    add rdi, 64
    jne .LBB0_1
    ret
""".strip().splitlines()
RARE = """
.LBB0_3:
    vmulps zmm3, zmm3, zmm3
    vaddps zmm3, zmm3, zmm4
    dec rcx
    jne .LBB0_3
""".strip().splitlines()


def test_a_loop_deeper_than_those_of_the_linear_program_is_a_cold_path():
    """`sin` has a scalar fallback inside its main loop: that is not the busiest loop."""
    lines = [*MAIN_WITH_COLD_PATH[:6], *RARE, *MAIN_WITH_COLD_PATH[6:]]
    assert [lines[place] for place in hot_loop(lines, "x86_64", 512)] == RARE
    body = [lines[place] for place in hot_loop(lines, "x86_64", 512, depth=1)]
    assert body == MAIN_WITH_COLD_PATH[1:-1]


def test_the_loop_with_most_work_is_the_hottest():
    first = [".LBB0_1:", "    vaddps zmm0, zmm0, zmm1", "    jne .LBB0_1"]
    second = [".LBB0_2:", "    add eax, 1", "    jne .LBB0_2"]
    lines = ["f:", *first, *second]
    assert hot_loop(lines, "x86_64", 512) == [1, 2, 3]
    assert hot_loop(lines, "x86_64", 512, 1, [10.0, 4000.0]) == [4, 5, 6]


def test_the_weight_of_a_loop_is_its_steps_times_its_nodes():
    x = Tensor.rand(64, 64).realize()
    view = explore(lambda: x.sum(0), repeat=1, noopt=1)
    ((depth, weight),) = loop_weights(view.capture.analyses.captured(0).uops)
    assert depth == 2 and weight >= 4096


def test_an_array_on_the_stack_counts_as_memory_of_a_loop_and_a_spill_does_not():
    x = Tensor.rand(64, 64).realize()
    view = explore(lambda: x * 2, repeat=1, noopt=1)  # one loop; a step loads 4 bytes and stores 4
    uops = view.capture.analyses.captured(0).uops
    array = ["movss xmm0, dword ptr [rsp + rcx + 64]", "movss dword ptr [rdi + rcx], xmm0"]
    assert loop_of_program(array, uops)[2] == 1.0
    assert loop_of_program([*array, *array], uops)[2] == 2.0
    spills = ["mov rax, qword ptr [rsp + 64]", "mov qword ptr [rbp - 0x8], rax", "mov rbx, qword ptr [rsp]"]
    assert loop_of_program([*array, *array, *spills], uops)[2] == 2.0


def test_the_cold_path_of_a_linear_program_is_not_a_separate_loop():
    x = Tensor.rand(1 << 12).realize()
    uops = explore(lambda: x.sin(), repeat=1, target="x86-64-v3").capture.captured_kernels[0].uops
    assert any(node.op is Ops.RANGE and node.arg.kind is AxisKind.RARE for node in uops)
    assert len(loop_weights(uops)) == 1
    assert measured_cycles(uops, 10.0, clock_ghz=2.0)[0] is not None


def test_code_skipped_together_with_a_cold_loop_is_cold_too():
    main = [".LBB0_1:", "    vmovups zmm0, zmmword ptr [rdi]", "    jle .LBB0_4", "    mov ecx, 8"]
    rare = [".LBB0_3:", "    imul rax, rax", "    dec ecx", "    jne .LBB0_3", "    vpinsrd xmm0, xmm0, eax, 1"]
    rest = [".LBB0_4:", "    vmovups zmmword ptr [rsi], zmm0", "    jne .LBB0_1"]
    lines = ["f:", *main, *rare, *rest, "    ret"]
    assert [lines[place] for place in hot_loop(lines, "x86_64", 512, depth=1)] == [*main[:3], *rest]


@needs_tool
def test_the_hot_loop_of_sin_is_its_polynomial_and_not_the_cold_path():
    x = Tensor.rand(1 << 14).realize()
    view = explore(lambda: x.sin(), repeat=1, target="x86-64-v3")
    texts = [one.text for one in view.kernels[0].throughput().instructions]
    assert sum("fma" in text for text in texts) > 20 and not any("imul" in text for text in texts)
