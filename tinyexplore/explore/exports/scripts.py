"""A kernel as a script of its own: its source, its buffers, how to run and time it, without this package.

The front end writes the same text (widgets/src/script_text.ts).
"""

from __future__ import annotations

import ast
import keyword
import re
from collections.abc import Mapping
from pathlib import Path

from tinyexplore.explore.tracefile.counted import count_text
from tinyexplore.explore.tracefile.model import KernelInfo, Node, Program
from tinyexplore.explore.tracefile.trace import Trace
from tinyexplore.explore.tracefile.wellformed import well_formed, write_text
from tinyexplore.renderer import Effort
from tinyexplore.util import toposort

BODY = Path(__file__).with_name("script_body.py")


class ReproducerError(ValueError):
    """A kernel that no script can stand for: a copy, or one of which the trace has no source."""


def reproducer(trace: Trace, kernel: int | KernelInfo = 0, path: str | Path | None = None) -> str:
    """The text of a script that compiles, runs and times one kernel with NumPy and llvmlite, or NumPy and a C compiler.

    It makes inputs of the right types and sizes (the trace has no values) or reads them from an .npz file (`--inputs`);
    `--save` keeps the results. Variables have the values of the capture. Written to `path` if one is given.
    """
    info = _kernel(trace, kernel)
    programs = {program.language: program for program in trace.programs if program.kernel == info.id}
    if "uops" not in programs or not {"llvm", "c"} & set(programs):
        has = ", ".join(programs) or "none, it is a copy or was not compiled"
        raise ReproducerError(f"kernel {info.id} ({info.name}): a script needs its C or LLVM IR; it has {has}")
    text = well_formed(_script(trace, info, programs))
    if path is not None:
        write_text(path, text)
    return text


def _kernel(trace: Trace, kernel: int | KernelInfo) -> KernelInfo:
    number = kernel.id if isinstance(kernel, KernelInfo) else kernel
    if not 0 <= number < len(trace.kernels):
        raise IndexError(f"kernel {number}: the trace has {count_text(len(trace.kernels), 'kernel')}, numbered from 0")
    return trace.kernels[number]


def _script(trace: Trace, info: KernelInfo, programs: dict[str, Program]) -> str:
    nodes = _nodes(trace, programs["uops"])
    variables = _variables(trace, nodes)
    llvm, c = _text(programs.get("llvm")), _text(programs.get("c"))
    lines = [
        f'"""The kernel {_plain(info.name)} of {_plain(trace.title or "a capture")}, alone.',
        "",
        f"Captured on {_plain(info.device)}: {_plain(dict(trace.options).get('target', ''))}",
        f"Opts: {_plain(', '.join(info.opts)) or 'none'}",
        f"Loops: {_plain(', '.join(f'{name} {kind} {size}' for name, kind, size in info.axes))}",
        "",
        "Needs NumPy, and llvmlite or a C compiler: python THIS_FILE [--with llvm|c] [--inputs X.npz] [--save Y.npz]",
        '"""',
        "",
        _body().rstrip(),
        "",
        "",
        *[f"{name} = {value}  # bound to it in the capture" for name, value in variables.items()],
        "KERNEL = {",
        f'    "name": {info.name!r},',
        "    # buffer: (dtype, elements, is read, is written)",
        f'    "buffers": {_buffers(nodes)!r},',
        f'    "variables": {{{", ".join(f"{name!r}: {name}" for name in variables)}}},',
        f'    "extent": {_extent(info, variables)},  # of the loop that threads share',
        f'    "flops": {info.flops},',
        f'    "bytes_moved": {info.bytes_moved},',
        f'    "effort": {_effort(programs.get("llvm"))!r},',
        f'    "branches": {bool(programs.get("llvm") and programs["llvm"].branches)},',
        f'    "llvm": {_quoted(llvm)},',
        f'    "c": {_quoted(c)},',
        "}",
        "",
        'if __name__ == "__main__":',
        "    main(KERNEL)",
    ]
    return "\n".join(lines) + "\n"


def _body() -> str:
    """The shared part without its docstring; `from __future__` is its first statement, as it must be."""
    text = BODY.read_text(encoding="utf-8")
    docstring = ast.parse(text).body[0]
    return "\n".join(text.splitlines()[docstring.end_lineno or 0 :]).lstrip("\n")


def _plain(words: str) -> str:
    """Words that can stand in a docstring."""
    printable = "".join(letter if letter.isprintable() else " " for letter in words)
    return printable.replace("\\", "/").replace('"', "'")


