"""The IPython extension: `%load_ext tinyexplore` adds the magic `%%explore` and rich displays of the engine's values.

The engine does not depend on this module, which registers formatters for the engine's types. IPython is imported only
when a user loads the extension.
"""

from __future__ import annotations

import importlib
import keyword
import shlex
import sys
from ast import literal_eval
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from html import escape
from typing import TYPE_CHECKING, Any

from tinyexplore.explore.analysis.shapes import shape
from tinyexplore.explore.notebook.explorer import EXPLORE_REPEAT, capture
from tinyexplore.explore.notebook.realization import realize_all
from tinyexplore.explore.recording.cell_runner import last_line, run_tree
from tinyexplore.explore.recording.descriptions import (
    Printer,
    arg_text,
    dtype_text,
    expr_text,
    shape_text,
    uops_listing,
)
from tinyexplore.explore.recording.loop_nest import loop_nest
from tinyexplore.explore.recording.sources import cell_number
from tinyexplore.explore.recording.tables import nodes_of
from tinyexplore.explore.tracefile.counts import count_text
from tinyexplore.explore.tracefile.pictures.graph_picture import graph_svg
from tinyexplore.explore.tracefile.pictures.highlight import lines_html
from tinyexplore.kernel import Kernel
from tinyexplore.lazy import LazyBuffer
from tinyexplore.renderer import ProgramSpec
from tinyexplore.schedule import ScheduleItem
from tinyexplore.shape import ShapeTracker, View
from tinyexplore.tensor import Tensor
from tinyexplore.uop import Ops, UOp

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

USAGE = """%%explore [NAME] [--device D] [--beam N] [--noopt] [--repeat N] [--kernels N] [--title T] [--ask Q]
          [OPTION=VALUE …]

Runs the cell, realizes the value of its last line (or the value that this line assigns), and shows the exploration.
NAME: a variable for the Explorer. --ask kernels: asks before it shows the views ("kernels", "slowest").
OPTION=VALUE: any option of `explore(f, …)`, as Python writes it: noopt=1 target="x86-64-v3" keep_inputs=True.
--noopt is noopt=1: the kernels stay plain loops.
"""


SINGLE_CAPTURE_QUESTIONS = ("kernels", "slowest")  # questions that need only one capture


class MagicError(ValueError):
    """The options of `%%explore` are unknown. The message shows the usage."""


# *** the extension ***


def load_ipython_extension(shell: InteractiveShell) -> None:
    """Loads the extension (`%load_ext tinyexplore`): registers the magic and the displays."""
    register: Any = shell.register_magic_function  # its declared type is that of the decorator around it
    register(_make_explore_magic(shell), magic_kind="cell", magic_name="explore")
    register_reprs(shell)
    with suppress(ImportError):  # without anywidget, pictures are shown
        importlib.import_module("tinyexplore.widgets.explorer")  # imported now, so that the first view opens faster


def unload_ipython_extension(shell: InteractiveShell) -> None:
    """Unloads the extension (`%unload_ext tinyexplore`)."""
    shell.magics_manager.magics["cell"].pop("explore", None)
    for formatter in _make_formatters(shell).values():
        for kind in _PICTURES:
            formatter.pop(kind, None)


def register_reprs(shell: InteractiveShell) -> None:
    """Registers the displays of Tensor, LazyBuffer, ShapeTracker, View, ScheduleItem, Kernel, UOp and ProgramSpec."""
    formatters = _make_formatters(shell)
    for kind, to_html in _PAGES.items():
        formatters["text/html"].for_type(kind, to_html)
    for kind, to_svg in _PICTURES.items():
        formatters["image/svg+xml"].for_type(kind, to_svg)


def _make_formatters(shell: InteractiveShell) -> dict[str, Any]:
    assert shell.display_formatter is not None  # an initialized shell has one
    return shell.display_formatter.formatters


def _make_explore_magic(shell: InteractiveShell) -> Callable[[str, str], Any]:
    """Returns the function of the magic %%explore for a shell."""

    def explore(line: str, cell: str) -> Any:
        """Runs the cell inside a capture and shows the capture."""
        __tracebackhide__ = True  # hides this frame in tracebacks
        name, options = parse_magic_line(line)
        about = options.pop("ask", None)
        if about is not None:
            importlib.import_module("tinyexplore.widgets")  # the question needs this package: fail before the cell runs
        session = capture(**{"title": last_line(cell), "repeat": EXPLORE_REPEAT, **options})
        session.capture.namespace = shell.user_ns
        if name is not None:
            shell.user_ns[name] = session
        # the cell with the magic's own line, so that line numbers agree with the notebook
        source = cell if cell.lstrip().startswith("%%") else f"# %%explore {line}\n{cell}"
        try:
            with session:
                session.capture.call(partial(run_cell, shell, source), ())
                realize_all(session.result)
        except (Exception, KeyboardInterrupt):
            display(session)  # show the partial capture; the exception propagates
            raise
        if about is None or not session.trace.kernels:
            return session
        try:
            return session.question(about, reveal=True)
        except ValueError as error:  # too few kernels ran for the question "slowest"
            print(f"--ask {about}: {error}")
            return session

    from IPython.display import display

    explore.__doc__ = USAGE
    return explore


