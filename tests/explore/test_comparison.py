"""Two captures kernel by kernel."""

from __future__ import annotations

import gzip
import json
import re
from base64 import b64decode
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations

import pytest

from tinyexplore import Tensor, cli, explore
from tinyexplore.explore import Trace, compare
from tinyexplore.explore.analysis.comparisons import noise
from tinyexplore.explore.analysis.comparisons.noise import compare_times, rank_test
from tinyexplore.explore.tracefile.model import Run
from tinyexplore.util import Context


def total(rows: int):
    return explore(lambda: (Tensor.ones(rows, 4).contiguous() + 1).sum(), title=f"{rows} rows", repeat=1)


@pytest.fixture(scope="module", autouse=True)
def on_the_reference_device():
    with Context(DEVICE="PYTHON"):
        yield


@pytest.fixture(scope="module")
def plain() -> Trace:
    return total(4).trace


@pytest.fixture(scope="module")
def wider() -> Trace:
    return total(8).trace


def test_equal_programs_are_the_same_whatever_their_times(plain):
    again = total(4)
    found = compare(plain, again)
    assert found.same
    assert [pair.change for pair in found.kernels] == ["same"] * len(plain.kernels)
    kernels, nodes = repr(found).splitlines()[:2]
    assert kernels == f"'4 rows' with '4 rows': {len(plain.kernels)} kernels, 0 changed"
    assert nodes.startswith("the same nodes")


def test_kernels_of_the_same_calls_are_paired_despite_different_shapes(plain, wider):
    found = compare(plain, wider)
    assert [(pair.a.calls, pair.change) for pair in found.kernels] == [
        (pair.b.calls, "changed") for pair in found.kernels
    ]
    for pair in found.kernels:
        assert "uops" in pair.reasons
        uops = next(listing for listing in pair.listings if listing.language == "uops")
        removed = [line[1:] for line in uops.lines() if line.startswith("-")]
        assert set(removed) <= set(uops.a)
        assert removed
        assert pair.only_a


def test_the_order_of_kernels_does_not_matter_to_their_pairs(plain):
    numbers = {kernel.id: len(plain.kernels) - 1 - kernel.id for kernel in plain.kernels}
    turned = replace(
        plain,
        kernels=tuple(replace(kernel, id=numbers[kernel.id]) for kernel in reversed(plain.kernels)),
        programs=tuple(replace(program, kernel=numbers[program.kernel]) for program in plain.programs),
        runs=tuple(replace(run, kernel=numbers[run.kernel]) for run in plain.runs),
        stages=tuple(
            stage if stage.kernel is None else replace(stage, kernel=numbers[stage.kernel]) for stage in plain.stages
        ),
    )
    assert [(pair.a.id, pair.b.id) for pair in compare(plain, turned).kernels] == sorted(numbers.items())


def test_a_kernel_that_only_one_has_is_a_change(plain):
    fewer = replace(
        plain,
        kernels=plain.kernels[:1],
        programs=tuple(program for program in plain.programs if program.kernel == 0),
        runs=plain.runs[:1],
        stages=tuple(stage for stage in plain.stages if stage.kernel in (None, 0)),
    )
    found = compare(plain, fewer)
    assert [pair.change for pair in found.kernels] == ["same", *["only in a"] * (len(plain.kernels) - 1)]
    assert [pair.change for pair in compare(fewer, plain).kernels][-1] == "only in b"
    assert not found.same


# *** times ***


def run(*times: float) -> Run:
    ordered = sorted(times)
    return Run(0, 0, times, ordered[len(times) // 2], ordered[len(times) // 4], ordered[3 * len(times) // 4])


@pytest.mark.parametrize(
    ("a", "b", "verdict"),
    [
        (range(10, 20), range(30, 40), "slower"),
        (range(30, 40), range(10, 20), "faster"),
        (range(10, 20), range(11, 21), "noise"),
        ([10.0] * 10, [10.0] * 10, "noise"),
        (range(10, 14), range(30, 34), "slower"),
        (range(30, 32), range(10, 14), "faster"),
        (range(10, 14), range(20, 24), "unknown"),
        (range(10, 11), range(30, 34), "unknown"),
        ([66.1, 66.6, 67.8, 66.0, 66.3], [3.7, 3.9, 6.7, 3.8, 3.9], "faster"),  # 17 times, in five runs each
        ([1.0, 2.0, 3.0, 4.0, 9.0], [5.0, 6.0, 7.0, 8.0, 10.0], "unknown"),  # far apart, but for one of ten
    ],
)
def test_a_difference_of_times_is_distinguished_from_noise(a, b, verdict):
    assert compare_times(run(*map(float, a)), run(*map(float, b))).verdict == verdict


def test_kernels_without_samples_have_no_verdict():
    assert compare_times(None, run(1.0)).text == "not run → 1.00 µs (1.00 to 1.00 µs)"


@pytest.mark.parametrize(
    ("a", "b", "p_value"),
    [  # scipy.stats.mannwhitneyu(a, b, method="asymptotic")
        ([1, 2, 3, 4, 5], [6, 7, 8, 9, 10], 0.012185780355344),
        ([1, 2, 2, 3, 9], [2, 4, 4, 8, 8], 0.28733306967149),
        ([5, 5, 5], [5, 5, 5], 1.0),
    ],
)
def test_many_samples_are_ranked_by_the_normal_approximation(a, b, p_value, monkeypatch):
    monkeypatch.setattr(noise, "COUNTED_SAMPLES", 0)
    assert rank_test(a, b) == pytest.approx(p_value, abs=1e-9)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ([1, 2, 3, 4, 5], [6, 7, 8, 9, 10]),
        ([1, 2, 2, 3, 9], [2, 4, 4, 8, 8]),
        ([5, 5, 5], [5, 5, 5]),
        ([3, 1, 4, 1, 5, 9], [2, 6, 5, 3]),
    ],
)
def test_few_samples_are_ranked_by_exact_permutation(a, b):
    both = [*a, *b]

    def distance(first: Sequence[int]) -> float:
        """Of the pairs, a tie as a half: how far those that the first wins are from half of them."""
        second = Counter(both) - Counter(first)
        wins = sum((x > y) + (x == y) / 2 for x in first for y in second.elements())
        return abs(wins - len(a) * len(b) / 2)

    dealt = [distance(chosen) for chosen in combinations(both, len(a))]
    assert rank_test(a, b) == pytest.approx(sum(one >= distance(a) for one in dealt) / len(dealt), abs=1e-12)


