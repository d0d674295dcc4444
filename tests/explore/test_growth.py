"""The memory of a capture grows linearly with the number of nodes in the program."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tinyexplore import Tensor, explore
from tinyexplore.explore.tracefile.codec import trace_to_bytes
from tinyexplore.explore.tracefile.trace import Trace


def chain_of_sines(length: int) -> Tensor:
    value = Tensor.arange(64).cast("float32").contiguous()
    for _ in range(length):
        value = value.sin()
    return value


def recurrent_network(steps: int) -> Tensor:
    inputs, weights, recurrent = Tensor.ones(steps, 4, 16), Tensor.ones(16, 32), Tensor.ones(32, 32)
    state = Tensor.zeros(4, 32).contiguous()
    for step in range(steps):
        state = (inputs[step] @ weights.contiguous() + state @ recurrent.contiguous()).tanh()
    return state


def separate_kernels(count: int) -> Tensor:
    value = Tensor.ones(64).contiguous()
    for addend in range(count):
        value = (value + addend).contiguous()
    return value


PROGRAMS = {"sines": chain_of_sines, "recurrent": recurrent_network, "kernels": separate_kernels}


def rows_of(trace: Trace) -> dict[str, int]:
    """How many entries the tables of a trace have."""
    lines = [line for program in trace.programs for line in program.lines]
    steps = sum(len(stage.steps) for stage in trace.stages)
    sources = sum(len(node.src) for node in trace.nodes)
    nodes_of_lines = sum(len(line.nodes) for line in lines)
    return {
        "nodes": len(trace.nodes),
        "sources": sources,
        "links": len(trace.links),
        "steps": steps,
        "lines": len(lines),
        "nodes of lines": nodes_of_lines,
    }


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_trace_of_twice_the_program_is_twice_as_large(name: str) -> None:
    build: Callable[[int], Tensor] = PROGRAMS[name]
    short, long = (explore(lambda size=size: build(size), repeat=1).trace for size in (12, 24))
    counts = rows_of(short)
    for table, count in rows_of(long).items():
        assert count < 2.5 * counts[table], table
    assert len(trace_to_bytes(long)) < 2.5 * len(trace_to_bytes(short))
