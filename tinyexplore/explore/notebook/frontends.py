"""`explore` for programs of other frameworks and compilers."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from tinyexplore.device import Device
from tinyexplore.explore.notebook.explorer import EXPLORE_REPEAT, Explorer, capture, run_captured
from tinyexplore.explore.recording.names import classes_of, namespace_of
from tinyexplore.util import Context

if TYPE_CHECKING:
    from onnx import ModelProto

    from tinyexplore.explore.analysis.passes import LLVMPasses


def onnx(
    source: str | os.PathLike[str] | bytes | ModelProto,
    inputs: Mapping[str, Any] | Sequence[Any] | None = None,
    *,
    sizes: Mapping[str, int] | None = None,
    seed: int = 0,
    title: str = "",
    **options: Any,
) -> Explorer:
    """Captures an ONNX model: `explore.onnx("model.onnx", {"x": array})`.

    The first column of the view is the model as text, one node per line. The modules follow from the names of the
    nodes.

    Args:
        source: a path, the bytes of a file, or an `onnx.ModelProto`.
        inputs: the inputs, by name or in order. Missing inputs are random, with the declared shapes.
        sizes: the symbolic sizes of the model, by name, for random inputs; other symbolic sizes are 1.
        seed: the seed of the random inputs.
        title: the title of the view; by default the model's name.
        options: see `explore`.

    Raises:
        OnnxError: the file is no model, is malformed, or does not fit the inputs.
        UnsupportedOperator: the model needs an operator that is not supported; `error.explorer` has the partial view.
    """
    # these modules load NumPy
    from numpy import ndarray

    from tinyexplore.frontends.onnx.model import load
    from tinyexplore.frontends.onnx.values import tensor_of
    from tinyexplore.tensor import Tensor

    inputs_by_name = dict(inputs) if isinstance(inputs, Mapping) else {}
    with Context(**_device_of(options)):  # allocate weights and inputs on the device of the kernels
        model = load(source)
        if inputs is not None and not isinstance(inputs, Mapping):
            if len(inputs) > len(model.inputs):
                raise TypeError(f"{model.name} takes {len(model.inputs)} inputs; {len(inputs)} were given")
            inputs_by_name = {item.name: value for item, value in zip(model.inputs, inputs)}
        values = {**model.random_inputs(sizes, seed, without=inputs_by_name), **inputs_by_name}
        values = {name: tensor_of(value) if isinstance(value, ndarray) else value for name, value in values.items()}
        for parameter in (*model.parameters.values(), *values.values()):  # inputs are not a part of the program
            if isinstance(parameter, Tensor):
                parameter.realize()

    options.setdefault("repeat", EXPLORE_REPEAT)
    session = capture(title=title or model.name, **options)
    session.capture.namespace = {**model.parameters, **values}

    def run() -> Any:
        return model(**values)

    return run_captured(session, run)


class LLVMExplorer(Explorer):
    """LLVM's passes on a function of a module, as a view; `explore.llvm` creates it."""

    def __init__(self, passes: LLVMPasses) -> None:
        from tinyexplore.explore.analysis.passes import trace_of

        super().__init__(trace_of(passes))
        self._passes = passes

    @property
    def passes(self) -> LLVMPasses:
        """The passes as a sequence, with texts, diffs, remarks and spills."""
        return self._passes


def llvm(
    source: str | Path, function: str = "", *, level: str = "O3", without: Iterable[str] = (), cpu: str = ""
) -> LLVMExplorer:
    """Runs LLVM's passes on any module and shows each: `explore.llvm("file.ll")`.

    The view steps through the passes; `.passes` has them as a sequence.

    Args:
        source: the path of an LLVM IR file, or the text of a module.
        function: the function to follow; by default the first one that is defined.
        level: LLVM's pipeline, "O0" to "O3".
        without: passes to skip, by the names that the table shows: `["instcombine", "licm"]`.
        cpu: the CPU to generate code for, such as "skylake"; by default the current one.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: the module defines no such function, or an argument is invalid.
        LLVMPassesError: LLVM rejected the module.
    """
    from tinyexplore.explore.analysis.passes import Pipeline, module_passes

    return LLVMExplorer(module_passes(source, Pipeline(level, tuple(without), cpu), function))


def _device_of(options: Mapping[str, Any]) -> dict[str, str]:
    """Returns the setting DEVICE among the options of a capture."""
    names = [value for name, value in options.items() if name.upper() == "DEVICE" and value]
    return {"DEVICE": Device.canonicalize(names[0])} if names else {}


def torch(
    function: Callable[..., Any],
    *args: Any,
    lines: Literal["python", "aten"] = "python",
    title: str = "",
    **options: Any,
) -> Explorer:
    """Captures a function or module of PyTorch: `explore.torch(model, x)`; `explore(model, x)` is the same.

    `torch.compile` compiles the function, which is called once. Every LazyBuffer links to the user's line, and modules
    are those of `torch.nn`. If the function calls `backward()`, each gradient links to the line of its forward
    operation. Operations without a translation run in ATen; the trace's messages list them with their times.

    Args:
        function: a function of PyTorch tensors, or an `nn.Module`.
        args: its arguments.
        lines: the first column of the view: the user's "python", or the "aten" graph, one operation per line, each with
            the user's line.
        title: the title of the view; by default the function's name.
        options: see `explore`.

    Raises:
        ValueError: `lines` is another word.
    """
    from tinyexplore.frontends.torch.explorer import ExploredFunction

    if lines not in ("python", "aten"):
        raise ValueError(f'explore.torch(lines={lines!r}): choose "python" or "aten"')
    explored = ExploredFunction(function, args, lines == "aten")
    options.setdefault("repeat", EXPLORE_REPEAT)
    name = getattr(function, "__name__", type(function).__name__)
    session = capture(title=title or name, **options)
    session.capture.namespace = explored.names
    session.capture.notes = explored.notes
    session.capture.before = {"aten": explored.lines_of}
    return run_captured(session, explored, args)


def explore_torch(function: Callable[..., Any], args: Sequence[Any], **options: Any) -> Explorer | None:
    """Returns the view of a PyTorch program; None if neither the function nor an argument comes from PyTorch."""
    kinds = [namespace_of(base).get("__module__") for value in (function, *args) for base in classes_of(type(value))]
    if not any(type(name) is str and name.partition(".")[0] == "torch" for name in kinds):
        return None
    from tinyexplore.frontends.torch.explorer import is_of_torch

    return torch(function, *args, **options) if is_of_torch(function, args) else None
