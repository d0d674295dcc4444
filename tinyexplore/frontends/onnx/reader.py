"""Reads untrusted bytes to a checked graph. Sizes, names and paths in a model are untrusted, so they are limited here.

Limits: MAX_BYTES of a file, MAX_NODES nodes including subgraphs and functions, MAX_NESTING nested subgraphs. A tensor
may have `values.MAX_ELEMENTS` elements. Data outside the model's folder is rejected.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tinyexplore.frontends.onnx.errors import OnnxError
from tinyexplore.frontends.onnx.values import Array, array_of_proto, check_shape

if TYPE_CHECKING:
    from onnx import AttributeProto, GraphProto, ModelProto, TensorProto

MAX_BYTES = 1 << 31  # bytes of the file itself: the limit of protobuf
MAX_NODES = 200_000
MAX_NESTING = 16
EXTERNAL = 1  # TensorProto.DataLocation
GRAPH = 5  # AttributeProto.AttributeType
GRAPHS = 10
DOMAINS = {"": "", "ai.onnx": ""}  # both names mean the standard's domain


def onnx_package() -> Any:
    """Returns the `onnx` package. Raises an ImportError that says what to install."""
    try:
        import onnx  # noqa: PLC0415 (an extra)
    except ImportError as error:
        raise ImportError("ONNX models need the package onnx: pip install 'tinyexplore[onnx]'") from error
    return onnx


def read_model(source: Any) -> tuple[ModelProto, Path | None]:
    """Returns the checked model in a file, in bytes, or given as a ModelProto, and the folder of its external data.

    Raises:
        OnnxError: the bytes are not a model, a graph is malformed, or a limit is exceeded.
        FileNotFoundError: there is no such file.
    """
    onnx = onnx_package()
    folder: Path | None = None
    if isinstance(source, onnx.ModelProto):
        model = source
    else:
        if isinstance(source, (str, os.PathLike)):
            path = Path(source)
            size = path.stat().st_size
            folder = path.resolve().parent
            name = f"{path.name!r}"
        elif isinstance(source, (bytes, bytearray, memoryview)):
            size, name = len(source), "the bytes"
        else:
            raise TypeError(f"load({type(source).__name__}): give a path, bytes, or an onnx.ModelProto")
        if size > MAX_BYTES:
            raise OnnxError(f"{name}: {size:,} bytes; a model may have {MAX_BYTES:,}, its tensors in further files")
        data = Path(source).read_bytes() if isinstance(source, (str, os.PathLike)) else bytes(source)
        model = onnx.ModelProto()
        try:
            model.ParseFromString(data)
        except Exception as error:  # protobuf's exceptions have no common base class
            raise OnnxError(f"{name} is not an ONNX model: {error}") from error
    if not model.graph.node and not model.graph.output:
        raise OnnxError("the file is not an ONNX model: it has no graph")
    _check(model)
    return model, folder


def _check(model: ModelProto) -> None:
    """Raises OnnxError unless every graph defines each name once, before its use, within the limits."""
    remaining = MAX_NODES
    for function in model.functions:
        remaining -= _check_nodes(function.node, set(function.input), 0, f"function {function.name!r}", remaining)
    remaining -= _check_graph(model.graph, set(), 0, remaining)
    if not any(entry.domain in DOMAINS for entry in model.opset_import) and model.opset_import:
        return
    for entry in model.opset_import:
        if not 0 <= entry.version < 1 << 16:
            raise OnnxError(
                f"operator set {entry.domain or 'ai.onnx'!r} of version {entry.version}: versions are 0 to 65535"
            )


def _check_graph(graph: GraphProto, outer: set[str], depth: int, left: int) -> int:
    """Checks a graph and its subgraphs, and returns their number of nodes. `left` is the limit."""
    if depth > MAX_NESTING:
        raise OnnxError(f"graphs nested more than {MAX_NESTING} deep")
    names = outer | {item.name for item in graph.input} | {tensor.name for tensor in graph.initializer}
    names |= {sparse.values.name for sparse in graph.sparse_initializer}
    for tensor in graph.initializer:
        check_shape(tuple(tensor.dims))
    count = _check_nodes(graph.node, names, depth, f"graph {graph.name!r}", left)
    for node in graph.node:
        names.update(node.output)
    for item in graph.output:
        if item.name not in names:
            raise OnnxError(f"graph {graph.name!r}: nothing computes the output {item.name!r}")
    return count


def _check_nodes(nodes: Any, names: set[str], depth: int, where: str, left: int) -> int:
    """Counts the nodes, including those inside nodes. Raises OnnxError for a name that no earlier node computes."""
    names = set(names) | {""}
    count = len(nodes)
    if count > left:
        raise OnnxError(f"{where}: more than {MAX_NODES:,} nodes")
    computed: set[str] = set()
    for node in nodes:
        for name in node.input:
            if name not in names:
                raise OnnxError(
                    f"{where}: the node {node.name or node.op_type!r} reads {name!r}, which no earlier node computes"
                )
        for inner in graphs_of(node):
            count += _check_graph(inner, names, depth + 1, left - count)
        for name in node.output:
            if name and name in computed:
                raise OnnxError(f"{where}: two nodes compute {name!r}")
            computed.add(name)
            names.add(name)
    return count


def graphs_of(node: Any) -> Iterator[GraphProto]:
    """Yields the graphs in a node's attributes: the branches of an If, the body of a Loop."""
    for attribute in node.attribute:
        if attribute.type == GRAPH:
            yield attribute.g
        elif attribute.type == GRAPHS:
            yield from attribute.graphs


