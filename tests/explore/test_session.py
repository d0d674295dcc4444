"""Capturing real programs, from Tensor to machine code."""

from __future__ import annotations

import gc
import inspect
import linecache
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from tinyexplore import Context, Tensor, capture, explore
from tinyexplore.explore import CaptureError, line_frames, related, trace_from_json, trace_to_json, user_lines, where
from tinyexplore.explore.notebook.explorer import Explorer
from tinyexplore.explore.recording.trace_builder import build_trace
from tinyexplore.kernel import OptOps
from tinyexplore.kernel.opts import OPT_KINDS
from tinyexplore.trace import active_recorder


def softmax_of_linear(x, w, b):
    hidden = x @ w + b
    return hidden.softmax()


def inputs():
    shapes = ((8, 24), (24, 16), (16,))
    return [Tensor.ones(*shape).contiguous().realize() for shape in shapes]


@pytest.fixture(scope="module")
def session() -> Explorer:
    return explore(softmax_of_linear, *inputs(), repeat=5)


def lines_of(function) -> dict[str, int]:
    text, first = inspect.getsourcelines(function)
    return {line.strip(): first + number for number, line in enumerate(text)}


def test_explore_returns_the_result_and_all_stages(session):
    assert session.result.shape == (8, 16)
    trace = session.trace
    assert trace.title == "softmax_of_linear"
    names = [stage.name for stage in trace.stages if stage.parent is None]
    assert names == ["schedule", *("kernel" for _ in trace.kernels)]
    inner = {stage.name for stage in trace.stages}
    assert {"optimize", "simplify", "linearize", "render", "compile"} <= inner
    assert all(stage.kernel is not None for stage in trace.stages if stage.name != "schedule")
    assert trace.messages == ()


def test_every_opt_has_the_semantics_of_its_kind(session):
    trace = session.trace
    steps = [opt for stage in trace.stages for opt in stage.opts]
    assert steps
    # the laws of all kinds: a what-if may apply any
    assert {law.words for law in trace.laws} == {effect.text for kind in OPT_KINDS.values() for effect in kind.effects}
    for opt in steps:
        laws = [trace.laws[law] for law in opt.laws]
        kind = OPT_KINDS[OptOps[opt.opt.split("(")[0]]]
        assert [(law.words, law.before, law.after) for law in laws] == [
            (effect.text, effect.before, effect.after) for effect in kind.effects
        ]


def test_every_line_of_every_listing_leads_to_a_line_of_the_users(session):
    trace = session.trace
    own = set(lines_of(softmax_of_linear).values())
    lost = [
        (program.language, line.text)
        for program in trace.programs
        for number, line in enumerate(program.lines)
        if not {frame.line for frame in line_frames(trace, program.id, number)} <= own
        or not line_frames(trace, program.id, number)
    ]
    assert lost == []
    assert len(trace.programs) >= 2 * len(trace.kernels)


def test_the_matmul_kernel_leads_to_the_matmul_and_the_softmax_kernel_to_the_softmax(session):
    trace = session.trace
    lines = lines_of(softmax_of_linear)
    hidden, softmax = lines["hidden = x @ w + b"], lines["return hidden.softmax()"]
    by_kernel = {
        kernel.id: {trace.frames[trace.nodes[node].user].line for node in kernel.roots} for kernel in trace.kernels
    }
    assert by_kernel == {0: {hidden}, 1: {softmax}}


def test_every_uop_of_every_program_has_an_origin(session):
    trace = session.trace
    for program in trace.programs:
        for node in {node for line in program.lines for node in line.nodes}:
            origins = related(trace, node, "back", kernel=program.kernel, kind="lazybuffer")
            assert origins or trace.nodes[node].op == "DEFINE_LOCAL", trace.nodes[node]


def test_a_users_line_finds_its_kernels_lines(session):
    from tinyexplore.explore import trace_lines

    trace = session.trace
    softmax = lines_of(softmax_of_linear)["return hidden.softmax()"]
    built = [node for node in trace.nodes if node.user is not None and trace.frames[node.user].line == softmax]
    found = trace_lines(trace, built, language="uops")
    assert found
    assert {ref.program.kernel for ref in found} == {1}


