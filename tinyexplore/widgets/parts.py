"""Widgets for single views, which share the trace and the selection of one ExplorerWidget.

A class here is the Python part of a view; the other part is the TypeScript module of the same name
(`widgets/src/views/`). The trace and the code of the front end are sent once, with the ExplorerWidget.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from html import escape
from typing import Any

import traitlets
from ipywidgets import widget_serialization

from tinyexplore.widgets.base_widget import PicturedWidget, picture_html, show
from tinyexplore.widgets.explorer import ExplorerWidget
from tinyexplore.widgets.front_end import bundle
from tinyexplore.widgets.panels import PANELS, Panel, PanelWidget


class PartWidget(PicturedWidget):
    """One view. Its traits follow the reader, and may be set, linked and observed.

    selected: ids of the selected nodes, the same in all views of a trace.
    stage: the number of the reader's stage.
    step: how many of its steps are done. `stage` and `step` are the same in all views, except those that are `pinned`.
    height: the height of the view, in CSS.
    view: the name of the view.
    """

    _esm = traitlets.Unicode(bundle("view_widget.js")).tag(sync=True)
    explorer = traitlets.Instance(ExplorerWidget).tag(sync=True, **widget_serialization)
    view = traitlets.Unicode().tag(sync=True)
    pinned = traitlets.Dict().tag(sync=True)
    selected = traitlets.List(traitlets.Int()).tag(sync=True)
    stage = traitlets.Int(None, allow_none=True).tag(sync=True)
    step = traitlets.Int(0).tag(sync=True)
    height = traitlets.Unicode("auto").tag(sync=True)

    def __init__(
        self, explorer: ExplorerWidget, *, static: str | Callable[[], str] = "", pinned: dict[str, Any] | None = None
    ) -> None:
        cursor = {**explorer.cursor, **(pinned or {})}
        super().__init__(
            static=static,
            explorer=explorer,
            pinned=pinned or {},
            selected=explorer.selected,
            stage=cursor.get("stage"),
            step=cursor.get("step", 0),
            layout={"flex": "1 1 0", "min_width": "0", "width": "auto"},  # in an HBox, views share the width
        )
        explorer._parts.append(self)
        explorer.observe(self._copy_from_explorer, ["selected", "cursor"])
        self.observe(self._copy_to_explorer, ["selected", "stage", "step"])

    def _copy_from_explorer(self, change: Any) -> None:
        """Copies changed traits from the explorer. The front end does the same itself, so nothing is sent."""
        if change["name"] == "selected":
            self._set_without_sending(selected=change["new"])
        elif not self.pinned:
            cursor = change["new"]
            self._set_without_sending(stage=cursor.get("stage", self.stage), step=cursor.get("step", self.step))

    def _set_without_sending(self, **values: Any) -> None:
        with self._lock_property(**values):
            for name, value in values.items():
                setattr(self, name, value)

    def _copy_to_explorer(self, change: Any) -> None:
        """Passes a change on to the explorer, and so to all views. The front end forwards its own changes itself."""
        explorer, name, value = self.explorer, change["name"], change["new"]
        if name == "selected":
            to, new = "selected", value
        elif "stage" in self.pinned:
            return
        else:
            cursor = {key: old for key, old in explorer.cursor.items() if (key, name) != ("step", "stage")}
            to, new = "cursor", {**cursor, name: value}
        if getattr(explorer, to) == new or (name != "selected" and explorer.cursor.get(name) == value):
            return
        if name in self._property_lock:
            with explorer._lock_property(**{to: new}):
                setattr(explorer, to, new)
        else:
            setattr(explorer, to, new)

    def select(self, nodes: Iterable[Any]) -> None:
        """Selects nodes, given by id or as objects with an `id` (the nodes of a trace)."""
        self.selected = [node if isinstance(node, int) else node.id for node in nodes]

    def close(self) -> None:
        """Removes the view from the page."""
        if self.comm is None:  # the widget is already closed
            return
        self.explorer.unobserve(self._copy_from_explorer, ["selected", "cursor"])
        layout = self.layout
        super().close()
        layout.close()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self.pinned.items())})"


class GraphWidget(PartWidget):
    """The graph at the reader's position. `lazy`, `schedule` and `uops(stage)` are graphs at fixed positions."""

    view = traitlets.Unicode("graph").tag(sync=True)
    height = traitlets.Unicode("460px").tag(sync=True)

    def __init__(
        self, explorer: ExplorerWidget, *, at: Callable[..., GraphWidget] | None = None, **options: Any
    ) -> None:
        """Builds the widget. `at`: returns the graph at a position ("lazy", "schedule", or "uops" and a stage)."""
        super().__init__(explorer, **options)
        self._at = at

    def _follow_graph(self, *position: Any) -> GraphWidget:
        if self._at is None:
            raise AttributeError("this graph is pinned to one place; use view.graph, which is not")
        return self._at(*position)

    @property
    def lazy(self) -> GraphWidget:
        """The graph of LazyBuffers, colored by role."""
        return self._follow_graph("lazy")

    @property
    def schedule(self) -> GraphWidget:
        """The graph of LazyBuffers, each in the frame of the kernel that computes it."""
        return self._follow_graph("schedule")

    def uops(self, stage: Any = None, *, kernel: int | None = None) -> GraphWidget:
        """Returns the UOps after a stage: its number, its name ("simplify", "vector memory" ...) or the stage itself.

        By default, it is the last stage of `kernel` (by default the first kernel).
        """
        return self._follow_graph("uops", stage, kernel)


