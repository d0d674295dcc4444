"""The command `tinyexplore`: captures a script, exports and compares traces, lists devices, opens the notebooks."""

from __future__ import annotations

import argparse
import csv
import io
import json
import os
import runpy
import sys
import tempfile
import textwrap
import traceback
import webbrowser
from collections.abc import Callable, Sequence
from dataclasses import fields
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from tinyexplore.course import DOCUMENTS, copy_course, course_folder
from tinyexplore.device import Device, DeviceUnavailable
from tinyexplore.dtype import dtypes
from tinyexplore.explore.analysis.comparisons.comparison import compare
from tinyexplore.explore.analysis.machine.ceiling_table import ceilings
from tinyexplore.explore.exports.engine_pages.page import write_playground
from tinyexplore.explore.exports.engine_pages.pyodide import PyodideMissing
from tinyexplore.explore.exports.html_export import summary_text
from tinyexplore.explore.notebook.explorer import Explorer, capture
from tinyexplore.explore.notebook.foreign import open as open_file
from tinyexplore.explore.notebook.frontends import onnx as explore_onnx
from tinyexplore.explore.notebook.requests import REQUESTS, respond_from_trace
from tinyexplore.explore.tracefile.chrome import save_chrome_trace
from tinyexplore.explore.tracefile.encodable_text import for_terminal, well_formed, write_text
from tinyexplore.explore.tracefile.graph_export import NoDotProgram
from tinyexplore.explore.tracefile.perfetto import MissingPackage, to_perfetto
from tinyexplore.explore.tracefile.pictures.highlight import for_stream
from tinyexplore.explore.tracefile.scripts import reproducer
from tinyexplore.explore.tracefile.table_export import TABLES, rows_of, table_text
from tinyexplore.explore.tracefile.trace import Trace
from tinyexplore.frontends.onnx.errors import OnnxError
from tinyexplore.frontends.report import front_ends
from tinyexplore.target import GPUS, LEVELS, NATIVE, nearest_level
from tinyexplore.util import Context, config

OK, FAILED, MISUSED = 0, 1, 2
HELP_WIDTH = 100  # columns of the list of commands, which has one line per command


class UsageError(Exception):
    """Raised for invalid arguments of the command. The message says which are valid."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command. Returns the exit status: 0 done, 1 failed (a script raised, for example), 2 misused."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    parser = _make_parser()
    if not words:
        parser.print_help()
        return OK
    # `bench` has its own parser in the checkout, which gets all arguments after the command
    options = parser.parse_args(words[:1] if words[:1] == ["bench"] else words)
    try:
        if options.name == "bench":
            return run_bench(words[1:])
        code: int = options.command(options)
        return code
    except (UsageError, PyodideMissing, ValueError, OSError) as error:
        _print_line(f"tinyexplore {options.name}: {error}", to_errors=True)
        return MISUSED


def _print_line(text: object, *, to_errors: bool = False, in_color: bool = False) -> None:
    """Prints a line to standard output or error. Bytes of a file name that are not UTF-8 become U+FFFD.

    Control characters are escaped, unless the text carries colors of our own (`in_color`).
    """
    words = well_formed(str(text))
    print(words if in_color else for_terminal(words), file=sys.stderr if to_errors else sys.stdout)


class _CommandList(argparse.HelpFormatter):
    """A line for each command."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, width=HELP_WIDTH)

    def _format_action(self, action: argparse.Action) -> str:
        if isinstance(action, argparse._SubParsersAction):
            return "".join(map(self._format_action, action._get_subactions()))
        return super()._format_action(action)


def _make_parser() -> argparse.ArgumentParser:
    """Builds the parser of the command line, one subparser per command."""
    parser = argparse.ArgumentParser(
        prog="tinyexplore",
        description="Inspect, step through and time how tensor programs are compiled.",
        epilog="`tinyexplore COMMAND --help` explains one command.",
        formatter_class=_CommandList,
    )
    commands = parser.add_subparsers(dest="name", required=True, metavar="COMMAND", title="commands")
    _add_running(commands)
    _add_pages(commands)
    _add_tables(commands)
    _add_files(commands)
    _add_machine(commands)
    return parser