def _quoted(text: str) -> str:
    """Source text as a literal that a reader can read."""
    if not text:
        return '""'
    is_plain = '"""' not in text and not text.endswith(('"', "\\")) and not re.search(r"[\0\r]", text)
    return f'r"""\n{text}"""' if is_plain else repr(text)


def _text(program: Program | None) -> str:
    return "" if program is None else "\n".join(line.text for line in program.lines) + "\n"


def _nodes(trace: Trace, program: Program) -> list[Node]:
    roots = [node for line in program.lines for node in line.nodes]
    return [trace.nodes[node] for node in toposort(dict.fromkeys(roots), lambda node: trace.nodes[node].src)]


def _buffers(nodes: list[Node]) -> dict[str, tuple[str, int, bool, bool]]:
    """Each buffer of a call by its name, in order: dtype, elements, whether it is read, whether it is written."""
    table = {node.id: node for node in nodes}

    def global_of(index: int) -> Node | None:
        pointer = table[table[index].src[0]] if table[index].src else table[index]
        return pointer if pointer.op == "DEFINE_GLOBAL" else None

    read = {known.id for node in nodes if node.op == "LOAD" and node.src and (known := global_of(node.src[0]))}
    written = {known.id for node in nodes if node.op == "STORE" and node.src and (known := global_of(node.src[0]))}
    found = {}
    for node in sorted((node for node in nodes if node.op == "DEFINE_GLOBAL"), key=_position):
        match = re.fullmatch(r"(\w+)\[(\d{1,19})\]", node.detail, re.ASCII)  # as describe.py writes it
        if match is None:
            raise ReproducerError(f"{node.detail!r:.60} is no buffer")
        found[node.label] = (match[1], int(match[2]), node.id in read, node.id in written)
    return found


def _position(node: Node) -> int:
    if not re.fullmatch(r"\d{1,9}", node.arg, re.ASCII):
        raise ReproducerError(f"{node.arg!r:.60} is no position of a buffer")
    return int(node.arg)


def _variables(trace: Trace, nodes: list[Node]) -> dict[str, int]:
    """The kernel's Variables by name, with what the capture bound them to, else with their greatest value."""
    bound = {}
    for node in trace.nodes:
        if node.op == "BIND" and (match := re.fullmatch(r"(\w+) = (-?\d{1,19})", node.detail)):
            bound[match[1]] = int(match[2])
    found = {}
    for node in nodes:
        if node.op == "DEFINE_VAR":
            match = re.fullmatch(r"-?\d+ ≤ ([A-Za-z_]\w*) ≤ (-?\d{1,19})", node.detail, re.ASCII)
            if match is None or keyword.iskeyword(match[1]) or match[1] in ("KERNEL", "main"):
                raise ReproducerError(f"{node.detail!r:.60} names no Variable that Python could hold")
            found[match[1]] = bound.get(match[1], int(match[2]))
    return dict(sorted(found.items()))


def _extent(info: KernelInfo, variables: Mapping[str, int]) -> int | str:
    """The size of the loop that threads share; arithmetic with the Variables stands as it is, as Python.

    ReproducerError for anything else: the text of a foreign trace must not become code.
    """
    size = next((size for _, kind, size in info.axes if kind == "thread"), 1)
    if isinstance(size, str) and not _is_arithmetic(size, variables):
        raise ReproducerError(f"kernel {info.id}: the size {size!r:.60} is not arithmetic with its Variables")
    return size


def _is_arithmetic(text: str, variables: Mapping[str, int]) -> bool:
    """Whether `text` is one line of integers, `variables`, operators and parentheses."""
    if not re.fullmatch(r"[\w +*/%()-]{1,1000}", text, re.ASCII) or text.startswith(" "):
        return False
    try:
        tree = ast.parse(text, mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    allowed = (ast.Expression, ast.BinOp, ast.UnaryOp, ast.operator, ast.unaryop, ast.expr_context)
    return all(
        isinstance(node, allowed)
        and not isinstance(node, ast.Pow)
        or isinstance(node, ast.Constant)
        and type(node.value) is int
        or isinstance(node, ast.Name)
        and node.id in variables
        for node in ast.walk(tree)
    )


def _effort(program: Program | None) -> str:
    """How much LLVM did for this program; `script_body.py` knows what that means."""
    return program.effort if program is not None and program.effort else Effort.FULL.value