def test_the_trace_survives_json(session):
    assert trace_from_json(trace_to_json(session.trace)) == session.trace


def test_each_kernel_has_the_requested_number_of_samples(session):
    assert [len(run.times_us) for run in session.trace.runs] == [5] * len(session.trace.kernels)
    for run in session.trace.runs:
        assert run.low_us <= run.median_us <= run.high_us


def test_repeated_timing_does_not_change_results():
    def twice(x):
        x.assign(x + 1)
        return x

    x = Tensor([1.0, 2.0, 3.0]).realize()
    assert explore(twice, x, repeat=4).result.tolist() == [2.0, 3.0, 4.0]


def test_two_captures_of_the_same_program_have_the_same_digests():
    first, second = (explore(softmax_of_linear, *inputs()).trace for _ in range(2))
    assert [node.digest for node in first.nodes] == [node.digest for node in second.nodes]
    assert first.kernels[0].name == second.kernels[0].name


def test_the_options_that_made_a_trace_are_in_it():
    trace = explore(softmax_of_linear, *inputs(), device="python", noopt=1, repeat=1).trace
    options = dict(trace.options)
    assert (options["DEVICE"], options["NOOPT"], options["BEAM"], options["repeat"]) == ("PYTHON", "1", "0", "1")
    assert all(kernel.opts == () for kernel in trace.kernels)


def test_options_hold_inside_the_capture_only():
    from tinyexplore.util import config

    with capture(noopt=1):
        assert config().NOOPT == 1
    assert config().NOOPT == 0
    assert active_recorder() is None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"bem": 2}, "'bem'; did you mean beam"),
        ({"device": "NVRAM"}, "unknown device 'NVRAM'; supported: LLVM, CLANG, PYTHON"),
        ({"kernels": 0}, "kernels=0: "),
        ({"repeat": 0}, "repeat=0: "),
    ],
)
def test_a_wrong_option_is_refused_before_anything_runs(options, message):
    with pytest.raises(ValueError) as caught:
        explore(lambda: pytest.fail("ran"), **options)
    assert message in str(caught.value)


WRONG_TYPES = [
    {"title": 5},
    {"title": None},
    {"title": b"bytes"},
    {"repeat": 2.5},
    {"repeat": "3"},
    {"repeat": True},
    {"kernels": "many"},
    {"keep_inputs": "yes"},
    {"record_iterations": 1.0},
    {"executor": 4},
    {"device": 0},
    {"device": 1.5},
    {"beam": "2"},
    {"noopt": None},
    {"target": 3},
]


@pytest.mark.parametrize("options", WRONG_TYPES, ids=str)
def test_an_option_of_a_wrong_type_is_refused_at_the_call(options):
    (name,) = options
    with pytest.raises(TypeError, match=f"(?i){name}"):
        explore(lambda: pytest.fail("ran"), **options)
    with pytest.raises(TypeError, match=f"(?i){name}"):
        capture(**options)


def test_showing_and_saving_refuse_wrong_types_at_the_call(tmp_path):
    view = explore(lambda: Tensor([1.0, 2.0]) + 1, repeat=1)
    for options in ({"iterations": "all"}, {"live": "yes"}, {"run_here": 2}, {"rosetta": None}, {"pyodide": 3}):
        with pytest.raises(TypeError, match=next(iter(options))):
            view.to_html(tmp_path / "page.html", **options)
    with pytest.raises(ValueError, match="iterations=-1"):
        view.to_html(iterations=-1)
    wrong = [
        lambda: view.to_html(5),
        lambda: view.save(None),
        lambda: view.show([0, "1"]),
        lambda: view.tour(["a note"]),
        lambda: view.tour([(3, None)]),
        lambda: view.tour([("a note", 1.5)]),
        lambda: Explorer("trace.json"),
        lambda: setattr(view, "selected", None),
    ]
    for call in wrong:
        with pytest.raises(TypeError):
            call()
    assert not (tmp_path / "page.html").exists()
    node = view.trace.nodes[0]
    assert [one.id for one in view.show(one for one in [node]).selected] == [node.id]


