"""The shape view: its cells against NumPy on random chains of movements, its expressions against its cells."""

from __future__ import annotations

import json
import random
import re
from math import prod
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from tinyexplore import Tensor, explore
from tinyexplore.explore.analysis.shapes import shape
from tinyexplore.explore.analysis.shapes.cells import MAX_CELLS, shown_box
from tinyexplore.explore.analysis.shapes.moves import HINTS, LAWS, read_argument, suggestion
from tinyexplore.explore.analysis.shapes.trace_shapes import NotAViewError, shape_of_node, shapes_data
from tinyexplore.explore.notebook.requests import respond_from_trace
from tinyexplore.lazy.lazybuffer import ShapeError
from tinyexplore.shape import ShapeTracker, View

CHAINS = 1200
FIXTURE = Path(__file__).parents[1] / "fixtures" / "shapes" / "chains.json"
PADDING = -1


def random_shape(draw: random.Random, size: int) -> tuple[int, ...]:
    sizes = []
    while size > 1:
        divisor = draw.choice([n for n in range(2, size + 1) if size % n == 0])
        sizes.append(divisor)
        size //= divisor
    if draw.random() < 0.3:
        sizes.insert(draw.randint(0, len(sizes)), 1)
    return tuple(sizes)


def random_move(draw: random.Random, sizes: tuple[int, ...]):
    rank = len(sizes)
    pairs = [(a, b) for b in range(rank) for a in range(b) if sizes[a] == sizes[b]]
    names = (
        ["reshape"]
        + ["permute", "shrink", "flip", "stride"] * (rank > 0)
        + ["pad"] * (rank > 0 and 0 < prod(sizes) < 200)
    )
    names += (
        ["expand"] * (1 in sizes)
        + ["window"] * (0 < rank < 5 and max(sizes, default=0) > 1)
        + ["diagonal"] * bool(pairs)
    )
    name = draw.choice(names)
    match name:
        case "reshape":
            return name, random_shape(draw, prod(sizes)) if prod(sizes) else (0, 3)
        case "permute":
            return name, tuple(draw.sample(range(rank), rank))
        case "expand":
            return name, tuple(draw.randint(1, 4) if size == 1 else size for size in sizes)
        case "pad":
            return name, tuple((draw.randint(0, 2), draw.randint(0, 2)) for _ in sizes)
        case "shrink":
            starts = [draw.randint(0, max(0, size - 1)) for size in sizes]
            return name, tuple((start, draw.randint(min(start + 1, size), size)) for start, size in zip(starts, sizes))
        case "flip":
            return name, tuple(axis for axis in range(rank) if draw.random() < 0.5)
        case "stride":
            return name, tuple(draw.choice((1, 1, 2, 3, -1, -2)) for _ in sizes)
        case "window":
            axis = draw.choice([axis for axis in range(rank) if sizes[axis] > 1])
            size = draw.randint(1, min(3, sizes[axis]))
            dilation = draw.randint(1, max(1, (sizes[axis] - 1) // max(1, size - 1))) if size > 1 else 1
            return name, (axis, size, draw.randint(1, 2), dilation)
        case _:
            return name, draw.choice(pairs)


def by_numpy(places: np.ndarray, name: str, arg) -> np.ndarray:
    """The same movement of an array whose elements are their own places in memory."""
    match name:
        case "reshape":
            return places.reshape(arg)
        case "permute":
            return places.transpose(arg)
        case "expand":
            strides = tuple(0 if size == 1 else step for size, step in zip(places.shape, places.strides))
            return np.lib.stride_tricks.as_strided(places, arg, strides)
        case "pad":
            return np.pad(places, arg, constant_values=PADDING)
        case "shrink":
            return places[tuple(slice(*bounds) for bounds in arg)]
        case "flip":
            return np.flip(places, arg)
        case "stride":
            return places[tuple(slice(None, None, step) for step in arg)]
        case "window":
            axis, size, stride, dilation = arg
            count = (places.shape[axis] - dilation * (size - 1) - 1) // stride + 1
            sizes = (*places.shape[:axis], count, *places.shape[axis + 1 :], size)
            step = places.strides[axis]
            strides = (*places.strides[:axis], step * stride, *places.strides[axis + 1 :], step * dilation)
            return np.lib.stride_tricks.as_strided(places, sizes, strides)
        case _:
            return np.moveaxis(np.diagonal(places, axis1=arg[0], axis2=arg[1]), -1, arg[0])


def places_of(view) -> np.ndarray:
    """The contents of the shown cells."""
    flat = [PADDING if cell.offset is None else cell.offset for cell in view.cells]
    return np.array(flat, dtype=np.int64).reshape([stop - start for start, stop in view.box])


def evaluated(text, view) -> list[int]:
    """An index expression at every shown element."""
    place, valid = compile(text.place, "place", "eval"), compile(text.valid or "True", "valid", "eval")
    found = []
    for cell in view.cells:
        names = {f"i{axis}": i for axis, i in enumerate(cell.index)}
        found.append(eval(place, {}, names) if eval(valid, {}, names) else PADDING)
    return found


def test_cells_agree_with_numpy_on_random_chains_of_movements():
    met = {"masked": 0, "zero stride": 0, "negative stride": 0, "several views": 0, "windowed": 0, "empty": 0}
    for seed in range(CHAINS):
        draw = random.Random(seed)
        first = random_shape(draw, draw.choice((1, 6, 8, 12, 24, 30, 48)))
        view, places = shape(first), np.arange(prod(first)).reshape(first)
        for _ in range(draw.randint(1, 6)):
            name, arg = random_move(draw, view.shape)
            view, places = view.moved(name, arg), by_numpy(places, name, arg)
            if places.size > 3000:
                break
        view = view.at(*(draw.randint(0, size) for size in view.shape))
        assert view.shape == places.shape, seed
        part = places[tuple(slice(*bounds) for bounds in view.box)]
        np.testing.assert_array_equal(places_of(view), part, err_msg=f"{seed}: {view!r}")
        assert len(view.cells) <= MAX_CELLS
        np.testing.assert_array_equal(evaluated(view.before, view), part.ravel(), err_msg=f"{seed}: {view!r}")
        np.testing.assert_array_equal(evaluated(view.after, view), part.ravel(), err_msg=f"{seed}: {view!r}")
        assert view.size >= 0 and all(cell.offset is None or 0 <= cell.offset < prod(first) for cell in view.cells)
        strides = [stride for one in view.views for stride in one.strides]
        met["masked"] += any(one.mask is not None for one in view.views)
        met["zero stride"] += any(s == 0 for one in view.views for s, n in zip(one.strides, one.shape) if n > 1)
        met["negative stride"] += min(strides, default=0) < 0
        met["several views"] += len(view.views) > 1
        met["windowed"] += not view.is_whole
        met["empty"] += places.size == 0
    assert min(met[kind] for kind in ("masked", "zero stride", "negative stride", "several views")) > 50, met
    assert met["windowed"] > 5, met


def fixture() -> list[dict]:
    """The expected data of the front end: views, the shown part, and the offsets of its elements."""
    rows = []
    for seed in range(0, CHAINS, 20):
        draw = random.Random(seed)
        view = shape(random_shape(draw, draw.choice((6, 24, 48, 5000))))
        for _ in range(draw.randint(1, 6)):
            view = view.moved(*random_move(draw, view.shape))
        view = view.at(*(draw.randint(0, size) for size in view.shape))
        views = view.as_data().steps[-1].views
        offsets = [cell.offset for cell in view.cells]

        rows.append({"views": views, "first": view.window, "box": view.box, "offsets": offsets})
    return json.loads(json.dumps(rows))


def test_the_front_end_computes_the_same_cells():
    assert json.loads(FIXTURE.read_text(encoding="utf-8")) == fixture()


def test_a_single_view_is_a_stride_trick():
    for seed in range(300):
        draw = random.Random(seed)
        rank = draw.randint(1, 4)
        sizes = tuple(draw.randint(1, 5) for _ in range(rank))
        strides = tuple(draw.randint(-7, 7) for _ in range(rank))
        offset = sum((size - 1) * -stride for size, stride in zip(sizes, strides) if stride < 0) + draw.randint(0, 5)
        mask = tuple((start, draw.randint(start + 1, size)) for size in sizes for start in [draw.randint(0, size - 1)])
        view = shape(View.create(sizes, strides, offset, mask))
        memory = np.arange(2000)
        read = np.lib.stride_tricks.as_strided(
            memory[offset:], sizes, tuple(step * memory.itemsize for step in strides)
        )
        inside = np.zeros(sizes, bool)
        inside[tuple(slice(*bounds) for bounds in mask)] = True
        wanted = np.where(inside, read, PADDING)[tuple(slice(*bounds) for bounds in view.box)]
        np.testing.assert_array_equal(places_of(view), wanted)
        assert view.size == read[inside].max() + 1


def test_the_expression_is_shown_before_and_after_the_rules():
    view = shape((3, 8)).permute(1, 0).reshape(4, 6).shrink((1, 3), (0, 6))
    assert str(view.before) == "(i0*6 + i1 + 6)//3 + (i0*6 + i1 + 6)%3*8"
    assert str(view.after) == "i0*2 + i1//3 + i1%3*8 + 2"
    assert view.formula == "y[i0, i1] = x[i0 + 1, i1]"
    assert str(shape((2, 3)).pad((1, 1), (0, 0)).after) == "i0*3 + i1 - 3  if (0 < i0) & (i0 < 3)"


FORMULAS = {
    "reshape": ((4, 3), "y[i0, i1] = x[i0//2, i0%2*3 + i1]"),
    "permute": ((1, 0), "y[i0, i1] = x[i1, i0]"),
    "pad": (((0, 1), (2, 0)), "y[i0, i1] = x[i0, i1 - 2] where i0 < 2 and 2 <= i1, else 0"),
    "shrink": (((1, 2), (0, 6)), "y[i0, i1] = x[i0 + 1, i1]"),
    "flip": ((1,), "y[i0, i1] = x[i0, 5 - i1]"),
    "stride": ((1, -2), "y[i0, i1] = x[i0, 5 - i1*2]"),
    "window": ((1, 3, 2), "y[i0, i1, i2] = x[i0, i1*2 + i2]"),
}


@pytest.mark.parametrize("op", FORMULAS)
def test_a_movement_has_a_formula_of_its_source_index(op):
    arg, formula = FORMULAS[op]
    view = shape((2, 6)).moved(op, arg)
    assert view.formula == formula
    assert view.law == LAWS[op.upper()]


def test_movements_of_a_tensor_are_its_steps():
    view = shape(Tensor(np.ones((2, 3), np.float32)).T.pad(((1, 0), (0, 0))))
    assert [step.op for step in view.steps] == ["BUFFER", "PERMUTE", "PAD"]
    assert view.cell(1, 1).offset == 3 and not view.cell(0, 0).valid
    assert [cell.index for cell in view.readers(3)] == [(1, 1)]
    assert view.back().shape == (3, 2)
    assert repr(view).splitlines()[-4:] == ["· ·", "0 3", "1 4", "2 5"]


def test_a_large_shape_is_windowed_with_a_message():
    view = shape((1000, 5000))
    assert view.box == ((0, 16), (0, 16)) and len(view.cells) == MAX_CELLS
    assert view.at(990, 4000).box == ((984, 1000), (4000, 4016))
    assert "shown: [0:16, 0:16] of 1000×5000" in repr(view)
    for sizes in [(), (0, 4), (7,), (2, 3, 4, 5), (64, 64, 64), (1,) * 6]:
        box = shown_box(sizes)
        assert prod(stop - start for start, stop in box) <= MAX_CELLS
        assert (0 in sizes) == any(start == stop for start, stop in box)


@pytest.mark.parametrize(
    ("op", "arg", "words"),
    [
        ("reshape", "5", "12 elements, not 5"),
        ("permute", "0, 0", "each of the axes 0 … 1 once"),
        ("expand", "4, 6", "axes of size 1"),
        ("pad", "(1, 1)", "each of 2 axes"),
        ("shrink", "(0, 9), (0, 1)", "0 ≤ start ≤ stop ≤ size"),
        ("flip", "2", "the axes are 0 … 1"),
        ("stride", "0, 1", "a step of 0"),
        ("window", "0, 3", "at least 3"),
        ("diagonal", "0, 1", "two axes of equal size"),
        ("turn", "1", "no movement 'turn'"),
        ("permute", "1; 0", "in their new order"),
    ],
)
def test_an_invalid_movement_raises_an_error_with_valid_ones(op, arg, words):
    with pytest.raises(ShapeError, match=re.escape(words)):
        shape((2, 6)).moved(op, arg)


def test_every_movement_has_a_suggestion_that_fits():
    for sizes in [(2, 6), (1, 4, 4), (5,), (3, 3)]:
        view = shape(sizes)
        for op in LAWS:
            text = suggestion(op, sizes)
            assert op in HINTS
            if text:
                view.moved(op, text)
    assert read_argument("pad", "(1, 1), (0, 2)") == ((1, 1), (0, 2))
    assert read_argument("permute", "(1, 0)") == (1, 0)
    assert shape((4,)).pad((1, 2)).shape == (7,)
    assert shape((4, 6)).reshape(-1, 3).shape == (8, 3)


def test_the_picture_has_a_cell_for_each_element_and_memory_offset():
    view = shape((3, 4)).permute(1, 0).pad((1, 0), (0, 0))
    picture = ElementTree.fromstring(view.svg())
    rects = list(picture.iter("{http://www.w3.org/2000/svg}rect"))
    assert len(rects) == 1 + 15 + 12
    assert sum("stroke-dasharray" in one.attrib for one in rects) == 3
    assert "i0 + i1*4 - 1" in view.svg()
    ElementTree.fromstring(shape(()).svg()), ElementTree.fromstring(shape((0, 3)).svg())
    beside = shape((3, 4), ShapeTracker.from_shape((3, 4)).shrink(((0, 1), (0, 4))))
    assert "view 2" in beside.svg()


def test_a_node_of_a_trace_is_shown_with_the_other_views_of_its_buffer():
    x = Tensor(np.ones((4, 6), np.float32)).realize()
    view = explore(lambda: (x.T.reshape(4, 6) + x.flip(0)).sum(1), repeat=1)
    trace = view.trace
    (flip,) = trace.where(op="FLIP")
    found = shape_of_node(trace, flip)
    assert found.tracker == ShapeTracker.from_shape((4, 6)).flip((0,))
    assert [step.node for step in found.steps] == [flip.src[0], flip.id]
    assert len(found.others) == 1 and len(found.others[0].tracker.views) == 2
    (load, *_) = trace.where(op="LOAD")
    assert shape_of_node(trace, load).steps[0].tracker.shape == (4, 6)
    told = respond_from_trace(trace, {"ask": "shape", "node": flip.id, "moves": [["permute", "1, 0"]]})
    assert told["node"] == flip.id
    assert [step["shape"] for step in told["steps"]] == [[4, 6], [4, 6], [6, 4]]
    assert told["steps"][-1]["after"] == ["i0 + i1*-6 + 18", ""]
    assert (
        "only axes of size 1"
        in respond_from_trace(trace, {"ask": "shape", "node": flip.id, "moves": [["expand", "9, 9"]]})["error"]
    )
    assert flip.id in shapes_data(trace)


def test_a_trace_without_views_raises_an_error():
    x = Tensor.rand(4).realize()
    trace = explore(lambda: x + x, repeat=1).trace
    with pytest.raises(NotAViewError, match="nothing was reshaped"):
        shape_of_node(trace)


if __name__ == "__main__":
    FIXTURE.parent.mkdir(exist_ok=True)
    rows = ",\n".join(json.dumps(row, separators=(",", ":")) for row in fixture())
    FIXTURE.write_text(f"[\n{rows}\n]\n", encoding="utf-8")
