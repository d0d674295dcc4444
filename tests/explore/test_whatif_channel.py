"""Commands of a view run in the background. Each new branch is sent once, and a later view receives all branches."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from threading import Event
from typing import Any

import pytest

from tinyexplore import Tensor, explore
from tinyexplore.explore import Explorer
from tinyexplore.explore.tracefile.codec import rows_from_data
from tinyexplore.explore.tracefile.model import Branch
from tinyexplore.explore.whatif import channel
from tinyexplore.explore.whatif.background import BackgroundQueue
from tinyexplore.explore.whatif.channel import unpacked_row
from tinyexplore.explore.whatif.outcome import Cancelled


class View:
    """A view of a product as Python sees it: its questions, the replies, and all that it is sent."""

    def __init__(self) -> None:
        a, b = Tensor.rand(32, 48).realize(), Tensor.rand(48, 64).realize()
        self.explorer = explore(lambda: a @ b, noopt=1, repeat=1)
        self.widget = self.explorer.widget
        self.sent: list[dict[str, Any]] = []
        self.states: list[dict[str, Any]] = []
        self.widget.send = lambda content, buffers=None: self.sent.append(json.loads(json.dumps(content)))
        self.widget.observe(lambda change: self.states.append(change["new"]), "working")
        self._count = 0

    def ask(self, **question: Any) -> str:
        self._count += 1
        self.widget._handle_custom_msg({"id": str(self._count), "question": question}, [])
        return str(self._count)

    def command(self, kind: str, branch: int | None = None, **arguments: Any) -> str:
        """Asks for a command, to go on from `branch`."""
        return self.ask(ask="command", command={"kind": kind, "kernel": 0, **arguments}, branch=branch)

    def reply(self, asked: str) -> dict[str, Any]:
        """The reply to a question, once it is there."""
        done = Event()
        for _ in range(1200):
            for one in list(self.sent):
                if one.get("id") == asked:
                    found: dict[str, Any] = one["answer"]
                    return found
            done.wait(0.05)
        raise AssertionError(f"no reply to {asked}")

    def branches(self) -> list[Branch]:
        """The branches that were sent, in the order in which they were."""
        rows = [row for one in self.sent if "branches" in one for row in one["branches"]["rows"]]
        return read(rows)


def read(rows: list[str]) -> list[Branch]:
    return list(rows_from_data(Branch, [unpacked_row(row) for row in rows]))


@pytest.fixture
def view() -> Iterator[View]:
    pytest.importorskip("anywidget", reason="anywidget is not installed")
    found = View()
    yield found
    found.explorer.close()


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> tuple[Event, Event]:
    """The next opt that is applied begins, and waits: events for both."""
    begun, go_on = Event(), Event()
    from tinyexplore.explore.whatif.commands import apply_opt

    made = apply_opt.try_out

    def held_back(place: Any, *rest: Any) -> Any:
        begun.set()
        while not go_on.wait(0.01):
            place.step("waiting")
        return made(place, *rest)

    monkeypatch.setattr(apply_opt, "try_out", held_back)
    return begun, go_on


def test_branches_are_appended_in_their_order_and_each_is_sent_once(view: View) -> None:
    asked = [view.ask(ask="begin", kernel=0)]
    asked += [view.command("SetOpts", opts=f"UPCAST(0, {amount})") for amount in (2, 4, 8)]
    numbers = [view.reply(one)["branch"] for one in asked]
    told = view.branches()
    made = view.explorer.whatif.branches
    assert list(dict.fromkeys(branch.id for branch in told)) == [branch.id for branch in made] == list(range(len(made)))
    assert {branch.id: branch for branch in told} == {branch.id: branch for branch in made}
    assert numbers[1:] == sorted(numbers[1:]) and len(told) <= len(made) + 2  # two labels of `begin`, at most
    firsts = [one["branches"]["first"] for one in view.sent if "branches" in one]
    counts = [len(one["branches"]["rows"]) for one in view.sent if "branches" in one]
    assert firsts == [sum(counts[:place]) for place in range(len(counts))]


def test_a_command_does_not_block_and_others_wait_for_it(view: View, held: tuple[Event, Event]) -> None:
    begun, go_on = held
    root = view.reply(view.command("SetOpts", opts=""))["branch"]
    first = view.command("ApplyOpt", root, opt="UPCAST(0, 2)")
    second = view.command("ApplyOpt", root, opt="UPCAST(0, 4)")
    assert begun.wait(60)
    shape = view.ask(ask="shape", node=0)  # another question is answered meanwhile
    assert "error" not in view.reply(shape)
    assert not {first, second} & {one.get("id") for one in view.sent}
    assert view.widget.working["cancel"] is True
    go_on.set()
    numbers = [view.reply(one)["branch"] for one in (first, second)]
    assert numbers == [root + 1, root + 2]
    opts = [view.explorer.whatif.branches[number].kernels[0].opts for number in numbers]
    assert opts == [("UPCAST(0, 2)",), ("UPCAST(0, 4)",)]


@pytest.mark.parametrize("outcome", ["done", "fails"])
def test_the_progress_of_a_python_command_is_removed_at_its_end(
    view: View, monkeypatch: pytest.MonkeyPatch, outcome: str
) -> None:
    from tinyexplore.explore.whatif.commands import apply_opt

    made = apply_opt.try_out

    def slow(place: Any, *rest: Any) -> Any:
        place.step("waiting")
        if outcome == "fails":
            raise KeyError("an error of any kind")
        return made(place, *rest)

    monkeypatch.setattr(channel, "MIN_UPDATE_INTERVAL_S", 0)
    view.explorer.kernels[0].set_opts("")
    monkeypatch.setattr(apply_opt, "try_out", slow)
    with nullcontext() if outcome == "done" else pytest.raises(KeyError):
        view.explorer.kernels[0].apply("UPCAST(0, 2)")
    assert "waiting" in [state.get("text") for state in view.states]
    assert view.widget.working == {}


def test_a_cancelled_command_adds_no_branch_and_drops_the_queue(view: View, held: tuple[Event, Event]) -> None:
    begun, go_on = held
    view.reply(view.command("SetOpts", opts=""))
    before, places = view.explorer.whatif.branches, view.explorer.whatif.all_places()
    first = view.command("ApplyOpt", opt="UPCAST(0, 2)")
    second = view.command("ApplyOpt", opt="UPCAST(0, 4)")
    assert begun.wait(60)
    view.reply(view.ask(ask="cancel"))
    assert [view.reply(one) for one in (first, second)] == [{"error": "cancelled: no branch was created"}] * 2
    assert view.explorer.whatif.branches == before and view.explorer.whatif.all_places() == places
    assert view.states[-1]["error"] == "cancelled: no branch was created"
    go_on.set()
    assert view.reply(view.command("ApplyOpt", opt="UPCAST(0, 2)"))["status"] == "done"


def test_an_error_in_the_background_reaches_the_view_and_the_next_command_is_carried_out(
    view: View, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any) -> Any:
        raise OSError("the disk is full")

    with monkeypatch.context() as context:
        context.setattr("tinyexplore.explore.whatif.commands.set_opts.try_out", broken)
        assert view.reply(view.command("SetOpts", opts="UPCAST(0, 2)")) == {"error": "OSError: the disk is full"}
    assert view.states[-1]["error"] == "OSError: the disk is full"
    assert view.reply(view.command("SetOpts", opts="UPCAST(0, 2)"))["status"] == "done"
    assert view.states[-1]["error"] == ""


def test_the_message_of_a_command_does_not_grow_with_the_branches(view: View) -> None:
    view.reply(view.command("AsCaptured"))
    sizes = []
    for first in (2, 4):
        for second in (2, 4, 8, 16):
            messages, states = len(view.sent), len(view.states)
            opts = f"UPCAST(0, {first}), UPCAST(1, {second})"
            number = view.reply(view.command("SetOpts", opts=opts, branch=0))["branch"]
            sent = json.dumps([view.sent[messages:], view.states[states:]])
            sizes.append(len(sent) - len(view.widget.branches[-1]))
            assert number == len(sizes)
    assert len(view.widget.branches) == len(sizes) + 1 and max(sizes) < 1000  # beside the row of the branch itself


def test_a_view_that_opens_later_has_all_branches_and_requests_missed_rows(view: View) -> None:
    view.reply(view.ask(ask="begin", kernel=0))
    view.reply(view.command("SetOpts", opts="UPCAST(0, 2)"))
    state = view.widget.get_state()
    rows = read(state["branches"])
    assert {row.id: row for row in rows} == {branch.id: branch for branch in view.explorer.whatif.branches}
    assert state["places"] == {"kernel 0": view.explorer.kernels[0].branch.id}
    view.widget._handle_custom_msg({"since": len(rows) - 1}, [])
    assert view.sent[-1]["branches"] == {
        "first": len(rows) - 1,
        "rows": state["branches"][-1:],
        "places": state["places"],
    }


@pytest.mark.parametrize("since", ["all", -1, None, 1.5, [0]])
def test_an_invalid_number_of_rows_gets_no_response(view: View, since: Any) -> None:
    view.widget._handle_custom_msg({"since": since}, [])
    assert view.sent == []


def test_a_command_of_a_cell_updates_the_view(view: View) -> None:
    branch = view.explorer.kernels[0].set_opts("UPCAST(0, 2)")
    assert view.branches()[-1] == branch
    view.explorer.whatif.go(0)
    assert view.sent[-1]["branches"]["places"] == {"kernel 0": 0}


def test_a_branch_selected_in_the_view_is_stored_and_not_sent_back(view: View) -> None:
    view.reply(view.ask(ask="begin", kernel=0))
    count = len(view.sent)
    view.reply(view.ask(ask="go", branch=0))
    assert view.widget.places == {"kernel 0": 0} and [one for one in view.sent[count:] if "branches" in one] == []


def test_the_payload_of_a_view_that_is_made_later_has_the_branches(view: View) -> None:
    del view
    a = Tensor.rand(16, 16).realize()
    explorer = explore(lambda: a @ a, repeat=1)
    explorer.whatif.begin(0)
    widget = explorer.widget
    assert widget.branches == [] and widget.places == {"kernel 0": explorer.kernels[0].branch.id}
    payload = Explorer(explorer.trace).trace
    assert payload.branches == explorer.whatif.branches
    explorer.close()


# *** the thread ***


def test_work_is_done_in_its_order_in_one_thread_which_ends() -> None:
    background = BackgroundQueue("test")
    done: list[tuple[int, str]] = []
    for number in range(20):
        background.submit(lambda number=number: done.append((number, threading.current_thread().name)), lambda: None)
    background.join()
    assert done == [(number, "test") for number in range(20)]
    assert all(thread.name != "test" for thread in threading.enumerate())


def test_work_that_raises_ends_its_thread_and_not_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    reported: list[Any] = []
    monkeypatch.setattr(threading, "excepthook", lambda args: reported.append(args.exc_type))
    background = BackgroundQueue("test")
    done = Event()

    def broken() -> None:
        raise Cancelled

    nothing: Callable[[], None] = lambda: None  # noqa: E731
    background.submit(broken, nothing)
    background.submit(done.set, nothing)
    assert done.wait(60) and reported == [Cancelled]
