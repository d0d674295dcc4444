"""Reads JAX and XLA: jaxpr, StableHLO, HLO after each pass that changes it, LLVM IR of each kernel, assembly.

`read` accepts the dumps of `record`, and any folder of `XLA_FLAGS=--xla_dump_to=FOLDER --xla_dump_hlo_pass_re=.*`.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from tinyexplore.explore.foreign import mlir
from tinyexplore.explore.foreign.dump import DUMP_LIMITS, Budget, Dump
from tinyexplore.explore.foreign.listings import assembly, is_library, llvm_ir
from tinyexplore.explore.foreign.machine_code import disassemble
from tinyexplore.explore.foreign.trace_builder import ForeignTraceBuilder, Operation, Place, sources_of
from tinyexplore.explore.tracefile.model import Level
from tinyexplore.explore.tracefile.trace import Trace

_OPTIONS = {"xla_dump_hlo_pass_re": ".*", "xla_dump_hlo_as_text": True}
_SNAPSHOT = re.compile(
    r"(?:^|/)(?P<module>module_\d+\.[^/]+?)\.(?P<order>before_optimizations|\d{4}\.[^/]+|cpu_after_optimizations)\.txt$"
)
_PASS = re.compile(r"^\d+\.(?P<pipeline>.*?)\.after_(?P<name>.*?)(?:\.before_.*)?$")
_KERNEL = re.compile(r"(?:^|/)(module_\d+\.[^/]+?)\.([^./]+)_kernel_module\.(ir-no-opt\.ll|ir-with-opt\.ll|s)$")
_BUFFERS = re.compile(r"(?:^|/)(module_\d+\.[^/]+?)\.cpu_after_optimizations-buffer-assignment\.txt$")
_INSTRUCTION = re.compile(
    r"^\s*(?P<root>ROOT )?%?(?P<name>[\w.\-]+) = (?P<type>\(.*?\)|\w+\[[^\]]*\](?:\{[^}]*\})?) "
    r"(?P<op>[\w\-]+)\((?P<rest>.*)$"
)
_COMPUTATION = re.compile(r"^(?:ENTRY )?%?([\w.\-]+) (?:\(.*)?\{$")
_CALLED = re.compile(r"(?:calls|to_apply|body|condition)=%?([\w.\-]+)")
_ATTRIBUTE = re.compile(
    r"((?:dimensions|lhs_contracting_dims|rhs_contracting_dims|kind|custom_call_target|direction|slice)=(?:\{[^}]*\}|[^,\s]*))"
)
_LOCATION = re.compile(
    r"^(\d+) \{file_name_id=(\d+) function_name_id=(\d+) line=(\d+) end_line=(\d+) column=(\d+) end_column=(\d+)\}"
)
_EQUATION = re.compile(r"^\s+((?:[a-z_]\w*:[^\s=]+ ?)+)= (\w+)(.*)$")
_SOURCE = re.compile(r"\s*# (?:(\S+):(\d+):(\d+) \((.*)\)\s*)?$")
_GROUPS = {
    "reduce": "dot reduce convolution reduce-window dot_general reduce_max reduce_sum conv_general_dilated",
    "buffer": "parameter lambda",
    "const": "constant iota",
    "movement": "broadcast reshape transpose bitcast slice concatenate pad broadcast_in_dim convert",
    "control": "fusion call while conditional tuple get-tuple-element custom-call pjit jit",
    "memory": "copy dynamic-slice dynamic-update-slice gather scatter",
}
_GROUP_OF = {op: group for group, ops in _GROUPS.items() for op in ops.split()}
_LANGUAGES = (
    ("jaxpr", "jaxpr"),
    ("mlir", "StableHLO"),
    ("hlo", "HLO"),
    ("buffers", "buffer assignment"),
    ("llvm", "LLVM IR"),
    ("asm", "assembly"),
)


def record(f: Callable[..., Any], *args: Any, title: str = "") -> Dump:
    """Compiles `f` for these arguments, and returns the dumps of JAX and XLA.

    Raises:
        ModuleNotFoundError: JAX is not installed.
    """
    import jax  # only `record` needs JAX

    traced = jax.jit(f).trace(*args)
    lowered = traced.lower()
    stablehlo = lowered.as_text(debug_info=True)
    files = {"jaxpr.txt": traced.jaxpr.pretty_print(source_info=True), "stablehlo.mlir": stablehlo}
    with tempfile.TemporaryDirectory() as folder:
        lowered.compile(compiler_options={"xla_dump_to": folder, **_OPTIONS})
        dumped = Dump.load(folder, DUMP_LIMITS).files
        for path in sorted(Path(folder).glob("*.obj-file.*.o")):
            if text := disassemble(path):
                files[f"xla/{path.name.replace('.obj-file', '').removesuffix('o')}s"] = text
    files |= {f"xla/{name}": text for name, text in _skip_repetitions(dumped)}
    files |= sources_of(file for file in re.findall(r'loc\("([^"]+\.py)"', stablehlo) if not is_library(file))
    return Dump("jax", jax.__version__, title or getattr(f, "__name__", "jax"), files)


def _skip_repetitions(files: Any) -> Iterable[tuple[str, str]]:
    """Yields the files that `read` needs, without snapshots that equal the previous one."""
    last: dict[str, str] = {}
    for name in sorted(files, key=_sort_key):
        if match := _SNAPSHOT.search(name):
            body = files[name].partition("\n%")[2] or files[name]
            if last.get(match["module"]) == body:
                continue
            last[match["module"]] = body
        elif not (_KERNEL.search(name) or _BUFFERS.search(name)):
            continue
        yield name, files[name]


def _sort_key(name: str) -> tuple[str, int, str]:
    match = _SNAPSHOT.search(name)
    order = match["order"] if match else ""
    return (match["module"] if match else name, {"b": 0, "c": 2}.get(order[:1], 1), order)


def recognizes(dump: Dump) -> bool:
    """Whether `dump` is a dump of XLA."""
    return dump.compiler == "jax" or any(_SNAPSHOT.search(name) for name in dump.files)


def read(dump: Dump, budget: Budget) -> Trace:
    """Returns the trace of a dump. A message of the trace reports each part that cannot be read."""
    levels = [
        Level("jaxpr", "equation", "equations", "program"),
        Level("op", "StableHLO operation", "StableHLO operations", "program"),
        Level("hlo", "HLO instruction", "HLO instructions", "program"),
    ]
    building = ForeignTraceBuilder(
        dump, budget, compiler="JAX/XLA", levels=levels, languages=_LANGUAGES, panels=("rewrites", "history", "kernels")
    )
    files = dump.files
    if "jaxpr.txt" in files:
        lines = list(read_jaxpr(files["jaxpr.txt"]))
        building.text("jaxpr", "jaxpr", lines, kind="jaxpr", law="JAX traces the function")
    if "stablehlo.mlir" in files:
        lines = mlir.operations(files["stablehlo.mlir"], budget)
        building.text("StableHLO", "mlir", lines, kind="op", law="JAX lowers the jaxpr to StableHLO")
    snapshots = sorted((name for name in files if _SNAPSHOT.search(name)), key=_sort_key)
    for module in dict.fromkeys(match["module"] for name in snapshots if (match := _SNAPSHOT.search(name))):
        group = building.stage(f"HLO passes of {module.partition('.')[2]}")
        for name in snapshots:
            match = _SNAPSHOT.search(name)
            if match is None or match["module"] != module:
                continue
            budget.check_time()
            label, law = _label(match["order"])
            lines = list(read_hlo(files[name]))
            building.text(label, "hlo", lines, kind="hlo", subject="", parent=group, law=law)
        building.close_stage(group)
        _read_kernels(building, module)
    if not snapshots:
        building.skip("HLO", "the dump has no module_*.txt; give --xla_dump_hlo_pass_re=.* with --xla_dump_to")
    return building.trace()


def _label(order: str) -> tuple[str, str]:
    """Returns the name and the description of a snapshot."""
    match = _PASS.match(order)
    if order == "before_optimizations":
        return "conversion to HLO", "XLA converts StableHLO to HLO"
    if match is None:
        return order.replace("_", " "), "a snapshot of XLA's CPU compiler"
    return f"{match['name']}", f"pass {match['name']} of XLA's pipeline {match['pipeline']}"


def _read_kernels(building: ForeignTraceBuilder, module: str) -> None:
    """Adds the buffer assignment, and each kernel's LLVM IR before and after LLVM with its assembly."""
    files = building.dump.files
    for name in files:
        if (match := _BUFFERS.search(name)) and match[1] == module:
            lines = [_read_buffer_line(line) for line in files[name].splitlines()]
            law = "XLA gives each value memory"
            building.text("buffer assignment", "buffers", lines, subject=f"{module} buffers", law=law)
    kernels: dict[str, dict[str, str]] = {}
    for name in files:
        if (match := _KERNEL.search(name)) and match[1] == module:
            kernels.setdefault(match[2], {})[match[3]] = files[name]
    for title, texts in kernels.items():
        kernel = building.kernel(title, "XLA CPU")
        roots = _find_roots(building, title)
        nodes = (*building.nodes_of((f"hlo:{title}",)), *roots)
        group = building.stage(title, kernel=kernel, before=roots, after=roots)
        steps = (
            ("ir-no-opt.ll", "XLA's LLVM IR", "llvm", "XLA writes the kernel as LLVM IR"),
            ("ir-with-opt.ll", "LLVM's passes", "llvm", "LLVM optimizes the kernel"),
            ("s", "assembly", "asm", "the machine code that XLA made, disassembled"),
        )
        for suffix, label, language, law in steps:
            if suffix in texts:
                lines = (assembly if language == "asm" else llvm_ir)(texts[suffix])
                if language == "asm":
                    building.program(kernel, language, [(line.text, nodes) for line in lines])
                building.text(label, language, lines, subject=title, parent=group, kernel=kernel, law=law, of=nodes)


