"""Why one kernel or two: every edge has its mark, and reasons include the scheduler's numbers."""

from __future__ import annotations

import pytest

from tinyexplore import Tensor, Trace
from tinyexplore.explore import Explorer, explore, why_kernels
from tinyexplore.explore.notebook.requests import respond_from_trace
from tinyexplore.explore.tracefile.fusions import Fusions, compared_text
from tinyexplore.explore.tracefile.model import Decision, NumberComparison
from tinyexplore.schedule.fusion import MAX_CHEAP_COMPUTATIONS, MAX_REDUCE_COMPUTATIONS, REPEATS_LABEL


@pytest.fixture(scope="module")
def view() -> Explorer:
    x, w, v = (Tensor.rand(256, 256).realize() for _ in range(3))

    def two_layers() -> Tensor:
        hidden = (x @ w).relu()
        return hidden @ v

    return explore(two_layers, repeat=1)


def decision_on(trace: Trace, node: int) -> Decision:
    return Fusions(trace).decisions[node]


def test_the_compared_numbers_belong_to_the_reason_of_a_decision(view: Explorer):
    relu = next(node for node in view.trace.where(op="MAX", kind="lazybuffer"))
    told = decision_on(view.trace, relu.id)
    assert told.decision == "realize" and "256 times" in told.reason
    repeated = NumberComparison(REPEATS_LABEL, 256.0, MAX_CHEAP_COMPUTATIONS, True)
    assert repeated in told.compared
    first, _ = view.trace.where(op="REDUCE_AXIS", kind="lazybuffer")
    fused = decision_on(view.trace, first.id)
    assert (
        fused.decision == "fuse"
        and NumberComparison(REPEATS_LABEL, 1.0, MAX_REDUCE_COMPUTATIONS, False) in fused.compared
    )
    assert all(not one.over for one in fused.compared if one.what == REPEATS_LABEL)
    assert compared_text(repeated) == f"{REPEATS_LABEL}: 256, over 4"


def test_two_products_are_two_kernels_and_the_edge_between_them_is_cut(view: Explorer):
    first, second = view.trace.where(op="REDUCE_AXIS", kind="lazybuffer")
    found = view.why_kernels(first, second)
    assert found == why_kernels(view.trace, first.id, second.id)
    assert found.together == () and found.kernels_of_a == (0,) and found.kernels_of_b == (1,)
    assert [edge.mark for edge in found.edges].count("cut") == 1
    (cut,) = [edge for edge in found.edges if edge.mark == "cut"]
    assert view.trace.nodes[cut.src].op == "MAX" and cut.kernels == (0,) and 1 in cut.into
    assert "two kernels: " in found.text and found.text.endswith(f"goes through memory: {cut.reason}")
    row = next(row for row in found.table().rows if row[1] == "cut")
    assert row[0] == f"{cut.src} → {cut.dst}" and row[2] == f"realize: {cut.reason}" and "256, over 4" in row[3]
    back = view.why_kernels(second, first)
    assert back.edges == found.edges


def test_elementwise_operations_on_a_product_are_in_its_kernel(view: Explorer):
    product, _ = view.trace.where(op="REDUCE_AXIS", kind="lazybuffer")
    relu = view.trace.where(op="MAX", kind="lazybuffer")[0]
    found = view.why_kernels(product, relu)
    assert found.together == (0,) and {edge.mark for edge in found.edges} == {"fused"}
    assert found.text.startswith("one kernel: kernel 0 (")


def test_every_edge_of_the_tensors_has_a_mark(view: Explorer):
    fusions = Fusions(view.trace)
    edges = fusions.edges()
    read = {node.id for node in view.trace.nodes if node.op == "BUFFER"}
    assert {edge.mark for edge in edges} == {"fused", "cut", "read"}
    for edge in edges:
        assert (edge.mark == "read") == (edge.src not in fusions.computed)
        assert edge.mark != "cut" or edge.decision == "realize"
    assert {edge.src for edge in edges if edge.mark == "read"} <= read | {
        node.id for node in view.trace.nodes if node.op in ("CONST", "RESHAPE", "EXPAND", "PERMUTE")
    }


def test_independent_nodes_and_recomputed_nodes():
    x = Tensor.rand(64, 64).realize()

    def both() -> tuple[Tensor, Tensor, Tensor]:
        light = x + 1
        return light.sum(), (light * 2).max(1), x.sum(0)

    view = explore(both, repeat=1)
    total, _, columns = view.trace.where(op="REDUCE_AXIS", kind="lazybuffer")[-3:]
    found = view.why_kernels(total, columns)
    assert found.edges == () and "neither depends on" in found.text
    light = view.trace.where(op="ADD", kind="lazybuffer")[0]
    marks = {edge.mark for edge in Fusions(view.trace).edges() if edge.src == light.id}
    told = decision_on(view.trace, light.id)
    assert told.decision == "duplicate" and marks == {"again"}


def test_requests_over_the_channel_and_invalid_requests(view: Explorer):
    first, second = view.trace.where(op="REDUCE_AXIS", kind="lazybuffer")
    found = respond_from_trace(view.trace, {"ask": "why kernels", "a": first.id, "b": second.id})
    assert found["text"] == view.why_kernels(first, second).text and found["edges"][0]["mark"] == "fused"
    uop = view.trace.where(kind="uop")[0]
    with pytest.raises(ValueError, match="is not a LazyBuffer"):
        view.why_kernels(uop, first)
    buffer = next(node for node in view.trace.nodes if node.op == "BUFFER")
    assert view.why_kernels(buffer, first).text.startswith("no kernel computes ")
