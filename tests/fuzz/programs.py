"""Programs of awkward sizes for the fuzz of opts: every kind of kernel, drawn from a random generator."""

from __future__ import annotations

import math
from collections.abc import Callable
from random import Random

import numpy as np

from tinyexplore import Tensor

Program = Callable[[Random, str], Tensor]

SIDES = (1, 1, 2, 3, 5, 7, 8, 13, 16, 17, 23, 31, 32, 33, 63, 64, 67, 129)
ELEMENTS = 40_000  # keeps one run, unoptimized and on a shared machine, in milliseconds
STEPS = 400_000


def sides(random: Random, rank: int, most: int = ELEMENTS) -> tuple[int, ...]:
    """`rank` sides, of at most `most` elements together."""
    while True:
        found = tuple(random.choice(SIDES) for _ in range(rank))
        if np.prod(found, dtype=np.int64) <= most:
            return found


def filled(random: Random, shape: tuple[int, ...], device: str, dtype: str = "float32") -> Tensor:
    """Small multiples of a half (whole numbers for ints), so that most sums are exact in any order."""
    generator = np.random.default_rng(random.getrandbits(32))
    if dtype == "bool":
        values = generator.integers(0, 2, shape).astype(bool)
    elif dtype.startswith(("int", "uint")):
        values = generator.integers(0 if dtype[0] == "u" else -9, 10, shape).astype(dtype)
    else:
        values = (generator.integers(-6, 7, shape) / 2).astype("float32" if dtype == "bfloat16" else dtype)
    made = Tensor(values, device=device)
    return made.cast("bfloat16").contiguous().realize() if dtype == "bfloat16" else made


def viewed(random: Random, x: Tensor) -> Tensor:
    """`x` seen another way: flipped, permuted, cut, with steps, padded, broadcast."""
    for _ in range(random.randint(0, 3)):
        rank = len(x.shape)
        match random.choice(("flip", "permute", "shrink", "step", "pad", "expand", "reshape")):
            case "flip":
                x = x.flip([axis for axis in range(rank) if random.random() < 0.5])
            case "permute":
                x = x.permute(random.sample(range(rank), rank))
            case "shrink":
                x = x.shrink([cut(random, size) for size in x.shape])
            case "step":
                x = x[tuple(slice(None, None, random.choice((1, 2, 3, -1, -2))) for _ in range(rank))]
            case "pad" if x.numel() < ELEMENTS // 4:
                x = x.pad([(random.randint(0, 3), random.randint(0, 3)) for _ in x.shape])
            case "expand" if x.numel() < ELEMENTS // 8:
                at = random.randint(0, rank)
                shape = (*x.shape[:at], random.choice((1, 3, 5)), *x.shape[at:])
                x = x.unsqueeze(at).expand(shape)
            case "reshape":
                at = random.randint(0, rank)
                x = x.reshape(*x.shape[:at], 1, *x.shape[at:]) if rank < 4 else x.flatten()
    return x