def _find_roots(building: ForeignTraceBuilder, kernel: str) -> tuple[int, ...]:
    """Returns the result nodes of the computation that a kernel's instruction calls, if any."""
    regions = [set(region.nodes) for region in building.regions]
    roots: dict[int, None] = {}
    for node in building.nodes_of((f"hlo:{kernel}",)):
        around = set().union(*(nodes for nodes in regions if node in nodes))
        roots.update(dict.fromkeys(source for source in building.nodes[node].src if source not in around))
    return tuple(roots)


def _read_buffer_line(line: str) -> Operation:
    match = re.match(r"\s*value: <\d+ ([\w.\-]+) @", line)
    return Operation(line, of=(f"hlo:{match[1]}",) if match else ())


def read_hlo(text: str) -> Iterable[Operation]:
    """Yields the lines of an HLO module, without its tables of positions."""
    frames = _read_frame_places(text)
    roots: dict[str, str] = {}
    computation = ""
    for line in text.splitlines():
        if match := _COMPUTATION.match(line):
            computation = match[1]
            yield Operation(line)
            continue
        match = _INSTRUCTION.match(line)
        if match is None or not computation:
            if line.startswith(("HloModule", "}")):
                yield Operation(line)
            continue
        if match["root"]:
            roots[computation] = match["name"]
        yield _read_instruction(line, match, computation, roots, frames)


