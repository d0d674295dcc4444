"""Import paths of tinygrad programs lead to the same objects, and importing them is cheap."""

from __future__ import annotations

import importlib
import pickle

import numpy as np
import pytest

import tinyexplore
from tests.architecture.test_imports import run_python
from tinyexplore import GlobalCounters, Tensor, Variable, aliases

NAMES = [(path, name) for path, homes in aliases._PATHS.items() for name in homes]


@pytest.mark.parametrize(("path", "name"), NAMES)
def test_every_tinygrad_name_exists(path: str, name: str) -> None:
    module = importlib.import_module(f"tinyexplore.{path}")
    assert getattr(module, name) is not None and name in dir(module) and name in module.__all__


@pytest.mark.parametrize("path", ["engine.realize", "engine.schedule"])
def test_a_function_at_a_module_path_is_preserved(path: str) -> None:
    before = run_python(f"import tinyexplore.engine\nprint(tinyexplore.{path}.__code__.co_name)")
    program = f"""
        import tinyexplore.{path} as path
        from tinyexplore.{path} import *
        import tinyexplore
        from tinyexplore import Tensor

        assert (Tensor([1, 2]) + 1).tolist() == [2, 3] and len((Tensor([1, 2]) * 3).schedule()) == 1
        assert tinyexplore.{path} is path and path.ScheduleItem if hasattr(path, "ScheduleItem") else path.ExecItem
        print(tinyexplore.{path}.__code__.co_name)
    """
    assert run_python(program) == before


def test_aliases_are_the_same_objects() -> None:
    from tinyexplore.codegen.kernel import Kernel, OptOps
    from tinyexplore.engine.jit import TinyJit
    from tinyexplore.multi import MultiLazyBuffer
    from tinyexplore.ops import UOp
    from tinyexplore.shape.symbolic import Variable as Size
    from tinyexplore.shape.symbolic import sym_infer

    from tinyexplore.tensor import Device, dtypes

    assert tinyexplore.engine.jit.TinyJit is TinyJit is tinyexplore.TinyJit and Size is Variable
    assert Device is tinyexplore.Device and dtypes is tinyexplore.dtypes
    assert isinstance(Tensor.ones(4).shard(("LLVM", "LLVM:1"), 0).lazydata, MultiLazyBuffer)
    assert {Kernel.__module__, OptOps.__module__, UOp.__module__} == {
        "tinyexplore.kernel.kernel",
        "tinyexplore.kernel.opt",
        "tinyexplore.uop.uop",
    }
    assert pickle.loads(pickle.dumps(Kernel)) is Kernel
    v = Size("v", 1, 9)
    assert sym_infer(2 * v + 1, {v: 3}) == 7 and sym_infer(5, {}) == 5


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("from tinyexplore.ops import LazyOp", "cannot import name 'LazyOp' from 'tinyexplore.ops'"),
        ("import tinyexplore.engine.nothing", "No module named 'tinyexplore.engine.nothing'"),
        (
            "import tinyexplore.multi; tinyexplore.multi.nothing",
            "has no attribute 'nothing'; available: MultiLazyBuffer",
        ),
    ],
)
def test_a_missing_name_raises_pythons_error(statement: str, words: str) -> None:
    with pytest.raises((ImportError, AttributeError), match=words):
        exec(statement)


def test_nothing_is_loaded_before_a_name_is_used() -> None:
    loaded = "print(sorted(name for name in sys.modules if name.startswith('tinyexplore.jit')))"
    program = f"import sys\nimport tinyexplore.engine.jit as path\n{loaded}\npath.TinyJit\n{loaded}"
    before, after = run_python(program).splitlines()
    assert before == "[]" and "tinyexplore.jit.tinyjit" in after


def test_a_schedule_is_created_lowered_and_run() -> None:
    from tinyexplore.engine.realize import ExecItem, lower_schedule, lower_schedule_item, run_schedule
    from tinyexplore.engine.schedule import create_schedule, create_schedule_with_vars

    x = np.random.default_rng(0).random((6, 5), dtype=np.float32)
    made = Tensor(x) @ Tensor(x.T.copy())
    total = made.contiguous().sum()
    items = create_schedule([total.lazydata])
    assert isinstance(lower_schedule_item(items[-1]), ExecItem) and len(list(lower_schedule(items))) == len(items)
    GlobalCounters.reset()
    run_schedule(items, do_update_stats=False)
    assert GlobalCounters.kernel_count == 0 and len(items) > 0 and create_schedule([total.lazydata]) == []
    np.testing.assert_allclose(total.item(), (x @ x.T).sum(), rtol=1e-5)

    v = Variable("v", 1, 6)
    part = Tensor(x)[: v.bind(3)].sum()
    items, values = create_schedule_with_vars([part.lazydata])
    assert values == {v: 3}
    with pytest.raises(ValueError, match="run_schedule with v=4: it was scheduled with v=3"):
        run_schedule(items, {v: 4})
    run_schedule(items, values)
    np.testing.assert_allclose(part.item(), x[:3].sum(), rtol=1e-5)
    with pytest.raises(ValueError, match="create_schedule: `seen` is not supported"):
        create_schedule([total.lazydata], {total.lazydata})


def test_the_tensor_module_has_names_that_published_programs_import() -> None:
    from typing import cast

    from tinyexplore.dtype import dtypes
    from tinyexplore.tensor import _to_np_dtype
    from tinyexplore.tensor import cast as imported

    assert imported is cast
    assert _to_np_dtype(dtypes.half) is np.float16 and _to_np_dtype(dtypes.uint64) is np.uint64
    assert _to_np_dtype(dtypes.bfloat16) is None
    assert Tensor.rand(3, dtype=dtypes.uint8).tolist() == [0, 0, 0]
