"""A loaded model: a function of arrays or Tensors by the names of its inputs."""

from __future__ import annotations

import os
import weakref
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tinyexplore.device import Buffer, Device
from tinyexplore.dtype import DType, dtypes
from tinyexplore.frontends.onnx.errors import OnnxError
from tinyexplore.frontends.onnx.evaluation import MAX_FOLDED_ELEMENTS, Evaluation, NameScope, OnnxGraph, OnnxModule
from tinyexplore.frontends.onnx.listing import OnnxListing, scope_names
from tinyexplore.frontends.onnx.reader import DOMAINS, array_in, dense, read_model
from tinyexplore.frontends.onnx.values import (
    Array,
    Value,
    array_dtype,
    check_shape,
    dtype_of_number,
    numpy_dtype,
    tensor_of,
)
from tinyexplore.jit import TinyJit
from tinyexplore.lazy import LazyBuffer
from tinyexplore.tensor import Tensor

if TYPE_CHECKING:
    from onnx import ModelProto, ValueInfoProto

RANDOM_INT = 2  # random integer inputs are below this: valid as an index and as a flag
MAX_FIXED_ELEMENTS = 64  # most elements of an integer input whose values may select a program
MAX_CAPTURED_SHAPES = 8  # most input shapes for which a captured program is kept


@dataclass(frozen=True)
class ModelInput:
    """An input of a model.

    Attributes:
        name: its name.
        dtype: the dtype of its elements.
        shape: a size is a number, or the name of a size that the caller chooses ("" if the model gives no name).
            None: the model does not declare the rank.
    """

    name: str
    dtype: DType
    shape: tuple[int | str, ...] | None

    def __str__(self) -> str:
        sizes = "…" if self.shape is None else ", ".join(str(size) or "?" for size in self.shape)
        return f"{self.name}: {self.dtype.name}[{sizes}]"


