"""Writes a kernel as a standalone script: its source, its buffers, and code to run and time it without tinyexplore."""

from __future__ import annotations

import ast
import keyword
import re
from collections.abc import Mapping
from pathlib import Path

from tinyexplore.explore.tracefile.counts import count_text
from tinyexplore.explore.tracefile.encodable_text import well_formed, write_text
from tinyexplore.explore.tracefile.model import KernelInfo, KernelScript, Node, Program, TraceTables
from tinyexplore.util import toposort

BODY = Path(__file__).with_name("script_body.py")


class ReproducerError(ValueError):
    """The kernel has no script: it is a copy, or the trace does not have its source."""


def reproducer(trace: TraceTables, kernel: int | KernelInfo = 0, path: str | Path | None = None) -> str:
    """Returns a script that compiles, runs and times one kernel with NumPy, and llvmlite or a C compiler.

    The script generates random inputs of the right types and sizes, because the trace has no values. `--inputs` reads
    them from an .npz file, and `--save` stores the results. Variables have the values of the capture. If `path` is
    given, the script is also written there.
    """
    info = _find_kernel(trace, kernel)
    programs = {program.language: program for program in trace.programs if program.kernel == info.id}
    if not has_script(programs):
        languages = ", ".join(programs) or "none, it is a copy or was not compiled"
        raise ReproducerError(
            f"kernel {info.id} ({info.name}): a script needs its C or LLVM IR; available: {languages}"
        )
    script = _write_script(trace, info, programs, _bound_variables(trace))
    contents = {"shared": _read_body().rstrip(), "llvm": _text(programs.get("llvm")), "c": _text(programs.get("c"))}
    inserted = [contents[name] for name in script.inserts] + [""]
    text = well_formed("".join(part + insert for part, insert in zip(script.texts, inserted, strict=True)))
    if path is not None:
        write_text(path, text)
    return text


def kernel_scripts(trace: TraceTables) -> tuple[KernelScript, ...]:
    """Returns the scripts of all kernels that have one. A kernel whose texts could break out of a string has none."""
    by_kernel: dict[int, dict[str, Program]] = {}
    for program in trace.programs:
        by_kernel.setdefault(program.kernel, {})[program.language] = program
    bound = _bound_variables(trace)
    scripts = []
    for number, programs in by_kernel.items():
        if has_script(programs):
            try:
                scripts.append(_write_script(trace, trace.kernels[number], programs, bound))
            except ReproducerError:
                continue
    return tuple(scripts)


def has_script(programs: Mapping[str, Program]) -> bool:
    """Whether a kernel with these programs, by language, has a script."""
    return "uops" in programs and ("llvm" in programs or "c" in programs)


def _find_kernel(trace: TraceTables, kernel: int | KernelInfo) -> KernelInfo:
    number = kernel.id if isinstance(kernel, KernelInfo) else kernel
    if not 0 <= number < len(trace.kernels):
        raise IndexError(f"kernel {number}: the trace has {count_text(len(trace.kernels), 'kernel')}, numbered from 0")
    return trace.kernels[number]


def _write_script(
    trace: TraceTables, info: KernelInfo, programs: Mapping[str, Program], bound: Mapping[str, int]
) -> KernelScript:
    """Writes a standalone script for a kernel. `bound` has the values of its Variables."""
    nodes = _list_nodes(trace, programs["uops"])
    variables = _choose_variables(nodes, bound)
    head = [
        f'"""The kernel {_plain_text(info.name)} of {_plain_text(trace.title or "a capture")}, alone.',
        "",
        f"Captured on {_plain_text(info.device)}: {_plain_text(dict(trace.options).get('target', ''))}",
        f"Opts: {_plain_text(', '.join(info.opts)) or 'none'}",
        f"Loops: {_plain_text(', '.join(f'{name} {kind} {size}' for name, kind, size in info.axes))}",
        "",
        "Needs NumPy, and llvmlite or a C compiler: python THIS_FILE [--with llvm|c] [--inputs X.npz] [--save Y.npz]",
        '"""',
        "\n",
    ]
    settings = [
        "\n\n",
        *[f"{name} = {value}  # bound to it in the capture" for name, value in variables.items()],
        "KERNEL = {",
        f'    "name": {info.name!r},',
        "    # buffer: (dtype, elements, is read, is written)",
        f'    "buffers": {_list_buffers(nodes)!r},',
        f'    "variables": {{{", ".join(f"{name!r}: {name}" for name in variables)}}},',
        f'    "extent": {_write_extent(info, variables)},  # of the loop that threads share',
        f'    "flops": {info.flops},',
        f'    "bytes_moved": {info.bytes_moved},',
        f'    "effort": {_find_effort(programs.get("llvm"))!r},',
        f'    "branches": {bool(programs.get("llvm") and programs["llvm"].branches)},',
        "",
    ]
    texts, inserts = ["\n".join(head), "\n".join(settings)], ["shared"]
    for language in ("llvm", "c"):
        texts[-1] += f'    "{language}": '
        source = _text(programs.get(language))
        if _is_raw(source):
            texts[-1] += 'r"""\n'
            inserts.append(language)
            texts.append('"""')
        else:
            texts[-1] += repr(source) if source else '""'
        texts[-1] += ",\n"
    texts[-1] += '}\n\nif __name__ == "__main__":\n    main(KERNEL)\n'
    return KernelScript(info.id, tuple(texts), tuple(inserts))