def _read_instruction(
    line: str, match: re.Match[str], computation: str, roots: dict[str, str], frames: dict[str, Place]
) -> Operation:
    """Reads one instruction of HLO as an operation."""
    operands, _, attributes = match["rest"].partition(")")
    values = tuple(re.findall(r"%([\w.\-]+)", operands))
    called = tuple(roots[name] for name in _CALLED.findall(attributes) if name in roots)
    shaped = re.match(r"(\w+)\[([\d,]*)\]", match["type"])
    shape = tuple(int(size[:12]) for size in shaped[2].split(",") if size) if shaped else None
    is_literal = match["op"] in ("constant", "parameter")
    frame = re.search(r"stack_frame_id=(\d+)", attributes)
    return Operation(
        re.sub(r", metadata=\{[^}]*\}", "", line),
        match["op"],
        (match["name"],),
        (*values, *called),
        shaped[1] if shaped else match["type"][:40],
        shape,
        "; ".join(filter(None, (operands if is_literal else "", *_ATTRIBUTE.findall(attributes)))),
        frames.get(frame[1]) if frame else None,
        _GROUP_OF.get(match["op"], "alu"),
        (computation,),
        tuple(
            f"hlo:{name}"
            for name in (match["name"], f"{match['name']}_computation", *_find_called_computations(attributes))
        ),
    )


