"""SANITIZE=1: kernels of CLANG under AddressSanitizer and UndefinedBehaviorSanitizer."""

from __future__ import annotations

import shutil
from dataclasses import replace

import numpy as np
import pytest

from tests.backends.programs import call, elementwise
from tinyexplore import Context, Device, Tensor, Variable, dtypes
from tinyexplore.renderer import ProgramSpec
from tinyexplore.runtime.sanitizer import SanitizedProgram, SanitizerError

pytestmark = pytest.mark.skipif(
    shutil.which("gcc") is None, reason="no gcc on this machine, whose sanitizers have a runtime"
)
TEN = [(dtypes.float32, [float(i) for i in range(10)])] * 2


def edited(spec: ProgramSpec, old: str, new: str) -> ProgramSpec:
    assert old in spec.source
    return replace(spec, lines=tuple(line._replace(text=line.text.replace(old, new, 1)) for line in spec.lines))


@pytest.mark.parametrize(
    "old, new, words",
    [
        (
            "data1[v0]",
            "data1[v0 + 3]",
            r"heap-buffer-overflow; READ of size 4; .*\nline \d+: float v1 = data1\[v0 \+ 3\]",
        ),
        ("data0[v0]", "data0[v0 - 1]", r"heap-buffer-overflow; WRITE of size 4; .*\nline \d+: data0\[v0 - 1\] = v3;"),
        ("float v3", "int q = 1 << (int)(v0 + 40); float v3", "runtime error: shift exponent 40 .*\nline"),
    ],
)
def test_illegal_accesses_of_an_edited_kernel_are_errors_with_their_line(old: str, new: str, words: str) -> None:
    with Context(SANITIZE=1):
        device = Device["CLANG"]
        uops, _ = elementwise([dtypes.float32] * 2, lambda x: [x[0] + x[1]], 10)
        spec: ProgramSpec = device.renderer.render("edited", uops)
        assert call(device.compile(spec), [(dtypes.float32, 10)], TEN) == [[2.0 * i for i in range(10)]]
        wrong = device.compile(edited(spec, old, new))
        with pytest.raises(SanitizerError, match=f"the kernel edited, under SANITIZE=1: .*{words}"):
            call(wrong, [(dtypes.float32, 10)], TEN)


def test_the_sanitizer_does_not_change_results() -> None:
    x = np.random.default_rng(0).standard_normal((19, 23)).astype("f")
    size = Variable("size", 1, 19)

    def program() -> list[np.ndarray]:
        t = Tensor(x, device="CLANG")
        return [(t @ t.T).softmax().numpy(), (t[: size.bind(7)] * 2).sum().numpy(), t.max(0).numpy()]

    expected = program()
    with Context(SANITIZE=1):
        found = program()
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-7)


def test_the_sanitizer_has_its_own_programs() -> None:
    uops, _ = elementwise([dtypes.float32], lambda x: [x[0] * 3.0], 10)
    device = Device["CLANG"]
    with Context(SANITIZE=1):
        under = device.renderer.render("twice", uops)
    plain = device.renderer.render("twice", uops)
    assert under.source == plain.source and under.key != plain.key
    assert isinstance(device.compile(under), SanitizedProgram)
    assert not isinstance(device.compile(plain), SanitizedProgram)