def array_in(tensor: TensorProto, folder: Path | None) -> Array:
    """Returns the elements of a tensor, read from a file beside the model if they are stored there."""
    if tensor.data_location != EXTERNAL:
        return array_of_proto(tensor)
    onnx = onnx_package()
    entries = {entry.key: entry.value for entry in tensor.external_data}
    where = f"the tensor {tensor.name!r}: external data {entries.get('location', '')!r}"
    if folder is None:
        raise OnnxError(f"{where}: load the model by its path, so that the folder is known")
    path = _resolve_inside(folder, entries.get("location", ""), where)
    try:
        offset, length = int(entries.get("offset", "0")), int(entries.get("length", "-1"))
        dtype = onnx.helper.tensor_dtype_to_np_dtype(tensor.data_type)
    except (ValueError, KeyError) as error:
        raise OnnxError(f"{where}: {error}") from error
    shape = check_shape(tuple(tensor.dims))
    expected = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    size = path.stat().st_size
    length = expected if length < 0 else length
    if length != expected or offset < 0 or offset + length > size:
        raise OnnxError(
            f"{where}: {length:,} bytes at {offset:,} of a file of {size:,}; the shape {shape} needs {expected:,}"
        )
    return np.fromfile(path, dtype=dtype, count=expected // dtype.itemsize, offset=offset).reshape(shape)


def _resolve_inside(folder: Path, location: str, where: str) -> Path:
    """Returns the file `location` inside `folder`, after following links. Raises OnnxError if it is not a file
    there."""
    if not location or "\0" in location:
        raise OnnxError(f"{where}: the name of the external data file is missing")
    path = (folder / location).resolve()
    if not path.is_relative_to(folder.resolve()):
        raise OnnxError(f"{where}: outside of the model's folder")
    if not path.is_file():
        raise OnnxError(f"{where}: no such file")
    return path


def attributes_of(node: Any, attributes_passed: dict[str, AttributeProto] | None = None) -> dict[str, Any]:
    """Returns the attributes as Python values. `attributes_passed`: those that the call of a function passes, by
    name."""
    attributes: dict[str, Any] = {}
    for attribute in node.attribute:
        if attribute.ref_attr_name:
            passed = (attributes_passed or {}).get(attribute.ref_attr_name)
            if passed is None:
                continue
            attributes[attribute.name] = attribute_value(passed)
        else:
            attributes[attribute.name] = attribute_value(attribute)
    return attributes


def attribute_value(attribute: AttributeProto) -> Any:
    """Returns an attribute as a Python value: numbers, text, arrays, or lists of them. A graph stays a GraphProto."""
    onnx = onnx_package()
    kind = attribute.type
    if kind == onnx.AttributeProto.STRING:
        return attribute.s.decode(errors="replace")
    if kind == onnx.AttributeProto.STRINGS:
        return [item.decode(errors="replace") for item in attribute.strings]
    if kind == onnx.AttributeProto.TENSOR:
        return array_of_proto(attribute.t)
    if kind == onnx.AttributeProto.SPARSE_TENSOR:
        return dense(attribute.sparse_tensor)
    if kind in (onnx.AttributeProto.INTS, onnx.AttributeProto.FLOATS):
        return list(attribute.ints if kind == onnx.AttributeProto.INTS else attribute.floats)
    return onnx.helper.get_attribute_value(attribute)


def dense(sparse: Any) -> Array:
    """Returns the array that a SparseTensorProto represents."""
    shape = check_shape(tuple(sparse.dims))
    values, indices = array_of_proto(sparse.values), array_of_proto(sparse.indices)
    result = np.zeros(int(np.prod(shape, dtype=np.int64)), values.dtype)
    if indices.ndim == 2:
        indices = indices @ np.array([int(np.prod(shape[axis + 1 :], dtype=np.int64)) for axis in range(len(shape))])
    if len(indices) != len(values) or (len(indices) and not 0 <= indices.min() <= indices.max() < result.size):
        raise OnnxError(f"the sparse tensor {sparse.values.name!r}: its indices do not fit its shape {shape}")
    result[indices] = values
    return result.reshape(shape)
