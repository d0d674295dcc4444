"""Shows the progress of a search for opts as a bar in a terminal or notebook, if tqdm is installed."""

from __future__ import annotations

import math
import sys
from typing import Any

from tinyexplore.trace import Event, Recorder, SearchEnded, SearchProgress


class ProgressRecorder(Recorder):
    """Shows `SearchProgress` events as one bar, which disappears when the search ends. `make` is `tqdm.tqdm`."""

    def __init__(self, make: Any) -> None:
        super().__init__()
        self.make = make
        self.bar: Any = None

    def record(self, event: Event) -> None:
        match event:
            case SearchProgress():
                self.show(event)
            case SearchEnded() if self.bar is not None:
                self.bar.close()
                self.bar = None

    def show(self, event: SearchProgress) -> None:
        """Updates the bar. A candidate counts half when it is compiled, and half when it is measured."""
        if self.bar is None:
            self.bar = self.make(desc=f"BEAM {event.kernel.name}", unit="candidate", leave=False)
        bar = self.bar
        if event.compiled + event.measured == 0:
            bar.reset(total=event.candidates)
        if not math.isinf(event.best_seconds):
            bar.set_postfix_str(f"best {event.best_seconds * 1e6:.1f} µs", refresh=False)
        bar.update((event.compiled + event.measured) / 2 - bar.n)


def find_progress() -> ProgressRecorder | None:
    """Returns a recorder for one search; None without tqdm, or without a terminal or notebook.

    `TQDM_DISABLE=1` disables it.
    """
    if not (_is_in_notebook() or (sys.stderr is not None and sys.stderr.isatty())):
        return None
    try:
        from tqdm.auto import tqdm
    except ImportError:
        return None
    return ProgressRecorder(tqdm)


def _is_in_notebook() -> bool:
    """Whether this process is a Jupyter kernel. The function does not import IPython."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return shell is not None and hasattr(shell, "kernel")