# *** page and command ***


def unpacked(page: str) -> list[str]:
    """What the sections hold that travel compressed."""
    found = re.findall(r'<details class="packed">.*?base64">(.*?)</script>', page, re.DOTALL)
    return [gzip.decompress(b64decode(data)).decode() for data in found]


def test_the_page_is_standalone_and_names_each_change(plain, wider, tmp_path):
    found = compare(plain, wider)
    page = found.to_html(tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text() == page
    assert len(unpacked(page)) == len(found.changed) - 1  # the first stands there for who has no JavaScript
    whole = page + "".join(unpacked(page))
    assert whole.count("<summary>UOps</summary>") == len(found.changed)
    assert "http://" not in whole.replace("http://www.w3.org/2000/svg", "")
    for number, pair in enumerate(found.kernels):
        assert f'id="kernel-{number}"' in page
        assert pair.times.text in page
    assert "4 rows with 8 rows" in page


@pytest.mark.browser
def test_a_kernels_listings_are_unpacked_by_a_link_by_a_click_and_by_the_button(plain, wider, browser, tmp_path):
    found = compare(plain, wider)
    found.to_html(tmp_path / "page.html")
    last = len(found.kernels) - 1
    shown = f"document.querySelectorAll('section:has(#kernel-{last}) table.lines').length"
    errors = []
    tab = browser.new_page()
    tab.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
    for reach in (f"a[href='#kernel-{last}']", f"section:has(#kernel-{last}) summary", "text=Open every kernel"):
        tab.goto((tmp_path / "page.html").as_uri())
        assert tab.evaluate(shown) == 0
        tab.click(reach)
        tab.locator(f"section:has(#kernel-{last}) table.lines").first.wait_for(state="attached")
    tab.set_content(found._repr_html_())  # as in a notebook: in a frame of its own
    frame = tab.frame_locator("iframe[title=comparison]")
    frame.locator(f"a[href='#kernel-{last}']").click()
    frame.locator(f"section:has(#kernel-{last}) table.lines").first.wait_for()
    tab.close()
    assert errors == []


def test_titles_and_lines_are_text_in_the_page(plain):
    page = compare(replace(plain, title="<b>"), replace(plain, title="&")).to_html()
    assert "<h1>&lt;b&gt; with &amp;</h1>" in page


def test_the_command_fails_where_kernels_changed(plain, wider, tmp_path, capsys):
    a, b = (str(trace.save(tmp_path / f"{i}.json.gz")) for i, trace in enumerate((plain, wider)))
    assert cli.main(["compare", a, a]) == 0
    assert "0 changed" in capsys.readouterr().out
    assert cli.main(["compare", a, b, "--json", "--html", str(tmp_path / "page.html")]) == 1
    told = json.loads(capsys.readouterr().out)
    assert told["same"] is False
    assert {kernel["change"] for kernel in told["kernels"]} == {"changed"}
    assert (tmp_path / "page.html").is_file()
    assert cli.main(["compare", a, str(tmp_path / "missing.json")]) == 2
    assert "missing.json is not a file" in capsys.readouterr().err


def test_arguments_that_are_no_capture_are_refused():
    with pytest.raises(TypeError, match="Explorer, a Trace or"):
        compare(3, 4)


def test_graphs_of_a_comparison_use_the_programs_names_of_buffers():
    x = Tensor.ones(4, 4).contiguous().realize()
    shapes = [explore(lambda rows=rows: (x[:rows] + 1).sum(), repeat=1) for rows in (4, 2)]
    page = compare(*shapes).to_html()
    graphs = "".join(re.findall(r"<svg.*?</svg>", page, re.DOTALL))
    assert ">x<" in graphs
    assert "data1" not in graphs
    assert "<summary>UOps</summary>" in page
