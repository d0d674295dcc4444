"""A page runs its own kernels: WebAssembly in a worker, without a network, with a check of the result."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tinyexplore import Tensor
from tinyexplore.explore import Explorer, Trace, explore
from tinyexplore.explore.exports.html_export import export_html
from tinyexplore.explore.exports.runnable_kernels import runnable

pytestmark = pytest.mark.browser
DONE = ".run-here [data-median-us], .run-here .wrong"


def captured(device: str, **options: Any) -> Explorer:
    numbers = np.random.default_rng(0).standard_normal((64, 48), dtype=np.float32)
    x, w = Tensor(numbers, device=device), Tensor(numbers.T.copy(), device=device)
    return explore(lambda: (x @ w).softmax(), device=device, repeat=1, **options)


@pytest.fixture(scope="module")
def view() -> Explorer:
    return captured("LLVM", keep_inputs=True)


@pytest.fixture
def shown(browser: Any, tmp_path: Path) -> Iterator[Callable[[str], Any]]:
    """The panel of times of a page, in a browser without a network."""
    context = browser.new_context(offline=True)
    context.add_init_script("localStorage.setItem('tinyexplore.mode', 'workbench')")
    problems: list[str] = []

    def show(html: str) -> Any:
        path = tmp_path / "page.html"
        path.write_text(html, encoding="utf-8")
        tab = context.new_page()
        tab.on("pageerror", lambda error: problems.append(str(error)))
        tab.goto(path.as_uri())
        tab.wait_for_selector("html[data-tinyexplore=ready]", state="attached")
        tab.evaluate("tinyexplore.handle.go({panel: 'timing', kernel: 0})")
        return tab

    yield show
    context.close()
    assert problems == []


def test_every_kernel_of_a_page_is_run_timed_and_compared(shown: Callable[[str], Any], view: Explorer) -> None:
    tab = shown(view.to_html(run_here=True))
    for kernel in range(len(view.trace.kernels)):
        tab.evaluate(f"tinyexplore.handle.go({{kernel: {kernel}}})")
        tab.get_by_role("button", name="Run here").click()
        tab.wait_for_selector(DONE)
        said = tab.inner_text(".run-here")
        assert re.search(r"✓ [\d,]+ results as expected", said) and "captured, in another process" in said
        assert "the inputs of the capture" in said
        assert float(tab.get_attribute(".run-here [data-median-us]", "data-median-us")) > 0
    assert tab.get_by_role("button", name="Run again").count() == 1


def test_a_different_result_is_reported(shown: Callable[[str], Any], view: Explorer) -> None:
    given = runnable(view.trace, {**view.capture.captured_kernels}, all_devices=True)
    other = given[0]["results"][0]["sample"]
    given[0]["results"][0]["sample"] = ("A" if other[0] != "A" else "B") * 40 + other[40:]
    tab = shown(export_html(view.trace, runnable=given))
    tab.get_by_role("button", name="Run here").click()
    tab.wait_for_selector(DONE)
    assert re.search(r"✗ \d+ of [\d,]+ results differ", tab.inner_text(".run-here"))


def test_kernels_of_the_wasm_device_can_always_be_run(shown: Callable[[str], Any]) -> None:
    view = captured("WASM")
    kernels = view.trace.kernels
    assert [one["kernel"] for one in runnable(view.trace)] == list(range(len(kernels)))  # as from a file
    listings = {(one.kernel, one.language): one.lines for one in view.trace.programs}
    assert all(kernel.code_bytes > 200 for kernel in kernels)
    assert sum(bool(line.nodes) for line in listings[0, "wat"]) > 20
    tab = shown(view.to_html())
    assert tab.locator('.code [role="tab"]', has_text="WebAssembly").count() == 1
    assert tab.locator('.listing[data-language="wat"] .t-call').count() > 20
    tab.get_by_role("button", name="Run here").click()
    tab.wait_for_selector(DONE)
    assert "results as expected" in tab.inner_text(".run-here") and "generated numbers" in tab.inner_text(".run-here")


def test_a_page_without_runnable_kernels_forbids_webassembly(view: Explorer) -> None:
    assert runnable(view.trace) == []
    assert "wasm-unsafe-eval" not in view.to_html() and "wasm-unsafe-eval" in view.to_html(run_here=True)


def test_the_data_of_a_file_suffices_to_run_a_kernel() -> None:
    """All a page needs is in the trace, but for what should come out."""
    view = captured("WASM")
    assert isinstance(view.trace, Trace)
    known = [
        {key: one[key] for key in ("name", "wasm", "buffers")}
        for one in runnable(view.trace, view.capture.captured_kernels)
    ]
    assert [{key: one[key] for key in ("name", "wasm", "buffers")} for one in runnable(view.trace)] == known


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_page_of_a_matmul_has_it_in_every_language_and_runs_it(
    browser: Any, tmp_path: Path, scheme: str, screenshots: Path
) -> None:
    """One file, opened without a network: one kernel for nine targets at least, run, timed and right."""
    numbers = np.random.default_rng(0).standard_normal((64, 48), dtype=np.float32)
    x, w = Tensor(numbers, device="LLVM"), Tensor(numbers.T.copy(), device="LLVM")
    view = explore(lambda: x @ w, repeat=1, title="a product", keep_inputs=True)
    kernel = len(view.trace.kernels) - 1
    texts = {one.target: one.source.split("\n") for one in view.kernels[kernel].translate().translations}
    assert len(texts) >= 9
    path = tmp_path / "page.html"
    path.write_text(view.to_html(run_here=True), encoding="utf-8")
    context = browser.new_context(offline=True, color_scheme=scheme, viewport={"width": 1280, "height": 1000})
    context.add_init_script("localStorage.setItem('tinyexplore.mode', 'workbench')")
    asked: list[str] = []
    tab = context.new_page()
    tab.on("request", lambda request: asked.append(request.url))
    tab.goto(path.as_uri())
    tab.wait_for_selector("html[data-tinyexplore=ready]", state="attached")
    tab.evaluate(f"tinyexplore.handle.go({{panel: 'rosetta', kernel: {kernel}}})")
    tab.wait_for_selector(".languages table")
    left = tab.locator(".languages select").first
    for target, lines in texts.items():
        left.select_option(target)
        drawn = tab.eval_on_selector_all(
            ".languages tbody tr > :nth-child(2) .line", "found => found.map((one) => one.textContent.trim())"
        )
        drawn, whole = [line for line in drawn if line], [line.strip() for line in lines if line.strip()]
        assert len(drawn) > 5 and drawn == whole[-len(drawn) :], target  # what stands before the kernel is folded
    tab.screenshot(path=screenshots / f"matmul_rosetta_{scheme}.png")
    tab.evaluate("tinyexplore.handle.go({panel: 'timing'})")
    tab.get_by_role("button", name="Run here").click()
    tab.wait_for_selector(DONE)
    said = tab.inner_text(".run-here")
    assert re.search(r"✓ [\d,]+ results as expected", said), said
    assert float(tab.get_attribute(".run-here [data-median-us]", "data-median-us")) > 0
    tab.locator(".run-here").scroll_into_view_if_needed()
    tab.screenshot(path=screenshots / f"matmul_run_here_{scheme}.png")
    context.close()
    assert [url for url in asked if not url.startswith(("file:", "blob:", "data:"))] == []
