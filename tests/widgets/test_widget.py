"""The Python side of the explorer: traits, messages, representation; and the committed front end is current."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.widgets.sample_traces import gzipped, sample_trace
from tinyexplore.explore import schema
from tinyexplore.widgets import ExplorerWidget

ROOT = Path(__file__).resolve().parents[2]
TRACE = sample_trace()


def test_the_payload_is_sent_completely() -> None:
    widget = ExplorerWidget(gzipped(TRACE))
    assert widget.payload == gzipped(TRACE)
    assert widget.trace_json.startswith(b'{"version":1')
    assert not widget.is_large


def test_a_click_updates_the_selection_in_python() -> None:
    widget = ExplorerWidget(gzipped(TRACE))
    heard = []
    widget.observe(lambda change: heard.append(change["new"]), "selected")
    widget.set_state({"selected": [3, 5], "cursor": {"stage": 4, "step": 2}})
    assert heard == [[3, 5]]
    assert widget.cursor == {"stage": 4, "step": 2}


def test_python_selects_by_node_or_id_and_moves_the_reader() -> None:
    widget = ExplorerWidget(gzipped(TRACE), selected=[1])
    assert widget.selected == [1]
    widget.select([TRACE.nodes[4], 7])
    assert widget.selected == [4, 7]
    widget.go(stage=3)
    widget.go(step=1)
    assert widget.cursor == {"stage": 3, "step": 1}


def test_a_payload_that_is_not_gzipped_raises_an_error_with_a_remedy() -> None:
    with pytest.raises(Exception, match="gzipped JSON .* 7 bytes.*trace_to_bytes"):
        ExplorerWidget(b'{"a":1}')


def test_the_text_of_a_widget_is_stable_and_its_picture_is_shown() -> None:
    widget = ExplorerWidget(gzipped(TRACE), static="<svg/>")
    data, _ = widget._repr_mimebundle_()
    assert data["text/plain"] == f"ExplorerWidget({len(widget.payload)} bytes of trace)"
    assert data["image/svg+xml"] == "<svg/>"
    assert "application/vnd.jupyter.widget-view+json" in data


BUDGETS = json.loads((ROOT / "widgets" / "package.json").read_text(encoding="utf-8"))["budgets"]


@pytest.mark.parametrize("name, limit", BUDGETS.items())
def test_bundles_are_small_and_reference_no_other_host(name: str, limit: int) -> None:
    text = (ROOT / "tinyexplore" / "static" / name).read_text(encoding="utf-8")
    assert len(text.encode()) < limit
    places = {part.split('"')[0] for part in text.split("://")[1:]}
    nowhere = ("www.w3.org/2000/svg", "page.invalid/")  # a name of SVG, and one that stands for no place
    assert all(place.startswith(nowhere) for place in places)


def test_the_generated_types_are_current() -> None:
    assert schema.main(["--check"]) == 0


def test_a_stale_type_file_is_detected(tmp_path: Path) -> None:
    assert schema.main(["--output", str(tmp_path)]) == 0
    for name in ("model.ts", "requests.ts"):
        assert schema.main(["--check", "--output", str(tmp_path)]) == 0
        (tmp_path / name).write_text("// old\n", encoding="utf-8")
        assert schema.main(["--check", "--output", str(tmp_path)]) == 1
        assert schema.main(["--output", str(tmp_path)]) == 0


@pytest.mark.skipif(
    shutil.which("node") is None or not (ROOT / "widgets" / "node_modules" / "esbuild").is_dir(),
    reason="needs node and `npm ci` in widgets/",
)
def test_the_committed_bundles_equal_a_build_of_their_sources() -> None:
    found = subprocess.run(["node", "build.mjs", "--check"], cwd=ROOT / "widgets", capture_output=True, text=True)
    assert found.returncode == 0, found.stderr
