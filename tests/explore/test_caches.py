"""The memory microscope: address streams equal the interpreter's accesses, and counts equal manual counts."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from tests.backends.programs import end, linear, load, loop, pointer, store
from tests.fuzz.stepping import contents_of, drawn, lowered, steps_in
from tinyexplore import Tensor, explore
from tinyexplore.dtype import dtypes
from tinyexplore.explore import CaptureError
from tinyexplore.explore.analysis.models import address_stream
from tinyexplore.explore.analysis.models.address_stream import AddressStream, DataDependentAddress
from tinyexplore.explore.analysis.models.caches import TooManyAccessesError, model_caches
from tinyexplore.explore.analysis.models.lru import Cache, NativeSimulator, PlainSimulator, caches_of
from tinyexplore.target import Target
from tinyexplore.uop import Ops, UOp

N = 64
F32 = dtypes.float32
LINE = 16  # floats
MACHINE = Target("TEST", "any", "any", "", 0, 0, 1, 48 << 10, 1 << 20, frozenset(), ())


def fully_associative(lines: int) -> list[Cache]:
    return [Cache("L1", lines * 64, lines)]


def matmul(order: str) -> list[UOp]:
    """C = A @ B by three plain loops, C in memory; order "ijk" or "ikj", or "tiled": columns in pieces of one line."""
    c, a, b = (pointer(number, F32, N * N) for number in range(3))
    if order == "ijk":
        i, j, k = (loop(N, number) for number in range(3))
        acc = UOp(Ops.DEFINE_ACC, F32, (UOp.const(F32, 0.0),), 0)
        product = load(a, i * N + k) * load(b, k * N + j)
        step = UOp(Ops.ASSIGN, F32, (acc, acc + product))
        total = UOp(Ops.RESULT, F32, (acc, step, k))
        return linear(c, a, b, i, j, acc, k, step, end(k), total, store(c, i * N + j, total), end(j), end(i))
    tile, columns = (loop(N // LINE, 0), LINE) if order == "tiled" else (None, N)
    i, k, j = loop(N, 1), loop(N, 2), loop(columns, 3)
    column = j if tile is None else tile * LINE + j
    factor = load(a, i * N + k)
    more = load(c, i * N + column) + factor * load(b, k * N + column)
    inside = [i, k, factor, j, store(c, i * N + column, more), end(j), end(k), end(i)]
    return linear(c, a, b, *inside) if tile is None else linear(c, a, b, tile, *inside, end(tile))


def misses(order: str, lines: int) -> dict[str, int]:
    model = model_caches(order, matmul(order), MACHINE, caches=fully_associative(lines))
    return {name: traffic.misses() for name, traffic in model.by_buffer().items()}


def test_ijk_misses_on_every_step_down_a_column() -> None:
    """16 lines hold neither a column of B (64 lines) nor, after it, the row of A or the line of C."""
    assert misses("ijk", 16) == {"data2": N**3, "data1": N * N * N // LINE, "data0": N * N}


def test_ikj_misses_once_a_line_of_the_rows() -> None:
    """A row of C (4 lines) stays while the loop reads rows of B (4 lines each); each line of A is used for 16 steps."""
    assert misses("ikj", 16) == {"data2": N * N * N // LINE, "data1": N * N // LINE, "data0": N * N // LINE}


def test_tiled_misses_once_a_line_of_b() -> None:
    """128 lines hold a tile of B (64 lines), which all rows use; A is read once for each of the 4 tiles."""
    assert misses("tiled", 128) == {"data2": N * N // LINE, "data1": 4 * N * N // LINE, "data0": N * N // LINE}
    assert misses("ikj", 128)["data2"] == N * N * N // LINE, "without tiles B does not fit"


def test_reuse_distances_are_the_lines_in_between() -> None:
    model = model_caches("ijk", matmul("ijk"), MACHINE, caches=fully_associative(16))
    (of_b,) = [one.traffic.reuse for one in model.accesses if one.buffer == "data2"]
    # B[k, j] comes again after a column of B (63 lines), the row of A (4) and, now and then, a line of C: 64 … 127
    assert of_b[-1] == N * N // LINE, "each line comes once for the first time"
    assert of_b[7] == N**3 - N * N * N // LINE
    (of_c,) = [one.traffic for one in model.accesses if one.stored]
    assert of_c.accesses == N * N


@pytest.mark.parametrize("seed", range(40))
def test_machine_code_counts_as_the_plain_simulator_does(seed: int) -> None:
    random = np.random.default_rng(seed)
    small = Cache("L1", 64 * int(random.integers(1, 9)) * int(random.integers(1, 5)), int(random.integers(1, 4)))
    caches = [small, Cache("L2", 64 * int(random.integers(4, 40)), int(random.integers(1, 5)))][: 1 + seed % 2]
    lines, width = int(random.integers(1, 70)), int(random.integers(1, 5))
    plain, native = PlainSimulator(caches, width, lines), NativeSimulator(caches, width, lines)
    for _ in range(3):
        touched = random.integers(-1, lines, (int(random.integers(0, 60)), width)).astype(np.int32)
        columns = random.permutation(width).astype(np.int32)
        plain.run(touched, columns)
        native.run(touched, columns)
    assert np.array_equal(plain.served, native.served)
    assert np.array_equal(plain.reuse, native.reuse)


@pytest.mark.parametrize("chunk", [1, 100, 1 << 17])
def test_simulated_accesses_equal_those_of_the_interpreter(chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    checked = 0
    for number in range(45):
        random = Random(number)
        uops = lowered(random) if number % 3 == 2 else drawn(random)
        if uops is None or steps_in(uops) > 4000:
            continue
        stream = AddressStream(uops, unit=16, contents=contents_of(random, uops))
        if stream.is_data_dependent:
            continue
        told = list(stream._interpret_program())
        monkeypatch.setattr(address_stream, "CHUNK", chunk)
        accesses, pieces = stream.whole()
        monkeypatch.undo()
        assert accesses.tolist() == [one for part in told for one in part.columns.tolist()]
        assert pieces.tolist() == [one for part in told for one in part.lines.ravel().tolist()]
        checked += 1
    assert checked > 25


def test_the_default_matmul_misses_caches_less_with_equal_memory_traffic() -> None:
    x, w = (Tensor.rand(64, 64).realize() for _ in range(2))
    view = explore(lambda: x @ w, repeat=1)
    before, after = view.kernels[0].caches(opts=()), view.kernels[0].caches()
    assert before.total.accesses > 2 * N**3 and after.total.accesses < before.total.accesses / 4
    assert before.total.served[-1] == after.total.served[-1] == 3 * N * N // LINE, "each line comes from memory once"
    text = repr(before.compare(after))
    assert "no opts" in text and "÷" in text
    assert set(after.levels) == {"L1", "L2", "L3", "memory"} and after.caches == caches_of(
        view.capture.analyses.captured(0).spec.target
    )
    assert sum(traffic.accesses for traffic in after.by_line().values()) == after.total.accesses


def test_a_tile_accesses_its_cache_lines() -> None:
    x, w = (Tensor.rand(64, 64).realize() for _ in range(2))
    view = explore(lambda: x @ w, repeat=1, noopt=1)
    model = view.kernels[0].caches()
    assert model.lines_of(g0=2, g1=17) == {"data1": [8, 9, 10, 11], "data2": list(range(1, 256, 4)), "data0": [9]}
    assert list(model.by_loop()) == ["g0", "g1", "r2"]
    with pytest.raises(ValueError, match="no loop k; available: g0, g1, r2"):
        model.lines_of(k=1)
    accesses, addresses = view.kernels[0].memory_stream().whole()
    assert len(accesses) == len(addresses) == 2 * N**3 + N * N, "an address each, in elements"
    assert addresses[:4].tolist() == [N * N, 2 * N * N, N * N + 1, 2 * N * N + N]
    from_text = view.kernels[0].caches(opts=["UPCAST(1, 4)"])
    assert from_text.opts == ("UPCAST(1, 4)",) and from_text.total.accesses < model.total.accesses


def test_data_dependent_indices_run_the_kernel() -> None:
    table, index = Tensor.rand(100, 4).realize(), Tensor([3, 3, 99, 0]).realize()
    without = explore(lambda: table[index], repeat=1, noopt=1)
    number = max(kernel.id for kernel in without.trace.kernels)
    with pytest.raises(DataDependentAddress, match="keep_inputs=True"):
        without.kernels[number].caches()
    model = explore(lambda: table[index], repeat=1, noopt=1, keep_inputs=True).kernels[number].caches()
    assert model.stream.is_data_dependent and model.total.accesses > 0


def test_simulations_that_take_minutes_are_refused() -> None:
    source, out = pointer(1, F32, 1 << 20), pointer(0, F32, 1 << 20)
    again, step = loop(1 << 20, 0), loop(1 << 20, 1)
    uops = linear(out, source, again, step, store(out, step, load(source, step)), end(step), end(again))
    with pytest.raises(TooManyAccessesError, match="accesses memory about 2,199,023,255,552 times"):
        model_caches("long", uops, MACHINE)
    view = explore(Tensor.ones(3) + 1)
    view.close()
    with pytest.raises(CaptureError, match="closed"):
        view.kernels[0].caches()


def test_two_models_are_aligned_buffer_by_buffer_loop_by_loop_and_line_by_line() -> None:
    x, w = (Tensor.rand(N, N).realize() for _ in range(2))
    view = explore(lambda: x @ w, repeat=1)
    before, after = (view.kernels[0].caches(opts=opts) for opts in (["VECTOR(1, 4)"], ["VECTOR(1, 4)", "UPCAST(0, 4)"]))
    found = before.compare(after)
    rows = {of: [row for row in found.rows() if row.of == of] for of in ("buffer", "loop", "line")}
    assert [row.name for row in rows["buffer"]] == ["data1", "data2", "data0"]
    of_w = rows["buffer"][1]
    assert of_w.before is not None and of_w.after is not None
    assert of_w.before.accesses == 4 * of_w.after.accesses, "four rows use each vector that is loaded"
    for of, shown in rows.items():
        for model, traffics in ((before, [row.before for row in shown]), (after, [row.after for row in shown])):
            there = [one for one in traffics if one is not None]
            if of == "loop":
                assert there == list(model.by_loop().values())
            else:
                assert sum(one.accesses for one in there) == model.total.accesses
    texts = [row.name for row in rows["line"]]
    assert all("load" in text or "store" in text for text in texts), texts
    assert "buffer data2" in repr(found)
    assert found.as_data().rows[1][3] == of_w.after


def test_a_loop_or_line_of_only_one_side_has_its_own_row() -> None:
    x, w = (Tensor.rand(N, N).realize() for _ in range(2))
    view = explore(lambda: x @ w, repeat=1)
    rows = view.kernels[0].caches(opts=()).compare(view.kernels[0].caches(opts=["UPCAST(1, 4)", "UPCAST(0, 4)"])).rows()
    alone = [row for row in rows if row.before is None or row.after is None]
    assert alone and all((row.before is None) != (row.after is None) for row in alone)
    assert {row.of for row in alone} == {"line"}


@pytest.mark.parametrize("noopt", [0, 1])
def test_without_numpy_the_program_runs_with_equal_results(noopt: int, monkeypatch: pytest.MonkeyPatch) -> None:
    x, w = Tensor.rand(12, 20).realize(), Tensor.rand(20, 8).realize()
    view = explore(lambda: x @ w, repeat=1, noopt=noopt)
    expected = view.kernels[0].caches()
    counters = dict.fromkeys(list(expected.stream.loop_names.values())[:1], 1)
    touched = expected.lines_of(**counters)
    monkeypatch.setattr("tinyexplore.explore.analysis.models.address_stream.has_numpy", lambda: False)
    monkeypatch.setattr("tinyexplore.explore.analysis.models.caches.simulator", PlainSimulator)
    found = view.kernels[0].caches()
    assert [one.traffic for one in found.accesses] == [one.traffic for one in expected.accesses]
    assert found.lines_of(**counters) == touched and found.total == expected.total


def test_misses_and_bytes_come_before_shares() -> None:
    """A share of fewer accesses may grow while the traffic falls: the headline is absolute."""
    x, w = (Tensor.ones(64, 64).contiguous().realize() for _ in range(2))
    view = explore(lambda: x @ w, repeat=1)
    before, after = view.kernels[0].caches(opts=()), view.kernels[0].caches()
    lines = [model.total.served[-1] for model in (before, after)]
    line_bytes = after.caches[0].line_bytes
    for text in (repr(after), after._repr_html_()):
        assert text.index(f"{lines[1]:,} lines, {lines[1] * line_bytes:,} bytes") < text.index("%")
    told = before.compare(after)
    for text in (repr(told), told._repr_html_()):
        first = f"{lines[0]:,} lines, {lines[0] * line_bytes:,} bytes → {lines[1]:,} lines"
        assert text.index(first) < text.index("accesses" if "accesses" in text else after.name)
