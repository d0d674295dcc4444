"""Random programs on every device agree with NumPy, and every program passes the spec of its stage."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.backends.programs import under
from tests.graphs import graphs, to_numpy
from tests.reference import evaluate
from tinyexplore.lazy import LazyBuffer
from tinyexplore.util import Context

EXAMPLES = {"LLVM": 400, "CLANG": 25, "PYTHON": 60, "WASM": 60, "GPU for opencl": 6, "GPU": 4, "WEBGPU": 12}


def check(node: LazyBuffer) -> None:
    with np.errstate(all="ignore"):
        expected = evaluate(node)
    with Context(SPEC=1):
        found = to_numpy(node)
    if node.dtype.name.startswith("float"):
        scale = max(1.0, float(np.abs(expected[np.isfinite(expected)]).max(initial=0.0)))
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5 * scale)
    else:
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("device", sorted(EXAMPLES))
def test_random_graphs_equal_numpy(device: str, device_or_leave_out: None) -> None:
    head, within = under(device)

    @settings(max_examples=EXAMPLES[device], deadline=None, suppress_health_check=list(HealthCheck))
    @given(graphs(head))
    def run(node: LazyBuffer) -> None:
        check(node)

    with within:
        run()


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(graphs("LLVM"), st.integers(0, 3))
def test_no_opts_and_opts_agree(node: LazyBuffer, threads: int) -> None:
    with np.errstate(all="ignore"):
        expected = evaluate(node)
    with Context(NOOPT=1, SPEC=1, THREADS=threads):
        found = to_numpy(node)
    scale = max(1.0, float(np.abs(expected[np.isfinite(expected)]).max(initial=0.0))) if expected.size else 1.0
    np.testing.assert_allclose(found.astype(float), expected.astype(float), rtol=1e-4, atol=1e-5 * scale)
