"""One kernel for several machines: figures from its assembly, a picture, a page and data."""

from __future__ import annotations

import json

import numpy as np
import pytest

from tinyexplore import Tensor, explore
from tinyexplore.explore.analysis.comparisons.instructions import instructions_of
from tinyexplore.explore.analysis.comparisons.machines import Machines
from tinyexplore.target import UnknownTarget, machine

FIVE = ["x86-64-v2", "x86-64-v3", "x86-64-v4", "neoverse-n1", "sifive-x280"]
STATED = ",threads=2,l1=32K,l2=1M"
A = np.linspace(-1, 1, 64 * 64, dtype=np.float32).reshape(64, 64)


@pytest.fixture(scope="module")
def five() -> Machines:
    return explore.targets(lambda: (Tensor(A) @ Tensor(A.T)).softmax(), [name + STATED for name in FIVE], title="soft")


def test_a_product_is_another_program_for_each_of_five_machines(five: Machines) -> None:
    row = [one for one in five.main if one is not None]
    assert len(row) == 5 and "matmul" in str(row[0].kernel.calls)
    assert [(one.machine.registers, one.machine.vector_bits) for one in row] == [
        (16, 128),
        (16, 256),
        (32, 512),
        (32, 128),
        (32, 512),
    ]
    for one in row:
        counted = one.instructions
        assert one.machine.vector_bits <= counted.widest_bits
        assert 4 < len(counted.registers) <= one.machine.registers
        assert counted.total > counted.in_loop > counted.vector_in_loop > 2 and counted.total > counted.vector
        assert 2 * counted.total < one.kernel.code_bytes < 16 * counted.total
        assert (one.median_us is None) is bool(one.kernel.not_run)
    assert len({one.instructions.total for one in row}) > 2
    assert len({one.assembly for one in row}) == 5
    if machine() == "x86_64":
        assert five.machines[0].runs_here and row[0].median_us


def test_a_comparison_of_machines_has_text_data_picture_and_page(five: Machines) -> None:
    text = repr(five)
    assert "16 × 256 bit" in text and "no samples here" in text
    data = json.loads(json.dumps(five.to_dict()))
    assert [one["name"].partition(",")[0] for one in data["machines"]] == FIVE
    assert len(data["kernels"]) == len(five.rows) == 2
    picture = five.svg()
    used = [len(one.instructions.registers) for one in five.main if one is not None]
    assert picture.count('var(--reduce)"') == sum(used)
    assert "neoverse-n1" in picture and "32 × 512 bit" in picture
    page = five.to_html()
    assert "<script" not in page and "Why some have no times" in page and "vfmacc" in page and "fmla" in page
    assert page.count('class="listing"') == 10
    assert "srcdoc" in five._repr_html_()


def test_invalid_arguments_raise_an_error_with_valid_ones() -> None:
    with pytest.raises(TypeError, match="expected a function"):
        explore.targets(Tensor(A), FIVE)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="expected a list of names"):
        explore.targets(lambda: Tensor(A), "x86-64-v3")
    with pytest.raises(UnknownTarget, match="close to it: neoverse-n"):
        explore.targets(lambda: pytest.fail("it ran"), ["native", "neoverse-n9"])


X86 = """
kernel:
    xor          eax, eax
    vmovss       xmm0, dword ptr [rdi]
.L1:
    vmovups      ymm1, ymmword ptr [rsi + 4*rax]
    vaddps       ymm1, ymm1, ymm3
    add          rax, 8
    jl           .L1
.L2:
    vaddss       xmm0, xmm0, xmm5
    jne          .L2
    ret
"""
ARM = """
kernel:
    ldr          s0, [x0]
.L1:
    ldr          q1, [x1, x2]
    fmla         v2.4s, v1.4s, v0.s[0]
    b.lt         .L1
    ret
"""
RISCV = """
kernel:
    li           a2, 32
    vsetvli      zero, a2, e32, m4, ta, ma
    vmv.v.i      v8, 0
.L1:
    vle32.v      v16, (a0)
    vfmacc.vv    v8, v16, v16
    bnez         a3, .L1
    vmv1r.v      v3, v8
    ret
"""


@pytest.mark.parametrize(
    ("text", "arch", "bits", "expected"),
    [
        (X86, "x86_64", 256, (9, 2, 256, (1, 3), (4, 2))),
        (ARM, "aarch64", 128, (5, 2, 128, (0, 1, 2), (3, 2))),
        (RISCV, "riscv64", 512, (8, 4, 2048, (3, 8, 9, 10, 11, 16, 17, 18, 19), (3, 2))),
    ],
)
def test_figures_are_derived_from_assembly(text: str, arch: str, bits: int, expected: tuple[object, ...]) -> None:
    lines = text.strip("\n").splitlines()
    found = instructions_of(lines, arch, bits)
    loop = (found.in_loop, found.vector_in_loop)
    assert (found.total, found.vector, found.widest_bits, found.registers, loop) == expected
    assert found.loop is not None and lines[found.loop[0]] == ".L1:"