X = Tensor.ones(4, 4).contiguous().realize()


@pytest.mark.parametrize(
    "make",
    [
        lambda: 3,
        lambda: None,
        lambda: X,
        lambda: Tensor(3.0),
        lambda: Tensor([1, 2, 3]),
        lambda: Tensor.full((4,), 2.0),
        lambda: X.reshape(2, 8),
        lambda: X.permute(1, 0)[1:3],
        lambda: Tensor.zeros(0, 3) + 1,
    ],
)
def test_where_no_kernel_ran_one_line_is_shown_and_no_views(make):
    view = explore(make)
    assert view.trace.kernels == ()
    data, _ = view._repr_mimebundle_()
    assert list(data) == ["text/plain"]
    assert data["text/plain"].startswith("Explorer: nothing was ") and "\n" not in data["text/plain"]


def test_tensors_that_were_only_built_show_one_line():
    with capture() as view:
        X + 1
    assert list(view._repr_mimebundle_()[0]) == ["text/plain"]


@pytest.mark.parametrize("value", [3, "text", None])
def test_explore_of_an_invalid_argument_names_the_valid_ones(value):
    with pytest.raises(TypeError, match="function, a Tensor, or Tensors"):
        explore(value)


def test_an_earlier_lazy_tensor_is_captured_completely_with_a_message():
    total = (Tensor.arange(6).reshape(2, 3) * 2).sum(1)
    trace = explore(total).trace
    assert {"IOTA", "RESHAPE", "MUL", "REDUCE_AXIS"} <= {node.op for node in where(trace, kind="lazybuffer")}
    assert [message.level for message in trace.messages] == ["note"]
    for program in trace.programs:
        assert all(line_frames(trace, program.id, number) for number in range(len(program.lines)))


def test_tensors_in_containers_are_realized():
    found = explore(lambda: {"a": [Tensor.ones(3) + 1], "b": (Tensor.ones(2) * 3, "text")}).result
    assert found["a"][0].lazydata.base.is_realized
    assert found["b"][0].lazydata.base.is_realized


def counted_builds(monkeypatch) -> list[str]:
    built: list[str] = []

    def build(*args, **options):
        built.append(options["title"])
        return build_trace(*args, **options)

    monkeypatch.setattr("tinyexplore.explore.recording.trace_builder.build_trace", build)
    return built


def test_a_trace_is_built_once_at_its_first_use(monkeypatch):
    built = counted_builds(monkeypatch)
    views = [explore(softmax_of_linear, *inputs(), title=title) for title in "abc"]
    assert built == []
    assert views[1].trace is views[1].trace
    assert views[1].kernels[0].beam is None and "kernel" in repr(views[1])
    assert built == ["b"]


def test_a_closed_explorer_never_builds_its_trace(monkeypatch):
    built = counted_builds(monkeypatch)
    view = explore(softmax_of_linear, *inputs())
    view.close()
    with pytest.raises(CaptureError, match="closed"):
        view.trace  # noqa: B018 builds it
    assert built == []


def test_changes_after_a_capture_are_not_in_its_trace(tmp_path, monkeypatch):
    script = tmp_path / "program.py"
    script.write_text(
        "def f(x, state):\n    state.assign(state + x)\n    y = x * 2\n    return y + state\n", encoding="utf-8"
    )

    def captured():
        linecache.checkcache(str(script))
        code: dict[str, Callable[..., Tensor]] = {}
        exec(compile(script.read_text(encoding="utf-8"), str(script), "exec"), code)
        x, state = (Tensor.full((4,), value).contiguous().realize() for value in (1.0, 2.0))
        view = explore(code["f"], x, state, repeat=1, title="program")
        return view, x, state

    def content(trace):
        stages = [(stage.name, stage.before, stage.after, stage.opts, stage.decisions) for stage in trace.stages]
        buffers = [(buffer.name, buffer.size, buffer.maker) for buffer in trace.buffers]
        return trace.nodes, trace.frames, trace.sources, trace.links, trace.programs, stages, buffers

    at_once = content(captured()[0].trace)
    view, x, state = captured()
    state.assign(state * 5).realize()
    x.assign(Tensor.ones(4)).realize()
    view.result.replace(x + 7).realize()
    script.write_text("# nothing is left\n", encoding="utf-8")
    linecache.checkcache(str(script))
    del x, state
    gc.collect()
    assert content(view.trace) == at_once


