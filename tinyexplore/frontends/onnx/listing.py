"""Writes a model as text, one node per line, and code with the same lines, to which stack frames point.

The text is that of `onnx.printer`, without large constants and initializers. If a name is a path
("encoder/layer.0/MatMul:0"), a line shows its shortest unique ending, and the path at the end of the line. A node's
line is compiled to a call at that position, so that tracebacks, profilers and the explorer show the node's line as they
show Python's.
"""

from __future__ import annotations

import ast
import linecache
from collections.abc import Callable, Iterable, Iterator, Mapping
from keyword import iskeyword
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from tinyexplore.frontends.onnx.reader import graphs_of, onnx_package

if TYPE_CHECKING:
    from onnx import GraphProto, ModelProto, NodeProto, ValueInfoProto

MAX_PRINTED_ELEMENTS = 8  # most elements of a constant to print
WIDEST = 400  # most characters of a line
STACK = "pkg.torch.onnx.stack_trace"  # metadata in which PyTorch's exporter writes the Python lines of a node
SCOPES = "pkg.torch.onnx.name_scopes"
ROOT = "__root__"


class OnnxListing:
    """The text of a model.

    Attributes:
        file: the name under which the text is a source file.
        text: the lines.
        line_of: the line of each node, by the address of its NodeProto, counted from 1.
    """

    def __init__(self, model: ModelProto, name: str) -> None:
        self.file = f"<{name}>"
        self.lines: list[str] = []
        self.line_of: dict[int, int] = {}
        self._protos: list[Any] = []  # kept alive, because their addresses are keys
        self._short = short_names(_yield_names(model.graph))
        for entry in model.opset_import:
            self.lines.append(f"# opset {entry.domain or 'ai.onnx'} {entry.version}")
        if model.producer_name:
            self.lines.append(
                f"# made by {_to_plain(model.producer_name)} {_to_plain(model.producer_version)}".rstrip()
            )
        self._write_graph(model.graph, "", model.graph.name or "model")
        for function in model.functions:
            self.lines += ["", f"function {_to_plain(function.name)}({', '.join(map(_to_plain, function.input))}) {{"]
            for node in function.node:
                self._write_node(node, "  ")
            self.lines.append("}  # -> " + ", ".join(map(_to_plain, function.output)))
        self.text = "\n".join(self.lines) + "\n"
        # without a modification time, so that `linecache.checkcache` keeps it although the file does not exist
        linecache.cache[self.file] = (len(self.text), None, [line + "\n" for line in self.lines], self.file)

    def close(self) -> None:
        """Removes the text from Python's cache of source files."""
        linecache.cache.pop(self.file, None)

    def _write_graph(self, graph: GraphProto, indent: str, name: str) -> None:
        initial = {tensor.name for tensor in graph.initializer}
        takes = ", ".join(_write_declaration(item, self._short) for item in graph.input if item.name not in initial)
        self.lines.append(f"{indent}{_to_plain(name)}({takes}) {{")
        for node in graph.node:
            self._write_node(node, indent + "  ")
        outputs = ", ".join(_write_declaration(item, self._short) for item in graph.output)
        self.lines.append(f"{indent}}}  # -> {outputs}")

    def _write_node(self, node: NodeProto, indent: str) -> None:
        self._protos.append(node)
        self.line_of[id(node)] = len(self.lines) + 1
        text = node_text(node, self._short)
        origin = next((entry.value for entry in node.metadata_props if entry.key == STACK), "")
        path = next((_to_plain(name) for name in node.output if self._short.get(name, name) != name), "")
        if last := _find_last_frame(origin) or path:
            text += f"  # {last}"
        self.lines.append(indent + text)
        for inner in graphs_of(node):
            self._write_graph(inner, indent + "  ", inner.name or "graph")

    def caller(self, node: NodeProto) -> Callable[[Any, Callable[[], Any]], Any]:
        """Returns a function of (module, compute) that calls `compute` at the node's line.

        Its first parameter is called `self`, like a method's, because the explorer finds the node's module by that
        name.
        """
        line = self.line_of[id(node)]
        text = self.lines[line - 1]
        begin = text.find(f" = {node.op_type}")  # the expression after the output names
        start = len(text) - len(text.lstrip()) if begin < 0 else len(text[: begin + 3].encode())
        end = len(text.partition("  # ")[0].encode())
        name = node.op_type if node.op_type.isidentifier() and not iskeyword(node.op_type) else "node"
        function = ast.parse(f"def {name}(self, compute): return compute()").body[0]
        tree = ast.Module([function], [])
        for part in ast.walk(tree):
            if isinstance(part, (ast.expr, ast.stmt, ast.arg)):  # put all of it at the position of the node
                part.lineno = part.end_lineno = line
                part.col_offset, part.end_col_offset = start, end
        space: dict[str, Any] = {"__name__": self.file}
        exec(compile(tree, self.file, "exec"), space)  # the names are checked above; the code only calls `compute`
        caller_function: Callable[[Any, Callable[[], Any]], Any] = space[name]
        return caller_function


