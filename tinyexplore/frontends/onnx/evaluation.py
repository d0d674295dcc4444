"""Computes a graph on Tensors, node by node.

Values that are known before any kernel runs (shapes, and values computed from them) stay in NumPy arrays. So sizes are
plain numbers, and the kernels are those of a program with fixed shapes. If the standard defines an operator by a graph
of other operators, that graph is evaluated.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from tinyexplore.frontends.onnx import operators  # noqa: F401 (fills the table)
from tinyexplore.frontends.onnx.errors import OnnxError, UnsupportedOperator
from tinyexplore.frontends.onnx.listing import OnnxListing, node_text, scope_names
from tinyexplore.frontends.onnx.node import OPERATORS, OnnxNode
from tinyexplore.frontends.onnx.reader import DOMAINS, attributes_of, dense, graphs_of, onnx_package
from tinyexplore.frontends.onnx.values import Array, Value, array_of_proto, number_of, numpy_dtype, shape_of, tensor_of
from tinyexplore.tensor import Tensor

if TYPE_CHECKING:
    from onnx import AttributeProto, FunctionProto, GraphProto, NodeProto

MAX_FOLDED_ELEMENTS = 4096  # most elements of an array that is computed in NumPy
# most nodes that one call evaluates, including those in loops: bounds the time of a hostile model
MAX_STEPS = 1_000_000
MAX_NESTED_CALLS = 32  # most nested function calls
# Operators that compute shapes and indices. They are computed in NumPy if all inputs are small arrays.
FOLDABLE_OPERATORS = frozenset(
    "Abs Add And Cast Ceil Concat ConstantOfShape Div Equal Expand Flatten Floor Gather GatherND Greater GreaterOrEqual"
    " Identity Less LessOrEqual Max Min Mod Mul Neg Not Or Pow Range ReduceMax ReduceMin ReduceProd ReduceSum Reshape"
    " Slice Split Sqrt Squeeze Sub Tile Transpose Unsqueeze Where".split()
)


class NameScope:
    """The values of the names in a graph, and of the names in the surrounding graphs.

    Attributes:
        values: the values by name.
        tensors: copies of arrays as Tensors, made when a kernel first needs them.
        outer: the names of the surrounding graph, or None.
        constants: the graph's initializers, which all evaluations share, or None.
    """

    def __init__(
        self, values: Mapping[str, Value], outer: NameScope | None = None, constants: NameScope | None = None
    ) -> None:
        self.values: dict[str, Value] = dict(values)
        self.tensors: dict[str, Tensor] = {}
        self.outer = outer
        self.constants = constants

    def home(self, name: str) -> NameScope:
        """Returns the scope that defines a name. Raises OnnxError if none does."""
        names: NameScope | None = self
        while names is not None:
            if name in names.values:
                return names
            if names.constants is not None and name in names.constants.values:
                return names.constants
            names = names.outer
        raise OnnxError(f"{name!r} has no value: no earlier node or input defines it")

    def __getitem__(self, name: str) -> Value:
        return self.home(name).values[name]

    def tensor(self, name: str) -> Tensor:
        """Returns the value of a name as a Tensor."""
        scope = self.home(name)
        value = scope.values[name]
        if isinstance(value, Tensor):
            return value
        tensor = scope.tensors.get(name)
        if tensor is None:
            tensor = scope.tensors[name] = tensor_of(value)
        return tensor


class OnnxModule:
    """A module of the model, found by the names of nodes. The explorer shows the modules as a tree.

    The parts are attributes, under the names that the exporter gave them.
    """

    def __init__(self, name: str) -> None:
        self.name = name

    def part(self, name: str) -> OnnxModule:
        """Returns the part of that name. Creates it if it does not exist."""
        parts = vars(self)
        if not isinstance(parts.get(name), OnnxModule):
            parts[name] = OnnxModule(name)
        module: OnnxModule = parts[name]
        return module


class OnnxGraph(OnnxModule):
    """The outermost module, which contains all others."""


class Evaluation:
    """One evaluation of a model.

    Attributes:
        versions: versions of the operator sets, by domain.
        functions: the model's own functions, by domain and name.
        listing: the model's text, or None.
        root: the outermost module.
        callers: functions that stand for the lines of nodes in a traceback, by the address of the node.
        constants: the initializers of graphs in nodes, by the address of the graph.
        read_values: set when elements of a computed Tensor were read: the call then depends on more than shapes.
    """

    def __init__(
        self,
        versions: Mapping[str, int],
        functions: Mapping[tuple[str, str], FunctionProto],
        listing: OnnxListing | None,
        root: OnnxModule,
        callers: dict[int, Callable[..., Any]],
        constants: dict[int, NameScope],
    ) -> None:
        self.versions = versions
        self.functions = functions
        self.listing = listing
        self.root = root
        self.callers = callers
        self.constants = constants
        self.read_values = False
        self.steps = 0
        self.calls = 0

    def graph_of_model(self, graph: GraphProto, names: NameScope) -> list[Value]:
        """Returns the outputs of the outermost graph. Its initializers are in the names around `names`."""
        return self._run_nodes(graph, names)

    def graph(self, graph: GraphProto, names: NameScope) -> list[Value]:
        """Returns the outputs of a graph in a node. Its inputs are in `names`."""
        constants = self.constants.get(id(graph))
        if constants is None:
            values: dict[str, Value] = {tensor.name: array_of_proto(tensor) for tensor in graph.initializer}
            values.update({sparse.values.name: dense(sparse) for sparse in graph.sparse_initializer})
            constants = self.constants[id(graph)] = NameScope(values)
        names.constants = constants
        return self._run_nodes(graph, names)

    def _run_nodes(self, graph: GraphProto, names: NameScope) -> list[Value]:
        last = _find_last_uses(graph)
        for number, node in enumerate(graph.node):
            self.node(node, names, self.versions, None)
            for name in last.get(number, ()):  # drops values that no later node reads
                names.values.pop(name, None)
                names.tensors.pop(name, None)
        return [names[item.name] for item in graph.output]

    def node(
        self,
        node: NodeProto,
        names: NameScope,
        versions: Mapping[str, int],
        attributes_passed: dict[str, AttributeProto] | None,
    ) -> None:
        """Evaluates a node and stores its outputs in `names`. `attributes_passed`: those of the call of a function."""
        self.steps += 1
        if self.steps > MAX_STEPS:
            raise OnnxError(f"more than {MAX_STEPS:,} nodes were evaluated: a loop of this model may not end")
        try:
            if self.listing is not None and id(node) in self.listing.line_of:
                outputs = self._run_at_its_line(node, names, versions, attributes_passed)
            else:
                outputs = self._compute_outputs(node, names, versions, attributes_passed)
        except UnsupportedOperator as error:
            if error.node:
                raise
            raise UnsupportedOperator(
                f"{error} (node: {node_text(node)})", error.operator or node.op_type, node_text(node)
            ) from error
        except OnnxError as error:
            if "(node: " in str(error):
                raise
            raise OnnxError(f"{error} (node: {node_text(node)})") from error
        except (MemoryError, RecursionError):
            raise
        except Exception as error:  # a note on an error in a Tensor function: which node of the model called it
            raise OnnxError(f"{type(error).__name__}: {error} (node: {node_text(node)})") from error
        for name, value in zip(node.output, outputs):
            if name:
                names.values[name] = value

    def _run_at_its_line(
        self,
        node: NodeProto,
        names: NameScope,
        versions: Mapping[str, int],
        attributes_passed: dict[str, AttributeProto] | None,
    ) -> Sequence[Value]:
        """Evaluates a node below a stack frame at the node's line of the text, inside the frames of its modules."""
        assert self.listing is not None
        caller = self.callers.get(id(node))
        if caller is None:
            caller = self.callers[id(node)] = self.listing.caller(node)
        compute: Callable[[], Any] = lambda: self._compute_outputs(node, names, versions, attributes_passed)  # noqa: E731
        module = self.root
        modules = [module]
        for name in scope_names(node):
            module = module.part(name)
            modules.append(module)
        for module in reversed(modules[1:]):
            compute = _nest_in_frame(caller, module, compute)
        outputs: Sequence[Value] = caller(self.root, compute)
        return outputs

    def _compute_outputs(
        self,
        node: NodeProto,
        names: NameScope,
        versions: Mapping[str, int],
        attributes_passed: dict[str, AttributeProto] | None,
    ) -> Sequence[Value]:
        domain, name = DOMAINS.get(node.domain, node.domain), node.op_type
        inputs = [names[item] if item else None for item in node.input]
        while inputs and inputs[-1] is None:
            inputs.pop()
        attributes = attributes_of(node, attributes_passed)
        version = versions.get(domain, 1)
        if any(item.ref_attr_name for item in node.attribute):
            node = _resolve_references(node, attributes)
        model_function = self.functions.get((node.domain, name)) or self.functions.get((domain, name))
        if model_function is not None:
            return self._call_function(model_function, node, inputs, names)
        if domain == "" and name in ("If", "Loop", "Scan", "SequenceMap"):
            return self._run_control(name, attributes, inputs, names)
        constants = [item for item in inputs if isinstance(item, np.ndarray)]
        if (
            domain == ""
            and name in FOLDABLE_OPERATORS
            and len(constants) == len(inputs)
            and all(item.size <= MAX_FOLDED_ELEMENTS for item in constants)
        ):
            folded = self._fold_constants(node, attributes, inputs, version)
            if folded is not None:
                return folded
        function = OPERATORS.get((domain, name))
        if function is None:
            body = self._find_standard_body(node, domain, inputs, version)
            if body is not None:
                return self._call_function(body, node, inputs, names)
            title = f"{domain}.{name}" if domain else name
            raise UnsupportedOperator(f"the operator {title} is not supported", title)
        call = OnnxNode(
            name,
            version,
            attributes,
            inputs,
            [bool(item) for item in node.output],
            lambda index: names.tensor(node.input[index]),
            lambda index: self._to_array(names[node.input[index]]),
        )
        outputs = function(call)
        return outputs if isinstance(outputs, tuple) else (outputs,)

    def _to_array(self, value: Value) -> Array:
        """Returns the elements of a value, computed now if necessary."""
        if isinstance(value, np.ndarray):
            return value
        if not isinstance(value, Tensor):
            raise OnnxError("expected a tensor, found a sequence or nothing")
        self.read_values = True
        return np.asarray(value.numpy()).astype(numpy_dtype(value.dtype))

    def _fold_constants(
        self, node: NodeProto, attributes: Mapping[str, Any], inputs: list[Value], version: int
    ) -> list[Value] | None:
        """Returns the outputs, computed in NumPy by the reference implementation of the `onnx` package; None if that
        fails."""
        if node.op_type in ("ConstantOfShape", "Expand", "Tile") and not _is_small(node.op_type, inputs):
            return None
        from onnx.reference import ReferenceEvaluator  # noqa: PLC0415 (an extra)

        plain = onnx_package().helper.make_node(
            node.op_type,
            [f"i{index}" if value is not None else "" for index, value in enumerate(inputs)],
            [f"o{index}" for index in range(len(node.output))],
        )
        plain.attribute.extend(item for item in node.attribute if item.name in attributes)
        feed = {f"i{index}": value for index, value in enumerate(inputs) if value is not None}
        try:
            with np.errstate(all="ignore"):
                values = ReferenceEvaluator(plain, opsets={"": version}).run(None, feed)
        except Exception:  # an old version of the operator, or elements that do not fit: the Tensor function decides
            return None
        return [np.asarray(value) for value in values]

    # *** functions ***

    def _find_standard_body(
        self, node: NodeProto, domain: str, inputs: list[Value], version: int
    ) -> FunctionProto | None:
        """Returns the graph by which the standard defines the operator, or None."""
        onnx = onnx_package()
        try:
            schema = onnx.defs.get_schema(node.op_type, max_inclusive_version=version, domain=domain)
        except onnx.defs.SchemaError:
            return None
        if schema.has_function:
            body: FunctionProto = schema.function_body
            return body
        if not schema.has_context_dependent_function:
            return None
        versions_up_to = [since for since in schema.context_dependent_function_opset_versions if since <= version]
        if not versions_up_to:
            return None
        data = schema.get_context_dependent_function_with_opset_version(
            max(versions_up_to), node.SerializeToString(), [_type_of(value) for value in inputs]
        )
        if not data:
            return None
        body = onnx.FunctionProto()
        body.ParseFromString(data)
        return body

    def _call_function(
        self, body: FunctionProto, node: NodeProto, inputs: list[Value], names: NameScope
    ) -> list[Value]:
        """Returns the outputs of a call of a function."""
        self.calls += 1
        if self.calls > MAX_NESTED_CALLS:
            raise OnnxError(f"functions call each other more than {MAX_NESTED_CALLS} deep")
        inner = NameScope({"": None, **{name: None for name in body.input}})
        for index, (name, value) in enumerate(zip(body.input, inputs)):
            inner.values[name] = value
            if isinstance(value, np.ndarray) and value.size > MAX_FOLDED_ELEMENTS:  # one shared copy as a Tensor
                inner.values[name] = names.tensor(node.input[index])
        attributes_passed = {item.name: item for item in body.attribute_proto} | self._list_defaults(node)
        attributes_passed |= {item.name: item for item in node.attribute}
        versions = dict(self.versions)
        versions.update({DOMAINS.get(entry.domain, entry.domain): entry.version for entry in body.opset_import})
        for step in body.node:
            self.node(step, inner, versions, attributes_passed)
        self.calls -= 1
        # None: this form of the operator does not compute the output
        return [inner.values.get(name) for name in body.output]

    def _list_defaults(self, node: NodeProto) -> dict[str, AttributeProto]:
        """Returns the standard's defaults for the attributes of an operator."""
        defs = onnx_package().defs
        domain = DOMAINS.get(node.domain, node.domain)
        try:
            schema = defs.get_schema(node.op_type, self.versions.get(domain, 1), domain)
        except defs.SchemaError:  # it is a function of the model
            return {}
        return {name: item.default_value for name, item in schema.attributes.items() if item.default_value.name}

    # *** control flow ***

    def _run_control(
        self, name: str, attributes: Mapping[str, Any], inputs: list[Value], names: NameScope
    ) -> list[Value]:
        if name == "If":
            branch = "then_branch" if bool(self._to_array(inputs[0]).reshape(())) else "else_branch"
            return self.graph(attributes[branch], NameScope({}, names))
        if name == "Loop":
            return self._run_loop(attributes["body"], inputs, names)
        if name == "SequenceMap":
            return self._run_sequence_map(attributes["body"], inputs, names)
        return self._run_scan(attributes, inputs, names)

    def _run_loop(self, body: GraphProto, inputs: list[Value], names: NameScope) -> list[Value]:
        """Evaluates a Loop step by step. Reads the values of its trip count and of its condition in each step."""
        trips = int(self._to_array(inputs[0]).reshape(())) if inputs and inputs[0] is not None else MAX_STEPS
        going = len(inputs) < 2 or inputs[1] is None or bool(self._to_array(inputs[1]).reshape(()))
        carried = list(inputs[2:])
        rows: list[list[Value]] = [[] for _ in range(len(body.output) - 1 - len(carried))]
        step = 0
        while step < trips and going:
            values = [np.array(step, np.int64), np.array(going), *carried]
            inner = NameScope({item.name: value for item, value in zip(body.input, values)}, names)
            outputs = self.graph(body, inner)
            going = bool(self._to_array(outputs[0]).reshape(()))
            carried = outputs[1 : 1 + len(carried)]
            for row, value in zip(rows, outputs[1 + len(carried) :]):
                row.append(value)
            step += 1
        shapes = [_read_declared_shape(item) for item in body.output[1 + len(carried) :]]
        return carried + [
            stack_values(row, 0) if row else np.zeros((0, *shape), dtype) for row, (shape, dtype) in zip(rows, shapes)
        ]

    def _run_scan(self, attributes: Mapping[str, Any], inputs: list[Value], names: NameScope) -> list[Value]:
        """Evaluates a Scan, unrolled: one step for each element of the scanned axes."""
        body, count = attributes["body"], int(attributes["num_scan_inputs"])
        if self.versions.get("", 1) < 9:
            return self._run_scan_8(attributes, inputs, names)
        states = len(inputs) - count
        outs = len(body.output) - states
        carried, scanned = list(inputs[:states]), list(inputs[states:])
        axes = list(attributes.get("scan_input_axes", [0] * count))
        backwards = list(attributes.get("scan_input_directions", [0] * count))
        out_axes = list(attributes.get("scan_output_axes", [0] * outs))
        out_backwards = list(attributes.get("scan_output_directions", [0] * outs))
        length = shape_of(scanned[0])[axes[0]] if scanned else 0
        rows: list[list[Value]] = [[] for _ in range(outs)]
        for step in range(length):
            slices = [
                taken(value, axis, length - 1 - step if is_backward else step)
                for value, axis, is_backward in zip(scanned, axes, backwards)
            ]
            inner = NameScope({item.name: value for item, value in zip(body.input, [*carried, *slices])}, names)
            outputs = self.graph(body, inner)
            carried = outputs[:states]
            for row, value in zip(rows, outputs[states:]):
                row.append(value)
        return carried + [
            stack_values(row[::-1] if is_backward else row, axis)
            for row, axis, is_backward in zip(rows, out_axes, out_backwards)
        ]

    def _run_scan_8(self, attributes: Mapping[str, Any], inputs: list[Value], names: NameScope) -> list[Value]:
        """Evaluates a Scan of operator set 8: a batch of separate sequences."""
        body, count = attributes["body"], int(attributes["num_scan_inputs"])
        if inputs[0] is not None:
            raise UnsupportedOperator("Scan: sequence_lens of operator set 8 is not supported", "Scan")
        states = len(inputs) - 1 - count
        batch = shape_of(inputs[-1])[0]
        later = {**attributes, "scan_input_directions": attributes.get("directions", [0] * count)}
        rows: list[list[Value]] = []
        for number in range(batch):
            self_versions, self.versions = self.versions, {**self.versions, "": 9}
            rows.append(self._run_scan(later, [taken(value, 0, number) for value in inputs[1:]], names))
            self.versions = self_versions
        del states, body
        return [stack_values(list(column), 0) for column in zip(*rows)]

    def _run_sequence_map(self, body: GraphProto, inputs: list[Value], names: NameScope) -> list[Value]:
        """Evaluates a SequenceMap: its body for each element of the first sequence."""
        first = inputs[0]
        if not isinstance(first, list):
            raise OnnxError(f"SequenceMap: the first input is not a sequence, but a {type(first).__name__}")
        results: list[list[Any]] = [[] for _ in body.output]
        for number in range(len(first)):
            values = [value[number] if isinstance(value, list) else value for value in inputs]
            inner = NameScope({item.name: value for item, value in zip(body.input, values)}, names)
            for result, value in zip(results, self.graph(body, inner)):
                result.append(value)
        return list(results)


