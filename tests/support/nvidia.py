"""NVIDIA's compilers, if installed: ptxas and nvcc of a CUDA toolkit, or of PyPI's nvidia-cuda-nvcc."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sysconfig
from functools import cache
from pathlib import Path

import pytest

HOW = "install a CUDA toolkit, or: pip install nvidia-cuda-nvcc"


@cache
def found(name: str) -> str | None:
    """The path of "nvcc" or "ptxas"; None where there is none."""
    on_path = shutil.which(name)
    if on_path is not None:
        return on_path
    site = Path(sysconfig.get_path("purelib"))
    return next((str(path) for path in sorted(site.glob(f"nvidia/**/bin/{name}"))), None)


@cache
def tool(name: str) -> str:
    """The path of "nvcc" or "ptxas"; without it tests are skipped, or fail where TINYEXPLORE_REQUIRE_NVCC is set."""
    path = found(name)
    if path is None and os.environ.get("TINYEXPLORE_REQUIRE_NVCC", "") not in ("", "0"):
        pytest.fail(f"TINYEXPLORE_REQUIRE_NVCC is set, but there is no {name}")
    if path is None:
        pytest.skip(f"no {name}; {HOW}")
    return path


@cache
def known_machines(name: str) -> frozenset[str]:
    """The GPUs that a tool of NVIDIA's compiles for: "sm_80", …"""
    words = subprocess.run([tool(name), "--help"], capture_output=True, text=True, check=True).stdout
    return frozenset(re.findall(r"sm_\d+", words))


def refusal(command: list[str]) -> str:
    """The error message of a compiler for a program; "" if it compiles."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stderr + done.stdout if done.returncode else ""
