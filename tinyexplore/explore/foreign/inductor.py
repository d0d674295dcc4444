"""Reads TorchInductor logs of `TORCH_TRACE=FOLDER`: the graphs and the code for each graph that Dynamo compiled.

With `INDUCTOR_PROVENANCE=1` the log also has the nodes that each kernel computes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tinyexplore.explore.foreign.dump import Budget, Dump
from tinyexplore.explore.foreign.trace_builder import ForeignTraceBuilder, Operation, Place
from tinyexplore.explore.tracefile.model import Level
from tinyexplore.explore.tracefile.trace import Trace
from tinyexplore.util.untrusted_data import JsonLimits, UntrustedError, bounded_json

_RECORD = re.compile(r"^[VDIWEC]\d{4} \S+ +\S+ \S+\] (\{.*)$")
_GRAPHS = {  # the name of a record → (part of the compilation, title, description)
    "dynamo_output_graph": ("", "Dynamo", "Dynamo traces Python to a graph"),
    "after_pre_grad_graph": ("", "pre-grad passes", "Inductor's passes before gradients"),
    "aot_joint_graph": ("", "joint graph", "AOTAutograd: ATen operations, forward and backward"),
    "aot_forward_graph": ("forward", "forward graph", "the partitioner cuts the joint graph"),
    "aot_inference_graph": ("forward", "ATen graph", "AOTAutograd: ATen operations"),
    "aot_backward_graph": ("backward", "backward graph", "the partitioner cuts the joint graph"),
    "inductor_post_grad_graph": ("?", "post-grad passes", "Inductor's passes after the partition"),
    "after_post_grad_graph": ("?", "post-grad passes", "Inductor's passes after the partition"),
}
_MAPPINGS = "inductor_provenance_tracking_node_mappings"
_STACKS = "inductor_provenance_tracking_kernel_stack_traces"
_FILE = re.compile(r"# (?:Backward of forward node: )?File: (.+?):(\d+) in (\S+), code:")
_ASSIGNED = re.compile(r'^\s+(\w+)(?:: "?(\w+)\[([^\]]*)\][^"=]*"?)? = (.*)$')
_INPUT = re.compile(r'(\w+): "(\w+)\[([^\]]*)\]')
_CALL = re.compile(r"^(?:torch\.ops\.)?([A-Za-z_][\w.]*)\(")
_WORD = re.compile(r"[A-Za-z_]\w*")
_OPERAND = re.compile(r"(?<![\w.])[A-Za-z_]\w*(?!\w|\s*=(?!=))")
_DEFINED = re.compile(r"^(\w+) = async_compile\.(\w+)\(")
_TRACED = re.compile(r'File "([^"]+)", line (\d+), in (\S+)')
_GROUPS = {
    "reduce": "mm bmm addmm amax amin sum mean max min convolution matmul @ var_mean argmax",
    "movement": "permute expand view reshape squeeze unsqueeze slice cat transpose t clone _to_copy",
    "const": "full scalar_tensor arange zeros ones",
    "memory": "copy_ index gather scatter embedding",
}
_GROUP_OF = {op: group for group, ops in _GROUPS.items() for op in ops.split()}
_LANGUAGES = (("fx", "FX graph"), ("python", "generated code"), ("c", "C++"), ("triton", "Triton"))


@dataclass
class Record:
    """One record of the log.

    kind: the name of the record; for an artifact, the name of the artifact.
    data: the parsed record.
    lines: its payload.
    """

    kind: str
    data: Mapping[str, Any]
    lines: list[str] = field(default_factory=list)

    @property
    def compile_id(self) -> str:
        """Returns the id of the graph that Dynamo compiled: "0/0"."""
        return f"{self.data.get('frame_id')}/{self.data.get('frame_compile_id')}"


def recognizes(dump: Dump) -> bool:
    """Whether a text of the dump is a log of TORCH_TRACE."""
    return any(_RECORD.match(text.partition("\n")[0]) is not None for text in dump.files.values())


def read(dump: Dump, budget: Budget) -> Trace:
    """Returns the trace of a log. A message of the trace reports each record that cannot be read."""
    levels = (Level("fx", "FX node", "FX nodes", "program"),)
    records: dict[str, list[Record]] = {}
    version, damaged = dump.version, 0
    for text in dump.files.values():
        if _RECORD.match(text.partition("\n")[0]) is None:
            continue
        for record in read_records(text, budget):
            if not record.kind:
                damaged += 1
            elif record.kind == "torch_version":
                version = str(_read_json(record).get("pytorch_version", version))
            elif record.data.get("frame_id") is not None:
                records.setdefault(record.compile_id, []).append(record)
    dump = Dump(dump.compiler, version.partition("+")[0], dump.title or "TORCH_TRACE", dump.files, dump.facts)
    panels = ("rewrites", "history", "kernels", "lines")
    building = ForeignTraceBuilder(
        dump, budget, compiler="TorchInductor", levels=levels, languages=_LANGUAGES, panels=panels
    )
    for compile_id, records_of_graph in records.items():
        _Compilation(building, compile_id).read(records_of_graph)
    if damaged:
        building.skip(f"{damaged} records", "they are not JSON")
    if not building.texts:
        building.skip("graphs", f"the log has none of {', '.join(_GRAPHS)}")
    return building.trace()


def read_records(text: str, budget: Budget) -> Iterator[Record]:
    """Yields the records of a log, each with its payload; a record that is not JSON has no kind."""
    current: Record | None = None
    limits = JsonLimits(4 << 20, 100_000, 40)
    for line in text.splitlines():
        if line.startswith("\t"):
            if current is not None and current.kind != "chromium_event":
                budget.spend("lines")
                current.lines.append(line[1:])
            continue
        match = _RECORD.match(line)
        if match is None:
            continue
        if current is not None:
            yield current
        current = Record("", {})
        try:
            data = bounded_json(match[1], limits)
        except UntrustedError:
            continue
        kind = next((name for name in data if name in _KINDS), "other")
        artifact = data.get("artifact")
        current = Record(str(artifact.get("name", "")) if isinstance(artifact, dict) else kind, data)
    if current is not None:
        yield current


_KINDS = frozenset((*_GRAPHS, "chromium_event", "inductor_output_code", "artifact"))


def _read_json(record: Record) -> dict[str, Any]:
    """Returns the payload of a record as an object; empty if it is none."""
    try:
        data = bounded_json("\n".join(record.lines) or "{}", JsonLimits(8 << 20, 400_000, 20))
    except UntrustedError:
        return {}
    return data if isinstance(data, dict) else {}


class _Compilation:
    """One graph that Dynamo compiled: its stages, forward and backward."""

    def __init__(self, building: ForeignTraceBuilder, compile_id: str) -> None:
        self._b = building
        self._id = compile_id
        self._names: dict[str, str] = {}  # (part and level) + node → key

    def read(self, records: Sequence[Record]) -> None:
        """Adds the stages in the order of the log."""
        kinds = {record.kind for record in records}
        if not kinds & (_GRAPHS.keys() | {"inductor_output_code"}):
            return
        group = self._b.stage(f"graph {self._id}")
        parts = ["forward", *(["backward"] if "aot_backward_graph" in kinds else [])]
        post, codes = iter(parts), iter(parts)
        mappings = [_read_json(record) for record in records if record.kind == _MAPPINGS]
        stacks = [_read_json(record) for record in records if record.kind == _STACKS]
        coded = 0
        for record in records:
            if record.kind in _GRAPHS:
                part, title, law = _GRAPHS[record.kind]
                part = next(post, "other") if part == "?" else part
                self._add_graph(record, group, part, title, law)
            elif record.kind == "inductor_output_code":
                mapping = mappings[coded] if coded < len(mappings) else {}
                self._add_code(
                    record, group, next(codes, "other"), mapping, stacks[coded] if coded < len(stacks) else {}
                )
                coded += 1
        if coded and not mappings:
            self._b.note("the log does not say which kernel computes which nodes: record with INDUCTOR_PROVENANCE=1")
        self._b.close_stage(group)

    def _add_graph(self, record: Record, group: int, part: str, title: str, law: str) -> None:
        prefix = f"{self._id} {part} {'post' if title.startswith('post') else 'pre' if not part else title}:"
        lines = list(read_fx(record.lines, prefix))
        self._b.text(
            f"{title}{f' ({part})' if part and title.startswith('post') else ''}",
            "fx",
            lines,
            kind="fx",
            subject=f"{self._id} {part}",
            follows=f"{self._id} ",
            parent=group,
            law=law,
        )

    def _add_code(
        self, record: Record, group: int, part: str, mapping: Mapping[str, Any], stacks: Mapping[str, Any]
    ) -> None:
        """Adds the generated code; lines of a kernel link to the nodes that it computes."""
        nodes_of = {
            str(name).rpartition(":")[0]: tuple(f"{self._id} {part} post:{node}" for node in nodes)
            for name, nodes in _yield_table_rows(mapping.get("cppCodeToPost"))
        }
        place_of = {str(name).rpartition(":")[0]: _find_place(texts) for name, texts in _yield_table_rows(stacks)}
        self._add_kernels(record.lines, nodes_of)
        lines = [
            Operation(line, place=place_of.get(kernel), of=nodes_of.get(kernel, ()))
            for line, kernel in _assign_kernels(record.lines, [*nodes_of, *place_of])
        ]
        stage = self._b.text(
            f"code ({part})",
            "python",
            lines,
            subject=f"{self._id} {part} code",
            parent=group,
            law="Inductor fuses nodes and writes kernels",
        )
        for before, after in _yield_table_rows(mapping.get("preToPost")):
            for later in after:
                self._b.connect(f"{self._id}  pre:{before}", f"{self._id} {part} post:{later}", "Inductor", stage)

    def _add_kernels(self, lines: Sequence[str], nodes_of: Mapping[str, tuple[str, ...]]) -> None:
        """Adds each kernel with its source text."""
        for start, line in enumerate(lines):
            match = _DEFINED.match(line)
            if match is None:
                continue
            end = next(
                (line_number for line_number in range(start + 1, len(lines)) if lines[line_number].startswith("''')")),
                len(lines),
            )
            language = "triton" if match[2] == "triton" else "c"
            kernel = self._b.kernel(match[1], "Inductor")
            nodes = self._b.nodes_of(nodes_of.get(match[1], ()))
            self._b.program(kernel, language, [(text, nodes) for text in lines[start + 1 : end]])


def _yield_table_rows(value: object) -> Iterator[tuple[str, list[str]]]:
    """Yields the rows of an object whose values are lists of texts."""
    if isinstance(value, Mapping):
        for name, items in value.items():
            if isinstance(items, list) and all(isinstance(item, str) for item in items):
                yield str(name), items


def _find_place(texts: Sequence[str]) -> Place | None:
    matches = [match for text in texts if (match := _TRACED.search(text))]
    return Place(matches[0][1], int(matches[0][2][:9]), matches[0][3]) if matches else None


def _assign_kernels(lines: Sequence[str], kernels: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yields the lines with the kernel that each defines or calls, "" for none."""
    inside = ""
    kernel_names = set(kernels)
    for line in lines:
        if match := _DEFINED.match(line):
            inside = match[1]
        called = next((name for name in re.findall(r"[A-Za-z_][\w.]*", line) if name in kernel_names), "")
        yield line, inside or called
        if line.startswith("''')"):
            inside = ""


