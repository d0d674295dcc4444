"""Measures a rewriter alone, in its own process: the simplification of index arithmetic.

`python -m bench.rewriting PEER`, JSON lines. Requests: {"do": "simplify", "graphs", "rounds"} returns the rewrites, as
the engine counts them, and the seconds of each round · {"do": "bye"}.
"""

from __future__ import annotations

import gc
import importlib
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from bench.conversation import error_reply, serve
from bench.peers.tensors import flat_index, permuted_address, split_index


@dataclass(frozen=True)
class Graphs:
    """A family of graphs.

    name: in the tables.
    sizes: of the indices.
    build: makes expressions of indices of these sizes: values from ints, or a graph from Variables.
    """

    name: str
    sizes: tuple[int, ...]
    build: Callable[[Sequence[Any]], list[Any]]


def permuted(index: Sequence[Any]) -> list[Any]:
    """Return addresses in tensors that are permuted and flattened, twice."""
    orders = ((2, 0, 3, 1), (3, 1, 0, 2), (1, 3, 2, 0), (0, 2, 1, 3), (3, 2, 1, 0))
    sizes = [6, 4, 8, 3]
    return [
        permuted_address(list(index), sizes, [list(first), list(second)], 1) for first in orders for second in orders
    ]


def reshaped(index: Sequence[Any]) -> list[Any]:
    """Return one flat loop, split and merged in other shapes. Not all of its divisions can be removed."""
    shapes = ([16, 9, 5], [10, 72], [3, 16, 15], [5, 4, 36])
    others = ([20, 36], [4, 9, 20], [8, 90])
    flat = [flat_index(split_index(index[0], shape), shape) for shape in shapes]
    return [flat_index(split_index(place, other)[::-1], other[::-1]) for place in flat for other in others]


def tiled(index: Sequence[Any]) -> list[Any]:
    """Return the addresses of the elements of a matrix product's tile."""
    i, j, k = index
    expressions = []
    for row in range(8):
        for column in range(4):
            down, along = i * 8 + row, j * 4 + column
            expressions.append((down * 512 + k) * 64 + along)
            expressions.append(((k * 4 + row) * 16 + along) * 4 + down * 2)
    return expressions


def padded(index: Sequence[Any]) -> list[Any]:
    """Return the addresses that padded windows read, and the conditions under which they exist."""
    channel, y, x = index
    expressions = []
    for down in range(3):
        for along in range(3):
            row, column = y + down + -1, x + along + -1
            expressions.append((channel * 56 + row) * 56 + column)
            expressions.append((row >= 0) & (row < 56) & (column >= 0) & (column < 56))
    return expressions


GRAPHS = {
    graphs.name: graphs
    for graphs in (
        Graphs("permuted views", (6, 4, 8, 3), permuted),
        Graphs("reshapes", (720,), reshaped),
        Graphs("tiles", (32, 16, 64), tiled),
        Graphs("padded windows", (16, 56, 56), padded),
    )
}


def measure(api: Any, graphs: Graphs, rounds: int) -> dict[str, Any]:
    """Return the CPU seconds of each round.

    Each round simplifies the same graph with new variables. The graph is built before the time starts. A last graph is
    compared with the values of Python ints.
    """
    made = 0

    def variables() -> list[Any]:
        nonlocal made
        made += 1
        return [api.Variable(f"i{made}_{axis}", 0, size - 1) for axis, size in enumerate(graphs.sizes)]

    check(api, graphs, variables())
    rewrites = api.rewrites(graphs.build(variables()))
    seconds: dict[str, list[float]] = {"alone": [], "recorded": []}
    gc.collect()
    gc.disable()
    for _ in range(rounds):
        for way, samples in seconds.items():
            simplify = api.simplify if way == "alone" else api.simplify_recorded
            if simplify is not None:
                expressions = graphs.build(variables())
                start = time.thread_time()
                simplify(expressions)
                samples.append(time.thread_time() - start)
    gc.enable()
    return {"rewrites": rewrites, **seconds}


def check(api: Any, graphs: Graphs, index: list[Any]) -> None:
    """Raise ArithmeticError if simplification changed the value of an expression."""
    nothing = api.Variable("any", 0, 1) * 0
    simplified = api.simplify(graphs.build(index))
    for share in (0.0, 0.4, 0.99):
        values = [int(size * share) for size in graphs.sizes]
        substitution = {variable: nothing + value for variable, value in zip(index, values)}
        actual = [
            value.arg for value in api.simplify([expression.substitute(substitution) for expression in simplified])
        ]
        expected = graphs.build(values)
        if actual != expected:
            raise ArithmeticError(f"{graphs.name} at {values}: {actual}; expected {expected}")


def run(name: str) -> None:
    """Serve requests for that engine."""

    def answer(request: dict[str, Any]) -> dict[str, Any]:
        try:
            api = importlib.import_module(f"bench.peers.{name}").Engine("", 1).api
            return {"ok": True, **measure(api, GRAPHS[request["graphs"]], request["rounds"])}
        except Exception as error:
            return error_reply(error)

    serve(answer)


if __name__ == "__main__":
    run(sys.argv[1])
