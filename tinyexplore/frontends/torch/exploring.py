"""A function of PyTorch run once for the explorer: names of tensors, modules, and what there is to say of the run."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from typing import Any

import torch

from tinyexplore.frontends.torch.backend import Compiler, compiled
from tinyexplore.frontends.torch.listing import Lines, Modules, place_of
from tinyexplore.frontends.torch.program import LeftToAten, Program
from tinyexplore.tensor import Tensor
from tinyexplore.trace import UserFrame

MOST_COMPILED = 1 << 16  # versions of a function: each exploration is one
Note = tuple[str, str, UserFrame | None]  # level, text, the user's line


def is_of_torch(function: Any, args: Sequence[Any]) -> bool:
    """True for a module of PyTorch, and for a function that is given tensors of PyTorch."""
    return isinstance(function, torch.nn.Module) or any(isinstance(one, torch.Tensor) for one in args)


class Explored:
    """A function or module of PyTorch, compiled for one run.

    Attributes:
        names: names of the Tensors that kernels read: parameters, arguments, results of ATen.
        programs: a program for each graph, after the run.
    """

    def __init__(self, function: Callable[..., Any], args: Sequence[Any], in_aten: bool = False) -> None:
        self.function = function
        self.names: dict[str, Tensor] = {}
        tops = _modules_of(function)
        self._named = _tensor_names(function, args, tops)
        lines = Lines(Modules(tops), in_aten)
        self._compiler = Compiler(partial(Program, replay=False, lines=lines, given=self._given))
        self._breaks: dict[str, int] = {}

    @property
    def programs(self) -> list[Program]:
        return self._compiler.programs

    @property
    def text(self) -> str:
        """The graphs as text, one operation a line."""
        return "\n".join([f"# {program.listing.file[1:-1]}\n{program.listing.text}" for program in self.programs])

    def _given(self, node: Any, value: Any, flat: Tensor) -> None:
        name = self._named.get(value.data_ptr()) or (node.name if node.op == "call_function" else "")
        if name:
            self.names.setdefault(name, flat)

    def __call__(self, *args: Any) -> Any:
        """The result of the function, forward; backward too where the function asks for it."""
        self.programs.clear()  # it may run again
        counted = torch._dynamo.utils.counters["graph_break"]
        before = dict(counted)
        with ExitStack() as stack:
            stack.enter_context(warnings.catch_warnings())
            warnings.simplefilter("ignore", LeftToAten)
            settings = {"allow_rnn": True, "recompile_limit": MOST_COMPILED, "cache_size_limit": MOST_COMPILED}
            known = {name: value for name, value in settings.items() if hasattr(torch._dynamo.config, name)}
            stack.enter_context(torch._dynamo.config.patch(known))
            function = torch.compile(self.function, backend=partial(compiled, self._compiler), dynamic=False)
            result = function(*args)
        self._breaks = {why: count - before.get(why, 0) for why, count in counted.items() if count > before.get(why, 0)}
        return result

    def notes(self) -> list[Note]:
        """What ATen computed, with its time and line, and where Dynamo cut the program."""
        found: list[Note] = []
        for why, count in self._breaks.items():
            text = " ".join(why.split("\n")[0].split())
            found.append(("note", f"Dynamo cut the program {f'{count} times' if count > 1 else 'once'}: {text}", None))
        for program in self.programs:
            for part in program.parts:
                if not part.by_aten:
                    continue
                for node in part.nodes:
                    place = place_of(node)
                    frame = None if place is None else UserFrame(place.file, place.line, place.function, None, -1)
                    why = program.left.get(node, "an element of its result")
                    if node in program.left:
                        seconds = program.seconds.get(node, 0.0)
                        text = f"ATen computed {node.target} in {seconds * 1e6:,.0f} µs: {why}"
                        found.append(("note", text, frame))
        return found


def _modules_of(function: Any) -> dict[str, Any]:
    """Modules of PyTorch by the names that a function reaches them by; "" for the function itself."""
    if isinstance(function, torch.nn.Module):
        return {"": function, "self": function}
    found: dict[str, Any] = {}
    owner = getattr(function, "__self__", None)
    if owner is not None:
        found["self"] = owner
        found.update(getattr(owner, "__dict__", {}))
    try:
        outside = inspect.getclosurevars(inspect.unwrap(function))
        found.update({**outside.globals, **outside.nonlocals})
    except (TypeError, ValueError):
        pass
    return {name: value for name, value in found.items() if isinstance(value, torch.nn.Module)}


def _tensor_names(function: Any, args: Sequence[Any], tops: dict[str, Any]) -> dict[int, str]:
    """Names of arguments, parameters and buffers, by their addresses."""
    found: dict[int, str] = {}
    for top, module in tops.items():
        for name, value in [*module.named_parameters(), *module.named_buffers()]:
            found.setdefault(value.data_ptr(), f"{top}.{name}" if top not in ("", "self") else name)
    call = function.forward if isinstance(function, torch.nn.Module) else function
    try:
        names = list(inspect.signature(call).parameters)
    except (TypeError, ValueError):
        names = []
    for number, value in enumerate(args):
        if isinstance(value, torch.Tensor):
            found[value.data_ptr()] = names[number] if number < len(names) else f"input{number}"
    return found