def read_fx(lines: Sequence[str], prefix: str) -> Iterator[Operation]:
    """Yields the lines of an FX graph. Comments with a file name give the positions.

    prefix: the prefix of the nodes' keys.
    """
    location: Place | None = None
    in_return = False
    for number, line in enumerate(lines):
        if match := _FILE.search(line):
            location = Place(match[1], int(match[2][:9]), match[3])
            continue
        if not line.strip() or line.startswith(" # graph id"):
            continue
        inputs = _INPUT.findall(line) if " = " not in line else []
        if inputs:
            name, dtype, sizes = inputs[0]
            names = tuple(input_name for input_name, *_ in inputs)
            yield Operation(
                line, "placeholder", names, (), dtype, _parse_sizes(sizes), ", ".join(names), group="buffer"
            )
        elif line.lstrip().startswith("return"):
            statement = line if line.rstrip().endswith(")") else "\n".join(lines[number : number + 500])
            code = re.sub(r"#.*", "", statement)
            yield Operation(line, "output", (), tuple(_WORD.findall(code))[1:], group="control")
            in_return = not line.rstrip().endswith(")")
        elif (match := _ASSIGNED.match(line)) and not in_return:
            yield _read_assignment(line, match, location, prefix)
        else:
            yield Operation(line)


def _read_assignment(line: str, match: re.Match[str], location: Place | None, prefix: str) -> Operation:
    """Reads one statement of generated code or of an FX graph as an operation."""
    name, dtype, sizes, value = match.groups()
    value = value.partition(";  ")[0]
    call = _CALL.match(value)
    name_parts = (call[1] if call else "").removesuffix(".default").split(".")
    symbol = re.search(r" ([-+*/@%]|//|\*\*) ", value)
    op = (
        name_parts[1]
        if name_parts[0] == "aten" and len(name_parts) > 1
        else name_parts[-1] or (symbol[1] if symbol else "copy")
    )
    text = re.sub(r"(;  (?:\w+ = )+None)$", "", line)
    uses = tuple(_OPERAND.findall(value))
    arg = (
        value[:120]
        if op == "copy"
        else re.sub(r"\b(?!\d)[A-Za-z_]\w*\b(?!\s*=)", "", value[value.find("(") :] if call else "").strip("(), ")[:120]
    )
    group = _GROUP_OF.get(op, "alu")
    shape = _parse_sizes(sizes or "")
    return Operation(text, op, (name,), uses, dtype or "", shape, arg, location, group, (), (prefix + name,))


def _parse_sizes(text: str) -> tuple[int | str, ...]:
    parts = [size.strip() for size in text.split(",") if size.strip()]
    return tuple(int(size[:12]) if size.isdigit() else size[:20] for size in parts)


__all__ = ["read_fx", "read", "read_records", "recognizes"]