def node_text(node: NodeProto, short: Mapping[str, str] = MappingProxyType({})) -> str:
    """Returns a node as one line: outputs, operator, attributes and inputs. `short`: the texts of names."""
    onnx = onnx_package()
    outputs_text, arguments_text = (
        ", ".join(_to_plain(short.get(name, name)) or '""' for name in names) for names in (node.input, node.output)
    )
    bare = onnx.NodeProto()
    bare.op_type, bare.domain = node.op_type, node.domain
    bare.output.append("result")
    bare.attribute.extend(node.attribute)
    for attribute in bare.attribute:
        kind = attribute.type
        if kind in (onnx.AttributeProto.GRAPH, onnx.AttributeProto.GRAPHS):
            _replace(attribute, "below")
        elif kind == onnx.AttributeProto.TENSOR:
            dims = list(attribute.t.dims)
            count = 1
            for size in dims:
                count *= size
            if count > MAX_PRINTED_ELEMENTS or attribute.t.data_location == 1:
                _replace(attribute, f"{onnx.TensorProto.DataType.Name(attribute.t.data_type).lower()}{dims}")
    graph = onnx.GraphProto()
    graph.name = "g"
    graph.node.append(bare)
    try:
        text = onnx.printer.to_text(graph).partition("{")[2].rpartition("}")[0]
    except Exception:  # the attribute is malformed, so only its name is shown
        return f"{arguments_text} = {_to_plain(node.op_type)}({outputs_text})"
    operator = " ".join(_to_plain(text).split()).partition(" = ")[2].removesuffix("()").rstrip()
    line = f"{arguments_text} = {operator} ({outputs_text})"
    return line if len(line) <= WIDEST else line[: WIDEST - 1] + "…"


def short_names(names: Iterable[str]) -> dict[str, str]:
    """Shortens names that are paths to their shortest ending that is unique."""
    remaining, short, depth = [name for name in dict.fromkeys(names) if name], {}, 1
    while remaining:
        ends: dict[str, list[str]] = {}
        for name in remaining:
            ends.setdefault("/".join(name.split("/")[-depth:]), []).append(name)
        for end, full_names in ends.items():
            if len(full_names) == 1:
                short[full_names[0]] = end
        depth += 1
        remaining = [name for full_names in ends.values() if len(full_names) > 1 for name in full_names]
    return short


def _yield_names(graph: GraphProto) -> Iterator[str]:
    """Yields all names of values in a graph and the graphs inside it."""
    yield from (item.name for item in (*graph.input, *graph.initializer))
    for node in graph.node:
        yield from (*node.input, *node.output)
        for inner in graphs_of(node):
            yield from _yield_names(inner)


def _replace(attribute: Any, text: str) -> None:
    """Replaces the value of an attribute by a text."""
    name = attribute.name
    attribute.Clear()
    attribute.name, attribute.type, attribute.s = name, 3, text.encode()


def _write_declaration(item: ValueInfoProto, short: Mapping[str, str]) -> str:
    """Returns a name with its type: "x: float[1, 3, height]"."""
    name = _to_plain(short.get(item.name, item.name))
    onnx = onnx_package()
    kind = item.type.WhichOneof("value")
    if kind != "tensor_type":
        return f"{name}: {(kind or 'unknown').replace('_type', '')}"
    tensor = item.type.tensor_type
    names = {value: key.lower() for key, value in onnx.TensorProto.DataType.items()}
    sizes = [_to_plain(size.dim_param) or "?" if size.WhichOneof("value") != "dim_value" else str(size.dim_value)
             for size in tensor.shape.dim]  # fmt: skip
    shape = f"[{', '.join(sizes)}]" if tensor.HasField("shape") else ""
    return f"{name}: {names.get(tensor.elem_type, '?')}{shape}"


def _find_last_frame(stack: str) -> str:
    """Returns the innermost line of a Python stack as text: "model.py:12 in forward"."""
    frames = [line.strip() for line in stack.splitlines() if line.strip().startswith("File ")]
    if not frames:
        return ""
    file, _, rest = frames[-1].removeprefix("File ").partition(", line ")
    line, _, function = rest.partition(", in ")
    return _to_plain(f"{file.strip(chr(34)).rpartition('/')[2]}:{line}" + (f" in {function}" if function else ""))


def _to_plain(text: str) -> str:
    """Returns untrusted text on one line, without control characters."""
    return "".join(char if char.isprintable() else " " for char in text)


def scope_names(node: NodeProto) -> Iterator[str]:
    """Yields the modules of a node, outermost first: from the exporter's metadata, or from a name that is a path.

    "/encoder/layer.0/MatMul" is in "encoder" and "layer.0".
    """
    for entry in node.metadata_props:
        if entry.key == SCOPES:
            yield from [part.strip(" '\"") for part in entry.value.strip("[]").split(",")][1:-1]
            return
    name = node.name.partition(";")[0]  # a converter joins the names of nodes that it merges
    yield from [part for part in name.split("/")[:-1] if part and part != ROOT]