class CodeWidget(PartWidget):
    """The listings side by side. `only(language)` is one of them."""

    view = traitlets.Unicode("code").tag(sync=True)
    height = traitlets.Unicode("480px").tag(sync=True)
    pane = traitlets.Unicode("").tag(sync=True)

    def __init__(
        self,
        explorer: ExplorerWidget,
        *,
        pane: str = "",
        single: Callable[[str], CodeWidget] | None = None,
        **options: Any,
    ) -> None:
        """Builds the widget. `pane`: the only pane to show, of "a" (Python, UOps), "b" (source) and "c" (machine
        code)."""
        super().__init__(explorer, **options)
        self.pane = pane
        self._single = single

    def only(self, language: str) -> CodeWidget:
        """Returns one listing: "source" (your Python), "uops", "c", "llvm", "llvm-opt", "asm" ..."""
        if self._single is None:
            raise AttributeError("this widget shows one listing; use view.panels.code, which shows all")
        return self._single(language)


def _make_panel_widget(panel: Panel, widget: PanelWidget) -> type[PartWidget]:
    """Returns the class of a panel's widget."""
    members = {
        "__doc__": widget.doc,
        "__module__": __name__,
        "view": traitlets.Unicode(widget.name).tag(sync=True),
        "height": traitlets.Unicode(widget.height).tag(sync=True),
        "panel": panel,
    }
    return type(f"{widget.name.title()}Widget", (PartWidget,), members)


PANEL_WIDGETS = {
    panel.widget.name: _make_panel_widget(panel, panel.widget) for panel in PANELS if panel.widget is not None
}
# a stored notebook contains the names of its classes
globals().update({widget.__name__: widget for widget in PANEL_WIDGETS.values()})


class PredictWidget(PicturedWidget):
    """A question about a trace, which shows its answer after a guess.

    guess: the index of the chosen answer; None before a choice.
    reveals: whether the views are hidden until the question is answered, and then appear below it.
    """

    _esm = traitlets.Unicode(bundle("view_widget.js")).tag(sync=True)
    explorer = traitlets.Instance(ExplorerWidget).tag(sync=True, **widget_serialization)
    view = traitlets.Unicode("question").tag(sync=True)
    question = traitlets.Dict().tag(sync=True)
    guess = traitlets.Int(None, allow_none=True).tag(sync=True)
    reveals = traitlets.Bool(False).tag(sync=True)

    def __init__(
        self, explorer: ExplorerWidget, question: dict[str, Any], *, reveals: bool = False, static: str = ""
    ) -> None:
        """Builds the widget. `static`: a picture to show with the answer where no widget runs."""
        super().__init__(static=static, explorer=explorer, question=question, reveals=reveals)
        explorer._parts.append(self)

    @property
    def is_right(self) -> bool | None:
        """Whether the guess is correct; None before a guess."""
        return None if self.guess is None else self.guess == self.question["answer"]

    def close(self) -> None:
        """Removes the question from the page."""
        if self.comm is None:  # the widget is already closed
            return
        layout = self.layout
        super().close()
        layout.close()

    def __repr__(self) -> str:
        guess = "" if self.guess is None else f", guess={self.question['choices'][self.guess]!r}"
        return f"PredictWidget({self.question['text']!r}{guess})"

    def _ipython_display_(self) -> None:
        """Displays the question in plain HTML, with its answer folded, for readers without widgets, and the widget."""
        from IPython.display import display

        choices = "".join(f"<li>{escape(choice)}</li>" for choice in self.question["choices"])
        picture = f"<br>{picture_html(self.svg(), self.picture, repr(self))}" if self.svg() else ""
        html = (
            f'<div class="tinyexplore-picture-{self.picture}"><p><strong>{escape(self.question["text"])}</strong></p>'
            f"<ul>{choices}</ul><details><summary>The answer</summary>"
            f"{escape(self.question['reveal'])}{picture}</details></div>"
        )
        display({"text/html": html, "text/plain": repr(self)}, raw=True)
        show(self, "", "To guess here, run this cell where widgets are shown.")


__all__ = ["PANEL_WIDGETS", "CodeWidget", "GraphWidget", "PartWidget", "PredictWidget"]