class Model:
    """An ONNX model as a function: `model(x)`, `model(input_ids=ids, attention_mask=mask)`.

    The first call with inputs of certain shapes evaluates the graph on Tensors. Later calls replay its kernels, unless
    the model reads elements of its intermediate tensors (a condition of an If, the boxes of NonMaxSuppression).

    Attributes:
        name: the name of the file or of the graph.
        inputs: the inputs of a call, in order.
        outputs: the names of the results.
        text: the model as text, one node per line.
        parameters: the initializers that kernels read, by name.
    """

    def __init__(self, proto: ModelProto, folder: Path | None = None, name: str = "") -> None:
        self.proto = proto
        self.name = name or proto.graph.name or "model.onnx"
        graph = proto.graph
        self._versions = {DOMAINS.get(entry.domain, entry.domain): entry.version for entry in proto.opset_import}
        self._versions.setdefault("", 1)
        self._functions = {(function.domain, function.name): function for function in proto.functions}
        self._listing = OnnxListing(proto, self.name)
        constants: dict[str, Value] = {tensor.name: array_in(tensor, folder) for tensor in graph.initializer}
        constants.update({initializer.values.name: dense(initializer) for initializer in graph.sparse_initializer})
        self._constants = NameScope(constants)
        self._root = OnnxGraph(self.name)
        self._callers: dict[int, Any] = {}
        self._graph_constants: dict[int, NameScope] = {}
        self._replayed: dict[Any, TinyJit[Any] | None] = {}
        # set after a call showed that elements of small integer inputs decide the computation
        self._read_inputs = False
        self.inputs = tuple(_read_input(item) for item in graph.input if item.name not in constants)
        self._defaults = {item.name for item in graph.input if item.name in constants}
        self.outputs = tuple(item.name for item in graph.output)
        self._place_parameters()
        weakref.finalize(self, self._listing.close)

    @property
    def text(self) -> str:
        return self._listing.text

    @property
    def parameters(self) -> Mapping[str, Tensor]:
        return self._constants.tensors

    def _place_parameters(self) -> None:
        """Creates Tensors of the initializers that kernels read, and puts each into the module that reads it."""
        vars(self._root)["parameters"] = self._constants.tensors
        for node in self.proto.graph.node:
            module: OnnxModule = self._root
            for part in scope_names(node):
                module = module.part(part)
            for name in node.input:
                value = self._constants.values.get(name)
                if isinstance(value, np.ndarray) and (
                    value.dtype.kind not in "iubOSU" or value.size > MAX_FOLDED_ELEMENTS
                ):
                    with suppress(OnnxError):  # the type has no dtype here: an error only if a kernel reads it
                        tensor = self._constants.tensor(name)
                        if module is not self._root:
                            vars(module).setdefault(name.rpartition(".")[2] or name, tensor)

    def __call__(self, *values: Any, **named: Any) -> Any:
        """Returns the outputs for these inputs: one Tensor, or a tuple with one Tensor per output of the model.

        Args:
            values: Tensors, arrays or numbers, in the order of `inputs`.
            named: the same by name; also other values for initializers that are declared as inputs.

        Raises:
            TypeError: an input is missing, unknown, or given twice.
            OnnxError: an input has another rank, size or dtype than the model declares.
            UnsupportedOperator: the model needs an operator that this front end lacks.
        """
        return _make_result(self._call(self._bind(values, named)))

    def _bind(self, values: Sequence[Any], named: Mapping[str, Any]) -> dict[str, Value]:
        """Checks the inputs and returns them by name."""
        if len(values) > len(self.inputs):
            raise TypeError(f"{self.name} takes {len(self.inputs)} inputs; {len(values)} were given")
        by_name: dict[str, Any] = dict(zip((item.name for item in self.inputs), values))
        for name, value in named.items():
            if name in by_name:
                raise TypeError(f"{self.name}: the input {name!r} was given twice")
            by_name[name] = value
        declared = {item.name: item for item in self.inputs}
        if unknown := sorted(set(by_name) - set(declared) - self._defaults):
            raise TypeError(f"{self.name} has no input {unknown[0]!r}; its inputs: {', '.join(map(str, self.inputs))}")
        if missing := [item for item in self.inputs if item.name not in by_name]:
            raise TypeError(f"{self.name}: the input {missing[0]} is missing")
        sizes: dict[str, tuple[int, str]] = {}
        return {name: _check_input(declared.get(name), value, sizes) for name, value in by_name.items()}

    def _evaluate(
        self, inputs: Mapping[str, Value], fixed: Mapping[str, Array] | None = None
    ) -> tuple[list[Value], bool]:
        """Evaluates the graph. Returns the outputs, and whether elements of a computed Tensor were read on the way.

        Inputs become Tensors. Those in `fixed` stay arrays, so values that depend only on them are constants.
        """
        run = Evaluation(
            self._versions, self._functions, self._listing, self._root, self._callers, self._graph_constants
        )
        values = {name: tensor_of(value) if isinstance(value, np.ndarray) else value for name, value in inputs.items()}
        names = NameScope({**values, **(fixed or {})}, self._constants)
        return run.graph_of_model(self.proto.graph, names), run.read_values

    def _call(self, inputs: Mapping[str, Value]) -> list[Value]:
        """Returns the outputs, replayed if possible, else evaluated.

        If the elements of a small integer input decide the computation, there is a program for each of its values.
        """
        fixed = self._list_fixed(inputs) if self._read_inputs else {}
        tensors = {name: value for name, value in inputs.items() if name not in fixed}
        if not tensors or any(value is None or isinstance(value, list) for value in tensors.values()):
            return self._evaluate(inputs)[0]
        key = (
            tuple((name, value.shape, value.dtype, _device_of(value)) for name, value in tensors.items()),  # type: ignore[union-attr, arg-type]
            tuple((name, value.tobytes()) for name, value in fixed.items()),
        )
        if key not in self._replayed:
            computed, reads = self._evaluate(inputs, fixed)
            if reads and not self._read_inputs and self._list_fixed(inputs):
                self._read_inputs = True
                return self._call(inputs)
            fits = not reads and all(isinstance(value, Tensor) for value in computed)
            while len(self._replayed) >= MAX_CAPTURED_SHAPES:
                self._replayed.pop(next(iter(self._replayed)))
            self._replayed[key] = self._find_capture(tuple(tensors), fixed) if fits else None
            return computed
        replayed = self._replayed[key]
        if replayed is None:
            return self._evaluate(inputs, fixed)[0]
        # an array shares its memory with the caller
        with_data = [tensor_of(value).contiguous().realize() for value in tensors.values()]
        outputs = [_copy_to_own_memory(output) for output in replayed(*with_data)]
        Tensor.realize(*outputs)
        return list(outputs)

    def _list_fixed(self, inputs: Mapping[str, Value]) -> dict[str, Array]:
        """Returns the elements of the small inputs of integers and booleans."""
        return {
            name: value if isinstance(value, np.ndarray) else np.asarray(value.numpy())
            for name, value in inputs.items()
            if isinstance(value, (Tensor, np.ndarray)) and _is_small_int(value)
        }

    def _find_capture(self, names: tuple[str, ...], fixed: Mapping[str, Array]) -> TinyJit[Any]:
        def program(*values: Tensor) -> list[Tensor]:
            outputs = [tensor_of(value) for value in self._evaluate(dict(zip(names, values)), fixed)[0]]
            Tensor.realize(*outputs)
            return outputs

        return TinyJit(program)

    def random_inputs(
        self, sizes: Mapping[str, int] | None = None, seed: int = 0, without: Collection[str] = ()
    ) -> dict[str, Tensor]:
        """Returns random inputs of the declared shapes: normally distributed floats, integers 0 and 1.

        Args:
            sizes: values for the sizes that the model leaves open, by their names; the others are 1.
            seed: the seed of NumPy's generator.
            without: names of inputs that need no value.

        Raises:
            OnnxError: an input has no declared shape, or `sizes` names a size that no input has.
        """
        sizes = dict(sizes or {})
        open_sizes = {size for item in self.inputs for size in item.shape or () if isinstance(size, str)}
        if unknown := sorted(set(sizes) - open_sizes):
            names = ", ".join(sorted(filter(None, open_sizes))) or "none"
            raise OnnxError(f"{self.name} has no open size {unknown[0]!r}; it has: {names}")
        generator = np.random.default_rng(seed)
        inputs: dict[str, Tensor] = {}
        for item in self.inputs:
            if item.name in without:
                continue
            if item.shape is None:
                raise OnnxError(f"the input {item.name!r} declares no shape: give it a value")
            shape = check_shape(tuple(sizes.get(size, 1) if isinstance(size, str) else size for size in item.shape))
            if dtypes.is_float(item.dtype):
                values = generator.standard_normal(shape, np.float32)
            else:
                values = generator.integers(0, RANDOM_INT, shape).astype(np.int64)
            inputs[item.name] = tensor_of(np.asarray(values)).cast(item.dtype).realize()
        return inputs

    def __repr__(self) -> str:
        takes = ", ".join(map(str, self.inputs))
        count = sum(tensor.numel() for tensor in self.parameters.values())
        return (
            f"{self.name}: ({takes}) → {', '.join(self.outputs)};"
            f" {len(self.proto.graph.node):,} nodes, {count:,} parameters, operator set {self._versions['']}"
        )