def cut(random: Random, size: int) -> tuple[int, int]:
    start = random.randint(0, (size - 1) // 2)
    return start, random.randint(start + 1, size)


FLOATS = ("float32", "float32", "float32", "float64", "float16", "bfloat16")
INTS = ("int32", "int8", "int64", "uint8", "uint16")


def elementwise(random: Random, device: str) -> Tensor:
    x = viewed(random, filled(random, sides(random, random.randint(1, 4)), device, random.choice(FLOATS + INTS)))
    y = filled(random, x.shape, device) if random.random() < 0.7 else x.flip([0]) if x.shape else x
    joined = random.choice((x + y, x * y, x.maximum(y), (x < y).where(x, y), x - 2 * y))
    return joined.contiguous()


def copies(random: Random, device: str) -> Tensor:
    dtype = random.choice(FLOATS + INTS + ("bool",))
    return viewed(random, filled(random, sides(random, random.randint(2, 4)), device, dtype)).contiguous()


def seventeen(random: Random, device: str) -> Tensor:
    x = filled(random, (17, 63, 129), device)
    y = filled(random, random.choice(((129,), (63, 1), (17, 1, 129), (17, 63, 129))), device)
    return random.choice((x + y, (x * y).sum(random.randint(0, 2)), x.permute(2, 0, 1).contiguous(), x.max((0, 2))))


def strided(random: Random, device: str) -> Tensor:
    """Few elements far apart, some walked backwards."""
    stride = random.choice((257, 1023, 4099))
    x = filled(random, (stride * random.choice((3, 17, 32)),), device)
    step = random.choice((stride, -stride, stride - 1, 1 - stride))
    y = x[::step]
    return random.choice((y + y, y.sum(), (y + x[: y.shape[0]]).contiguous(), y.reshape(-1, 1) * y))


def reduction(random: Random, device: str) -> Tensor:
    x = viewed(random, filled(random, sides(random, random.randint(1, 4)), device, random.choice(FLOATS + INTS)))
    axes = tuple(axis for axis in range(len(x.shape)) if random.random() < 0.6) or (0,)
    found = random.choice((x.sum, x.max, x.min, x.sum))(axes)
    return found * 2 + 1 if random.random() < 0.4 else found


def truths(random: Random, device: str) -> Tensor:
    x = filled(random, sides(random, 2), device)
    return random.choice(((x > 1).any(1), (x > -3).all(0), (x > 0).sum(0), (x < x.flip([0])).contiguous()))


def products(random: Random, device: str) -> Tensor:
    x = filled(random, sides(random, 2, 2000), device)
    return (x * 0.125 + 1).prod(random.randint(0, 1))


def row_twice(random: Random, device: str) -> Tensor:
    x = filled(random, sides(random, random.randint(1, 3)), device, random.choice(("float32", "float64")))
    axis = random.randint(0, len(x.shape) - 1)
    return random.choice((x.softmax(axis), x.log_softmax(axis), x.layernorm(axis), x - x.mean(axis, keepdim=True)))


def spread(random: Random, device: str) -> Tensor:
    x = filled(random, sides(random, 2), device)
    return random.choice((x.var(1, correction=0), x.std(0, correction=0), x.logsumexp(1), (x - x.max()).exp().sum(0)))


def kept(random: Random, device: str) -> Tensor:
    """Something dear of every row, which its results read beside sums over it: the row is kept."""
    shape = sides(random, random.randint(2, 3))
    axes = random.choice(((len(shape) - 1,), tuple(range(1, len(shape)))))
    x = filled(random, shape, device)
    row = random.choice((x.exp(), x.sigmoid(), (x * x + 1).sqrt(), (x - x.max(axes, keepdim=True)).exp()))
    total = random.choice((row.sum(axes, keepdim=True), row.max(axes, keepdim=True) + 1))
    columns = filled(random, shape[1:], device)
    rows = filled(random, tuple(1 if axis in axes else side for axis, side in enumerate(shape)), device)
    return random.choice(
        (
            row / total,
            (row - total) * columns + rows,
            (row > total * 0.5).where(row, columns) / total,
            (row / total + filled(random, shape, device)).cast("float16").float(),
            (row * 0.5).floor().cast("int32") % 3 + total.cast("int32"),
        )
    )


def running(random: Random, device: str) -> Tensor:
    x = viewed(random, filled(random, sides(random, random.randint(1, 3)), device))
    axis = random.randint(0, len(x.shape) - 1)
    found = random.choice((x.cumsum(axis), x.cummax(axis)[0], (x * 0.125 + 1).cumprod(axis)))
    return random.choice((found, found + x, found.sum(axis), found * 2))


def gathered(random: Random, device: str) -> Tensor:
    rows, width, wanted = sides(random, 3, STEPS // 8)
    table = filled(random, (rows, width), device)
    index = Tensor(np.random.default_rng(random.getrandbits(32)).integers(0, rows, (wanted,)), device=device)
    picked = table[index]
    return random.choice((picked, picked.sum(0), picked.sum(1), picked * 2 + 1, picked.T.contiguous()))


def taken(random: Random, device: str) -> Tensor:
    x = filled(random, sides(random, 2), device)
    axis = random.randint(0, 1)
    shape = list(x.shape)
    shape[axis] = random.choice((1, 3, 16))
    index = np.random.default_rng(random.getrandbits(32)).integers(0, x.shape[axis], shape)
    return x.gather(axis, Tensor(index, device=device))


def scattered(random: Random, device: str) -> Tensor:
    """Rows, or single elements, into places named once, often or not at all; an index for all or for each row."""
    outer, rows, width = sides(random, 3, STEPS // 8)
    wanted = random.choice((1, 3, 16, 40))
    dtype = random.choice(("float32", "float32", "int32", "float16"))
    x, values = (
        filled(random, (outer, rows, width), device, dtype),
        filled(random, (outer, wanted, width), device, dtype),
    )
    named = random.choice(((1, wanted, 1), (outer, wanted, 1), (outer, wanted, width)))
    index = Tensor(np.random.default_rng(random.getrandbits(32)).integers(0, rows, named), device=device)
    into = random.choice((x, x * 0))
    how = random.choice(("sum", "amax", "amin", "last"))
    if how == "last":
        return into.scatter(1, index.expand(outer, wanted, width), values)
    return into.scatter_reduce(1, index.expand(outer, wanted, width), values, how, random.random() < 0.7)


def numbered(random: Random, device: str) -> Tensor:
    """Which of its kind each element of a row is, counted from some number on."""
    outer, bins = sides(random, 2, STEPS // 8)
    wanted = random.choice((1, 3, 16, 40))
    first = filled(random, (outer, bins), device, "int32")
    numbers = np.random.default_rng(random.getrandbits(32)).integers(-1, bins + 1, (outer, wanted), np.int32)
    index = Tensor(numbers, device=device)
    if random.random() < 0.3:
        first = first.sum(0, keepdim=True).expand(outer, bins)
    found = first._wrap(first.lazydata.fetch_add(index.lazydata))
    return found * 2 if random.random() < 0.3 else found


def product(random: Random, device: str) -> Tensor:
    m, k, n = sides(random, 3, STEPS)
    dtype = random.choice(("float32", "float32", "float32", "float64", "int32", "float16", "bfloat16"))
    a = filled(random, (m, k), device, dtype) if random.random() < 0.5 else filled(random, (k, m), device, dtype).T
    b = filled(random, (k, n), device, dtype) if random.random() < 0.5 else filled(random, (n, k), device, dtype).T
    if random.random() < 0.2:
        a = a.flip([1])
    if random.random() < 0.2:
        b = b.pad(((0, 0), (1, 2)))
    found = a @ b
    return random.choice((found, found, (found + filled(random, found.shape[1:], device)).relu(), found.sum(0)))


def words(random: Random, device: str) -> Tensor:
    """A product of small numbers, about as large as the tiles of a tensor core: several of them, or not all of one."""
    m, n = (random.choice((1, 15, 16, 17, 32, 40)) for _ in range(2))
    dtype = random.choice(("bfloat16", "int8"))
    k = random.choice((31, 32, 64, 70, 96, 128)) * (1 if dtype == "bfloat16" else 2)
    a = filled(random, (m, k), device, dtype) if random.random() < 0.5 else filled(random, (k, m), device, dtype).T
    b = filled(random, (k, n), device, dtype) if random.random() < 0.5 else filled(random, (n, k), device, dtype).T
    wide = "float32" if dtype == "bfloat16" else "int32"
    found = a.dot(b, acc_dtype=wide)
    return random.choice((found, (found + filled(random, (n,), device, wide)).relu(), found.cast(dtype), found.T * 2))


def batched(random: Random, device: str) -> Tensor:
    b, m, k, n = sides(random, 4, STEPS)
    x, y = filled(random, (b, m, k), device), filled(random, (b, k, n), device)
    return random.choice((x @ y, (x @ y).max(2), x.permute(1, 0, 2) @ filled(random, (k, n), device)))


def vectors(random: Random, device: str) -> Tensor:
    m, n = sides(random, 2)
    a, x = filled(random, (m, n), device), filled(random, (n,), device)
    return random.choice((a @ x, (a * x).sum(1) + 1, x @ a.T, (x * x).sum()))


def convolution(random: Random, device: str) -> Tensor:
    groups = random.choice((1, 1, 1, 2, 3))
    batch, height, width = random.choice((1, 2, 3)), random.choice((5, 7, 12, 17)), random.choice((5, 8, 16, 23))
    inside, outside = groups * random.choice((1, 2, 3, 4)), groups * random.choice((1, 2, 3, 5, 8))
    x = filled(random, (batch, inside, height, width), device)
    w = filled(random, (outside, inside // groups, random.choice((1, 2, 3)), random.choice((1, 3))), device)
    stride, dilation = random.choice((1, 1, 2)), random.choice((1, 1, 2))
    found = x.conv2d(w, groups=groups, stride=stride, dilation=dilation, padding=random.choice((0, 1, (1, 2))))
    return found.relu() if random.random() < 0.3 else found


def pooled(random: Random, device: str) -> Tensor:
    x = filled(random, (random.choice((1, 2)), random.choice((1, 3)), *sides(random, 2, 4000)), device)
    size = tuple(random.randint(1, min(3, side)) for side in x.shape[2:])
    stride = random.choice((size, 1))
    return random.choice((x.max_pool2d(size, stride), x.avg_pool2d(size, stride)))


def unfolded(random: Random, device: str) -> Tensor:
    x = filled(random, (random.choice(SIDES[2:]) + 4, random.choice(SIDES)), device)
    windows = x.unfold(0, random.randint(1, 4), random.randint(1, 3))
    return random.choice((windows.sum(2), windows.contiguous(), windows.max((0, 2))))


def transcendental(random: Random, device: str) -> Tensor:
    x = filled(random, sides(random, random.randint(1, 3)), device, random.choice(("float32", "float64", "float16")))
    far = (x * random.choice((1.0, 3e4, 1e30))).float().contiguous()  # some lanes, all lanes take the long way
    turned = random.choice((far.sin(), far.cos().sum(0), far.sin() + far.cos(), (far.sin() * 3).cos()))
    return random.choice((x.exp(), turned, x.tanh(), (x.abs() + 1).log(), x.gelu(), x.sigmoid().sum(0)))


def converted(random: Random, device: str) -> Tensor:
    x = filled(random, sides(random, 2), device, random.choice(FLOATS + INTS))
    kinds = ("float32", "float64", "int32", "int64", "float16", "bfloat16", "int8", "fp8e4m3", "fp8e5m2")
    return x.cast(random.choice(kinds)) + 1


def ordered(random: Random, device: str) -> Tensor:
    x = filled(random, sides(random, 2, 3000), device)
    return random.choice((x.argmax(1), x.argmin(0), x.sort(1)[0]))


def diagonals(random: Random, device: str) -> Tensor:
    side = random.choice(SIDES)
    x = filled(random, (side, side), device)
    return random.choice((x.diagonal() + 1, x.tril() + 0, x.triu().sum(0), Tensor.eye(side, device=device) + x))


def joined(random: Random, device: str) -> Tensor:
    m, n = sides(random, 2, 5000)
    x, y = filled(random, (m, n), device), filled(random, (random.choice((1, 4, 9)), n), device)
    return random.choice((x.cat(y), x.cat(y).sum(0), x.cat(y).flip([0]) * 2))


def attention(random: Random, device: str) -> Tensor:
    b, t, d = random.choice((1, 2)), random.choice((1, 5, 16, 23)), random.choice((4, 7, 16))
    q, k, v = (filled(random, (b, 2, t, d), device) for _ in range(3))
    return q.scaled_dot_product_attention(k, v, is_causal=random.random() < 0.5)


def masked(random: Random, device: str) -> Tensor:
    """Rows of which a triangle hides the end: loops may stop early, and rows are kept."""
    rows, columns = random.choice((1, 5, 16, 23, 40)), random.choice((1, 8, 17, 33, 64))
    scores = filled(random, (rows, columns), device)
    seen = Tensor.ones(rows, columns, device=device).tril(random.choice((-1, 0, 0, 3))).cast("bool")
    weights = seen.where(scores, -1e9 if random.random() < 0.3 else -math.inf).softmax(-1)
    values = filled(random, (columns, random.choice((1, 7, 16))), device)
    return random.choice(
        (weights, weights @ values, seen.where(scores, 0).sum(1), seen.where(scores, -math.inf).max(1))
    )


def gradient(random: Random, device: str) -> Tensor:
    m, k, n = sides(random, 3, STEPS // 8)
    w = filled(random, (k, n), device)
    w.requires_grad = True
    x = filled(random, (m, k), device)
    ((x @ w).relu().sum(1) * filled(random, (m,), device)).sum().backward()
    assert w.grad is not None
    return w.grad


def added_up(random: Random, device: str) -> Tensor:
    """What goes back into the rows of a table: several may go into one, and none into another."""
    rows, width, wanted = sides(random, 3, STEPS // 8)
    table = filled(random, (rows, width), device)
    table.requires_grad = True
    index = Tensor(np.random.default_rng(random.getrandbits(32)).integers(0, rows, (wanted,)), device=device)
    (table[index] * filled(random, (wanted, width), device)).sum().backward()
    assert table.grad is not None
    return table.grad


def empty(random: Random, device: str) -> Tensor:
    shape = random.choice(((0,), (3, 0), (0, 5)))
    x = filled(random, shape, device)
    y = filled(random, (5,), device)
    return random.choice((x.sum() + y, x.sum(0).sum() * y, x.reshape(-1).cat(y), filled(random, (1, 1, 1), device) + 1))


def counted(random: Random, device: str) -> Tensor:
    n = random.choice(SIDES)
    return random.choice(
        (
            Tensor.arange(n, device=device) * 3,
            Tensor.full((n, 3), 2.5, device=device).sum(0),
            Tensor.ones(n, device=device) + 1,
        )
    )


PROGRAMS: dict[str, Program] = {
    program.__name__: program
    for program in (
        elementwise,
        copies,
        seventeen,
        strided,
        reduction,
        truths,
        products,
        row_twice,
        spread,
        kept,
        running,
        gathered,
        taken,
        scattered,
        numbered,
        product,
        words,
        batched,
        vectors,
        convolution,
        pooled,
        unfolded,
        transcendental,
        converted,
        ordered,
        diagonals,
        joined,
        attention,
        masked,
        gradient,
        added_up,
        empty,
        counted,
    )
}
