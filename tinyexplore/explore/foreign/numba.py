"""Reads Numba: bytecode, Numba IR after each pass that changes it, LLVM IR after each LLVM pass, assembly.

`record` compiles a function in a process that has Numba; `read` needs no Numba.
"""

from __future__ import annotations

import dis
import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tinyexplore.explore.foreign.dump import Budget, Dump, ForeignError
from tinyexplore.explore.foreign.listings import assembly, remove_debug_data
from tinyexplore.explore.foreign.trace_builder import ForeignTraceBuilder, Operation, Place, sources_of
from tinyexplore.explore.tracefile.model import Level
from tinyexplore.explore.tracefile.trace import Trace
from tinyexplore.util.untrusted_data import JsonLimits, bounded_json

PASSES_FILE = "passes.json"
_MARK = "\t@"  # separates the text of a line from the number of the user's line
_STATEMENT = re.compile(r"^\s+(?:([\w.$]+) = )?(.*)$")
_NAME = re.compile(r"[A-Za-z_$][\w.$]*")
_BINARY = re.compile(r"^[\w.$]+ (?:[-+*/%&|^<>=!@]+|is|in|not in|is not) ")
_GROUPS = {
    "memory": "getitem static_getitem setitem static_setitem setattr del",
    "const": "const global freevar",
    "buffer": "arg",
    "loop": "iternext getiter jump branch pair_first pair_second",
    "control": "return call raise build_tuple build_list",
    "movement": "cast exhaust_iter getattr",
}
_GROUP_OF = {op: group for group, ops in _GROUPS.items() for op in ops.split()}
_LANGUAGES = (
    ("bytecode", "bytecode"),
    ("numba", "Numba IR"),
    ("llvm", "LLVM IR"),
    ("mir", "machine IR"),
    ("asm", "assembly"),
)


def record(f: Callable[..., Any], signature: Any, *, title: str = "") -> Dump:
    """Compiles `f` for a signature, such as `(numba.float32[:],)`, and returns the dumps of Numba and LLVM.

    Raises:
        ModuleNotFoundError: Numba is not installed.
        TypeError: `f` is no plain function.
    """
    import numba  # only `record` needs Numba

    f = getattr(f, "py_func", f)
    if not hasattr(f, "__code__"):
        raise TypeError(f"explore.numba takes a Python function; {f!r} has no bytecode")
    passes: list[tuple[str, float, str]] = []
    modules: dict[str, str] = {}
    with _watch_passes(f.__name__, passes, modules):
        compiled = numba.njit(f, debug=True)
        compiled.compile(signature)
    files = {"bytecode.txt": _disassemble(f)}
    rows = []
    last = ""
    for number, (name, seconds, text) in enumerate(passes):
        file = f"numba/{number:02}.txt" if text and text != last else ""
        rows.append((name, seconds, file))
        if file:
            files[file] = last = text
    files[PASSES_FILE] = json.dumps({"file": f.__code__.co_filename, "passes": rows})
    module = modules.get(f.__name__, "")
    symbols = re.findall(r'^define[^\n]*?@"?(_ZN[\w.$]+)', module, re.MULTILINE)
    symbol = next((name for name in symbols if f.__name__ in name), "")
    files |= _dump_llvm_passes(module, symbol)
    files["assembly.s"] = _extract_function(next(iter(compiled.inspect_asm().values())), symbol)
    files |= sources_of([f.__code__.co_filename])
    return Dump("numba", numba.__version__, title or f.__name__, files)


@contextmanager
def _watch_passes(name: str, passes: list[tuple[str, float, str]], modules: dict[str, str]) -> Iterator[None]:
    """Records Numba's passes on the function `name` inside the `with` block.

    passes: gets (pass, seconds, text) after each pass.
    modules: gets each module before LLVM's optimization.
    """
    from time import perf_counter

    from numba.core import codegen, compiler_machinery

    manager, library = compiler_machinery.PassManager, codegen.CPUCodeLibrary
    run_pass, optimize = manager._runPass, library._optimize_final_module

    def watched_pass(self: Any, index: int, compiler_pass: Any, state: Any) -> Any:
        began = perf_counter()
        result = run_pass(self, index, compiler_pass, state)
        if state.func_id is not None and state.func_id.func_name == name:
            ir = getattr(state, "func_ir", None)
            passes.append((compiler_pass.name(), perf_counter() - began, "" if ir is None else _ir_text(ir)))
        return result

    def watched_optimization(self: Any) -> Any:
        modules.setdefault(self.name, str(self._final_module))
        return optimize(self)

    manager._runPass, library._optimize_final_module = watched_pass, watched_optimization
    try:
        yield
    finally:
        manager._runPass, library._optimize_final_module = run_pass, optimize


def _ir_text(ir: Any) -> str:
    lines = []
    for label, block in sorted(ir.blocks.items()):
        lines.append(f"label {label}:")
        lines += [f"    {' '.join(str(statement).split())}{_MARK}{statement.loc.line}" for statement in block.body]
    return "\n".join(lines)


def _disassemble(f: Any) -> str:
    lines, line = [], 0
    for instruction in dis.get_instructions(f):
        started = instruction.starts_line
        line = started if type(started) is int else getattr(instruction, "line_number", None) or line
        lines.append(
            f"{instruction.offset:6} {instruction.opname:24} {instruction.argrepr}".rstrip() + f"{_MARK}{line}"
        )
    return "\n".join(lines)


