"""The extension in a real IPython shell."""

from __future__ import annotations

import subprocess
import sys

import pytest
from IPython.core.interactiveshell import InteractiveShell

from tinyexplore import Tensor
from tinyexplore.dtype import dtypes
from tinyexplore.explore.notebook.explorer import Explorer
from tinyexplore.explore.notebook.ipython_extension import MagicError, parse_magic_line
from tinyexplore.kernel import Kernel
from tinyexplore.uop import UOp


@pytest.fixture(scope="module")
def shell():
    shell = InteractiveShell.instance()
    shell.run_line_magic("load_ext", "tinyexplore")
    shell.run_cell("from tinyexplore import Tensor, explore")
    yield shell
    shell.run_line_magic("unload_ext", "tinyexplore")
    InteractiveShell.clear_instance()


def run(shell, cell: str) -> Explorer:
    done = shell.run_cell(cell, store_history=True)
    done.raise_error()
    return done.result


CELL = """%%explore view --repeat 3 --title sum
x = Tensor.ones(4, 8).contiguous()
y = x * 2
y.sum(1)"""


def test_the_magic_captures_the_cell_and_realizes_its_value(shell):
    session = run(shell, CELL)
    assert session is shell.user_ns["view"]
    assert session.result.tolist() == [16.0] * 4
    assert session.trace.title == "sum"
    assert dict(session.trace.options)["repeat"] == "3"
    assert shell.user_ns["y"].shape == (4, 8)


def test_lines_are_those_of_the_cell(shell):
    session = run(shell, CELL)
    (source,) = session.trace.sources
    assert source.name == f"In [{shell.execution_count - 1}]"
    (line,) = {session.trace.frames[node.user].line for node in session.trace.where(op="MUL", kind="lazybuffer")}
    assert CELL.splitlines()[line - 1] == "y = x * 2"
    assert source.text.splitlines()[line - 1] == "y = x * 2"


def test_a_line_magic_is_listed_as_it_was_typed(shell):
    shell.run_cell("%precision 3\nx = Tensor.ones(3).contiguous()\nview = explore(lambda: x + 1)", store_history=True)
    trace = shell.user_ns["view"].trace
    (source,) = trace.sources
    assert source.text.splitlines()[0] == "%precision 3"
    assert trace.title == ("x + 1" if sys.version_info >= (3, 11) else "explore")


def test_a_cell_that_raises_shows_the_partial_capture_and_raises(shell, capsys):
    done = shell.run_cell("%%explore half\n(Tensor.ones(3).contiguous() + 1).realize()\n1 / 0", store_history=True)
    assert isinstance(done.error_in_exec, ZeroDivisionError)
    assert "Explorer('1 / 0'): " in capsys.readouterr().out
    trace = shell.user_ns["half"].trace
    assert len(trace.kernels) == 1
    (message,) = trace.messages
    assert trace.frames[message.frame].line == 3


def test_a_cell_may_hold_magics(shell):
    session = run(shell, "%%explore\n%timeit -n1 -r1 pass\n(Tensor.ones(2).contiguous() * 5)")
    assert len(session.trace.kernels) == 1


def test_values_assigned_in_the_last_line_are_realized(shell):
    session = run(shell, "%%explore\nz = Tensor.ones(2).contiguous() * 5")
    assert session.result.tolist() == [5.0, 5.0]
    assert len(session.trace.kernels) == 1
    both = run(shell, "%%explore\np, q = Tensor.ones(2).contiguous() * 5, Tensor.ones(3).contiguous() * 7")
    assert [tensor.tolist() for tensor in both.result] == [[5.0] * 2, [7.0] * 3]
    assert run(shell, "%%explore\nif z is not None:\n    t = z + 1").result is None


