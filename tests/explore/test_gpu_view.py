"""The GPU view: the accesses of a warp, its banks and the occupancy equal manual calculations."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.backends.programs import linear, load, pointer, store
from tests.support.pages import responses_in
from tinyexplore import Tensor, explore
from tinyexplore.dtype import PtrDType, dtypes
from tinyexplore.explore.analysis.models.gpu import GPUView
from tinyexplore.explore.analysis.models.occupancy import compute_occupancy, live_registers
from tinyexplore.explore.analysis.models.warps import WarpRequest, Warps, find_enclosing_loops
from tinyexplore.explore.analysis.requests import to_data
from tinyexplore.explore.notebook.requests import RequestHandler
from tinyexplore.target import GPUS
from tinyexplore.uop import Ops, UOp, index_const
from tinyexplore.util import Context

F32 = dtypes.float32
N = 32


def special(name: str, size: int) -> UOp:
    return UOp(Ops.SPECIAL, dtypes.index, (index_const(size),), name)


X, Y, GROUP = special("lidx0", N), special("lidx1", N), special("gidx0", 4)


def asked(*nodes: UOp, warp: int = 0) -> list[WarpRequest]:
    """The accesses of a warp of the second group at each load and store."""
    program = linear(*nodes)
    warps = Warps(program, 32)
    return [warps.request(node, (1,), warp, {}) for _, node, _ in find_enclosing_loops(program)]


def loaded(place: UOp | int) -> WarpRequest:
    value = load(pointer(1, F32, 1 << 16), place)
    return asked(store(pointer(0, F32, 1 << 16), GROUP * 1024 + Y * N + X, value))[0]


def test_a_copy_coalesces() -> None:
    """32 floats side by side: 128 bytes, which are four segments of 32 and one line of 128."""
    found = loaded(GROUP * 1024 + Y * N + X)
    assert (found.segments, found.least, found.lines, found.efficiency) == (4, 4, 1, 1.0)
    assert found.addresses[:3] == (4096, 4100, 4104) and found.stride == 4
    assert found.says == "coalesced"


def test_a_transposed_read_needs_a_segment_for_each_lane() -> None:
    found = loaded(X * 64 + Y)
    assert (found.segments, found.least, found.lines, found.efficiency) == (32, 4, 32, 4 / 32)
    assert found.says == "stride of 256 bytes between lanes"


def test_one_address_for_all_is_one_segment() -> None:
    found = loaded(Y * 64)
    assert (found.segments, found.least, found.used_bytes) == (1, 1, 4)
    assert found.says == "broadcast: one address for all"


def test_an_offset_of_one_needs_one_more_segment() -> None:
    assert (loaded(X + 1).segments, loaded(X + 8).segments) == (5, 4)


def test_every_second_float_uses_half_of_the_transferred_bytes() -> None:
    found = loaded(X * 2)
    assert (found.segments, found.efficiency) == (8, 0.5)


def tile(words: int, place: UOp, base: Any = F32) -> WarpRequest:
    shared = UOp(Ops.DEFINE_LOCAL, PtrDType(base, words, "shared"), (), "tile0")
    value = UOp(Ops.LOAD, base, (shared.index(place),))
    return asked(store(pointer(0, base, 1024), Y * N + X, value))[0]


def test_a_column_of_a_tile_is_in_one_bank_and_padded_in_all() -> None:
    column, padded = tile(32 * 32, X * 32 + Y), tile(32 * 33, X * 33 + Y)
    assert (column.degree, column.says) == (32, "32-way bank conflict")
    assert column.banks() == [32, *[0] * 31]
    assert (padded.degree, padded.says, padded.banks()) == (1, "no bank conflict", [1] * 32)
    assert (tile(1024, Y * 32 + X).degree, tile(2048, X * 2).degree) == (1, 2)
    assert tile(1024, Y).says == "broadcast: one word for all"


def test_narrow_elements_share_a_word_and_wide_ones_need_two_phases() -> None:
    assert tile(1024, X, dtypes.float16).banks() == [1] * 16 + [0] * 16
    assert tile(1024, X, dtypes.float64).degree == 1, "two words a lane, 16 lanes at a time"
    assert tile(1024, X * 32, dtypes.float16).degree == 16


def test_masked_lanes_access_no_memory() -> None:
    value = UOp(Ops.LOAD, F32, (pointer(1, F32, 64).index(X, X < 5),))
    found = asked(store(pointer(0, F32, 1024), Y * N + X, value))[0]
    assert found.addresses == (0, 4, 8, 12, 16, *[None] * 27) and (found.segments, found.used_bytes) == (1, 20)


def test_one_active_lane_is_no_broadcast() -> None:
    value = UOp(Ops.LOAD, F32, (pointer(1, F32, 64).index(X, X < 1),))
    assert asked(store(pointer(0, F32, 1024), Y * N + X, value))[0].says == "one active lane of 32"


def cycles(addresses: list[int], nbytes: int) -> int:
    """How long shared memory takes, cycle by cycle: each bank serves one word to all lanes that read it.
    Lanes are served in groups that could read each bank once."""
    turn = 128 // max(4, nbytes)
    most = 0
    for first in range(0, len(addresses), turn):
        missing = {byte // 4 for at in addresses[first : first + turn] for byte in range(at, at + nbytes)}
        took = 0
        while missing:
            missing -= set({word % 32: word for word in missing}.values())
            took += 1
        most = max(most, took)
    return most


@pytest.mark.parametrize("nbytes", [2, 4, 8, 16])
def test_conflicts_and_segments_agree_with_brute_force(nbytes: int) -> None:
    """Lanes at random, in a small memory (broadcasts) and a large one, and at every stride."""
    rng = np.random.default_rng(nbytes)
    strided = [[lane * stride * nbytes for lane in range(32)] for stride in range(34)]
    for one in [*strided, *(rng.integers(0, most, 32) * nbytes for most in (4, 64, 4096) for _ in range(50))]:
        lanes = [int(at) for at in one]  # type: ignore[attr-defined]
        assert WarpRequest(tuple(lanes), nbytes, shared=True).degree == cycles(lanes, nbytes)
        touched = np.zeros(max(lanes) + 64, bool)
        for at in lanes:
            touched[at : at + nbytes] = True
        found = WarpRequest(tuple(lanes), nbytes)
        assert found.used_bytes == touched.sum()
        assert found.segments == sum(touched[at : at + 32].any() for at in range(0, len(touched), 32))


def test_another_warp_is_another_row() -> None:
    program = store(pointer(0, F32, 4096), GROUP * 1024 + Y * N + X, UOp.const(F32, 0.0))
    assert asked(program, warp=5)[0].addresses[0] == 4 * (1024 + 5 * 32)


# *** occupancy ***


def test_the_resource_that_allows_the_fewest_groups_is_the_limit() -> None:
    """An A100 has 65 536 registers, 164 KiB of shared memory, 2048 work-items and 32 groups for each multiprocessor."""
    plain = linear(store(pointer(0, F32, 1024), X, UOp.const(F32, 0.0)))
    found = compute_occupancy(plain, 32, GPUS["sm_80"])
    assert found is not None and (found.groups, found.limit, found.share) == (32, "groups", 0.5)
    found = compute_occupancy(plain, 1024, GPUS["sm_80"])
    assert found is not None and (found.groups, found.limit, found.share) == (2, "work-items", 1.0)
    shared = UOp(Ops.DEFINE_LOCAL, PtrDType(F32, 10_000, "shared"), (), "tile0")
    filled = linear(UOp(Ops.BARRIER, dtypes.void, (store(shared, X, UOp.const(F32, 0.0)),)))
    found = compute_occupancy(filled, 256, GPUS["sm_80"])
    assert found is not None and (found.groups, found.limit) == (4, "bytes of shared memory"), "167 936 // 41 024"
    assert "4 groups, 50% of its warps" in found.says and "shared memory" in found.says
    assert compute_occupancy(plain, 32, GPUS["webgpu"]) is None


def test_registers_are_the_maximum_of_live_values() -> None:
    """Eight values that are added at the end are live together; added one by one, two are, and their sum."""
    values = [load(pointer(1, F32, 4096), X + 32 * k) for k in range(8)]
    total = values[0]
    for value in values[1:]:
        total = total + value
    out, one = pointer(0, F32, 32), pointer(1, F32, 4096)
    late = linear(out, one, X, *values, total, store(out, X, total))
    assert live_registers(late) >= 8 > live_registers(linear(out, one, store(out, X, values[0])))


# *** a capture ***


@pytest.fixture(scope="module")
def view() -> Any:
    zeros = np.zeros((256, 256), np.float32)
    return explore(lambda: Tensor(zeros) @ Tensor(zeros), target="sm_80", title="product")


def test_a_product_that_is_staged_coalesces_in_vectors(view: Any) -> None:
    found = view.kernels[0].gpu()
    assert isinstance(found, GPUView) and view.kernels[0].gpu() is found
    assert (found.grid, found.group, found.at) == ((4, 4), (16, 16), (2, 2))
    assert "4 × 4 groups of 16 × 16" in found.says and "8 warps of 32" in found.says
    by_space = {space: [one for one in found.accesses if one.space == space] for space in ("global", "shared")}
    assert {one.says for one in by_space["global"]} == {"coalesced"}
    # rows of a tile are read as vectors of 4: what is stored column by column meets in two rows of a bank
    assert {(one.buffer, one.stored, one.degree) for one in by_space["shared"]} == {
        *(("tile0", True, 2), ("tile1", True, 1), ("tile0", False, 1), ("tile1", False, 1))
    }
    assert {one.shown.nbytes for one in by_space["global"]} == {16}
    assert {one.buffer for one in by_space["shared"]} == {"tile0", "tile1"}
    assert found.shared_bytes == 4 * 16 * (68 + 64)
    first = found.accesses[0]
    assert first.source.startswith("f32x4 ") and "(data1 + " in first.source
    assert found.request(first.place, r2=1).addresses[0] == found.request(first.place).addresses[0] + 64
    with pytest.raises(ValueError, match="no loop r9 around line"):
        found.request(first.place, r9=1)


def test_a_view_reads_as_text_as_a_picture_and_as_data(view: Any) -> None:
    found = view.kernels[0].gpu()
    text = str(found)
    assert "bytes used" in text and "16 of 16" in text and "registers allow no more" in text
    assert found.svg().startswith("<svg") and "occupancy, bound by registers" in found.svg()
    assert RequestHandler(lambda: view.trace, view.capture)({"ask": "gpu", "kernel": 0}) == to_data(found)
    assert found.as_data().accesses[0].lanes[:2] == tuple(found.accesses[0].shown.addresses[:2])


def test_a_page_stores_the_warps_of_its_kernels(view: Any) -> None:
    assert responses_in(view.to_html(), "gpu")['{"ask":"gpu"}']["says"] == view.kernels[0].gpu().says


def test_a_gather_needs_saved_inputs() -> None:
    table, places = np.zeros((64, 32), np.float32), np.arange(32, dtype=np.int32) * 2
    with Context(TARGET="sm_80", DEVICE="PYTHON"):
        captured = [
            explore(lambda: Tensor(table)[Tensor(places)], keep_inputs=keep, repeat=1) for keep in (False, True)
        ]
    without, known = (one.kernels[-1].gpu() for one in captured)
    assert [one.shown is None for one in without.accesses].count(True) == 1
    assert any("keep_inputs=True" in one.says for one in without.accesses)
    shown = next(one.shown for one in known.accesses if one.buffer == "data1")
    assert shown is not None and shown.addresses[0] == 4 * 32 * int(places[8 * known.at[0]])


def test_a_cpus_kernel_has_no_warps() -> None:
    with pytest.raises(ValueError, match='explore\\(f, target="sm_80"\\)'):
        explore(lambda: Tensor(np.zeros(8, np.float32)) + 1, repeat=1).kernels[0].gpu()


def test_registers_reported_by_a_compiler_replace_the_estimate() -> None:
    with Context(TARGET="sm_80"):
        view = explore(lambda: Tensor(np.ones((4, 64), np.float32), device="LLVM").sum(1), repeat=1)
    estimated, told = view.kernels[0].gpu().occupancy, view.kernels[0].gpu(registers=168).occupancy
    assert estimated is not None and told is not None
    assert (estimated.known, told.known, told.registers) == (False, True, 168)
    assert told.share < estimated.share and told.limit == "registers" and "UPCAST" in told.advice
    assert view.kernels[0].gpu().occupancy is told, "the panel, and pages made after, have it"