def test_a_large_capture_builds_its_trace_early_to_free_memory(monkeypatch):
    built = counted_builds(monkeypatch)
    small = Tensor.ones(1000).contiguous().realize()
    explore(lambda: (small + 1).sum(), title="small")
    monkeypatch.setattr("tinyexplore.explore.notebook.capture_session.KEPT_BYTES", 3000)
    explore(lambda: (small + 2).sum(), title="large")
    assert built == ["large"]


def test_an_exception_preserves_the_partial_trace():
    with pytest.raises(ZeroDivisionError), capture(title="half") as session:
        (Tensor.ones(4).contiguous() + 1).realize()
        1 / 0  # noqa: B018 the line that raises
        (Tensor.ones(4) + 2).realize()
    trace = session.trace
    assert len(trace.kernels) == 1
    (message,) = trace.messages
    assert message.level == "error"
    error, explanation = message.text.splitlines()
    assert error == "ZeroDivisionError: division by zero" and "not in the compiler" in explanation
    frame = trace.frames[message.frame]
    assert "the line that raises" in trace.sources[frame.source].text.splitlines()[frame.line - 1]
    assert "ZeroDivisionError" in repr(session)


def test_an_error_of_a_tensor_names_the_users_line():
    with pytest.raises(ValueError), capture() as session:
        Tensor.ones(2, 3) @ Tensor.ones(2, 3)  # noqa: B018 shapes that do not fit
    (message,) = session.trace.messages
    assert "not in the compiler" in message.text
    frame = session.trace.frames[message.frame]
    assert "shapes that do not fit" in session.trace.sources[frame.source].text.splitlines()[frame.line - 1]


def test_an_exception_inside_the_compiler_names_the_users_line(monkeypatch):

    def broken(kernel):
        raise RuntimeError("no such luck")

    monkeypatch.setattr(sys.modules["tinyexplore.compile.compiler"], "apply_heuristics", broken)
    with pytest.raises(RuntimeError), capture() as session:
        (Tensor.arange(7) * 3).realize()  # the line that realizes
    error = next(message for message in session.trace.messages if message.level == "error")
    assert "inside the compiler" in error.text
    frame = session.trace.frames[error.frame]
    assert "the line that realizes" in session.trace.sources[frame.source].text.splitlines()[frame.line - 1]


def test_a_kernel_on_another_device_than_the_option_gives_a_message():
    x = Tensor([1.0, 2.0, 3.0], device="LLVM").realize()
    (message,) = explore(lambda: x * 2, device="PYTHON").trace.messages
    assert message.level == "note" and message.text.startswith("kernels ran on LLVM, ")
    assert explore(lambda: Tensor([1.0, 2.0]) * 2, device="PYTHON").trace.messages == ()
    assert explore(lambda: x * 2).trace.messages == ()


def test_tensors_that_are_never_computed_give_a_message():
    with capture() as session:
        Tensor.ones(3) + 1  # noqa: B018 it is never realized
    (message,) = session.trace.messages
    assert (message.level, message.text[:20]) == ("note", "nothing was computed")


def test_an_exception_of_explore_has_the_partial_capture():
    def fails():
        (Tensor.ones(4).contiguous() + 1).realize()
        raise KeyError("no")

    with pytest.raises(KeyError) as caught:
        explore(fails)
    assert len(caught.value.explorer.trace.kernels) == 1  # type: ignore[attr-defined]


def test_captures_nest_and_the_outer_one_records_all():
    with capture() as outer:
        (Tensor.ones(4).contiguous() + 1).realize()
        with capture() as inner:
            (Tensor.ones(4).contiguous() + 2).realize()
        (Tensor.ones(4).contiguous() + 3).realize()
    assert (len(inner.trace.kernels), len(outer.trace.kernels)) == (1, 3)


