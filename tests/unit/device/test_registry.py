"""Devices by name: spelling, the default, unknown names, and devices that cannot open."""

from __future__ import annotations

from typing import Any

import pytest

from tinyexplore.device import Device, DeviceInterface, DeviceUnavailable, UnknownDevice
from tinyexplore.device.registry import DeviceRegistry
from tinyexplore.util import Context


def registry() -> tuple[DeviceRegistry, list[str]]:
    devices, opened = DeviceRegistry(), []

    def factory(name: str) -> Any:
        def open_device() -> DeviceInterface:
            opened.append(name)
            nothing: Any = None
            return DeviceInterface(name, nothing, nothing, nothing, nothing, nothing)

        return open_device

    def closed() -> DeviceInterface:
        raise DeviceUnavailable("no such hardware; buy some")

    devices.register("LLVM", factory("LLVM"))
    devices.register("PYTHON", factory("PYTHON"))
    devices.register("FUTURE", closed)
    return devices, opened


def test_a_device_opens_once_at_its_first_use() -> None:
    devices, opened = registry()
    assert opened == []
    assert devices["llvm"] is devices["LLVM:0"] is devices["LLVM"]
    assert opened == ["LLVM"]


def test_names_have_one_spelling() -> None:
    devices, _ = registry()
    assert [devices.canonicalize(name) for name in ("python", "Python:0", "PYTHON")] == ["PYTHON"] * 3
    assert "llvm:0" in devices and "cuda" not in devices
    with pytest.raises(UnknownDevice, match="unknown device 'cuda'; supported: LLVM, PYTHON, FUTURE"):
        devices.canonicalize("cuda")
    assert devices.canonicalize("llvm:01") == "LLVM:1" and devices["LLVM:1"] is devices["LLVM"]
    group = devices.canonicalize(("llvm:0", "PYTHON"))
    assert devices.is_group(group) and devices.members(group) == ("LLVM", "PYTHON")
    with pytest.raises(UnknownDevice, match="after the colon"):
        devices.canonicalize("LLVM:one")


def test_a_device_that_cannot_open_raises_an_error_with_a_remedy() -> None:
    devices, _ = registry()
    with pytest.raises(DeviceUnavailable, match="buy some"):
        devices["FUTURE"]
    assert devices.available() == ("LLVM", "PYTHON")


def test_the_default_is_set_directly_or_by_context() -> None:
    devices, _ = registry()
    with Context(DEVICE=""):
        assert devices.canonicalize(None) == devices.DEFAULT == "LLVM"
        devices.DEFAULT = "python:0"
        assert devices.DEFAULT == "PYTHON"
        with Context(DEVICE="llvm"):
            assert devices.DEFAULT == "LLVM"
        assert devices.DEFAULT == "PYTHON"


@pytest.mark.parametrize("name", ["LLVM", "PYTHON"])
def test_a_device_has_a_name_and_a_compiler_and_synchronizes(name: str) -> None:
    device = Device[name]
    device.synchronize()
    assert device.dname == device.name == name and str(device.compiler) == device.renderer.compiler
    assert device.compiler.compile == device.compile