def run_cell(shell: InteractiveShell, cell: str) -> Any:
    """Runs the cell and returns the value of its last line (an expression, or an assignment `y = …`), else None."""
    __tracebackhide__ = True
    code = shell.transform_cell(cell)
    compiler: Any = shell.compile  # its declared type accepts only text
    name = compiler.cache(code, _find_running_cell(shell), raw_code=cell)
    tree = shell.transform_ast(compiler.ast_parse(code, filename=name))
    return run_tree(tree, lambda part, mode: compiler(part, name, mode), shell.user_ns)


def _find_running_cell(shell: InteractiveShell) -> int:
    """Returns the number of the cell that called the magic; IPython versions differ in when they increment it."""
    frame = sys._getframe(1)
    while frame is not None:
        number = cell_number(frame.f_code.co_filename)
        if number is not None:
            return number
        frame = frame.f_back  # type: ignore[assignment]
    return shell.execution_count


def parse_magic_line(line: str) -> tuple[str | None, dict[str, Any]]:
    """Parses the line of `%%explore`. Returns the name of the variable, or None, and the options."""
    name = None
    options: dict[str, Any] = {}
    try:
        arguments = shlex.split(line)
    except ValueError as error:
        raise MagicError(
            f"%%explore {line}: {str(error).lower()}; quote texts like 'this' or \"this\"\n\n{USAGE}"
        ) from None
    while arguments:
        word = arguments.pop(0)
        option, equals, value = word.removeprefix("--").partition("=")
        if equals and option.isidentifier():
            options[option] = _parse_option_value(option, value)
        elif word == "--noopt":
            options["noopt"] = 1
        elif word.startswith("--") and option in _MAGIC_OPTIONS:
            if not arguments:
                raise MagicError(f"{word} needs a value\n\n{USAGE}")
            options[option] = _parse_magic_value(word, arguments.pop(0))
        elif keyword.iskeyword(word):
            raise MagicError(f"%%explore {word}: a keyword of Python cannot name a variable\n\n{USAGE}")
        elif word in ("noopt", *_MAGIC_OPTIONS):
            raise MagicError(f"%%explore {word}: this option needs a value; write {word}=VALUE\n\n{USAGE}")
        elif word.isidentifier() and name is None:
            name = word
        else:
            raise MagicError(f"%%explore does not know {word!r}\n\n{USAGE}")
    return name, options


def _parse_option_value(option: str, text: str) -> Any:
    """Returns the value of `OPTION=VALUE`. A value that is no Python literal is a string.

    `capture` validates names and values.
    """
    if option in _MAGIC_OPTIONS:
        return _parse_magic_value(f"--{option}", text)
    try:
        return literal_eval(text)
    except (ValueError, SyntaxError):
        return text


_MAGIC_OPTIONS: dict[str, Callable[[str], Any]] = {
    "device": str,
    "beam": int,
    "repeat": int,
    "kernels": int,
    "title": str,
    "ask": str,
}


def _parse_magic_value(option: str, text: str) -> Any:
    try:
        value = _MAGIC_OPTIONS[option[2:]](text)
    except ValueError:
        raise MagicError(f"{option} {text}: expected a whole number\n\n{USAGE}") from None
    if isinstance(value, int) and value < (0 if option == "--beam" else 1):
        raise MagicError(f"{option} {text}: the number is too small\n\n{USAGE}")
    if option == "--ask" and value not in SINGLE_CAPTURE_QUESTIONS:
        raise MagicError(f"--ask {text}: expected {' or '.join(SINGLE_CAPTURE_QUESTIONS)}\n\n{USAGE}")
    return value


# *** pictures ***


def _draw_graph(*roots: UOp | LazyBuffer) -> str:
    return graph_svg(nodes_of(roots))


def _uop_svg(uop: UOp) -> str:
    return _draw_graph(uop)


def _lazybuffer_svg(lazybuffer: LazyBuffer) -> str:
    return _draw_graph(lazybuffer)


def _tensor_svg(tensor: Tensor) -> str:
    return _draw_graph(tensor.lazydata)


def _kernel_svg(kernel: Kernel) -> str:
    return _draw_graph(kernel.ast)


def _item_svg(item: ScheduleItem) -> str | None:
    return None if item.ast is None else _draw_graph(item.ast)


# *** HTML displays ***


