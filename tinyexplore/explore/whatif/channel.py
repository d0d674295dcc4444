"""Connects a widget with the branches: runs the commands of a view, and sends each new branch once.

Commands run one after another in a background thread, so that a notebook's kernel can run other cells. A branch is sent
as one row. Rows are only appended. The widget keeps all rows, for views that open later.
"""

from __future__ import annotations

import gzip
import json
import time
from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from tinyexplore.explore.analysis.opts import WhatIfError
from tinyexplore.explore.tracefile.codec import row_to_data
from tinyexplore.explore.tracefile.encodable_text import well_formed
from tinyexplore.explore.tracefile.model import Branch
from tinyexplore.explore.whatif.background import BackgroundQueue
from tinyexplore.explore.whatif.branches import Progress, WhatIf
from tinyexplore.explore.whatif.command import Command

MIN_UPDATE_INTERVAL_S = 0.3  # shortest interval between updates of the progress and of candidates


class BranchWidget(Protocol):
    """The part of an ExplorerWidget that a channel uses."""

    places: dict[str, int]
    working: dict[str, Any]
    is_live: bool

    def add_branches(self, rows: Sequence[str], places: Mapping[str, int]) -> None: ...


class Channel:
    """Runs commands for one widget. Earlier branches are in the widget's payload."""

    def __init__(self, whatif: WhatIf, widget: BranchWidget) -> None:
        self.whatif = whatif
        self.widget = widget
        self._background = BackgroundQueue("tinyexplore what-if")
        self._rows: list[str] = []  # rows to send
        self._sent = self._shown = 0.0
        self._answered = 0
        self._is_asked = False  # whether the view waits for a response
        self._known_places = whatif.all_places()
        widget.places = dict(self._known_places)
        widget.is_live = whatif.is_live
        whatif.on_change = self._on_change
        whatif.on_move = self.send
        whatif.on_progress = self._on_progress
        whatif.on_end = self._clear_progress

    # *** commands ***

    def later(self, work: Callable[[], None], drop: Callable[[], None]) -> None:
        """Runs `work` in the background after all earlier work; calls `drop` if `cancel` is called first."""
        self._background.submit(work, drop)

    def do(self, command: Command, parent: int | None = None) -> Branch:
        """Runs a command; the view shows its progress."""
        return self._run_in_view("compiling and timing", lambda: self.whatif.do(command, parent))

    def begin(self, kernel: int) -> Branch:
        """Compiles and times a kernel three ways: without opts, with the heuristics' opts, and as captured."""
        return self._run_in_view("compiling and timing three versions", lambda: self.whatif.begin(kernel))

    def go(self, branch: int) -> Branch:
        """Makes `branch` the current branch of its kernel. Nothing is sent: the requesting view already shows it."""
        self.whatif.on_move = None
        try:
            row = self.whatif.go(branch)
        finally:
            self.whatif.on_move = self.send
        self.widget.places.update(self._find_new_places())
        return row

    def cancel(self) -> None:
        """Cancels the running command, and drops the waiting ones."""
        self._background.clear()
        self.whatif.cancel()

    def _run_in_view(self, text: str, work: Callable[[], Branch]) -> Branch:
        """Returns the branch that `work` creates. The view shows `text` meanwhile, and the error if the work fails."""
        self.widget.working = {"text": text, "done": 0, "of": 0, "cancel": True}
        self._shown = time.monotonic()
        self._is_asked = True
        message = ""
        try:
            branch = work()
            message = branch.reason if branch.status == "failed" else ""
        except WhatIfError as error:
            message = str(error)
            raise
        except BaseException as error:
            message = f"{type(error).__name__}: {error}"
            raise
        finally:
            self.send()
            self._is_asked = False
            self._answered += 1  # distinguishes this response from the next one
            self.widget.working = {"answered": self._answered, "error": message}
        return branch

    def join(self) -> None:
        """Waits until all commands have run."""
        self._background.join()

    # *** sending ***

    def send(self) -> None:
        """Sends the branches that were not sent yet, and the current branches."""
        rows, self._rows = self._rows, []
        places = self._find_new_places()
        self._sent = time.monotonic()
        if rows or places:
            self.widget.add_branches(rows, places)

    def _find_new_places(self) -> dict[str, int]:
        before, self._known_places = self._known_places, self.whatif.all_places()
        return {name: branch for name, branch in self._known_places.items() if before.get(name) != branch}

    def _on_change(self, branch: Branch) -> None:
        self._rows.append(packed_row(branch))
        is_candidate = bool(branch.kernels) and not branch.kernels[0].listings
        if not is_candidate or time.monotonic() - self._sent > MIN_UPDATE_INTERVAL_S:
            self.send()

    def _on_progress(self, progress: Progress) -> None:
        if time.monotonic() - self._shown > MIN_UPDATE_INTERVAL_S:
            self._shown = time.monotonic()
            self.widget.working = {"text": progress.text, "done": progress.done, "of": progress.of, "cancel": True}

    def _clear_progress(self) -> None:
        """Clears the progress of a command in the view, unless the view requested the command and gets a response."""
        if not self._is_asked and "text" in self.widget.working:
            self.widget.working = {}


def packed_row(branch: Branch) -> str:
    """Returns a branch as the view receives it: gzipped JSON in base64."""
    text = well_formed(json.dumps(row_to_data(branch), separators=(",", ":"), ensure_ascii=False))
    return b64encode(gzip.compress(text.encode(), compresslevel=5, mtime=0)).decode()


def unpacked_row(row: str) -> dict[str, Any]:
    """Returns the data of a row that `packed_row` wrote."""
    unpacked: dict[str, Any] = json.loads(gzip.decompress(b64decode(row)))
    return unpacked


__all__ = ["Channel", "packed_row", "unpacked_row"]