def test_the_trace_exists_only_after_the_block():
    session = capture()
    with pytest.raises(CaptureError, match="the capture has not ended"):
        session.trace  # noqa: B018
    with session:
        with pytest.raises(CaptureError):
            session.trace  # noqa: B018
    assert session.trace.kernels == ()
    assert [message.level for message in session.trace.messages] == ["warning"]
    with pytest.raises(CaptureError, match="has a capture already"):
        session.__enter__()


def test_a_kernel_compiled_before_the_capture_is_seen_in_full_once_per_recording():
    def work():
        return Tensor.ones(5).contiguous() * 7

    explore(work, repeat=1)
    trace = explore(work, repeat=1).trace
    assert {"uops"} < {program.language for program in trace.programs}
    assert "simplify" in {stage.name for stage in trace.stages}


def test_equal_kernels_share_one_program():
    a, b = (Tensor.ones(6).contiguous().realize() for _ in range(2))
    trace = explore(lambda: ((a * 3).realize(), (b * 3).realize()), repeat=1).trace
    assert [kernel.same_as for kernel in trace.kernels] == [None, 0]
    assert len({program.kernel for program in trace.programs}) == 2


def test_a_program_of_many_kernels_is_recorded_up_to_a_limit_with_a_message():
    a = Tensor.ones(6).contiguous().realize()
    with capture() as outer:
        trace = explore(lambda: [(a * n).realize() for n in range(2, 9)], kernels=3, repeat=1).trace
    assert [len(trace.kernels), len(trace.runs), len(outer.trace.runs)] == [3, 3, 7]
    assert all(stage.elapsed_us >= 0 for stage in trace.stages) and trace_from_json(trace_to_json(trace)) == trace
    (message,) = [message for message in trace.messages if message.level == "warning"]
    assert "the first 3 kernels; 4 more" in message.text


def test_the_selection_is_nodes_and_is_synchronized(session):
    reduces = session.trace.where(op="REDUCE")
    assert reduces
    assert session.show(reduces).selected == reduces
    session.selected = reduces[0]
    assert session.selected == (reduces[0],)
    with pytest.raises(ValueError, match="no such nodes"):
        session.selected = [10**6]


def test_user_lines_of_the_last_store(session):
    trace = session.trace
    frames = {frame.line for store in where(trace, op="STORE") for frame in user_lines(trace, store)}
    assert frames == {line for text, line in lines_of(softmax_of_linear).items() if not text.startswith("def")}


def test_no_recorder_is_attached_outside_a_capture():
    assert active_recorder() is None
    with Context(NOOPT=1):
        (Tensor.ones(3).contiguous() + 1).realize()
    assert active_recorder() is None


def test_selections_of_view_and_python_are_synchronized():
    session = explore(softmax_of_linear, *inputs(), repeat=1)
    (first, *_) = session.trace.where(op="REDUCE")
    session.selected = first
    assert session.widget.selected == [first.id]
    session.widget.set_state({"selected": [3, 4]})  # what a click sends
    assert [node.id for node in session.selected] == [3, 4]


def test_a_session_shows_itself_as_widget_picture_and_text(session):
    data, _ = session._repr_mimebundle_()
    assert set(data) >= {"application/vnd.jupyter.widget-view+json", "image/svg+xml", "text/plain"}
    assert data["image/svg+xml"].lstrip().startswith("<svg")
    assert data["text/plain"] == repr(session)
    assert "0x" not in data["text/plain"]


def test_without_anywidget_a_session_shows_static_html(monkeypatch):
    session = explore(softmax_of_linear, *inputs(), repeat=1)
    monkeypatch.setitem(sys.modules, "anywidget", None)
    for name in ("explorer", "parts", "base_widget"):
        monkeypatch.delitem(sys.modules, f"tinyexplore.widgets.{name}", raising=False)
        monkeypatch.delattr(f"tinyexplore.widgets.{name}", raising=False)
    data, _ = session._repr_mimebundle_()
    assert set(data) == {"text/html", "image/svg+xml", "text/plain"}
    assert "<script" not in data["text/html"]
    for kernel in session.trace.kernels:
        assert kernel.name in data["text/html"]