def _dump_llvm_passes(module: str, symbol: str) -> dict[str, str]:
    """Returns the dumps of LLVM's passes over Numba's module, from this package's LLVM; see `explore.llvm`."""
    from tinyexplore.explore.analysis.passes import LLVMPassesError, module_passes
    from tinyexplore.explore.analysis.passes.pipeline_run import Pipeline

    if not symbol:
        return {}
    text, locations = remove_debug_data(module)
    try:
        passes = module_passes(text, Pipeline("O3"), symbol)
    except (LLVMPassesError, ValueError) as error:
        return {"llvm/error.txt": str(error)}
    files: dict[str, str] = {}
    selected = 0
    for llvm_pass in passes.changed:
        selected += "Instruction Selection" in llvm_pass.name
        if llvm_pass.stage == "assembly" or selected > 1:  # code generation of the next function begins
            break
        marks = [locations.get(-1 if line.uop is None else line.uop) for line in llvm_pass.lines]
        lines = [
            f"{line.text}{_MARK}{location.line}" if location else line.text
            for line, location in zip(llvm_pass.lines, marks)
        ]
        language = "mir" if llvm_pass.stage == "machine IR" else "llvm"
        files[f"llvm/{llvm_pass.number:03} {llvm_pass.name.replace('/', ' ') or 'LLVM IR'}.{language}.txt"] = "\n".join(
            lines
        )
    return files


def _extract_function(text: str, symbol: str) -> str:
    """Returns the assembly of one function, with the `.file` directives."""
    files = [line for line in text.splitlines() if line.lstrip().startswith(".file")]
    body = text.partition(f"\n{symbol}:\n")[2].partition("\n.Lfunc_end")[0]
    return "\n".join([*files, f"{symbol}:", body])


def recognizes(dump: Dump) -> bool:
    """Whether `record` wrote the dump."""
    return dump.compiler == "numba" and PASSES_FILE in dump.files


def read(dump: Dump, budget: Budget) -> Trace:
    """Returns the trace of a dump. A message of the trace reports each part that cannot be read."""
    levels = (Level("ir", "Numba statement", "Numba statements", "program"),)
    building = ForeignTraceBuilder(dump, budget, compiler="Numba", levels=levels, languages=_LANGUAGES)
    try:
        table = bounded_json(dump.files[PASSES_FILE], JsonLimits(1 << 20, 10_000, 6))
        file, passes = str(table["file"]), [(str(name), float(s), str(text)) for name, s, text in table["passes"]]
    except (LookupError, TypeError, ValueError) as error:
        raise ForeignError(f"{PASSES_FILE} is damaged ({error})") from None
    lines = [
        Operation(text, place=location) for text, location in _split_marks(dump.files.get("bytecode.txt", ""), file)
    ]
    building.text("bytecode", "bytecode", lines, law="Python compiles the function")
    group = building.stage("Numba's passes")
    overhead_us = 0.0
    for name, seconds, text in passes:
        overhead_us += min(max(seconds, 0.0), 1e6) * 1e6
        if text and text not in dump.files:
            building.skip(f"the IR after {name}", "its text is missing")
        elif text:
            statements = list(numba_ir(_split_marks(dump.files[text], file)))
            building.text(
                name, "numba", statements, kind="ir", parent=group, law=_pass_name(name), elapsed_us=overhead_us
            )
            overhead_us = 0.0
    building.close_stage(group)
    _read_llvm(building, file)
    return building.trace()


def _pass_name(name: str) -> str:
    return f"pass {name.replace('_', ' ')} of Numba"


def _read_llvm(building: ForeignTraceBuilder, file: str) -> None:
    """Adds LLVM's passes and the assembly."""
    dump = building.dump
    group = building.stage("LLVM's passes")
    if "llvm/error.txt" in dump.files:
        building.skip("LLVM's passes", dump.files["llvm/error.txt"][:200])
    for name in sorted(name for name in dump.files if name.startswith("llvm/") and name[5:8].isdigit()):
        title = name[9:].removesuffix(".txt")
        language = "mir" if title.endswith(".mir") else "llvm"
        lines = [Operation(text, place=location) for text, location in _split_marks(dump.files[name], file)]
        building.text(title.removesuffix(f".{language}"), language, lines, parent=group, law="a pass of LLVM")
    building.close_stage(group)
    building.text("assembly", "asm", assembly(dump.files.get("assembly.s", "")), law="the code that Numba runs")


def _split_marks(text: str, file: str) -> Iterator[tuple[str, Place | None]]:
    """Yields the lines, each with the position in its mark."""
    for line in text.splitlines():
        clean, _, number = line.partition(_MARK)
        yield clean, Place(file, int(number[:9])) if number.isdigit() and int(number[:9]) else None


def numba_ir(lines: Iterator[tuple[str, Place | None]]) -> Iterator[Operation]:
    """Yields the statements of Numba IR. A second assignment to a name is another value."""
    block = ""
    for text, location in lines:
        if text.startswith("label "):
            block = text.rstrip(":")
            yield Operation(text)
            continue
        match = _STATEMENT.match(text)
        if match is None:
            yield Operation(text, place=location)
            continue
        target, value = match[1] or "", match[2]
        head = value.split("(")[0].split(" ")[0].rstrip(":")
        is_name = _BINARY.match(value) is not None
        op = "binop" if is_name else head if target or head in _GROUP_OF else "setitem" if "] = " in value else head
        keywords = {"args", "func", "kws", "vararg", "target", "Var", "value", "name", op}
        names = tuple(dict.fromkeys(name for name in _NAME.findall(value) if name not in keywords))
        defines = (target,) if target else ()
        group = _GROUP_OF.get(op, "alu")
        if re.fullmatch(r"[\w.$]+", value):
            op = "copy"
        literal = value if group in ("const", "buffer") else ""
        yield Operation(text, op, defines, names, "", None, literal[:120], location, group, (block,) if block else ())


__all__ = ["numba_ir", "read", "recognizes", "record"]
