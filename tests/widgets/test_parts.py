"""Each view as its own widget: one trace, one selection, traits that ipywidgets can link; and its picture."""

from __future__ import annotations

import base64
import re
from typing import Any
from xml.etree import ElementTree

import ipywidgets
import pytest

from tests.widgets.sample_traces import sample_trace
from tinyexplore.explore import Explorer
from tinyexplore.widgets import CodeWidget, GraphWidget, PartWidget
from tinyexplore.widgets.base_widget import PicturedWidget
from tinyexplore.widgets.panels import PANEL_OF_WIDGET

TRACE = sample_trace()


@pytest.fixture
def view() -> Explorer:
    return Explorer(TRACE)


def stage(name: str) -> int:
    return next(stage.id for stage in TRACE.stages if stage.name == name)


def all_parts(view: Explorer) -> list[PartWidget]:
    graphs = [view.graph, view.graph.lazy, view.graph.schedule, view.graph.uops()]
    listings = [view.panels.code, view.panels.code.only("source"), view.panels.code.only("c")]
    return [
        *graphs,
        *listings,
        *(view.panels[name] for name in PANEL_OF_WIDGET),
    ]


def test_the_trace_and_the_code_are_sent_once(view: Explorer) -> None:
    for part in all_parts(view):
        state = part.get_state()
        assert "payload" not in state
        assert state["explorer"] == f"IPY_MODEL_{view.widget.model_id}"
        assert sum(len(str(value)) for value in state.values()) < 3_000, part


def test_each_view_is_created_once(view: Explorer) -> None:
    assert all_parts(view) == all_parts(view)
    assert view.graph.uops() is not view.graph.uops(stage("simplify"))


def test_a_selection_in_one_view_is_a_selection_in_all(view: Explorer) -> None:
    view.graph.set_state({"selected": [3, 5]})  # what a click sends
    assert [node.id for node in view.selected] == [3, 5]
    assert all(part.selected == [3, 5] for part in all_parts(view))
    view.selected = [1]
    assert all(part.selected == [1] for part in all_parts(view))
    view.panels.stepper.select([TRACE.nodes[4]])
    assert view.widget.selected == [4]


def test_changes_of_the_front_end_are_not_sent_back_to_it(view: Explorer, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has already changed its views; a late message would undo later clicks."""
    parts = all_parts(view)
    sent: list[Any] = []
    for kind in {type(part) for part in parts} | {type(view.widget)}:
        monkeypatch.setattr(kind, "send_state", lambda self, key=None: sent.append((self, key)))
    view.panels.stepper.set_state({"step": 2, "selected": [3]})
    view.widget.set_state({"cursor": {"stage": 1, "step": 1}})
    echoes = [one for one in sent if one[0] not in (view.panels.stepper, view.widget)]
    assert echoes == []
    assert (view.graph.stage, view.graph.step, view.graph.selected) == (1, 1, [3])
    view.panels.timing.step = 3  # said by a program: it is sent, to the part and to the explorer
    assert view.widget.cursor == {"stage": 1, "step": 3}
    assert {type(one) for one, _ in sent} >= {type(view.panels.timing), type(view.widget)}


def test_stage_and_step_move_all_unpinned_views(view: Explorer) -> None:
    pinned = view.graph.uops("simplify")
    view.panels.stepper.stage = stage("reduce to loop")
    assert view.widget.cursor == {"stage": stage("reduce to loop")}
    view.panels.stepper.step = 2
    assert (view.graph.stage, view.graph.step) == (stage("reduce to loop"), 2)
    assert pinned.stage == stage("simplify")
    pinned.step = 1
    assert view.graph.step == 2


def test_traits_can_be_linked(view: Explorer) -> None:
    slider = ipywidgets.IntSlider()
    ipywidgets.link((view.panels.stepper, "step"), (slider, "value"))
    slider.value = 3
    assert view.widget.cursor["step"] == 3
    other = Explorer(TRACE)
    ipywidgets.link((view.graph, "selected"), (other.graph, "selected"))
    view.graph.select([2])
    assert [node.id for node in other.selected] == [2]
    box = ipywidgets.HBox([view.graph, ipywidgets.Tab([view.panels.code])])
    assert box.children[0] is view.graph


def test_a_graph_stays_at_the_requested_stage(view: Explorer) -> None:
    assert view.graph.uops("simplify").stage == view.graph.uops(stage("simplify")).stage == stage("simplify")
    assert view.graph.uops(TRACE.stages[stage("simplify")]).stage == stage("simplify")
    with pytest.raises(ValueError, match="no stage 'simplfy' .*: .*simplify"):
        view.graph.uops("simplfy")
    with pytest.raises(ValueError, match="stage 99: this trace has stages 0"):
        view.graph.uops(99)
    with pytest.raises(AttributeError, match=r"pinned .*view\.graph"):
        view.graph.lazy.uops()


def test_a_missing_listing_raises_an_error_with_the_existing_ones(view: Explorer) -> None:
    assert isinstance(view.panels.code.only("asm"), CodeWidget)
    with pytest.raises(ValueError, match="no listing 'ptx' .*: source, uops"):
        view.panels.code.only("ptx")


def test_every_view_has_a_picture(view: Explorer) -> None:
    texts = {}
    for part in all_parts(view):
        picture = ElementTree.fromstring(part.svg())
        texts[str(part)] = " ".join(picture.itertext())
    assert "r_64_32_48" in texts["KernelsWidget()"] and "GFLOP/s" in texts["KernelsWidget()"]
    assert "simplify" in texts["StepperWidget()"]
    assert "µs in all" in texts["TimingWidget()"]
    assert f"{TRACE.buffers[0].bytes:,} B" in texts["MemoryWidget()"]
    (c,) = [text for name, text in texts.items() if "'c'" in name]
    program = next(program for program in TRACE.programs if program.language == "c")
    assert all(line.text.strip() in c for line in program.lines)
    assert len(set(texts.values())) >= 9  # the schedule is the picture of the graph, and your Python that of the code


def test_a_view_is_shown_as_a_picture_and_a_widget(view: Explorer, monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[dict[str, Any]] = []
    monkeypatch.setattr("IPython.display.display", lambda data, **_: shown.append(data))
    for one in (view, view.kernels.widget):
        one._ipython_display_()
        widget: PicturedWidget = view.widget if one is view else view.kernels.widget
        picture, live = shown[-2:]
        assert set(picture) == {"text/html", "text/plain"}
        found = re.fullmatch(r'<img class="tinyexplore-picture-(\w+)" .*base64,([^"]+)">', picture["text/html"])
        assert found is not None and found[1] == widget.picture
        assert ElementTree.fromstring(base64.b64decode(found[2]).decode()).tag.endswith("svg")
        assert set(live) == {"application/vnd.jupyter.widget-view+json", "text/plain"}


def test_closing_the_explorer_closes_its_views(view: Explorer) -> None:
    parts = all_parts(view)
    view.close()
    assert all(part.comm is None for part in parts)
    GraphWidget(Explorer(TRACE).widget).close()
