"""The texts of the fixed kernels for CPUs equal the golden files, and compilers and validators accept them."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.golden.__main__ import differences, path_of
from tests.golden.cpu import LEVEL, TARGETS, made
from tests.golden.record import read
from tests.support.node import need_node
from tinyexplore.renderer.wasm import assemble
from tinyexplore.target import machine

COMPILERS = [name for name in ("clang", "gcc") if shutil.which(name)]
ALLOWED = ("-Wno-psabi",)  # gcc's note that wide vectors as arguments were passed otherwise once: helpers are inlined


@pytest.mark.parametrize("language", TARGETS)
def test_texts_equal_the_golden_files(language: str) -> None:
    found = "\n".join(differences(read(path_of(language)), made(language)))
    assert not found, f"{found}\nwhere this is meant: python -m tests.golden.cpu --update"


@pytest.mark.skipif(machine() != "x86_64", reason="the texts are for x86-64, and this is another machine")
@pytest.mark.parametrize("compiler", COMPILERS)
def test_compilers_accept_every_c_text_without_a_warning(compiler: str, tmp_path: Path) -> None:
    for number, text in enumerate(read(path_of("c")).values()):
        path = tmp_path / f"{number}.c"
        path.write_text(f"{text}\n")
        level = LEVEL.partition(",")[0]
        command = [compiler, f"-march={level}", "-std=gnu99", "-Wall", "-Werror", *ALLOWED, "-fsyntax-only", str(path)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{text}\n{done.stderr}"


@pytest.mark.parametrize("version", ["CL1.2", "CL3.0"])
def test_clang_accepts_every_opencl_text(version: str, tmp_path: Path) -> None:
    if not shutil.which("clang"):
        pytest.skip("OpenCL C for a CPU: there is no clang to check it")
    for number, text in enumerate(read(path_of("opencl-cpu")).values()):
        path = tmp_path / f"{number}.cl"
        path.write_text(f"{text}\n")
        command = ["clang", "-x", "cl", f"-cl-std={version}", "-Xclang", "-finclude-default-header"]
        command += ["-Wall", "-Werror", "-Wpedantic", "-fsyntax-only", str(path)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{text}\n{done.stderr}"


def test_llvm_verifies_every_text() -> None:
    binding = pytest.importorskip("llvmlite.binding")
    for text in read(path_of("llvm")).values():
        binding.parse_assembly(text).verify()


def test_node_validates_every_module() -> None:
    node = need_node()
    modules = [list(assemble(text)) for text in read(path_of("wasm")).values()]
    script = f"console.log({json.dumps(modules)}.map((one) => WebAssembly.validate(new Uint8Array(one))).join())"
    said = subprocess.run([node, "-"], input=script, capture_output=True, text=True, check=True).stdout
    assert said.strip() == ",".join(["true"] * len(modules))