def _find_called_computations(attributes: str) -> list[str]:
    """Returns the computations that an instruction calls, with and without number suffix (kernels use the latter)."""
    names = _CALLED.findall(attributes)
    return [*names, *(re.sub(r"\.\d+$", "", name) for name in names)]


def _read_frame_places(text: str) -> dict[str, Place]:
    """Returns the positions of a module's stack frames, by frame id."""
    head, _, tables = text.partition("FunctionNames")
    files = dict(re.findall(r'^(\d+) "([^"]+)"$', head, re.MULTILINE))
    functions = dict(re.findall(r'^(\d+) "([^"]+)"$', tables.partition("FileLocations")[0], re.MULTILINE))
    location_of: dict[str, Place] = {}
    for line in tables.splitlines():
        if match := _LOCATION.match(line):
            number, file, function, *spans = match.groups()
            first, last, column, end = (int(digits[:9]) for digits in spans)
            if file in files:
                location_of[number] = Place(files[file], first, functions.get(function, ""), (first, column, last, end))
    frames = re.findall(r"^(\d+) \{file_location_id=(\d+)", tables, re.MULTILINE)
    return {frame: location_of[place_number] for frame, place_number in frames if place_number in location_of}


def read_jaxpr(text: str) -> Iterable[Operation]:
    """Yields the lines of a jaxpr without the positions of equations.

    A long equation has its operands on its last line.
    """
    lines = text.splitlines()
    around: list[tuple[int, Place | None]] = []  # (indentation, position) of the equations that contain the line
    for number, line in enumerate(lines):
        source = _SOURCE.search(line)
        clean = _SOURCE.sub("", line).rstrip()
        indentation = len(clean) - len(clean.lstrip())
        while around and around[-1][0] >= indentation:
            around.pop()
        location = around[-1][1] if around else None
        if source and source[1]:
            location = Place(source[1], int(source[2][:9]), source[4])
        around.append((indentation, location))
        match = _EQUATION.match(clean)
        if "lambda " in clean and match is None:
            names = tuple(re.findall(r"([a-z_]\w*):\w+\[", clean))
            yield Operation(clean, "lambda", names, (), group="buffer", arg=str(number))
            continue
        if match is None:
            yield Operation(clean, place=location)
            continue
        last = match[3] if match[3].count("[") == match[3].count("]") else _join_operand_lines(lines, number)
        defined = re.findall(r"([a-z_]\w*):(\w+)\[([^\]]*)\]", match[1])
        dtype, sizes = (defined[0][1], defined[0][2]) if defined else ("", "")
        shape = tuple(int(size[:12]) if size.isdigit() else size for size in sizes.split(",") if size)
        uses = tuple(re.findall(r"(?<![\w:.])([a-z_]\w*)(?![\w:=\[])", last.rpartition("]")[2]))
        names = tuple(name for name, *_ in defined)
        yield Operation(clean, match[2], names, uses, dtype, shape, "", location, _GROUP_OF.get(match[2], "alu"))


def _join_operand_lines(lines: list[str], start: int) -> str:
    """Returns the line on which the brackets of an equation close."""
    depth = 0
    for line in lines[start : start + 400]:
        depth += line.count("[") - line.count("]")
        if depth <= 0:
            return _SOURCE.sub("", line)
    return ""


__all__ = ["read_hlo", "read_jaxpr", "read", "recognizes", "record"]