def test_the_text_of_a_session_is_equal_from_run_to_run():
    texts = {repr(explore(softmax_of_linear, *inputs(), repeat=1)) for _ in range(2)}
    assert len(texts) == 1


def test_every_pass_replays_to_the_graph_it_left(session):
    from tinyexplore.explore.tracefile.replay import StageReplay

    trace = session.trace
    stages = [stage for stage in trace.stages if stage.steps]
    assert stages
    for stage in stages:
        replay = StageReplay(trace, stage.id)
        end = replay.graph_at(len(stage.steps))
        assert tuple(end.nodes[root].node for root in end.root) == stage.after, stage.name
        for shown in end.nodes.values():
            sources = tuple(end.nodes[source].node for source in shown.src)
            assert sources == trace.nodes[shown.node].src, stage.name


def test_a_search_records_every_timed_candidate(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr("tinyexplore.kernel.search.PER_ROUND", 4)
    x = Tensor.ones(32, 32).contiguous().realize()
    with ThreadPoolExecutor(2) as executor:
        found = explore(lambda: x @ x, beam=2, repeat=1, executor=executor)
    trace = found.trace
    search = found.kernels[0].beam
    assert 0 < search.after_us <= search.before_us
    notes = [message.text for message in trace.messages if message.level == "note"]
    assert [text for text in notes if text.startswith("BEAM ") and text.endswith(search.reason)]
    (stage,) = [stage for stage in trace.stages if stage.name == "optimize"]
    assert len(stage.candidates) == search.tried > 2
    assert dict(trace.options)["BEAM"] == "2"
    assert trace_from_json(trace_to_json(trace)) == trace
    (kernel,) = trace.kernels
    timed = {candidate.opts: candidate.best_us for candidate in stage.candidates}
    assert kernel.opts in timed
    for program in trace.programs:
        assert all(line_frames(trace, program.id, number) for number in range(len(program.lines)))


def test_a_link_stores_and_restores_the_position():
    session = explore(softmax_of_linear, *inputs(), repeat=1)
    session.widget.set_state({"cursor": {"stage": 4, "step": 2, "kernel": 0, "graph": "uops", "tabs": {}}})
    session.selected = [3, 5]
    assert session.panels.link() == "#stage=4&step=2&kernel=0&graph=uops&node=3,5"
    assert session.panels.link("page.html") == "page.html" + session.panels.link()
    assert session.show("page.html#stage=1").widget.link == "#stage=1"
    session.widget.mode = "workbench"
    with pytest.raises(Exception, match="'story', 'workbench'"):
        session.widget.mode = "desk"


def test_a_capture_imports_recorders_and_no_request_handlers() -> None:
    program = """
import sys
from tinyexplore import Tensor, explore
view = explore(lambda: Tensor.ones(8).contiguous().softmax(), repeat=1)
print(*(name for name in sys.modules if name.startswith("tinyexplore.explore.")))
assert view.trace.kernels and view.kernels[0].branch.status == "done"
"""
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    loaded = {name.removeprefix("tinyexplore.explore.") for name in ran.stdout.split()}
    assert {"notebook.explorer", "recording.capture_recorder"} <= loaded
    answering = {f"tracefile.{name}" for name in ("model", "codec", "query")}
    answering |= {f"recording.{name}" for name in ("kept", "build", "rows")}
    packages = ("tracefile.pictures.", "exports.", "whatif.commands")
    assert not {name for name in loaded if name in answering or name.startswith(packages)}


def test_a_capture_left_open_by_an_interrupt_can_be_closed(monkeypatch):
    """An interrupt at the first instruction of `__exit__` ends no `with` block of Python: the error says what does."""
    view = capture()

    def interrupted(*_error: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(type(view), "__exit__", interrupted)
        with pytest.raises(KeyboardInterrupt), view:
            (Tensor([1.0, 2.0]).realize() * 2).realize()
    with pytest.raises(CaptureError, match=r"view\.__exit__\(None, None, None\)"):
        _ = view.trace
    view.__exit__(None, None, None)
    assert len(view.trace.kernels) == 1
    assert active_recorder() is None