def _write_page(title: str, facts: Iterable[tuple[str, str]], picture: str = "", listing: str = "") -> str:
    """Returns a value's HTML display: title, facts, listing and picture. `listing` is HTML from `_write_listing`."""
    rows = "".join(
        f'<tr><th style="text-align:left">{escape(name)}</th><td style="text-align:left">{escape(value)}</td></tr>'
        for name, value in facts
    )
    block = f"<pre>{listing}</pre>" if listing else ""
    return f"<div><strong>{escape(title)}</strong><table>{rows}</table>{block}{picture}</div>"


def _write_listing(language: str, text: str) -> str:
    """Returns text in a language as HTML, in the colors of the notebook's theme."""
    return "\n".join(lines_html(language, text.splitlines(), inline=True))


def _tensor_html(tensor: Tensor) -> str:
    return _write_lazy_page("Tensor", tensor.lazydata)


def _lazybuffer_html(lazybuffer: LazyBuffer) -> str:
    return _write_lazy_page("LazyBuffer", lazybuffer)


def _write_lazy_page(title: str, lazybuffer: LazyBuffer) -> str:
    nodes = nodes_of((lazybuffer,))
    facts = [
        ("shape", shape_text(lazybuffer.shape)),
        ("dtype", lazybuffer.dtype.name),
        ("device", lazybuffer.device),
        ("state", "in memory" if lazybuffer.base.is_realized else "not computed yet"),
        ("graph", f"{len(nodes)} LazyBuffers"),
    ]
    return _write_page(title, facts, graph_svg(nodes))


def _shapetracker_html(tracker: ShapeTracker) -> str:
    facts = [("shape", shape_text(tracker.shape)), ("in order", "yes" if tracker.contiguous else "no")]
    for number, view in enumerate(tracker.views):
        mask = "" if view.mask is None else f", valid in {arg_text(view.mask)}"
        text = f"{shape_text(view.shape)}, strides {arg_text(view.strides)}, offset {view.offset}{mask}"
        facts.append((f"view {number}", text))
    picture = shape(tracker)
    if str(picture.after) != str(picture.before):
        facts.append(("simplified", str(picture.after)))
    return _write_page("ShapeTracker", facts, picture.svg())


def _view_html(view: View) -> str:
    return _shapetracker_html(ShapeTracker((view,)))


def _uop_html(uop: UOp) -> str:
    nodes = nodes_of((uop,))
    text = _write_listing("uops", loop_nest(uop) if uop.op is Ops.SINK else Printer().text(uop))
    facts = [("dtype", dtype_text(uop.dtype)), ("graph", count_text(len(nodes), "UOp"))]
    return _write_page(f"UOp {uop.op.name}", facts, graph_svg(nodes), text)


def _kernel_html(kernel: Kernel) -> str:
    facts = [
        ("axes", ", ".join(f"{axis.arg.name} {axis.arg.kind.value} {expr_text(axis.src[0])}" for axis in kernel.axes)),
        ("opts", ", ".join(map(str, kernel.applied)) or "none"),
        ("for", kernel.target.describe()),
    ]
    return _write_page(f"Kernel {kernel.name}", facts, "", _write_listing("uops", loop_nest(kernel.ast)))


def _item_html(item: ScheduleItem) -> str:
    facts = [
        ("device", item.device),
        ("stores", ", ".join(f"{output.op.name} {shape_text(output.shape)}" for output in item.outputs)),
        ("computes", f"{len(item.members)} LazyBuffers"),
        ("buffers", str(len(item.buffers))),
    ]
    text = "copy between devices" if item.ast is None else _write_listing("uops", loop_nest(item.ast))
    return _write_page("ScheduleItem", facts, "", text)


def _program_html(program: ProgramSpec) -> str:
    facts = [
        ("for", program.target.describe()),
        (
            "program",
            f"{count_text(len(program.uops), 'UOp')}, {count_text(len(program.lines), 'line')} of {program.language}",
        ),
        ("buffers", f"{program.n_buffers}, of which written: {', '.join(map(str, sorted(program.writes)))}"),
    ]
    linear = "\n".join(line.text for line in uops_listing(program.uops))
    listing = f"{_write_listing(program.language, program.source)}\n\n{_write_listing('uops', linear)}"
    return _write_page(f"ProgramSpec {program.name}", facts, "", listing)


_PAGES: dict[type, Callable[[Any], str]] = {
    Tensor: _tensor_html,
    LazyBuffer: _lazybuffer_html,
    ShapeTracker: _shapetracker_html,
    View: _view_html,
    ScheduleItem: _item_html,
    Kernel: _kernel_html,
    UOp: _uop_html,
    ProgramSpec: _program_html,
}
_PICTURES: dict[type, Callable[[Any], str | None]] = {
    Tensor: _tensor_svg,
    LazyBuffer: _lazybuffer_svg,
    ScheduleItem: _item_svg,
    Kernel: _kernel_svg,
    UOp: _uop_svg,
}
