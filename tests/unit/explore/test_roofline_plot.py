"""The roofline: the loaded bytes of a program, and a picture in valid XML."""

from __future__ import annotations

import re
from dataclasses import replace
from xml.etree import ElementTree

import pytest

from tinyexplore import Device, Tensor
from tinyexplore.engine import compile_optimized
from tinyexplore.explore import Dot, loaded_bytes, roofline_svg
from tinyexplore.kernel import Kernel, Opt, OptOps, apply_opt, apply_opts


def test_loads_count_with_the_loops_around_them_and_the_lanes_in_them() -> None:
    a, b = Tensor.ones(8, 16).contiguous().realize(), Tensor.ones(16, 32).contiguous().realize()
    (item,) = (a @ b).schedule()
    kernel = Kernel.of(item.ast, Device[item.device].target)
    plain = compile_optimized(item.device, kernel)
    assert loaded_bytes(plain.spec) == 8 * 32 * 16 * (4 + 4)
    lanes = compile_optimized(item.device, apply_opt(kernel, Opt(OptOps.VECTOR, 1, 4)))
    assert loaded_bytes(lanes.spec) == 8 * 8 * 16 * (4 + 16)
    rows = compile_optimized(item.device, apply_opts(kernel, Opt(OptOps.VECTOR, 1, 4), Opt(OptOps.UPCAST, 0, 2)))
    assert loaded_bytes(rows.spec) == 4 * 8 * 16 * (2 * 4 + 16)


def test_dots_are_at_their_intensity_and_throughput_below_the_ceilings() -> None:
    dots = [Dot("slow & plain", 2e9, 8e9, 1.0), Dot("fast", 2e9, 1e9, 0.02)]
    dots[0] = replace(dots[0], peak="one core")
    assert (dots[0].flops_per_byte, dots[0].gflops, dots[1].gflops) == (0.25, 2.0, 100.0)
    svg = roofline_svg(dots, {"one core": 100.0, "all": 236.0}, {"L1": 220.0, "memory": 23.0}, title="a < b")
    root = ElementTree.fromstring(svg)
    words = [node.text for node in root.iter("{http://www.w3.org/2000/svg}text")]
    expected = {"a < b", "slow & plain", "fast"}
    expected |= {"2 GFLOP/s · 2 % of one core", "100 GFLOP/s · 42 % of all", "one core: 100 GFLOP/s", "L1: 220 GB/s"}
    assert expected <= set(words)
    circles = [(float(c.get("cx")), float(c.get("cy"))) for c in root.iter("{http://www.w3.org/2000/svg}circle")]
    (slow, fast) = circles[:2]
    assert slow[0] < fast[0] and slow[1] > fast[1]


def test_numbers_of_overlapping_dots_are_drawn_on_top() -> None:
    dots = [Dot(str(number), 2e9, 1e9, 0.02 - number * 1e-4) for number in range(4)]
    root = ElementTree.fromstring(roofline_svg(dots, {"one core": 118.0}, {}))
    radii = [float(c.get("r")) for c in root.iter("{http://www.w3.org/2000/svg}circle")]
    points, numbers = radii[:3], radii[3:7]  # the first number stands on its point; the key has four more
    assert max(points) < min(numbers) and len(radii) == 11


def test_a_roofline_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one dot"):
        roofline_svg([], {"one core": 1.0}, {})


def _luminance(color: str) -> float:
    """Relative luminance of "#rrggbb" or "#rgb", as WCAG 2 defines it."""
    digits = color[1:] if len(color) == 7 else "".join(2 * digit for digit in color[1:])
    parts = [int(digits[k : k + 2], 16) / 255 for k in (0, 2, 4)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def _variables(sheet: str, start: str) -> dict[str, str]:
    return dict(re.findall(r"--(\w+):(#[0-9a-f]+)", sheet[sheet.index(start) :].split("}")[0]))


def test_the_number_on_a_dot_is_legible_in_both_themes() -> None:
    root = ElementTree.fromstring(roofline_svg([Dot("slow", 2e9, 1e9, 0.02)], {"one core": 118.0}, {}))
    name = "{http://www.w3.org/2000/svg}"
    sheet = root.find(f"{name}style").text
    numbers = [node for node in root.iter(f"{name}text") if node.text == "0"]
    dots = [node for node in root.iter(f"{name}circle")]
    assert len(numbers) == len(dots) == 2  # on the plot and in the key
    for number, dot in zip(numbers, dots, strict=True):
        assert f".tx .{number.get('class')}{{fill:var(--{number.get('class')})}}" in sheet
        pairs = [(number.get("fill"), dot.get("fill"))]
        for scheme in (".tx{", "@media(prefers-color-scheme:dark){.tx{"):
            colors = _variables(sheet, scheme)
            assert "fill:var(--brand)" in dot.get("style")
            pairs.append((colors[number.get("class")], colors["brand"]))
        for ink, ground in pairs:
            light, dark = sorted((_luminance(ink), _luminance(ground)), reverse=True)
            assert (light + 0.05) / (dark + 0.05) >= 4.5, (ink, ground)
