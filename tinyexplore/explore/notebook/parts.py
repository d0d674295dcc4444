"""The single views of an Explorer as widgets: their names, their pinned positions, and their static pictures."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from tinyexplore.explore.analysis.shapes.trace_shapes import shape_of_node
from tinyexplore.explore.tracefile.model import Stage
from tinyexplore.explore.tracefile.pictures.graph_picture import graph_svg, pipeline_svg
from tinyexplore.explore.tracefile.pictures.table_pictures import Column, listing_svg, sheet_svg
from tinyexplore.explore.tracefile.trace import Trace

if TYPE_CHECKING:
    from tinyexplore.widgets import CodeWidget, ExplorerWidget, GraphWidget, PartWidget
    from tinyexplore.widgets.panels import PanelWidget

W = TypeVar("W")

_PANE_A = ("source", "aten", "uops")
_PANE_C = ("asm", "ptx", "amdgcn")


class Parts:
    """The widgets over one trace, each created on first use."""

    def __init__(self, explorer: ExplorerWidget, trace: Callable[[], Trace]) -> None:
        self._explorer = explorer
        self._trace = trace
        self._made: dict[object, Any] = {}

    def _make_once(self, key: object, make: Callable[[], W]) -> W:
        if key not in self._made:
            self._made[key] = make()
        widget: W = self._made[key]
        return widget

    def _make_picture(self, draw: Callable[[Trace], str]) -> Callable[[], str]:
        return lambda: draw(self._trace())

    def plain(self, name: str) -> PartWidget:
        """Returns the widget of a panel: "stepper", "tuner", … These panels have a `widget` in `widgets/panels.py`."""
        from tinyexplore.widgets.panels import PANEL_OF_WIDGET
        from tinyexplore.widgets.parts import PANEL_WIDGETS

        panel = PANEL_OF_WIDGET.get(name)
        if panel is None or panel.widget is None:
            raise ValueError(f"no panel is a widget {name!r}; available: {', '.join(PANEL_OF_WIDGET)}")
        static = self._make_picture(self._find_picture_function(panel.widget))
        return self._make_once(name, partial(PANEL_WIDGETS[name], self._explorer, static=static))

    def _find_picture_function(self, widget: PanelWidget) -> Callable[[Trace], str]:
        """Returns the function that draws the static picture of a panel's widget."""
        return partial(_draw, widget.picture) if widget.picture else self._shape

    def _shape(self, trace: Trace) -> str:
        selected = self._explorer.selected
        try:
            return shape_of_node(trace, selected[0] if selected else None).svg()
        except ValueError as error:  # the node shows no memory, or its sizes change from call to call
            return sheet_svg("Shape", (Column(""),), ((str(error),),))

    def graph(self) -> GraphWidget:
        """Returns the graph at the current position."""
        from tinyexplore.widgets import GraphWidget

        def draw(trace: Trace) -> str:
            stage = self._explorer.cursor.get("stage")
            if self._explorer.cursor.get("graph") == "uops" and stage is not None:
                return graph_svg(trace, stage, kind="uop")
            return pipeline_svg(trace)

        make = partial(GraphWidget, self._explorer, at=self._make_graph_at, static=self._make_picture(draw))
        return self._make_once("graph", make)

    def _make_graph_at(self, which: str, stage: Any = None, kernel: int | None = None) -> GraphWidget:
        from tinyexplore.widgets import GraphWidget

        if which == "uops":
            stage_row = stage_of(self._trace(), stage, kernel)
            pinned = {
                "look": "uops",
                "graph": "uops",
                "stage": stage_row.id,
                "step": len(stage_row.steps),
                "kernel": stage_row.kernel,
            }
            draw: Callable[[Trace], str] = partial(graph_svg, stage=stage_row.id, kind="uop")
        else:
            pinned = {"graph": "lazy", "look": which}
            draw = graph_svg if which == "lazy" else pipeline_svg
        make = partial(GraphWidget, self._explorer, pinned=pinned, static=self._make_picture(draw))
        return self._make_once(("graph", *pinned.values()), make)

    def code(self) -> CodeWidget:
        """Returns the widget of all listings."""
        from tinyexplore.widgets import CodeWidget

        make = partial(CodeWidget, self._explorer, single=self._make_listing, static=self._make_picture(listing_svg))
        return self._make_once("code", make)

    def _make_listing(self, language: str) -> CodeWidget:
        from tinyexplore.widgets import CodeWidget

        trace = self._trace()
        languages = ["source", *dict.fromkeys(program.language for program in (*trace.origins, *trace.programs))]
        if language not in languages:
            raise ValueError(f"no listing {language!r} in this trace; available: {', '.join(languages)}")
        pane = "a" if language in _PANE_A else "c" if language in _PANE_C else "b"
        key = "source 0" if language == "source" else language
        picture = self._make_picture(partial(listing_svg, language=language))
        make = partial(CodeWidget, self._explorer, pane=pane, pinned={"tabs": {pane: key}}, static=picture)
        return self._make_once(("code", language), make)


def _draw(picture: str, trace: Trace) -> str:
    """Draws the picture of a trace with the function "module:function".

    The module is imported on first use, because it loads the layout.
    """
    module, _, function = picture.partition(":")
    svg: str = getattr(importlib.import_module(module), function)(trace)
    return svg


def stage_of(trace: Trace, selector: Stage | int | str | None, kernel: int | None = None) -> Stage:
    """Returns a stage with UOps, by number or by name.

    If several stages have the name, the first one of `kernel` is returned. None selects the last stage with UOps of the
    kernel, or of the first kernel.
    """
    if isinstance(selector, Stage):
        return selector
    if isinstance(selector, int):
        if not 0 <= selector < len(trace.stages):
            raise ValueError(f"stage {selector}: this trace has stages 0 … {len(trace.stages) - 1}")
        return trace.stages[selector]
    of = 0 if kernel is None and selector is None else kernel
    graphs = [stage for stage in trace.stages if _has_uops(trace, stage) and of in (None, stage.kernel)]
    if selector is None:
        if not graphs:
            raise ValueError(
                "this trace has no UOps, because nothing was compiled; capture code that realizes a Tensor"
            )
        return graphs[-1]
    named = [stage for stage in graphs if stage.name == selector]
    if not named:
        names = ", ".join(dict.fromkeys(stage.name for stage in graphs))
        raise ValueError(f"no stage {selector!r} with UOps; available: {names}")
    return named[0]


def _has_uops(trace: Trace, stage: Stage) -> bool:
    roots = stage.after or stage.before
    return len(roots) == 1 and trace.nodes[roots[0]].kind == "uop"


__all__ = ["Parts", "stage_of"]
