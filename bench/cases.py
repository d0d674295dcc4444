"""The cases: one declarative row each, with inputs from a seed, a NumPy reference and a lower bound of the work."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from bench import references as ref

Arrays = dict[str, np.ndarray]
Results = tuple[np.ndarray, ...]
MEBI = 1 << 20


@dataclass(frozen=True)
class Case:
    """One case: a family (which the peers implement) with inputs of certain shapes.

    `flops`, `read_bytes` and `write_bytes` are lower bounds for every engine. They exclude work that a causal mask or
    an unused gradient makes unnecessary. `exp` counts as 0 operations.

    name: the row's name in the tables.
    family: the name under which the peers implement it.
    what: a description with the shapes.
    inputs: draws the input arrays from a random generator.
    reference: computes the expected results with NumPy.
    flops: floating-point operations of a call.
    read_bytes: bytes that a call must read.
    write_bytes: bytes that a call must write.
    rtol: permitted difference, as a share of each value.
    atol: permitted difference in addition, as a share of the array's root mean square.
    stateful: a call changes its inputs, as a training step does. Then the harness compares the result of the first call
        and the losses of the next calls.
    group: "main", "wide" or "tiny".
    """

    name: str
    family: str
    what: str
    inputs: Callable[[np.random.Generator], Arrays]
    reference: Callable[[Arrays], Results]
    flops: int
    read_bytes: int
    write_bytes: int
    rtol: float = 1e-4
    atol: float = 1e-5
    stateful: bool = False
    group: str = "main"

    @property
    def seed(self) -> int:
        """Return the seed of the inputs.

        It depends on the name only, so that every run on every machine has the same inputs.
        """
        return zlib.crc32(self.name.encode())

    def make_inputs(self) -> Arrays:
        return self.inputs(np.random.default_rng(self.seed))


def _normal(rng: np.random.Generator, *shape: int, scale: float = 1.0) -> np.ndarray:
    values = rng.standard_normal(shape, dtype=np.float32)
    return values if scale == 1.0 else values * np.float32(scale)


def _normals(**shapes: tuple[int, ...]) -> Callable[[np.random.Generator], Arrays]:
    return lambda rng: {name: _normal(rng, *shape) for name, shape in shapes.items()}


# *** elementwise, reductions, rows ***


def ew_chain(name: str, n: int) -> Case:
    def inputs(rng: np.random.Generator) -> Arrays:
        return {letter: _normal(rng, n, scale=0.5) for letter in "abcd"}

    description = f"((a·b + c).relu()·d − a).exp() on {n:,} elements"
    return Case(name, "ew_chain", description, inputs, ref.ew_chain, 5 * n, 16 * n, 4 * n)


def ew_add(name: str, n: int) -> Case:
    return Case(name, "ew_add", f"a + b, {n:,} elements", _normals(a=(n,), b=(n,)), ref.ew_add, n, 8 * n, 4 * n)


def ew_gelu(name: str, n: int) -> Case:
    description = f"gelu (tanh form) of {n:,} elements"
    return Case(name, "ew_gelu", description, _normals(x=(n,)), ref.ew_gelu, 8 * n, 4 * n, 4 * n)


def full_sum(name: str, n: int) -> Case:
    return Case(name, "sum", f"sum of {n:,} elements", _normals(x=(n,)), ref.full_sum, n, 4 * n, 4, atol=1e-3)


def over_rows(name: str, family: str, rows: int, columns: int, what: str) -> Case:
    """Return a case of a function along the rows or columns of a matrix.

    The result has one number per row, or all elements.
    """
    n = rows * columns
    out = {"colsum": columns, "rowmax": rows, "argmax": 2 * rows}.get(family, n)
    flops = {"softmax": 4 * n, "layernorm": 6 * n}.get(family, n)
    inputs = _normals(x=(rows, columns))
    if family == "layernorm":
        inputs = _normals(x=(rows, columns), w=(columns,), b=(columns,))
    label = f"{what}, {rows} × {columns}"
    return Case(name, family, label, inputs, getattr(ref, family), flops, 4 * n, 4 * out, atol=1e-4)


def cumsum_flat(name: str, n: int) -> Case:
    # the error of a float32 running sum of n steps grows with √n roundings; a result shifted by one place exceeds this
    description = f"running sum of {n:,} elements"
    return Case(name, "cumsum", description, _normals(x=(n,)), ref.cumsum, n, 4 * n, 4 * n, atol=1e-3)


def sort(name: str, n: int) -> Case:
    return Case(name, "sort", f"sort {n:,} elements", _normals(x=(n,)), ref.sort, 0, 4 * n, 4 * n, rtol=0, atol=0)


# *** matrices ***


def matmul(name: str, family: str, m: int, n: int, k: int, what: str) -> Case:
    left, right = (m, k), (k, n)
    if family == "matmul_nt":
        right = (n, k)
    if family == "matmul_tn":
        left = (k, m)
    shapes: dict[str, tuple[int, ...]] = {"a": left, "b": right}
    if family == "matmul_bias_relu":
        shapes["bias"] = (n,)
    read = 4 * (m * k + k * n)
    return Case(name, family, what, _normals(**shapes), getattr(ref, family), 2 * m * n * k, read, 4 * m * n, atol=1e-4)


def bmm(name: str, batch: int, n: int) -> Case:
    description = f"{batch} products of {n} × {n}"
    shapes = _normals(a=(batch, n, n), b=(batch, n, n))
    size = batch * n * n
    return Case(name, "matmul", description, shapes, ref.matmul, 2 * size * n, 8 * size, 4 * size, atol=1e-4)


def gemv(name: str, n: int) -> Case:
    description = f"{n} × {n} matrix times vector"
    return Case(
        name,
        "matmul",
        description,
        _normals(a=(n, n), b=(n,)),
        ref.matmul,
        2 * n * n,
        4 * (n * n + n),
        4 * n,
        atol=1e-4,
    )


def conv3x3(name: str, batch: int, channels: int, size: int) -> Case:
    description = f"3×3 convolution, padding 1, batch {batch}, {channels} → {channels} channels, {size} × {size}"
    places = batch * size * size
    shapes = _normals(x=(batch, channels, size, size), w=(channels, channels, 3, 3))
    flops = 2 * places * channels * channels * 9
    read = 4 * (places * channels + 9 * channels * channels)
    return Case(name, "conv3x3", description, shapes, ref.conv3x3, flops, read, 4 * places * channels, atol=1e-4)


def maxpool2(name: str, batch: int, channels: int, size: int) -> Case:
    n = batch * channels * size * size
    description = f"2×2 max pool, {batch} × {channels} × {size} × {size}"
    return Case(name, "maxpool2", description, _normals(x=(batch, channels, size, size)), ref.maxpool2, n, 4 * n, n)


def moved(name: str, family: str, shape: tuple[int, ...], what: str) -> Case:
    n = int(np.prod(shape))
    return Case(name, family, what, _normals(x=shape), getattr(ref, family), 0, 4 * n, 4 * n, rtol=0, atol=0)


def embedding(name: str, rows: int, width: int, picked: int) -> Case:
    def inputs(rng: np.random.Generator) -> Arrays:
        return {"table": _normal(rng, rows, width), "index": rng.integers(0, rows, picked, dtype=np.int32)}

    n = picked * width
    description = f"{picked} rows picked from {rows} × {width}"
    return Case(name, "embedding", description, inputs, ref.embedding, 0, 4 * n + 4 * picked, 4 * n, rtol=0, atol=0)


# *** attention and nets ***


def sdpa(name: str, batch: int, heads: int, length: int, width: int) -> Case:
    shape = (batch, heads, length, width)
    n = batch * heads * length * width
    description = f"causal attention, batch {batch}, {heads} heads, length {length}, width {width}"
    flops = 4 * batch * heads * width * length * (length + 1) // 2
    return Case(
        name, "sdpa", description, _normals(q=shape, k=shape, v=shape), ref.sdpa, flops, 12 * n, 4 * n, atol=1e-4
    )


def mlp(name: str, family: str, batch: int, sizes: tuple[int, ...] = (784, 512, 512, 10)) -> Case:
    """Return a case of an MLP. `family`: mlp_fwd, mlp_sgd or mlp_adam.

    A step needs no gradient of the images.
    """

    def inputs(rng: np.random.Generator) -> Arrays:
        arrays: Arrays = {"x": _normal(rng, batch, sizes[0])}
        arrays["y"] = rng.integers(0, sizes[-1], batch, dtype=np.int32)
        for number, (wide, out) in enumerate(zip(sizes, sizes[1:]), 1):
            arrays[f"w{number}"] = _normal(rng, wide, out, scale=wide**-0.5)
            arrays[f"b{number}"] = _normal(rng, out, scale=0.1)
        return arrays

    products = [wide * out for wide, out in zip(sizes, sizes[1:])]
    parameters = sum(products) + sum(sizes[1:])
    forward = 2 * batch * sum(products)
    flops = forward if family == "mlp_fwd" else 3 * forward - 2 * batch * products[0]
    copies = {"mlp_fwd": 0, "mlp_sgd": 1, "mlp_adam": 3}[family]
    kind = {"mlp_fwd": "forward", "mlp_sgd": "training step, SGD", "mlp_adam": "training step, Adam"}[family]
    return Case(
        name,
        family,
        f"MLP {'-'.join(map(str, sizes))}, batch {batch}: {kind}",
        inputs,
        getattr(ref, family),
        flops,
        4 * (batch * sizes[0] + parameters * max(copies, 1)),
        4 * parameters * copies + 4 * batch * sizes[-1],
        rtol=1e-5,
        atol=1e-4,
        stateful=family != "mlp_fwd",
    )


def block(name: str, family: str, batch: int, length: int, width: int) -> Case:
    """Return a case of a causal transformer block: 8 heads, an MLP four times as wide, gradients of every parameter."""

    def inputs(rng: np.random.Generator) -> Arrays:
        arrays: Arrays = {"x": _normal(rng, batch, length, width)}
        for norm in ("ln1", "ln2"):
            arrays[f"{norm}_w"] = 1 + _normal(rng, width, scale=0.1)
            arrays[f"{norm}_b"] = _normal(rng, width, scale=0.1)
        shapes = {"qkv": (width, 3 * width), "o": (width, width), "1": (width, 4 * width), "2": (4 * width, width)}
        for key, (wide, out) in shapes.items():
            arrays[f"w{key}"] = _normal(rng, wide, out, scale=wide**-0.5)
            arrays[f"b{key}"] = _normal(rng, out, scale=0.1)
        return arrays

    tokens = batch * length
    dense = 2 * tokens * 12 * width * width
    attention = 4 * batch * width * length * (length + 1) // 2
    forward = dense + attention
    # the backward pass of a product has two products of the same size
    flops = forward if family == "block_fwd" else 3 * forward
    parameters = 12 * width * width + 13 * width
    written = tokens * width if family == "block_fwd" else parameters
    kind = "forward" if family == "block_fwd" else "forward and backward"
    return Case(
        name,
        family,
        f"transformer block, batch {batch}, length {length}, width {width}, 8 heads, causal: {kind}",
        inputs,
        getattr(ref, family),
        flops,
        4 * (tokens * width + parameters),
        4 * written,
        rtol=1e-4,
        atol=1e-3,
    )


CLEAR = 1e-5  # a share of a layer's spread: about thirty times the effect of float32 rounding on its values


def redraw_images_near_kinks(arrays: Arrays, rng: np.random.Generator) -> None:
    """Replace images until no gradient of `convnet_adam` depends on the rounding of a peer.

    Rounding decides the direction of a gradient where the input of a ReLU is almost 0. The same holds where the two
    largest values of a pool window are almost equal. Of the three million such places in 64 images, a few are that
    close.
    """
    for _ in range(200):
        close = np.flatnonzero(ref.convnet_clearance(arrays) < CLEAR)
        if not close.size:
            return
        arrays["x"][close] = _normal(rng, close.size, *arrays["x"].shape[1:])
    raise RuntimeError(f"200 draws, and {close.size} images still lie within {CLEAR:g} of a kink")


def convnet(name: str, family: str, batch: int) -> Case:
    """Return a case of a convnet on images of 28 × 28.

    Layers: conv 5×5 1→32, 32→32, batchnorm, pool, conv 3×3 32→64, 64→64, batchnorm, pool, linear.
    """

    def inputs(rng: np.random.Generator) -> Arrays:
        arrays: Arrays = {"x": _normal(rng, batch, 1, 28, 28), "y": rng.integers(0, 10, batch, dtype=np.int32)}
        for number, (wide, out, size) in enumerate(ref.CONVNET_LAYERS, 1):
            arrays[f"c{number}"] = _normal(rng, out, wide, size, size, scale=(wide * size * size) ** -0.5)
            arrays[f"d{number}"] = _normal(rng, out, scale=0.1)
        for number, channels in enumerate((32, 64), 1):
            arrays[f"g{number}"] = 1 + _normal(rng, channels, scale=0.1)
            arrays[f"h{number}"] = _normal(rng, channels, scale=0.1)
            arrays[f"mean{number}"] = _normal(rng, channels, scale=0.1)
            arrays[f"var{number}"] = 0.5 + rng.random(channels, dtype=np.float32)
        arrays["w"] = _normal(rng, 576, 10, scale=576**-0.5)
        arrays["b"] = _normal(rng, 10, scale=0.1)
        if family == "convnet_adam":
            redraw_images_near_kinks(arrays, rng)
        return arrays

    places = (24 * 24, 20 * 20, 8 * 8, 6 * 6)
    products = [
        2 * batch * area * wide * out * size * size for area, (wide, out, size) in zip(places, ref.CONVNET_LAYERS)
    ]
    forward = sum(products) + 2 * batch * 5760
    flops = forward if family == "convnet_fwd" else 3 * forward - products[0]
    parameters = sum(wide * out * size * size + out for wide, out, size in ref.CONVNET_LAYERS) + 192 + 5770
    copies = 0 if family == "convnet_fwd" else 3
    kind = "forward, running statistics" if family == "convnet_fwd" else "training step, Adam, batch statistics"
    return Case(
        name,
        family,
        f"convnet on 28 × 28, batch {batch}: {kind}",
        inputs,
        getattr(ref, family),
        flops,
        4 * (batch * 784 + parameters * max(copies, 1)),
        4 * (batch * 10 + parameters * copies),
        rtol=1e-5,
        atol=1e-4 if family == "convnet_fwd" else 1e-3,
        stateful=family == "convnet_adam",
    )


CASES: tuple[Case, ...] = (
    ew_chain("ew_chain_16M", 16 * MEBI),
    ew_add("ew_add_16M", 16 * MEBI),
    ew_gelu("ew_gelu_16M", 16 * MEBI),
    ew_add("ew_add_1K", 1024),
    full_sum("sum_16M", 16 * MEBI),
    over_rows("colsum_4096", "colsum", 4096, 4096, "sums of the columns"),
    over_rows("rowmax_4096", "rowmax", 4096, 4096, "maxima of the rows"),
    over_rows("softmax_4096", "softmax", 4096, 4096, "softmax of the rows"),
    over_rows("layernorm_4096x1024", "layernorm", 4096, 1024, "layernorm of the rows, with weight and bias"),
    matmul("matmul_256", "matmul", 256, 256, 256, "256 × 256 times 256 × 256"),
    matmul("matmul_512", "matmul", 512, 512, 512, "512 × 512 times 512 × 512"),
    matmul("matmul_1024", "matmul", 1024, 1024, 1024, "1024 × 1024 times 1024 × 1024"),
    matmul("matmul_2048", "matmul", 2048, 2048, 2048, "2048 × 2048 times 2048 × 2048"),
    matmul("matmul_nt_1024", "matmul_nt", 1024, 1024, 1024, "a @ b.T, 1024"),
    matmul("matmul_tn_1024", "matmul_tn", 1024, 1024, 1024, "a.T @ b, 1024"),
    bmm("bmm_8x512", 8, 512),
    matmul("matmul_bias_relu_1024", "matmul_bias_relu", 1024, 1024, 1024, "(a @ b + bias).relu(), 1024"),
    gemv("gemv_4096", 4096),
    conv3x3("conv3x3_32x64x56", 32, 64, 56),
    conv3x3("conv3x3_1x64x56", 1, 64, 56),
    maxpool2("maxpool2_32x64x56", 32, 64, 56),
    moved("transpose_4096", "transpose", (4096, 4096), "4096 × 4096 transposed"),
    moved("permute_nhwc_32x64x56", "permute_nhwc", (32, 64, 56, 56), "NCHW → NHWC, 32 × 64 × 56 × 56"),
    embedding("embedding_50kx512", 50_000, 512, 4096),
    over_rows("cumsum_4096", "cumsum", 4096, 4096, "running sums of the rows"),
    cumsum_flat("cumsum_16M", 16 * MEBI),
    over_rows("argmax_4096", "argmax", 4096, 4096, "places of the rows' maxima"),
    sort("sort_1M", MEBI),
    sdpa("sdpa_4x8x512x64", 4, 8, 512, 64),
    mlp("mlp_fwd_128", "mlp_fwd", 128),
    mlp("mlp_sgd_128", "mlp_sgd", 128),
    mlp("mlp_adam_128", "mlp_adam", 128),
    block("block_fwd_4x256x512", "block_fwd", 4, 256, 512),
    block("block_fwdbwd_4x256x512", "block_fwdbwd", 4, 256, 512),
    convnet("convnet_fwd_64", "convnet_fwd", 64),
    convnet("convnet_adam_64", "convnet_adam", 64),
)

TINY: tuple[Case, ...] = tuple(
    replace(case, group="tiny")
    for case in (
        ew_chain("tiny_chain", 3000),
        ew_add("tiny_add", 1000),
        ew_gelu("tiny_gelu", 1000),
        full_sum("tiny_sum", 5000),
        over_rows("tiny_colsum", "colsum", 40, 50, "sums of the columns"),
        over_rows("tiny_rowmax", "rowmax", 40, 50, "maxima of the rows"),
        over_rows("tiny_softmax", "softmax", 12, 20, "softmax of the rows"),
        over_rows("tiny_layernorm", "layernorm", 12, 20, "layernorm of the rows"),
        matmul("tiny_matmul", "matmul", 24, 40, 56, "24 × 56 times 56 × 40"),
        matmul("tiny_matmul_nt", "matmul_nt", 24, 40, 56, "a @ b.T"),
        matmul("tiny_matmul_tn", "matmul_tn", 24, 40, 56, "a.T @ b"),
        bmm("tiny_bmm", 3, 24),
        matmul("tiny_bias_relu", "matmul_bias_relu", 24, 40, 56, "(a @ b + bias).relu()"),
        gemv("tiny_gemv", 40),
        conv3x3("tiny_conv", 2, 4, 8),
        maxpool2("tiny_maxpool", 2, 4, 8),
        moved("tiny_transpose", "transpose", (40, 50), "transposed"),
        moved("tiny_permute", "permute_nhwc", (2, 4, 6, 8), "NCHW → NHWC"),
        embedding("tiny_embedding", 50, 16, 12),
        over_rows("tiny_cumsum", "cumsum", 12, 20, "running sums of the rows"),
        cumsum_flat("tiny_cumsum_flat", 1000),
        over_rows("tiny_argmax", "argmax", 12, 20, "places of the rows' maxima"),
        sort("tiny_sort", 1000),
        sdpa("tiny_sdpa", 1, 2, 16, 8),
        mlp("tiny_mlp_fwd", "mlp_fwd", 8, (20, 16, 16, 10)),
        mlp("tiny_mlp_sgd", "mlp_sgd", 8, (20, 16, 16, 10)),
        mlp("tiny_mlp_adam", "mlp_adam", 8, (20, 16, 16, 10)),
        block("tiny_block_fwd", "block_fwd", 1, 8, 32),
        block("tiny_block_fwdbwd", "block_fwdbwd", 1, 8, 32),
        convnet("tiny_convnet_fwd", "convnet_fwd", 2),
        convnet("tiny_convnet_adam", "convnet_adam", 4),
    )
)


class UnknownCase(ValueError):
    """No case has the requested name."""


def choose_cases(
    patterns: Sequence[str], known: Sequence[Case] = (*CASES, *TINY), default: Sequence[Case] = CASES
) -> list[Case]:
    """Return the cases of `known` that `patterns` select, in the order of `known`. Without patterns: `default`.

    A pattern is a name or the beginning of names.
    """
    if not patterns:
        return list(default)
    chosen: set[str] = set()
    for pattern in patterns:
        exact = [case.name for case in known if case.name == pattern]
        names = exact or [case.name for case in known if case.name.startswith(pattern)]
        if not names:
            raise UnknownCase(f"no case is called {pattern!r}; known: {', '.join(case.name for case in known)}")
        chosen.update(names)
    return [case for case in known if case.name in chosen]
