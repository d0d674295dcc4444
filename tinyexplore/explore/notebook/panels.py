"""The panels of a view, each as a widget of its own: `view.panels.roofline`, `view.panels.code.only("asm")`, …"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from tinyexplore.explore.notebook.capture_session import TraceOf
from tinyexplore.explore.notebook.parts import Parts
from tinyexplore.explore.tracefile.links import link_of
from tinyexplore.explore.tracefile.result_display import DisplayableResult, Table

if TYPE_CHECKING:
    from tinyexplore.explore.analysis.shapes.view import ShapeView
    from tinyexplore.explore.notebook.explorer_view import ExplorerView
    from tinyexplore.explore.tracefile.model import Node
    from tinyexplore.widgets import CodeWidget, GraphWidget, PartWidget


class Panels(DisplayableResult):
    """The single views of a capture as widgets. All panels of one view share the selection and the current position."""

    def __init__(self, view: ExplorerView) -> None:
        self._view = view
        self._parts: Parts | None = None

    def _make_all(self) -> Parts:
        """Returns the widgets. They refer to the compressed trace, not to the Explorer."""
        if self._parts is None:
            widget = self._view.widget
            self._parts = Parts(widget, TraceOf(self._view.capture, widget))
        return self._parts

    @property
    def graph(self) -> GraphWidget:
        """The graph; `.lazy`, `.schedule` and `.uops(stage)` stay at one stage."""
        return self._make_all().graph()

    @property
    def code(self) -> CodeWidget:
        """The listings side by side; `.only("asm")` is one of them."""
        return self._make_all().code()

    @property
    def stepper(self) -> PartWidget:
        """The passes and the firings of their rules, step by step."""
        return self._make_all().plain("stepper")

    @property
    def kernels(self) -> PartWidget:
        """The table of kernels."""
        return self._make_all().plain("kernels")

    @property
    def tuner(self) -> PartWidget:
        """The loops of a kernel, its legal opts, and all branches under this machine's ceilings."""
        view = self._view
        view.capture.measure_ceilings()
        if view.whatif.is_live and not any(branch.kernel is not None for branch in view.whatif.branches):
            view.whatif.begin(min(view.whatif.compiler().subjects))
        return self._make_all().plain("tuner")

    @property
    def fusion(self) -> PartWidget:
        """The fusion board. On first use, the first schedule runs as captured, if it can be scheduled again."""
        view = self._view
        if view.whatif.schedules and not view.fusion.branches():
            view.fusion.branch()
        return self._make_all().plain("fusion")

    @property
    def rules(self) -> PartWidget:
        """The rewrite rules of the pipeline and the user's rules: where they match, and the results of firing them."""
        return self._make_all().plain("rules")

    @property
    def timing(self) -> PartWidget:
        """The samples of each kernel (`trace.runs` has them as data)."""
        return self._make_all().plain("timing")

    @property
    def modules(self) -> PartWidget:
        """Time and memory by module of the user's program (`trace.modules()` has them as data)."""
        return self._make_all().plain("modules")

    @property
    def roofline(self) -> PartWidget:
        """The kernels under this machine's ceilings, which are measured on first use (`trace.ceilings`)."""
        self._view.capture.measure_ceilings()
        return self._make_all().plain("roofline")

    @property
    def timeline(self) -> PartWidget:
        """Stages, launches and memory over time (`trace.timeline()` has them as data)."""
        return self._make_all().plain("timeline")

    @property
    def memory(self) -> PartWidget:
        """The buffers and their live ranges (`trace.buffers` has them as data)."""
        return self._make_all().plain("memory")

    @property
    def shape(self) -> PartWidget:
        """The elements of memory that the selected node refers to, as grids (`shape_of` has them as data)."""
        return self._make_all().plain("shape")

    def __getitem__(self, name: str) -> PartWidget:
        """Returns a panel by its name: `view.panels["timing"]`. For an unknown name, a ValueError lists the names."""
        return self._make_all().plain(name)

    def result(self, panel: str) -> Any:
        """Returns the data of a panel, as a dataclass with a readable text.

        Raises:
            KeyError: there is no such panel.
            ValueError: its content does not follow from the trace alone.
        """
        from tinyexplore.explore.exports.panels import result_of
        from tinyexplore.widgets.panels import panel_named

        return result_of(self._view.trace, panel_named(panel))

    def shape_of(self, node: Node | int | None = None) -> ShapeView:
        """Returns the elements of memory that a node refers to, movement by movement.

        Args:
            node: a LazyBuffer, or a UOp, which stands for the LazyBuffer that it was derived from. By default the
                selected node, or the first one with a view.
        """
        from tinyexplore.explore.analysis.shapes.trace_shapes import shape_of_node

        selected = self._view.selected
        return shape_of_node(self._view.trace, selected[0] if node is None and selected else node)

    def link(self, page: str | Path = "") -> str:
        """Returns the link to the current position, for `view.show`: `#stage=4&step=2&node=17`.

        Args:
            page: the name of a page from `to_html`, which precedes the link.
        """
        view = self._view
        cursor = {} if view._widget is None else view._widget.cursor
        return f"{page}{link_of(cursor, [node.id for node in view.selected])}"

    def table(self) -> Table:
        """Returns the panels, each with its name and a description."""
        names = [name for name, value in vars(Panels).items() if isinstance(value, property)]
        rows = tuple((name, (vars(Panels)[name].__doc__ or "").split("\n")[0]) for name in names)
        return Table("panels: each is a widget of its own", ("view.panels.…", "shows"), rows)


__all__ = ["Panels"]
