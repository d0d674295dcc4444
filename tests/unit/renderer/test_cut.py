"""What packs at length may be a function of its own, compiled beside the rest: the same program, bit by bit."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pytest

from tests.graphs import attention, from_numpy, matmul, to_numpy
from tests.support.kernels import kernel_of, unread
from tinyexplore.codegen import lower
from tinyexplore.device import Buffer, Device
from tinyexplore.dtype import dtypes
from tinyexplore.engine import compile_all
from tinyexplore.kernel import hand_coded
from tinyexplore.lazy import LazyBuffer
from tinyexplore.renderer import ProgramSpec
from tinyexplore.renderer.fullness import nests_apart
from tinyexplore.renderer.llvm import cut
from tinyexplore.runtime.llvm import packed, shared_compiler, unpacked
from tinyexplore.schedule import create_schedule
from tinyexplore.uop import Ops
from tinyexplore.util import Context


def heads(causal: bool = False) -> LazyBuffer:
    return attention(unread(512, 64), unread(512, 64), unread(512, 64), causal=causal)


def product() -> LazyBuffer:
    return matmul(unread(512, 512), unread(512, 512))


def program(node: LazyBuffer) -> ProgramSpec:
    with Context(THREADS=1):
        kernel = hand_coded(kernel_of(node, Device["LLVM"].target))
    return Device["LLVM"].renderer.render("f", lower(kernel))


def test_a_product_is_one_module() -> None:
    spec = program(product())
    assert nests_apart(spec.uops) == [] and cut(spec.source) == [spec.source]


@pytest.mark.parametrize("causal", [False, True])
def test_what_is_apart_only_fills_scratch_memory_and_leaves_nothing_else(causal: bool) -> None:
    uops = program(heads(causal)).uops
    nests = nests_apart(uops)
    if not nests:
        pytest.skip("on this machine there is nothing so long in it")
    for first, end in nests:
        assert (uops[first].op, uops[end - 1].op) == (Ops.RANGE, Ops.ENDRANGE)
        inside = set(uops[first:end])
        assert all(node.src[0].src[0].op is Ops.DEFINE_LOCAL for node in inside if node.op is Ops.STORE)
        later = [node for node in uops[end:] if node.op is not Ops.BARRIER]
        assert not any(src in inside and src.op is not Ops.CONST for node in later for src in node.src)


@pytest.mark.parametrize("causal", [False, True])
def test_both_ways_to_compile_compute_the_same_bits(causal: bool) -> None:
    spec, compiler = program(heads(causal)), shared_compiler()
    modules = cut(spec.source)
    if len(modules) == 1:
        pytest.skip("on this machine there is nothing to cut")
    assert len(re.findall(r"^define ", modules[1], re.M)) == spec.source.count("; apart: ")
    rng = np.random.default_rng(0)
    found = []
    inputs = [rng.standard_normal(512 * 64).astype(np.float32) for _ in range(spec.n_buffers - 1)]
    for codes in ([compiler.object_code(spec.source)], [compiler.object_code(module) for module in modules]):
        assert unpacked(packed(codes)) == codes
        buffers = [Buffer("LLVM", 512 * 64, dtypes.float32).allocate() for _ in range(spec.n_buffers)]
        for buffer, values in zip(buffers[1:], inputs):
            buffer.copyin(values.data)
        bound = compiler.load(spec, *codes).bind(buffers)
        bound(0, spec.thread_extent or 1)
        found.append(bytes(buffers[0].memoryview()))
    assert found[0] == found[1]


@pytest.mark.parametrize("order", ["shared first", "compiled first", "never shared"])
def test_a_share_is_done_by_whoever_comes_to_it(order: str) -> None:
    spec, compiler = program(heads()), shared_compiler()
    work = compiler.share(spec)
    if work is None:
        pytest.skip("on this machine there is nothing to share")
    with Context(CACHELEVEL=0):
        if order == "shared first":
            work()
        compiler.compile(spec)
        if order == "compiled first":
            work()
    assert spec.key not in compiler._shared


def test_a_first_run_shares_what_it_compiles(tmp_path: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    compiler, shares = shared_compiler(), []
    share: Callable[[ProgramSpec], Callable[[], None] | None] = compiler.share
    interface = Device["LLVM"]
    monkeypatch.setitem(vars(interface), "share", lambda spec: shares.append(share(spec)) or shares[-1])
    rng = np.random.default_rng(1)
    q, k, v = (rng.standard_normal((509, 64)).astype(np.float32) / 4 for _ in range(3))
    with Context(CACHELEVEL=1, DEVICE="LLVM"):
        node = attention(*(from_numpy(x) for x in (q, k, v)), causal=False)
        compile_all(create_schedule([node]))
        found = to_numpy(node)
    scores = np.exp(q @ k.T)
    np.testing.assert_allclose(found, scores / scores.sum(1, keepdims=True) @ v, rtol=1e-4, atol=1e-5)
    assert not compiler._shared