def _resolve_references(node: NodeProto, attributes: Mapping[str, Any]) -> NodeProto:
    """Returns the node with values in place of references to a function's attributes."""
    onnx = onnx_package()
    resolved = onnx.NodeProto()
    resolved.CopyFrom(node)
    del resolved.attribute[:]
    for item in node.attribute:
        if not item.ref_attr_name:
            resolved.attribute.append(item)
        elif item.name in attributes:
            value = attributes[item.name]
            if isinstance(value, np.ndarray):
                value = onnx.numpy_helper.from_array(value)
            resolved.attribute.append(onnx.helper.make_attribute(item.name, value, attr_type=item.type or None))
    return cast("NodeProto", resolved)


def _is_small(operator: str, inputs: list[Value]) -> bool:
    """Whether the output of an operator has at most MAX_FOLDED_ELEMENTS elements, by the sizes in its last input."""
    sizes = [int(size) for size in np.asarray(inputs[-1]).reshape(-1)]
    factor = int(np.prod(shape_of(inputs[0]), dtype=np.int64)) if operator == "Tile" else 1
    return factor * math.prod(max(size, 1) for size in sizes) <= MAX_FOLDED_ELEMENTS


def _nest_in_frame(caller: Callable[..., Any], module: OnnxModule, compute: Callable[[], Any]) -> Callable[[], Any]:
    return lambda: caller(module, compute)


