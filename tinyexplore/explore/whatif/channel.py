"""Between a widget and the branches: carries out the commands of a view; branches become the widget's state.

A search runs in a thread of its own, so that it can be cancelled; every other command runs when it is requested.
"""

from __future__ import annotations

import gzip
import json
import threading
import time
from collections.abc import Callable
from typing import Any, Protocol

from tinyexplore.explore.analysis.opts import WhatIfError
from tinyexplore.explore.tracefile.codec import row_to_data
from tinyexplore.explore.tracefile.model import Branch, OptLaw
from tinyexplore.explore.whatif.branches import Progress, WhatIf, with_all_laws
from tinyexplore.explore.whatif.commands import Search
from tinyexplore.explore.whatif.place import Command
from tinyexplore.util.locks import can_start_threads

AT_MOST_EVERY_S = 0.3  # while a search adds branches


class Widget(Protocol):
    """What is needed of an ExplorerWidget."""

    branches: bytes
    working: dict[str, Any]
    is_live: bool


class Channel:
    """`laws`: those that the trace of the widget has."""

    def __init__(self, whatif: WhatIf, widget: Widget, laws: tuple[OptLaw, ...]) -> None:
        self.whatif = whatif
        self.widget = widget
        self.laws = with_all_laws(laws)
        self._sent = 0.0
        self._answered = 0
        self._searching: threading.Thread | None = None
        widget.is_live = whatif.is_live
        whatif.on_change = self._changed
        whatif.on_progress = self._progressed
        if whatif.branches:
            self.send()

    # *** carrying out ***

    def do(self, command: Command, parent: int | None = None) -> Branch | None:
        """Carries out a command; a search in the background, where there are threads."""
        if not (isinstance(command, Search) and can_start_threads()):
            return self._work("compiling and timing", lambda: self.whatif.do(command, parent))
        work = lambda: self._work("searching", lambda: self.whatif.do(command, parent), cancel=True)  # noqa: E731
        self._searching = threading.Thread(target=work, name="tinyexplore search", daemon=True)
        self._searching.start()
        return None

    def begin(self, kernel: int) -> Branch | None:
        """Compiles and times a kernel three ways."""
        return self._work("compiling and timing it three ways", lambda: self.whatif.begin(kernel))

    def go(self, branch: int) -> Branch:
        """Makes `branch` the one at which its reader is."""
        return self.whatif.go(branch)

    def cancel(self) -> None:
        """Ends the command that is being carried out."""
        self.whatif.cancel()

    def _work(self, text: str, work: Callable[[], Branch], *, cancel: bool = False) -> Branch | None:
        """The branch that `work` makes; None where that is impossible, and the view shows why."""
        self.widget.working = {"text": text, "done": 0, "of": 0, "cancel": cancel}
        complaint, branch = "", None
        try:
            branch = work()
            complaint = branch.reason if branch.status == "failed" else ""
        except WhatIfError as error:
            complaint = str(error)
            if threading.current_thread() is not self._searching:
                raise
        except Exception as error:
            complaint = f"{type(error).__name__}: {error}"
            raise
        finally:
            self.send()
            self._rest(complaint)
        return branch

    def _rest(self, complaint: str) -> None:
        """Nothing is being done any more; the number tells one answer from the next."""
        self._answered += 1
        self.widget.working = {"answered": self._answered, "complaint": complaint}

    def join(self) -> None:
        """Waits for a search to end."""
        if self._searching is not None:
            self._searching.join()

    # *** telling ***

    def send(self) -> None:
        """All branches, as the widget's state: a notebook that is stored keeps them."""
        self._sent = time.monotonic()
        data = {
            "branches": [row_to_data(branch) for branch in self.whatif.branches],
            "laws": [row_to_data(law) for law in self.laws],
            "at": list(self.whatif.places().items()),
            "at_schedules": list(self.whatif.schedule_places().items()),
        }
        text = json.dumps(data, separators=(",", ":"), ensure_ascii=False)
        self.widget.branches = gzip.compress(text.encode(), compresslevel=5, mtime=0)

    def _changed(self, _: Branch) -> None:
        if time.monotonic() - self._sent > AT_MOST_EVERY_S:
            self.send()

    def _progressed(self, progress: Progress) -> None:
        if time.monotonic() - self._sent > AT_MOST_EVERY_S:
            self.send()
            told = {"text": progress.text, "done": progress.done, "of": progress.of, "cancel": True}
            self.widget.working = told


__all__ = ["Channel"]