def load(source: str | os.PathLike[str] | bytes | ModelProto) -> Model:
    """Loads an ONNX model: `model = load("model.onnx"); y = model(x)`.

    Args:
        source: a path, the bytes of a file, or an `onnx.ModelProto`.

    Raises:
        FileNotFoundError: there is no such file.
        OnnxError: the file is not a model, is malformed, exceeds a limit, or its data lies outside its folder.
        ImportError: the package `onnx` is missing.
    """
    proto, folder = read_model(source)
    name = Path(source).name if isinstance(source, (str, os.PathLike)) else ""
    return Model(proto, folder, name)


def _read_input(item: ValueInfoProto) -> ModelInput:
    """Returns the declaration of an input: name, dtype and shape."""
    kind = item.type.WhichOneof("value")
    if kind != "tensor_type":
        return ModelInput(item.name, dtypes.void, None)
    tensor = item.type.tensor_type
    if not tensor.HasField("shape"):
        return ModelInput(item.name, dtype_of_number(tensor.elem_type), None)
    shape = tuple(
        int(size.dim_value)
        if size.WhichOneof("value") == "dim_value" and size.dim_value >= 0
        else (size.dim_param if size.dim_param.isidentifier() else "")
        for size in tensor.shape.dim
    )
    return ModelInput(item.name, dtype_of_number(tensor.elem_type), shape)