def _read_body() -> str:
    """Returns the shared code without its docstring, so that `from __future__` stays the first statement."""
    text = BODY.read_text(encoding="utf-8")
    docstring = ast.parse(text).body[0]
    return "\n".join(text.splitlines()[docstring.end_lineno or 0 :]).lstrip("\n")


def _plain_text(content: str) -> str:
    """Returns the text without characters that would end or escape a docstring."""
    printable = "".join(letter if letter.isprintable() else " " for letter in content)
    return printable.replace("\\", "/").replace('"', "'")


def _is_raw(source: str) -> bool:
    """Whether a source text can be quoted as a raw string."""
    return (
        bool(source) and '"""' not in source and not source.endswith(('"', "\\")) and not re.search(r"[\0\r]", source)
    )


def _text(program: Program | None) -> str:
    return "" if program is None else "\n".join(line.text for line in program.lines) + "\n"


def _list_nodes(trace: TraceTables, program: Program) -> list[Node]:
    roots = [node for line in program.lines for node in line.nodes]
    return [trace.nodes[node] for node in toposort(dict.fromkeys(roots), lambda node: trace.nodes[node].src)]


def _list_buffers(nodes: list[Node]) -> dict[str, tuple[str, int, bool, bool]]:
    """Returns (dtype, number of elements, is read, is written) of each buffer, by name, in call order."""
    table = {node.id: node for node in nodes}

    def global_of(index: int) -> Node | None:
        pointer = table[table[index].src[0]] if table[index].src else table[index]
        return pointer if pointer.op == "DEFINE_GLOBAL" else None

    read = {pointer.id for node in nodes if node.op == "LOAD" and node.src and (pointer := global_of(node.src[0]))}
    written = {pointer.id for node in nodes if node.op == "STORE" and node.src and (pointer := global_of(node.src[0]))}
    buffers = {}
    for node in sorted((node for node in nodes if node.op == "DEFINE_GLOBAL"), key=_parse_buffer_position):
        match = re.fullmatch(r"(\w+)\[(\d{1,19})\]", node.detail, re.ASCII)  # the format of descriptions.py
        if match is None:
            raise ReproducerError(
                f"{node.label}: {node.detail!r:.60} is not a buffer; expected a dtype and a size, such as 'float32[64]'"
            )
        buffers[node.label] = (match[1], int(match[2]), node.id in read, node.id in written)
    return buffers


def _parse_buffer_position(node: Node) -> int:
    if not re.fullmatch(r"\d{1,9}", node.arg, re.ASCII):
        raise ReproducerError(f"{node.arg!r:.60} is not a position of a buffer")
    return int(node.arg)


def _bound_variables(trace: TraceTables) -> dict[str, int]:
    """Returns the value to which the capture bound each Variable, by name."""
    bound = {}
    for node in trace.nodes:
        if node.op == "BIND" and (match := re.fullmatch(r"(\w+) = (-?\d{1,19})", node.detail)):
            bound[match[1]] = int(match[2])
    return bound


def _choose_variables(nodes: list[Node], bound: Mapping[str, int]) -> dict[str, int]:
    """Returns the value of each Variable of the kernel: the captured value, else the largest one."""
    values = {}
    for node in nodes:
        if node.op == "DEFINE_VAR":
            match = re.fullmatch(r"-?\d+ ≤ ([A-Za-z_]\w*) ≤ (-?\d{1,19})", node.detail, re.ASCII)
            if match is None or keyword.iskeyword(match[1]) or match[1] in ("KERNEL", "main"):
                raise ReproducerError(f"{node.detail!r:.60} names no Variable that Python could hold")
            values[match[1]] = bound.get(match[1], int(match[2]))
    return dict(sorted(values.items()))


def _write_extent(info: KernelInfo, variables: Mapping[str, int]) -> int | str:
    """Returns the size of the loop that threads share, as a number or as Python arithmetic with the Variables.

    Raises:
        ReproducerError: the size is any other text. Text from an untrusted trace must not become code.
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


def _find_effort(program: Program | None) -> str:
    """Returns LLVM's optimization effort for this program; `script_body.py` maps it to levels."""
    return program.effort if program is not None and program.effort else "full"
