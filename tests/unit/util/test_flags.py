"""Every option has the effect that its documentation states."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest

import tinyexplore
from tinyexplore import Context, Device, Tensor, TinyJit
from tinyexplore.device import UnknownDevice
from tinyexplore.engine import compile_item
from tinyexplore.util.config import DEVICE_FLAGS, Config, config_from_environment

X = np.linspace(-3, 3, 64, dtype=np.float32)


def source(result: Tensor) -> str:
    (item,) = result.schedule()
    runner = compile_item(item).runner
    assert runner is not None
    return runner.spec.source


@pytest.mark.parametrize("device", ["LLVM", "CLANG", "PYTHON"])
def test_transcendental_selects_the_functions(device: str) -> None:
    if device not in Device.available():
        pytest.skip(f"{device} does not open here")
    x = Tensor(X, device=device).realize()
    own = {"LLVM": "llvm.exp.", "CLANG": "expf", "PYTHON": "exp_float32"}[device]
    for level in (0, 1, 2):
        with Context(TRANSCENDENTAL=level, CACHELEVEL=0):
            uses = own in source(x.exp())
            assert uses == (level == 0 or (level == 1 and device == "PYTHON")), source(x.exp())
            for name in ("exp", "sin", "cos", "tanh", "log2", "exp2"):
                argument = np.abs(X) if name == "log2" else X
                found = getattr(Tensor(argument, device=device), name)().numpy()
                np.testing.assert_allclose(found, getattr(np, name)(argument.astype(np.float64)), rtol=2e-6, atol=1e-6)


def test_without_threefry_numbers_are_drawn_here_and_as_good() -> None:
    with Context(THREEFRY=0):
        Tensor.manual_seed(7)
        first, second = Tensor.rand(4000), Tensor.randn(4000)
        assert not any("SHL" in repr(node) for node in first.schedule()[0].ast.toposort())
        assert 0.48 < first.mean().item() < 0.52 and 0.95 < second.std().item() < 1.05
        Tensor.manual_seed(7)
        np.testing.assert_array_equal(Tensor.rand(4000, device="PYTHON").numpy(), first.numpy())
        np.testing.assert_array_equal(Tensor.randn(4000, device=("LLVM", "LLVM:1")).numpy(), second.numpy())
        draw = TinyJit(lambda: Tensor.rand(5).realize())
        assert len({draw().tolist()[0] for _ in range(5)}) == 5, "a replay draws anew"
    Tensor.manual_seed(7)
    assert not np.array_equal(Tensor.rand(4000).numpy(), first.numpy())


def test_every_option_is_read_by_the_engine_and_documented() -> None:
    package = Path(tinyexplore.__file__).parent
    texts = [path.read_text() for path in package.rglob("*.py") if path.name != "config.py"]
    unread = [
        field.name
        for field in fields(Config)
        if not any(re.search(rf"(config\(\)|settings|configured)\.{field.name}\b", text) for text in texts)
    ]
    assert unread == []
    assert [field.name for field in fields(Config) if field.name not in (Config.__doc__ or "")] == []


@pytest.mark.parametrize("flag", ["PYTHON", "NV", "METAL", "AMD"])
def test_a_flag_selects_its_device_or_raises_an_error(flag: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*DEVICE_FLAGS, "DEVICE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv(flag, "1")
    chosen = config_from_environment()
    assert chosen.DEVICE == flag
    with Context(DEVICE=flag):
        if flag in Device:
            assert Tensor([1]).device == flag
        else:
            with pytest.raises(UnknownDevice, match=f"unknown device '{flag}'; .*LLVM.*{flag}"):
                Tensor([1])
