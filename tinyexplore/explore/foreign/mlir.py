"""Reads MLIR: the text of a module after each pass, as `--mlir-print-ir-after-all`, Triton and xDSL print it.

A dump is such an output, or a folder with it and files of later languages (`.llir`, `.ptx`, `.s`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from tinyexplore.explore.foreign.dump import Budget, Dump
from tinyexplore.explore.foreign.listings import assembly, is_library, llvm_ir
from tinyexplore.explore.foreign.trace_builder import ForeignTraceBuilder, Operation, Place
from tinyexplore.explore.tracefile.model import Level
from tinyexplore.explore.tracefile.trace import Trace

_HEADER = re.compile(
    r"^// -----// (?:(?P<internal>.+? internal) )?IR Dump (?P<when>Before|After)"
    r"(?: ?(?:Pass )?(?P<failed>Failed))?:? (?P<name>[^\s:(]+)?:? ?(?P<rest>.*)$"
)
_FIRED = re.compile(
    r"^// -----// Pattern (?P<name>[\w.<>]+) \((?P<file>[^():]+):(?P<line>\d+)\)(?: (?P<text>.*?))? //----- //$"
)
_ALIAS = re.compile(r"^#(loc\d*) = (loc\(.*\))\s*$")
_OPERATION = re.compile(
    r"^\s*(?:(%[\w$.\-]+(?::\d+)?(?:, %[\w$.\-]+(?::\d+)?)*) = )?"
    r'"?([A-Za-z_][\w$]*\.[\w$.]+|module|return|func|call)\b"?(.*)$'
)
_MODULE = re.compile(r'^\s*(?:module\b|builtin\.module|func\.func|#loc|"builtin)', re.MULTILINE)
_BLOCK = re.compile(r"^\s*\^([\w$.\-]+)(?:\((.*)\))?:")
_SYMBOL = re.compile(r"@([\w$.\-]+)")
_VALUE = re.compile(r"%[\w$.\-]+")
_TYPE = re.compile(r"[^(){}]*(?:\([^()]*\)[^(){}]*)*")  # up to the bracket that closes the enclosing one, or a block
_SHAPED = re.compile(r"(?:tensor|memref|vector|memdesc)<((?:\d+x|\?x)*)([^,<>x]*(?:<[^<>]*>)?)")
_PARTS = re.compile(r'loc\(|"(?:[^"\\]|\\.)*"|#loc\d*|[()\[\]<>,]|:\d+:\d+(?: to (?:\d+)?:\d+)?|\w+|\S')
_LANGUAGES = (
    ("mlir", "MLIR"),
    ("ttir", "Triton IR"),
    ("ttgir", "Triton GPU IR"),
    ("llvmdialect", "LLVM dialect"),
    ("llir", "LLVM IR"),
    ("ptx", "PTX"),
    ("asm", "assembly"),
)
_LATER = (".llir", ".ll", ".ptx", ".s", ".amdgcn", ".json", ".py", ".source")
_GROUPS = (
    ("memory", ("load", "store", "alloc", "copy", "addptr", "getelementptr", "subview")),
    ("reduce", ("reduce", "dot", "matmul", "contract", "generic")),
    ("loop", ("for", "while", "forall", "parallel", "br", "cond_br", "yield", "condition")),
    ("const", ("constant", "mlir")),
    ("movement", ("splat", "broadcast", "reshape", "expand_dims", "trans", "convert_layout", "bitcast", "extract")),
    ("control", ("module", "func", "return", "call", "if", "yield")),
)


@dataclass(frozen=True)
class Section:
    """One printed module.

    when: "Before", "After", "Pattern" or "".
    name: the pass, or the pattern.
    law: the options of the pass, or the effect of the pattern.
    text: the module.
    rule: file, line and text of the pattern.
    """

    when: str
    name: str
    law: str
    text: str
    rule: tuple[str, int, str] | None = None


def recognizes(dump: Dump) -> bool:
    """Whether a text of the dump is MLIR."""
    return dump.compiler in ("", "mlir", "xdsl", "triton") and any(
        "// -----// " in text[: 1 << 16] or _MODULE.search(text[: 1 << 14])
        for name, text in dump.files.items()
        if not name.endswith(_LATER)
    )


def read(dump: Dump, budget: Budget) -> Trace:
    """Returns the trace of a dump: each pass that changes the module, then the later languages."""
    levels = (Level("op", "operation", "operations", "program"),)
    compiler = {"xdsl": "xDSL", "triton": "Triton"}.get(dump.compiler) or _find_compiler(dump)
    building = ForeignTraceBuilder(dump, budget, compiler=compiler, levels=levels, languages=_LANGUAGES)
    texts = {name: text for name, text in dump.files.items() if not name.startswith("sources/")}
    passes = [name for name in texts if not name.endswith(_LATER)]
    printed = [name for name in passes if "// -----// " in texts[name]]
    group = building.stage("passes" if printed else "module")
    for name in sorted(printed or passes, key=_sort_key):
        read_passes(building, texts[name], group, subject="")
    building.close_stage(group)
    for name in sorted((name for name in texts if name.endswith(_LATER[:5])), key=_sort_key):
        language = {"ll": "llir", "s": "asm", "amdgcn": "asm"}.get(suffix := name.rpartition(".")[2], suffix)
        lines = (llvm_ir if language == "llir" else assembly)(texts[name])
        label = dict(_LANGUAGES)[language]
        building.text(label, language, lines, law=f"{compiler} translates the module to {label}")
    return building.trace()


def _find_compiler(dump: Dump) -> str:
    return "Triton" if any(" tt.func" in text for text in dump.files.values()) else "MLIR"


def _sort_key(name: str) -> tuple[int, str]:
    """Returns the sort key of a file: the order of the languages of one kernel."""
    suffix = name.rpartition(".")[2]
    order = ("ttir", "ttgir", "mlir", "txt", "ll", "llir", "ptx", "s", "amdgcn")
    return (order.index(suffix) if suffix in order else 3, name)


def read_passes(building: ForeignTraceBuilder, text: str, parent: int, subject: str) -> None:
    """Adds a stage for each pass that changed the module, with the patterns that fired in it as its steps."""
    firings: list[tuple[int, list[Operation]]] = []
    rules: dict[tuple[str, int, str], int] = {}
    previous = Section("", "input", "the module as it came", "")
    for section in sections(text):
        lines = operations(section.text, building.budget)
        if section.rule is not None:
            if section.rule not in rules:
                rules[section.rule] = building.rule(*section.rule)
            firings.append((rules[section.rule], lines))
            continue
        about = previous if section.when == "Before" else section
        building.text(
            about.name,
            _find_language(section.text),
            lines,
            kind="op",
            subject=subject,
            parent=parent,
            law=about.law,
            firings=firings,
        )
        firings = []
        previous = section if section.when != "After" or previous.when != "Before" else previous


def _find_language(text: str) -> str:
    if "tt.func" in text:
        return "ttgir" if "#ttg." in text or " ttg." in text else "ttir"
    return "llvmdialect" if "llvm.func" in text else "mlir"


def sections(text: str) -> Iterator[Section]:
    """Yields the modules of a dump, in order. Text before the first header counts if it looks like a module."""
    head: Section | None = None
    lines: list[str] = []
    for line in [*text.splitlines(), "// -----// "]:
        if not line.startswith("// -----// "):
            lines.append(line)
            continue
        body = "\n".join(lines)
        if head is not None and body.strip() and not body.lstrip().startswith("<<"):
            yield replace(head, text=body)
        elif head is None and _MODULE.search(body):
            yield Section("", "module", "the module as it came", body)
        lines = []
        head = _read_header(line)


def _read_header(line: str) -> Section:
    """Reads the header of a dump: the pass, and whether the dump is before or after it."""
    if fired := _FIRED.match(line):
        rule = (fired["file"], int(fired["line"]), fired["text"] or fired["name"])
        return Section("Pattern", fired["name"], fired["text"] or "", "", rule)
    match = _HEADER.match(line)
    if match is None:
        return Section("", "", "", "")
    options = re.sub(r"\s*\('[\w.]+' operation.*$|\s*//-+ //$", "", match["rest"] or "")
    name = match["name"] or options or match["internal"] or "pass"
    name = f"{match['internal'].removesuffix(' internal')}: {name}" if match["internal"] else name
    when = "After" if match["internal"] else match["when"]
    return Section(when, f"{name} (failed)" if match["failed"] else name, " ".join(options.split()), "")


def operations(text: str, budget: Budget) -> list[Operation]:
    """Parses the operations of a module. The location of an operation with regions is after its last brace."""
    locations = Locations(text)
    operations_read: list[Operation] = []
    opened: list[int] = []  # lines with an open brace
    calls: dict[int, str] = {}  # line → the function that it calls
    function = ""  # value names are local to a function
    names: list[str] = []  # the enclosing functions and blocks
    for line in text.splitlines():
        if not line.strip() or line.lstrip().startswith("//") or _ALIAS.match(line):
            continue
        budget.check_depth(len(opened))
        clean, location = locations.split(line[: budget.limits.columns])
        stripped = clean.strip()
        if stripped.startswith("}") and opened:
            index = opened.pop()
            names = names[: len(opened)]
            if location is not None and operations_read[index].op:
                operations_read[index] = replace(operations_read[index], place=location)
        operation = _read_operation(clean, location, tuple(names))
        if operation.op.endswith("func"):
            function = f"{len(operations_read)} "
        scoped = [tuple(function + name for name in values) for values in (operation.defines, operation.uses)]
        operations_read.append(replace(operation, defines=scoped[0], uses=scoped[1]))
        symbol = _SYMBOL.search(clean) if "call" in operation.op or operation.op.endswith("func") else None
        if stripped.endswith("{"):
            opened.append(len(operations_read) - 1)
            names.append(symbol[1] if symbol else operation.op or "region")
        elif symbol:
            calls[len(operations_read) - 1] = symbol[1]
    called_at: dict[str, Place] = {}  # function → its first call
    for index, operation in enumerate(operations_read):
        operations_read[index] = operation = _use_call_place(operation, called_at)
        if index in calls and operation.place is not None:
            called_at.setdefault(calls[index], operation.place)
    return operations_read


def _use_call_place(operation: Operation, called_at: dict[str, Place]) -> Operation:
    """Returns the operation; if it has no location, it gets that of the first call of its function."""
    if operation.place is not None or not operation.op or operation.op == "block":
        return operation
    location = next((called_at[name] for name in operation.region if name in called_at), None)
    return operation if location is None else replace(operation, place=location)


def _read_operation(line: str, location: Place | None, region: tuple[str, ...]) -> Operation:
    """Reads one line of MLIR as an operation."""
    if block := _BLOCK.match(line):
        arguments = tuple(_VALUE.findall(block[2] or ""))
        return Operation(line, "block", arguments, (), arg=block[1], place=location, group="control", region=region)
    match = _OPERATION.match(line)
    if match is None:
        return Operation(line, place=location, region=region)
    defines = tuple(name.partition(":")[0] for name in (match[1] or "").split(", ") if name)
    values = tuple(_VALUE.findall(match[3]))
    name = match[2]
    if name.endswith("func"):
        defines, values = values, ()
    kinds = line.rpartition(" : ")[2].rpartition("-> ")[2] if " : " in line else ""
    shaped = _SHAPED.search(kinds)
    shape = tuple(size if size == "?" else int(size[:9]) for size in shaped[1].split("x") if size) if shaped else None
    dtype = (shaped[2] if shaped else _TYPE.findall(kinds)[0]).strip()[:40]
    attributes = _VALUE.sub("", match[3].partition(" : ")[0]).strip(" ,")[:200]
    return Operation(line, name, defines, values, dtype, shape, attributes, location, _group(name), region)


def _group(name: str) -> str:
    last = name.rpartition(".")[2]
    return next((group for group, names in _GROUPS if last in names), "alu")


class Locations:
    """The locations of one module: `#loc7 = loc("file":3:8)`, and those next to operations."""

    def __init__(self, text: str) -> None:
        self._texts = {match[1]: match[2] for line in text.splitlines() if (match := _ALIAS.match(line))}
        self._known: dict[str, list[Place]] = {}

    def split(self, line: str) -> tuple[str, Place | None]:
        """Splits a line into its text without locations and the position of its last location.

        For inlined calls the position is the user's.
        """
        start = line.find(" loc(")
        if start < 0:
            return line.rstrip(), None
        clean, location, index = line[:start], None, start
        while index >= 0:
            end = _find_closing(line, index + 4)
            locations = self._list_places(line[index + 1 : end + 1], 0)
            location = next((candidate for candidate in locations if not is_library(candidate.file)), None)
            following = line.find(" loc(", end)
            clean += line[end + 1 : following if following >= 0 else None]
            index = following
        return clean.rstrip(), location

    def _list_places(self, text: str, depth: int) -> list[Place]:
        """Returns all positions in a location, the innermost call first."""
        if text in self._known or depth > 20:
            return self._known.get(text, [])
        self._known[text] = []  # for a location that refers to itself
        locations: list[Place] = []
        parts = _PARTS.findall(text)
        for number, part in enumerate(parts):
            if part.startswith("#loc") and (named := self._texts.get(part[1:])):
                locations += self._list_places(named, depth + 1)
            elif part.startswith('"') and number + 1 < len(parts) and parts[number + 1].startswith(":"):
                locations.append(_parse_place(part[1:-1], parts[number + 1]))
        self._known[text] = locations[:64]
        return locations[:64]


def _parse_place(file: str, numbers: str) -> Place:
    """Parses a location: `:3:8`, `:3:8 to :13` or `:3:8 to 4:2`. Columns count from 0 in a frame."""
    begin, _, end = numbers.partition(" to ")
    line, column = (min(int(digits[:9]), 10**8) for digits in begin[1:].split(":"))
    last, _, last_column = end.partition(":")
    span = (line, column, int(last[:9] or line), int(last_column[:9])) if end else None
    return Place(file, line, "", span)


def _find_closing(line: str, start: int) -> int:
    """Returns the position of the bracket that closes the one at `start`, or the end of the line."""
    depth = 0
    in_string = False
    for index in range(start, len(line)):
        character = line[index]
        if character == '"' and line[index - 1] != "\\":
            in_string = not in_string
        elif not in_string:
            depth += (character == "(") - (character == ")")
            if depth == 0:
                return index
    return len(line)


__all__ = ["operations", "read", "read_passes", "recognizes", "sections"]