def _copy_to_own_memory(output: Tensor) -> Tensor:
    """Copies an output of a replay, because the next replay writes into the same memory.

    On a CPU the copy takes a few microseconds. A kernel that copies takes about 50.
    """
    node = output.lazydata
    buffer = node.buffer
    on_cpu = buffer is not None and not Device[buffer.device].target.has_local
    if buffer is None or not on_cpu or buffer.size != node.size:
        return output.clone()
    copy = Buffer(buffer.device, buffer.size, buffer.dtype).copyin(buffer.memoryview())
    return Tensor(LazyBuffer.from_buffer(copy, node.shape))


def _check_input(declared: ModelInput | None, value: Any, sizes: dict[str, tuple[int, str]]) -> Value:
    """Checks an input against its declaration. Returns it as a Tensor, an array, or a list of these.

    `sizes`: the open sizes that earlier inputs fixed, by name.
    """
    if isinstance(value, list) and any(isinstance(item, (Tensor, np.ndarray, list)) for item in value):
        if declared is not None and declared.dtype is dtypes.void:
            return [item if isinstance(item, Tensor) else np.asarray(item) for item in value]
    if value is None or (declared is not None and declared.dtype is dtypes.void):
        return value if value is None or isinstance(value, (Tensor, list)) else np.asarray(value)
    tensor: Tensor | Array = value if isinstance(value, Tensor) else np.asarray(value)
    dtype = tensor.dtype if isinstance(tensor, Tensor) else array_dtype(tensor)
    if declared is not None and dtype != declared.dtype and not isinstance(value, (Tensor, np.ndarray)):
        # numbers and lists of numbers have no dtype of their own
        tensor = np.asarray(value, numpy_dtype(declared.dtype))
        dtype = declared.dtype
    if declared is None:
        return tensor
    if dtype != declared.dtype:
        raise OnnxError(f"input {declared}: got {dtype.name}; cast it to {declared.dtype.name}")
    if declared.shape is not None:
        _check_shape(declared, declared.shape, tuple(tensor.shape), sizes)
    return tensor


def _check_shape(
    declared: ModelInput,
    declared_shape: Sequence[int | str | None],
    shape: tuple[Any, ...],
    sizes: dict[str, tuple[int, str]],
) -> None:
    """Raises OnnxError if `shape` differs from the declaration. Adds the open sizes that it fixes to `sizes`."""
    if len(shape) != len(declared_shape):
        raise OnnxError(
            f"input {declared}: got shape {shape}, {len(shape)} dimensions; the declaration has {len(declared_shape)}"
        )
    for axis, (size, declared_size) in enumerate(zip(shape, declared_shape)):
        if isinstance(declared_size, int) and declared_size != size:
            raise OnnxError(
                f"input {declared}: got shape {shape}; the declaration fixes dimension {axis} to {declared_size}"
            )
        if (
            isinstance(declared_size, str)
            and declared_size
            and sizes.setdefault(declared_size, (size, declared.name))[0] != size
        ):
            raise OnnxError(
                f"input {declared}: got shape {shape}; {declared_size} is {sizes[declared_size][0]} in input"
                f" {sizes[declared_size][1]!r}"
            )


def _device_of(value: Tensor | Array) -> str:
    return value.device if isinstance(value, Tensor) else ""


def _is_small_int(value: Tensor | Array) -> bool:
    """Whether a value has few elements, all integers or booleans."""
    if isinstance(value, Tensor):
        return not dtypes.is_float(value.dtype) and value.numel() <= MAX_FIXED_ELEMENTS
    return value.dtype.kind in "iub" and value.size <= MAX_FIXED_ELEMENTS


def _make_result(outputs: list[Value]) -> Any:
    """Returns the result of a call. Arrays among the outputs become Tensors."""
    results = tuple(tensor_of(value) if isinstance(value, np.ndarray) else value for value in outputs)
    return results[0] if len(results) == 1 else results
