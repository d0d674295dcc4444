"""A question about a capture: data for a tour, and a widget in which the user guesses."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from tinyexplore.explore.analysis.questions import Stop, question
from tinyexplore.explore.tracefile.result_display import DisplayableResult, Table

if TYPE_CHECKING:
    from tinyexplore.explore.notebook.explorer_view import ExplorerView
    from tinyexplore.widgets import PredictWidget


class Question(DisplayableResult, Stop):
    """A question that a trace answers. `choices`, `answer` and `reveal` are data; it displays as a widget.

    Its console text shows the choices and hides the answer.
    """

    def __init__(self, stop: Stop, view: ExplorerView, reveals: bool = False) -> None:
        super().__init__(**asdict(stop))
        object.__setattr__(self, "_view", view)  # an attribute outside the fields of a frozen dataclass
        object.__setattr__(self, "_reveals", reveals)

    @property
    def widget(self) -> PredictWidget:
        """The question as a widget, which shows the answer after a guess."""
        from tinyexplore.widgets import PredictWidget

        view: ExplorerView = self._view  # type: ignore[attr-defined]
        reveals: bool = self._reveals  # type: ignore[attr-defined]
        return PredictWidget(view.widget, self.as_data(), reveals=reveals, static=view.trace.svg() if reveals else "")

    def table(self) -> Table:
        """Returns the question and its choices, numbered as `grade` takes them."""
        rows = tuple((str(number), choice) for number, choice in enumerate(self.choices))
        return Table(self.text, ("#", "choice"), rows, ("`.grade(number)` checks a guess; `.reveal` has the answer.",))

    def _ipython_display_(self) -> None:
        from IPython.display import display

        try:
            display(self.widget)
        except ImportError:
            display({"text/plain": str(self), "text/html": self._repr_html_()}, raw=True)


__all__ = ["Question", "question"]
