"""Tensor cores in the explorer: as data, as text, and drawn lane by lane."""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import Any

import numpy as np
import pytest

from tinyexplore import Tensor, explore
from tinyexplore.target import GPUS, TENSOR_CORES


@pytest.mark.parametrize("gpu", [name for name, gpu in GPUS.items() if gpu.cores])
def test_every_element_is_in_the_data_once_with_its_lane(gpu: str) -> None:
    found = explore.tensor_cores(gpu)
    data = json.loads(json.dumps(found.to_dict()))
    assert [core["name"] for core in data["cores"]] == [core.name for core in GPUS[gpu].cores]
    for core, told in zip(found, data["cores"], strict=True):
        m, n, k = core.dims
        shapes = {"A": (m, k), "B": (k, n), "C": (m, n)}
        for matrix, places in told["elements"].items():
            rows, columns = shapes[matrix]
            assert [place[:2] for place in places] == [[row, col] for row in range(rows) for col in range(columns)]
            held = Counter(lane for _, _, lanes, _ in places for lane in lanes)
            assert held == dict.fromkeys(range(core.lanes), core.layouts[matrix].registers)


def test_the_printed_layout_equals_the_layout() -> None:
    """The arithmetic that is shown, computed."""
    for core in TENSOR_CORES.values():
        lines = str(explore.tensor_cores(core.name)).splitlines()[2:]
        for line, (matrix, layout) in zip(lines, core.layouts.items(), strict=True):
            name, arithmetic = line.strip()[0], line.strip()[1:]
            assert name == matrix
            for lane in range(core.lanes):
                for register in range(layout.registers):
                    held = dict(zip([word.split()[0] for word in core.holder], (lane, register)))
                    place = tuple(eval(arithmetic, held))  # noqa: S307 (our own text)
                    assert place == layout.position_of(lane, register)


def test_pictures_are_legible_and_make_no_request() -> None:
    for name in ("sm_80", "gfx90a", "sapphirerapids"):
        found = explore.tensor_cores(name)
        page = found.to_html()
        assert "<script" not in page and "http" not in page.replace("http-equiv", "")
        for core in found:
            picture = found.svg(core.name)
            assert min(map(float, re.findall(r'font-size="([\d.]+)"', picture))) >= 11
            assert picture.count("<rect") == 1 + len(found.elements(core.name))


def test_the_tiles_of_a_cpu_are_drawn_by_their_rows() -> None:
    found = explore.tensor_cores("emeraldrapids")
    assert [core.name for core in found] == ["amx_tdpbf16ps", "amx_tdpbssd"]
    assert "row of the tile 5</b>" in found.to_html()
    assert len([one for one in found.elements(0) if one.matrix == "B" and one.lanes == (5,)]) == 32
    assert str(explore.tensor_cores("cooperlake")) == "Tile registers of cooperlake: none"
    a, b = np.ones((64, 256), np.int8), np.ones((256, 64), np.int8)
    target = "sapphirerapids,threads=2,l1=48K,l2=2M"
    view = explore(lambda: Tensor(a).dot(Tensor(b), acc_dtype="int32"), target=target, title="bytes")
    assert [core.name for core in explore.tensor_cores(view)] == ["amx_tdpbssd"]
    assert view.trace.kernels[0].opts[0] == "TC(2, 64)"
    row = next(row for row in view.kernels[0].why_opts().table().rows if row[0] == "use_amx_tiles")
    assert "tdpbssd" in row[1] and "16 × 16 × 64 multiply-adds" in row[1]


def test_unknown_names_raise_an_error_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match="GPUs .*sm_75, sm_80"):
        explore.tensor_cores("sm_10")
    with pytest.raises(KeyError, match="available: mma_m16n8k8_f16"):
        explore.tensor_cores("sm_75")["mma_m16n8k16_f16"]
    assert "opencl, any GPU with OpenCL 1.2: none" in str(explore.tensor_cores("opencl"))


def test_a_capture_reports_the_core_of_its_kernel_with_the_reason() -> None:
    a, b = np.ones((64, 32), np.float16), np.ones((32, 64), np.float16)
    view = explore(lambda: Tensor(a) @ Tensor(b), target="sm_80", title="halves")
    assert [core.name for core in explore.tensor_cores(view)] == ["mma_m16n8k16_f16"]
    (kernel,) = view.trace.kernels
    assert kernel.opts[0] == "TC(2, 16)"
    languages = {one.language for one in view.trace.programs}
    assert "cuda" in languages and languages.isdisjoint({"hip", "metal", "opencl"}), "each has cores of its own"
    why = view.kernels[0].why_opts()
    row = next(row for row in why.table().rows if row[0] == "use_tensor_cores")
    assert "mma_m16n8k16_f16" in row[1] and "16 × 8 × 16 multiply-adds" in row[1]
    assert why["tile_items"].choice.settled_by == "use_tensor_cores"
    assert row[3].startswith("LOCAL("), "on the GPU that it was captured for"
    rosetta = view.kernels[0].translate()
    assert "__builtin_amdgcn_wmma" in rosetta["hip"].source and "simdgroup_multiply" in rosetta["metal"].source


@pytest.mark.browser
def test_hovering_highlights_the_elements_of_the_same_lane(browser: Any) -> None:
    tab = browser.new_page()
    tab.set_content(explore.tensor_cores("sm_80").to_html())
    tab.hover(".core0 .C td.l13 >> nth=0")
    said = tab.locator(".core0 .say13")
    assert said.is_visible() and "[3, 2], [3, 3], [11, 2], [11, 3]" in said.inner_text()
    lit = "cells => cells.filter(one => getComputedStyle(one).outlineStyle === 'solid').map(one => one.title)"
    titles = tab.eval_on_selector_all(".core0 td", lit)
    assert len(titles) == 8 + 4 + 4 and all("· lane 13 ·" in title for title in titles)
    tab.locator("label:has(#c4)").click()
    assert tab.locator(".core4").is_visible() and not tab.locator(".core0").is_visible()
    color = "one => getComputedStyle(one).backgroundColor"
    before = tab.eval_on_selector(".core4 .A td.l1", color)
    tab.locator("label:has(#by-register)").click()
    assert tab.eval_on_selector(".core4 .A td.l1", color) != before
    tab.close()