@pytest.mark.parametrize(
    ("line", "parsed"),
    [
        ("", (None, {})),
        ("view", ("view", {})),
        ("--device CLANG --beam 2 --noopt", (None, {"device": "CLANG", "beam": 2, "noopt": 1})),
        ("v --repeat 9 --title 'two words'", ("v", {"repeat": 9, "title": "two words"})),
        ("noopt=1", (None, {"noopt": 1})),
        ("v target=x86-64-v3 keep_inputs=True", ("v", {"target": "x86-64-v3", "keep_inputs": True})),
        ("--repeat=9 beam=2 title='two words'", (None, {"repeat": 9, "beam": 2, "title": "two words"})),
    ],
)
def test_the_line_of_the_magic_sets_a_name_and_options(line, parsed):
    assert parse_magic_line(line) == parsed


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("--bem 2", "%%explore does not know '--bem'"),
        ("--beam", "--beam needs a value"),
        ("--beam two", "--beam two: expected a whole number"),
        ("one two", "%%explore does not know 'two'"),
        ("noopt", "%%explore noopt: this option needs"),
        ("beam 2", "%%explore beam: this option needs"),
        ("class", "%%explore class: a keyword of Python"),
        ("None", "%%explore None: a keyword of Python"),
        ("--title \"it's", "no closing quotation"),
        ("--title it's", "no closing quotation"),
        ("view \\", "no escaped character"),
        ("--ask when", "--ask when: expected kernels or slowest"),
        ("--ask 'next rule'", "expected kernels or slowest"),
        ("--ask faster", "expected kernels or slowest"),
        ("--repeat 0", "--repeat 0: the number is too small"),
        ("--kernels -3", "--kernels -3: the number is too small"),
        ("--beam -1", "--beam -1: the number is too small"),
        ("beam=two", "--beam two: expected a whole number"),
    ],
)
def test_unknown_words_of_the_magic_raise_an_error_with_its_usage(line, message):
    with pytest.raises(MagicError) as caught:
        parse_magic_line(line)
    assert message in str(caught.value)
    assert "%%explore [NAME] [--device D]" in str(caught.value)


@pytest.mark.parametrize("line", ["class", "--title \"it's", "--ask when", "--device NVRAM", "--repeat 0"])
def test_a_wrong_line_is_refused_before_the_cell_runs(shell, line):
    shell.user_ns.pop("ran", None)
    done = shell.run_cell(f"%%explore {line}\nran = 1", store_history=True)
    assert isinstance(done.error_in_exec, ValueError)
    assert "ran" not in shell.user_ns


@pytest.mark.parametrize("ask", ["kernels", "slowest"])
@pytest.mark.parametrize("cell", ["3", "Tensor.ones(2).contiguous() * 5"])
def test_an_invalid_request_of_the_magic_preserves_the_capture(shell, ask, cell):
    done = shell.run_cell(f"%%explore asked --ask {ask}\n{cell}", store_history=True)
    assert done.error_in_exec is None
    assert shell.user_ns["asked"].capture.has_trace


def values(shell):
    from tinyexplore.device import Device
    from tinyexplore.explore import explore

    tensor = Tensor.ones(4, 8).contiguous() * 2 + 1
    lazybuffer = tensor.lazydata
    seen = {}

    def work():
        from tinyexplore.engine import compile_item, schedule

        (seen["item"], *_) = schedule([lazybuffer])
        seen["spec"] = compile_item(seen["item"]).runner.spec

    explore(work, repeat=1)
    target = Device[Device.DEFAULT].target
    return [
        tensor,
        lazybuffer,
        lazybuffer.st,
        lazybuffer.st.views[-1],
        seen["item"],
        Kernel.of(seen["item"].ast, target),
        seen["item"].ast,
        seen["spec"],
        UOp.const(dtypes.int32, 3),
    ]


def test_values_of_the_engine_have_rich_forms(shell):
    from tinyexplore.explore.notebook.ipython_extension import _PAGES, _PICTURES

    shown = values(shell)
    assert {kind for value in shown for kind in type(value).__mro__ if kind in _PAGES} == set(_PAGES)
    for value in shown:
        data, _ = shell.display_formatter.format(value)
        assert data["text/html"].startswith("<div><strong>"), value
        assert "0x" not in data["text/html"]
        if type(value) in _PICTURES:
            assert data["image/svg+xml"].lstrip().startswith("<svg")


def test_the_engine_is_not_changed_by_the_extension():
    for kind in (Tensor, UOp, Kernel):
        assert not hasattr(kind, "_repr_html_")
        assert not hasattr(kind, "_repr_svg_")


def test_importing_the_package_imports_neither_ipython_nor_numpy():
    code = (
        "import sys, tinyexplore; tinyexplore.Tensor; "
        "heavy = ('IPython', 'numpy', 'llvmlite', 'anywidget', 'tinyexplore.explore'); "
        "print([name for name in heavy if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


@pytest.mark.parametrize("first", ["pass", "import tinyexplore.explore.live", "from tinyexplore import capture"])
def test_explore_is_the_function_after_any_import(first):
    code = (
        f"{first}\nfrom tinyexplore import Tensor, explore\n"
        "session = explore(lambda: Tensor.ones(2).contiguous() + 1, device='PYTHON')\n"
        "import tinyexplore.explore.tracefile.queries as query\n"
        "print(session.result.tolist(), query.where(session.trace, op='IOTA'))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == "[2.0, 2.0] ()\n", done.stderr
