"""No kernel becomes slow: each beside NumPy on one core, in one run. The bounds are the table in `bench/guard.py`."""

from __future__ import annotations

from bench.guard import GUARDS, ratios, too_slow

OPTIMISED = ("sum", "softmax", "layernorm", "matmul", "conv3x3", "sdpa")


def test_no_kernel_takes_twice_its_usual_share_of_numpys_time() -> None:
    slow = too_slow()
    lines = [
        f"{name}: {ratio:.2f} times NumPy's time, and {bound:.2f} is the most" for name, (ratio, bound) in slow.items()
    ]
    assert not lines, "\n".join(lines)


def test_kernels_without_opts_would_be_found_out() -> None:
    bounds = {guard.case.name: guard.bound for guard in GUARDS}
    slowed = ratios(OPTIMISED, {"NOOPT": "1"})
    assert {name: ratio > bounds[name] for name, ratio in slowed.items()} == dict.fromkeys(OPTIMISED, True)
