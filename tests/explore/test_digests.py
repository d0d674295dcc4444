"""Digests of UOps: computed from a node's fields, left out of packed traces, and computed again by readers."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace

import pytest

from tinyexplore import Tensor, Trace, dtypes, explore
from tinyexplore.explore.analysis.explanations.rebuilt_uops import RebuiltUOps
from tinyexplore.explore.recording.tables import UopDigests
from tinyexplore.explore.tracefile.codec import trace_to_bytes
from tinyexplore.explore.tracefile.digests import content_digest
from tinyexplore.explore.tracefile.trace import trace_from_bytes


@pytest.fixture(scope="module")
def trace() -> Trace:
    x = Tensor.rand(33, 20).realize()
    return explore(lambda: (x @ x.T).softmax() + x.half().sum().cast(dtypes.float32), repeat=1).trace


def test_the_digests_of_nodes() -> None:
    """`widgets/test/digests.test.ts` has the same nodes."""
    memory = content_digest("DEFINE_GLOBAL", "float32*", "0", "float32[8]", [])
    one = content_digest("CONST", "float32", "1.0", "1.0", [])
    total = content_digest("ADD", "float32×4", "", "x", [one, one])
    assert [memory, one, total] == ["ab4879e68016", "fa5e50100142", "a4f5f162a210"]
    assert memory != content_digest("DEFINE_GLOBAL", "float32*", "0", "float32[9]", [])
    assert content_digest("CONST", "", "\ud800", "", []) == content_digest("CONST", "", "\ufffd", "", [])


def test_different_nodes_have_different_digests_and_live_nodes_have_those_of_the_trace(trace: Trace) -> None:
    uops = [node for node in trace.nodes if node.kind == "uop"]
    assert len({node.digest for node in trace.nodes}) == len(trace.nodes)
    rebuilt, digests = RebuiltUOps(trace), UopDigests()
    assert [digests.of(rebuilt.uop(node.id)) for node in uops] == [node.digest for node in uops]


def test_a_packed_trace_has_no_digest_that_follows_from_the_node(trace: Trace) -> None:
    packed = trace_to_bytes(trace)
    column = json.loads(gzip.decompress(packed))["nodes"]["columns"]["digest"]
    assert [digest is None for digest in column] == [node.kind == "uop" for node in trace.nodes]
    assert trace_from_bytes(packed) == trace


def test_digests_of_an_older_release_stay(trace: Trace) -> None:
    """They were the beginning of `UOp.digest`. Nodes are rebuilt from such a trace as well."""
    rebuilt = RebuiltUOps(trace)
    nodes = tuple(
        replace(node, digest=rebuilt.uop(node.id).digest[:12]) if node.kind == "uop" else node for node in trace.nodes
    )
    older = trace_from_bytes(trace_to_bytes(replace(trace, nodes=nodes)))
    assert older.nodes == nodes
    again = RebuiltUOps(older)
    assert all(again.uop(node.id) is rebuilt.uop(node.id) for node in nodes if node.kind == "uop")