def _add_running(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds the commands that run notebooks or a script."""
    lab = commands.add_parser("lab", help="open the course in JupyterLab")
    lab.add_argument(
        "folder",
        nargs="?",
        help="your copy of the course; created if missing; edited notebooks are not overwritten "
        "(default: ./tinyexplore-course, in a checkout ./notebooks)",
    )
    lab.set_defaults(command=run_lab)

    run = commands.add_parser(
        "run",
        help="run a Python script or an ONNX model and capture everything it computes",
        description="Run a Python script or an ONNX model and capture everything it computes. Options stand before "
        "SCRIPT; only --html and --trace may also follow it. Arguments after SCRIPT are passed to it. For an ONNX "
        "model, give symbolic sizes as NAME=NUMBER; its inputs are random.",
    )
    run.add_argument("script", metavar="SCRIPT", help="a Python file, or a .onnx file")
    run.add_argument("--html", metavar="OUT", help="write one HTML page")
    run.add_argument("--trace", metavar="OUT", help="write the trace as .json or .json.gz")
    run.add_argument("--json", action="store_true", help="print the kernels as JSON on the last line")
    run.add_argument("--device", help="default device of the script")
    run.add_argument("--target", help="compile for this CPU, by LLVM's name (default: this machine's CPU)")
    run.add_argument("--beam", type=int, help="width of the search for opts")
    run.add_argument("--noopt", action="store_true", help="do not optimize kernels")
    run.add_argument(
        "--repeat",
        type=int,
        default=1,
        help="timed samples per launch, with warm caches (default: 1, the launch itself)",
    )
    run.add_argument(
        "--kernels", type=int, help="record at most this many kernels and count the others (default: 1000)"
    )
    run.add_argument("arguments", nargs=argparse.REMAINDER, metavar="ARG", help="arguments of the script")
    run.set_defaults(command=run_script)


def _add_pages(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds the commands that write a page."""
    html = commands.add_parser("html", help="make one HTML page of a trace file")
    html.add_argument("trace", metavar="TRACE", help="a trace written by `run --trace` or `Explorer.save`")
    html.add_argument("out", metavar="OUT", help="the page to write")
    html.add_argument(
        "--live",
        action="store_true",
        help="the page includes the engine (10 MB) and runs requests that need Python: why not, the tuner, the "
        "debugger, the caches",
    )
    _add_pyodide(html)
    html.set_defaults(command=run_html)

    opened = commands.add_parser(
        "open",
        help="open a trace, or a dump of another compiler, as a page",
        description="Open a trace file, or a dump written by tinygrad, JAX/XLA, Numba, TorchInductor, Triton or "
        "another compiler that uses MLIR. docs/foreign.md explains how to record a dump. Without --html or --trace the "
        "page opens in the browser.",
    )
    opened.add_argument("file", metavar="FILE", help="a trace file, or a file or folder of a compiler's dump")
    opened.add_argument("--html", metavar="OUT", help="write one HTML page, and open no browser")
    opened.add_argument("--trace", metavar="OUT", help="write the trace as .json or .json.gz")
    opened.set_defaults(command=run_open)

    playground = commands.add_parser(
        "playground",
        help="make a page that edits, runs and explores programs",
        description="Write DIR/index.html, a page that edits, runs and explores programs in the browser, offline or "
        "from a static site.",
    )
    playground.add_argument("folder", metavar="DIR", help="the folder to write to; created if missing")
    _add_pyodide(playground)
    playground.set_defaults(command=run_playground)


def _add_tables(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds the commands that print a part of a trace file."""
    show = commands.add_parser("show", help="print a table of a trace file")
    show.add_argument("trace", metavar="TRACE", help="a trace written by `run --trace` or `Explorer.save`")
    show.add_argument("table", metavar="TABLE", nargs="?", default="kernels", choices=TABLES, help=", ".join(TABLES))
    show.add_argument("--json", action="store_true", help="print the rows as JSON")
    show.set_defaults(command=run_show)

    by_module = commands.add_parser("modules", help="print time and memory of each module")
    by_module.add_argument("trace", metavar="TRACE", help="a trace written by `run --trace` or `Explorer.save`")
    by_module.add_argument("--json", action="store_true", help="print the tree as JSON")
    by_module.set_defaults(command=run_modules)

    code = commands.add_parser("code", help="print a listing of a kernel, in colors on a terminal")
    code.add_argument("trace", metavar="TRACE", help="a trace written by `run --trace` or `Explorer.save`")
    code.add_argument("kernel", metavar="KERNEL", type=int, help="the kernel's number in the trace")
    code.add_argument(
        "language",
        metavar="LANGUAGE",
        nargs="?",
        help="uops, c, llvm, llvm-opt, asm … (default: the language of the code that ran)",
    )
    code.set_defaults(command=run_code)


def _add_files(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds the commands that convert or compare files."""
    export = commands.add_parser(
        "export",
        help="write a trace file in another program's format",
        description="Write a trace file in another program's format. The suffix of OUT selects the format: "
        + "; ".join(f"{suffix}: {words}" for suffix, (words, _) in EXPORTS.items()),
    )
    export.add_argument("trace", metavar="TRACE", help="a trace written by `run --trace` or `Explorer.save`")
    export.add_argument("out", metavar="OUT", help="the file to write")
    export.set_defaults(command=run_export)

    ask = commands.add_parser(
        "ask",
        help="respond to a request about a trace, in JSON",
        description="Respond to a request about a trace, in JSON. The exit status is 1 if the response is an error. "
        "The kernels of a trace file cannot run again: requests that need them return an error.",
    )
    ask.add_argument("trace", metavar="TRACE", help="a trace written by `run --trace` or `Explorer.save`")
    ask.add_argument(
        "request",
        metavar="REQUEST",
        nargs="?",
        help="""such as '{"ask": "why", "node": 17}'; without it the command lists the requests""",
    )
    ask.set_defaults(command=run_ask)

    comparison = commands.add_parser(
        "compare",
        help="compare two traces kernel by kernel",
        description="Compare two traces kernel by kernel. The exit status is 1 if a kernel changed, was added or "
        "was removed, and 0 if all are the same program; times are ignored.",
    )
    comparison.add_argument("a", metavar="A", help="a trace written by `run --trace` or `Explorer.save`")
    comparison.add_argument("b", metavar="B", help="the trace to compare it with")
    comparison.add_argument("--html", metavar="OUT", help="write one HTML page")
    comparison.add_argument("--json", action="store_true", help="print the comparison as JSON")
    comparison.set_defaults(command=run_compare)

    reproduce = commands.add_parser(
        "reproduce",
        help="make a script of one kernel",
        description="Make a script that compiles, runs and times one kernel with NumPy and llvmlite, or NumPy and a C "
        "compiler, without tinyexplore.",
    )
    reproduce.add_argument("trace", metavar="TRACE", help="a trace written by `run --trace` or `Explorer.save`")
    reproduce.add_argument("kernel", metavar="KERNEL", type=int, help="the kernel's number in the trace")
    reproduce.add_argument("out", metavar="OUT", help="the script to write")
    reproduce.set_defaults(command=run_reproduce)


def _add_machine(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds the commands about this machine."""
    commands.add_parser(
        "bench", help="benchmark tinyexplore against other engines and the machine's limits", add_help=False
    )

    devices = commands.add_parser("devices", help="list the devices and whether they work here")
    devices.add_argument(
        "--target", help="for this CPU, by LLVM's name (default: the target in TARGET, or this machine)"
    )
    devices.add_argument("--json", action="store_true", help="print the devices as JSON")
    devices.set_defaults(command=run_devices)
    front = commands.add_parser("frontends", help="list the frameworks whose programs can be explored here")
    front.add_argument("--operators", action="store_true", help="print the supported operators")
    front.add_argument("--json", action="store_true", help="print the frameworks as JSON")
    front.set_defaults(command=run_front_ends)


def _add_pyodide(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--pyodide",
        metavar="PATH",
        help="Pyodide, the Python for browsers: the npm package pyodide, as a folder or a .tgz (default: $PYODIDE; "
        "else the command downloads it once)",
    )


# *** commands ***


def run_lab(options: argparse.Namespace) -> int:
    """Copies the course into the folder, and replaces this process by JupyterLab on its table of contents."""
    if find_spec("jupyterlab") is None:
        raise UsageError("JupyterLab is not installed; install it with: pip install 'tinyexplore[lab]'")
    source = course_folder()
    default = Path("notebooks") if source == Path("notebooks").resolve() else Path("tinyexplore-course")
    folder = Path(options.folder) if options.folder else default
    if folder.is_file() or not folder.resolve().parent.is_dir():
        raise UsageError(f"{folder} is not a folder")
    for name in copy_course(source, folder):
        print(f"kept {folder / name}: you edited it; delete or rename it to get the new version")
    sys.stdout.flush()
    is_checkout = folder.resolve() == source.resolve() and (folder.resolve().parent / DOCUMENTS).is_dir()
    root = folder.resolve().parent if is_checkout else folder  # JupyterLab opens nothing outside its root folder
    path = f"{folder.resolve().name}/README.md" if is_checkout else "README.md"
    option = f"--LabApp.default_url=/lab/tree/{path}?factory=Markdown%20Preview"
    os.execv(sys.executable, [sys.executable, "-m", "jupyterlab", f"--notebook-dir={root}", option])


def run_script(options: argparse.Namespace) -> int:
    """Runs a script like `python SCRIPT ARGS`, inside a capture. If the script raises, keeps the partial trace."""
    script = Path(options.script)
    if not script.is_file():
        raise UsageError(f"{script} is not a file")
    outputs, arguments = _split_outputs(options)
    settings = {"repeat": options.repeat, "title": script.name}
    names = ("device", "target", "beam", "kernels")
    settings.update({name: getattr(options, name) for name in names if getattr(options, name) is not None})
    if options.noopt:
        settings["noopt"] = 1
    for path in outputs.values():
        _check_writable(path)
    if script.suffix.lower() == ".onnx":
        session, status = _capture_model(script, arguments, settings)
    else:
        session = capture(**settings)
        status = _run_captured(session, script, arguments)
    if options.json:
        _print_line(json.dumps(_summarize(session.trace), ensure_ascii=False))
    else:
        _print_line(summary_text(session.trace))
    for output_format, path in outputs.items():
        if output_format == "html":
            session.to_html(path)
        else:
            session.save(path)
        partial = " (partial)" if session.capture.error is not None and status != OK else ""
        _print_line(f"wrote {path}{partial}", to_errors=options.json)
    return status


def _summarize(trace: Trace) -> dict[str, Any]:
    """Returns a capture as plain data for scripts: title, options, kernels and messages."""
    messages = [{"level": message.level, "text": message.text} for message in trace.messages]
    return {
        "title": trace.title,
        "options": dict(trace.options),
        "kernels": rows_of(trace, "kernels"),
        "messages": messages,
    }


def _run_captured(session: Explorer, script: Path, arguments: list[str]) -> int:
    """Runs the script as `__main__` inside the capture. Returns the exit status."""
    saved_argv, saved_path = sys.argv, sys.path[:]
    sys.argv = [str(script), *arguments]
    sys.path.insert(0, str(script.resolve().parent))
    try:
        with session:
            runpy.run_path(str(script), run_name="__main__")
    except SystemExit as stop:
        return _exit_status(stop)
    except BaseException as error:
        # omit the frames of runpy and of this module
        traceback_left = error.__traceback__
        while traceback_left is not None and traceback_left.tb_frame.f_code.co_filename != str(script):
            traceback_left = traceback_left.tb_next
        traceback.print_exception(type(error), error, traceback_left or error.__traceback__)
        _print_line(f"{script} raised; the trace holds what was recorded until then.", to_errors=True)
        return FAILED
    finally:
        sys.argv, sys.path[:] = saved_argv, saved_path
    return OK


def _capture_model(path: Path, arguments: list[str], settings: dict[str, Any]) -> tuple[Explorer, int]:
    """Returns a view of an ONNX model with random inputs, and the exit status. `arguments`: its open sizes."""
    sizes: dict[str, int] = {}
    for word in arguments:
        name, _, number = word.partition("=")
        if not number.isdecimal():
            raise UsageError(f"{word!r}: expected NAME=SIZE for a symbolic axis of the model, such as batch=1")
        sizes[name] = int(number)
    try:
        return explore_onnx(path, sizes=sizes, **settings), OK
    except (OnnxError, ImportError) as error:
        session = getattr(error, "explorer", None)
        if session is None:
            raise UsageError(f"{path}: {error}") from error
        _print_line(f"{path}: {error}; the trace holds what was recorded until then.", to_errors=True)
        return session, FAILED


def _exit_status(stop: SystemExit) -> int:
    if stop.code is None:
        return OK
    if isinstance(stop.code, int):
        return stop.code
    print(stop.code, file=sys.stderr)
    return FAILED


def _split_outputs(options: argparse.Namespace) -> tuple[dict[str, Path], list[str]]:
    """Separates --html and --trace from the script's own arguments, after which they may stand: `run SCRIPT [args]
    --html OUT`."""
    outputs = {
        output_format: Path(value) for output_format in ("html", "trace") if (value := getattr(options, output_format))
    }
    arguments: list[str] = []
    remaining = list(options.arguments)
    while remaining:
        word = remaining.pop(0)
        output_format = word.removeprefix("--") if word in ("--html", "--trace") else None
        if word == "--":
            arguments.extend(remaining)
            break
        if output_format is None:
            arguments.append(word)
        elif not remaining:
            raise UsageError(f"{word} needs a file to write")
        else:
            outputs[output_format] = Path(remaining.pop(0))
    if "trace" in outputs and not outputs["trace"].name.endswith((".json", ".json.gz")):
        raise UsageError(f"--trace {outputs['trace']}: a trace is a .json or .json.gz file")
    return outputs, arguments


def _check_writable(path: Path) -> None:
    """Raises UsageError if a file cannot be written at this path. Called before the script runs."""
    if path.is_dir():
        raise UsageError(f"{path} is a folder; give a file to write")
    if not path.parent.is_dir():
        raise UsageError(f"{path}: the folder {path.parent} does not exist")


def run_html(options: argparse.Namespace) -> int:
    """Writes a page of a trace file."""
    _check_writable(Path(options.out))
    explorer = Explorer(_load_trace(options.trace))
    explorer.to_html(options.out, live=options.live, pyodide=options.pyodide)
    _print_line(f"wrote {options.out}")
    return OK


def run_open(options: argparse.Namespace) -> int:
    """Writes a page of a trace file or of a foreign dump."""
    for out in (options.html, options.trace):
        if out:
            _check_writable(Path(out))
    if not Path(options.file).exists():
        raise UsageError(f"{options.file} does not exist: give a trace file, or a folder with a foreign dump")
    view = open_file(options.file)
    for message in view.trace.messages:
        _print_line(f"{message.level}: {message.text}", to_errors=True)
    if options.trace:
        _print_line(f"wrote {view.save(options.trace)}")
    if options.html:
        view.to_html(options.html)
        _print_line(f"wrote {options.html}")
    if not options.html and not options.trace:
        page = Path(tempfile.mkdtemp(prefix="tinyexplore_")) / "page.html"
        view.to_html(page)
        _print_line(f"wrote {page}")
        webbrowser.open(page.as_uri())
    return OK


def run_playground(options: argparse.Namespace) -> int:
    """Writes a page with an editor and an engine."""
    folder = Path(options.folder)
    if folder.is_file():
        raise UsageError(f"{folder} is a file; give a folder to write index.html to")
    _print_line(f"wrote {write_playground(folder, pyodide=options.pyodide)}")
    return OK


def run_show(options: argparse.Namespace) -> int:
    """Prints a table of a trace file."""
    rows = rows_of(_load_trace(options.trace), options.table)
    _print_line(json.dumps(rows, indent=2, ensure_ascii=False) if options.json else table_text(rows))
    return OK


def run_modules(options: argparse.Namespace) -> int:
    """Prints the time and the memory of each module."""
    tree = _load_trace(options.trace).modules()
    _print_line(json.dumps(tree.to_dict(), indent=2, ensure_ascii=False) if options.json else tree)
    return OK


def run_code(options: argparse.Namespace) -> int:
    """Prints one listing of one kernel."""
    trace = _load_trace(options.trace)
    programs = {program.language: program for program in trace.programs if program.kernel == options.kernel}
    if not programs:
        raise UsageError(f"kernel {options.kernel} has no listings; kernels of the trace: {len(trace.kernels)}, from 0")
    language = options.language or next((name for name in programs if name != "uops"), "uops")
    if language not in programs:
        raise UsageError(f"kernel {options.kernel} has no {language!r}; it has {', '.join(programs)}")
    lines = [for_terminal(line.text) for line in programs[language].lines]
    _print_line("\n".join(for_stream(language, lines, sys.stdout)), in_color=True)
    return OK


def run_export(options: argparse.Namespace) -> int:
    """Writes a trace file in the format of the suffix."""
    out = Path(options.out)
    write = next((write for suffix, (_, write) in EXPORTS.items() if out.name.lower().endswith(suffix)), None)
    if write is None:
        raise UsageError(f"{out}: the suffix selects the format; supported: {', '.join(EXPORTS)}")
    _check_writable(out)
    try:
        write(_load_trace(options.trace), out)
    except (MissingPackage, NoDotProgram) as error:
        raise UsageError(str(error)) from error
    _print_line(f"wrote {out}")
    return OK


def run_ask(options: argparse.Namespace) -> int:
    """Prints the response to a request, or the table of requests."""
    trace = _load_trace(options.trace)
    if options.request is None:
        for name, cls in REQUESTS.items():
            names = ", ".join(field.name for field in fields(cls))  # type: ignore[arg-type]
            _print_line(f"{name}({names}): {(cls.__doc__ or '').strip().splitlines()[0]}")
        return OK
    try:
        data = json.loads(options.request)
    except ValueError as error:
        raise UsageError(f'the request is not valid JSON ({error}): give an object such as {{"ask": "why"}}') from error
    response = respond_from_trace(trace, data)
    _print_line(json.dumps(response, indent=2, ensure_ascii=False))
    return FAILED if "error" in response else OK


def _load_trace(path: str) -> Trace:
    if not Path(path).is_file():
        raise UsageError(f"{path} is not a file")
    return Trace.load(path)


def _write_csv(trace: Trace, path: Path) -> None:
    rows = rows_of(trace, "kernels")
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, list(rows[0]) if rows else ["kernel"])
    writer.writeheader()
    for row in rows:
        writer.writerow({name: _format_csv_cell(value) for name, value in row.items()})
    write_text(path, text.getvalue())


def _format_csv_cell(value: Any) -> Any:
    """Returns a cell of a CSV file. A text that a spreadsheet would read as a formula gets an apostrophe in front.

    NUL becomes U+FFFD: Python's csv module neither writes nor reads it before 3.11.
    """
    text = "; ".join(map(str, value)) if isinstance(value, tuple) else value
    if not isinstance(text, str):
        return text
    text = text.replace("\0", "\ufffd")
    return well_formed(f"'{text}" if text.startswith(tuple("=+-@\t\r\n")) else text)


# suffix → the format and its writer; longer suffixes first
EXPORTS: dict[str, tuple[str, Callable[[Trace, Path], Any]]] = {
    ".chrome.json": ("the timeline for Chrome and Perfetto", save_chrome_trace),
    ".perfetto-trace": ("the timeline in Perfetto's own format", to_perfetto),
    ".pftrace": ("the timeline in Perfetto's own format", to_perfetto),
    ".csv": ("the kernels as a CSV table", _write_csv),
    ".html": ("one HTML page", lambda trace, path: Explorer(trace).to_html(path)),
    ".svg": ("the LazyBuffers as an SVG picture", lambda trace, path: trace.graph().save(path)),
    ".png": ("the LazyBuffers as a PNG picture, drawn by Graphviz", lambda trace, path: trace.graph().save(path)),
    ".pdf": ("the LazyBuffers as a PDF picture, drawn by Graphviz", lambda trace, path: trace.graph().save(path)),
    ".dot": ("the LazyBuffers as text for Graphviz", lambda trace, path: trace.graph().save(path)),
}


def run_compare(options: argparse.Namespace) -> int:
    """Prints the differences between two trace files. Returns FAILED if a kernel changed."""
    for path in (options.a, options.b):
        if not Path(path).is_file():
            raise UsageError(f"{path} is not a file")
    if options.html:
        _check_writable(Path(options.html))
    comparison = compare(options.a, options.b)
    _print_line(json.dumps(comparison.to_dict(), indent=2, ensure_ascii=False) if options.json else comparison)
    if options.html:
        comparison.to_html(options.html)
        _print_line(f"wrote {options.html}", to_errors=options.json)
    return OK if comparison.same else FAILED


def run_reproduce(options: argparse.Namespace) -> int:
    """Writes a script of one kernel of a trace file."""
    _check_writable(Path(options.out))
    try:
        reproducer(_load_trace(options.trace), options.kernel, options.out)
    except IndexError as error:
        raise UsageError(str(error)) from error
    _print_line(f"wrote {options.out}")
    return OK


def run_bench(arguments: list[str]) -> int:
    """Replaces this process by `python -m bench`, which only a source checkout has."""
    folders = (Path(__file__).resolve().parent.parent, Path.cwd())
    root = next((folder for folder in folders if (folder / "bench" / "harness.py").is_file()), None)
    if root is None:
        raise UsageError(
            f"the benchmarks are not part of the installed package, and there is no bench/ in {folders[0]} or "
            f"{folders[1]}: get the source, and run `tinyexplore bench` inside it"
        )
    # not `-m bench`: that would run a `bench` in the working directory
    start = f"import runpy, sys; sys.path[0] = {str(root)!r}; runpy.run_module('bench', run_name='__main__')"
    sys.stdout.flush()
    os.execv(sys.executable, [sys.executable, "-c", start, *arguments])


def run_devices(options: argparse.Namespace) -> int:
    """Lists each known device with its description, or with the reason why it is not available."""
    with Context(TARGET=config().TARGET if options.target is None else options.target):
        return _show_devices(options.json)


def run_front_ends(options: argparse.Namespace) -> int:
    """Lists each front end: the installed version, or how to install it."""
    reports = front_ends()
    if options.json:
        print(json.dumps([item.as_data() for item in reports], indent=2, ensure_ascii=False))
        return OK
    for report in reports:
        print(report)
        if options.operators:
            print(textwrap.fill(", ".join(report.operators), 120, initial_indent="  ", subsequent_indent="  "))
    return OK


def _show_devices(as_json: bool) -> int:
    """Prints each device with its target (* marks the default), the ceilings, and the GPUs that TARGET may name."""
    rows = []
    for name in Device.names():
        row = {"name": name, "default": name == Device.DEFAULT, "target": None, "refusal": None, "unavailable": None}
        try:
            opened = Device[name]
            row["target"] = opened.target.describe()
            row["refusal"] = opened.refusal or None
        except DeviceUnavailable as error:
            row["unavailable"] = str(error)
        rows.append(row)
    if as_json:
        print(json.dumps(rows, indent=2, ensure_ascii=False))
        return OK
    for row in rows:
        text = str(row["target"] or f"not available: {row['unavailable']}")
        text += " · compiles only; cannot run here" if row["refusal"] else ""
        print(f"{'*' if row['default'] else ' '} {row['name']:8} {text}")
    print("(* the default)")
    print(f"ceilings: {ceilings('LLVM', measure=False)}")
    print(f"GPUs that TARGET may name, compiled by LLVM, emulated by PYTHON: {', '.join(GPUS)}")
    print(_describe_target())
    return OK


def _describe_target() -> str:
    """Returns the CPU for which code is generated and the instruction-set levels that this machine can run, as text."""
    try:
        target = Device["LLVM"].target
        refusal = Device["LLVM"].refusal
        with Context(TARGET=NATIVE):
            native = Device["LLVM"].target
    except DeviceUnavailable as error:
        return f"target: unknown without the LLVM device ({error})"
    if target.has_local:
        return f"target: {target.describe()}; {refusal}"
    cache = f"{target.l1_bytes >> 10} KiB of L1 and {target.l2_bytes >> 10} KiB of L2 cache per core"
    text = f"target: {target.cpu}, {target.lanes(dtypes.float32)} floats per vector, {cache}"
    if refusal:
        text = f"{text}; {refusal}"
    if native.arch != "x86_64":
        return f"{text}; this machine is {native.cpu} ({native.arch})"
    level = nearest_level(frozenset(feature[1:] for feature in native.features.split(",") if feature[:1] == "+"))
    lesser = ", ".join(LEVELS[: LEVELS.index(level) + 1])
    return f"{text}; this machine is {native.cpu}, nearest level {level} (levels that run here: {lesser})"