def taken(value: Value, axis: int, index: int) -> Value:
    """Returns one slice of a tensor along an axis, without that axis."""
    if value is None or isinstance(value, list):
        raise OnnxError("expected a tensor, found a sequence or nothing")
    rank = len(value.shape)
    return value[tuple([slice(None)] * (axis % rank) + [index])]


def stack_values(values: list[Value], axis: int) -> Value:
    """Stacks tensors of one shape along a new axis."""
    if all(isinstance(value, np.ndarray) for value in values):
        return np.stack([np.asarray(value) for value in values], axis)
    first, *others = [tensor_of(value) for value in values]
    return first.stack(*others, dim=axis)


def _read_declared_shape(item: Any) -> tuple[tuple[int, ...], Any]:
    """Returns the declared shape and NumPy dtype of an output. An unknown size counts as 0."""
    onnx = onnx_package()
    tensor = item.type.tensor_type
    dtype = onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type) if tensor.elem_type else np.dtype(np.float32)
    return tuple(size.dim_value for size in tensor.shape.dim), dtype


def _type_of(value: Value) -> bytes:
    """Returns a value's type, as a serialized TypeProto."""
    onnx = onnx_package()
    if value is None or isinstance(value, list):
        return bytes(onnx.TypeProto().SerializeToString())
    proto = onnx.helper.make_tensor_type_proto(number_of(value), list(shape_of(value)))
    return bytes(proto.SerializeToString())


def _find_last_uses(graph: GraphProto) -> dict[int, list[str]]:
    """Returns for each node the names that no later node reads and that are not outputs of the graph."""
    last: dict[str, int] = {}
    for number, node in enumerate(graph.node):
        for name in node.output:
            last.setdefault(name, number)
        for name in _read_by(node):
            if name in last:
                last[name] = number
    for item in graph.output:
        last.pop(item.name, None)
    names_by_use: dict[int, list[str]] = {}
    for name, number in last.items():
        names_by_use.setdefault(number, []).append(name)
    return names_by_use


def _read_by(node: NodeProto) -> set[str]:
    """Returns the names that a node reads, including those that its graphs read from the surrounding graphs."""
    names = set(node.input)
    for graph in graphs_of(node):
        names |= {item.name for item in graph.output}
        for inner in graph.node:
            names |= _read_by(inner)
    return names
