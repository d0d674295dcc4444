"""The code shared by all kernels' scripts; it needs NumPy, and llvmlite or a C compiler.

`scripts.py` copies this text into a script, and so does a page (widgets/src/kernel_script.ts).
"""

from __future__ import annotations

import argparse
import ctypes
import platform
import shutil
import statistics
import subprocess
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np  # noqa: TID253 (a script of its own, which needs it)

C_FLAGS = ["-O2", "-std=gnu99", "-ffp-contract=fast", "-fno-math-errno", "-fwrapv", "-fno-unroll-loops", "-fPIC", "-w"]
LLVM_LEVELS = {"full": 3, "light": 0, "least": 0}  # LLVM's optimization level for the IR, by effort
CODE = {"full": 1, "light": 1, "least": 0}  # LLVM's optimization level for code generation, by effort


def random_values(dtype: str, size: int, generator: np.random.Generator) -> np.ndarray:
    """Returns random content for an input buffer: floats from -1 to 1, small integers, or booleans."""
    if dtype == "bfloat16":
        return (generator.uniform(-1, 1, size).astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
    if dtype.startswith("fp8"):
        return generator.integers(0, 0x70, size).astype(np.uint8)  # finite and nonnegative
    kind = np.dtype(dtype)
    if kind == np.bool_:
        return generator.integers(0, 2, size).astype(np.bool_)
    if kind.kind in "iu":
        return generator.integers(0, 10, size).astype(kind)
    return generator.uniform(-1, 1, size).astype(kind)


def as_float64(dtype: str, values: np.ndarray) -> np.ndarray:
    """Returns the values of a buffer as float64. NumPy lacks the fp8 types; their values stay bytes."""
    if dtype == "bfloat16":
        values = (values.astype(np.uint32) << 16).view(np.float32)
    return values.astype(np.float64)


def aligned_copy(values: np.ndarray) -> np.ndarray:
    """Returns a copy whose memory starts at a multiple of 64 bytes and is followed by at least 64 spare bytes."""
    block = np.zeros(values.nbytes + 128, np.uint8)
    start = -block.ctypes.data % 64
    aligned = block[start : start + values.nbytes].view(values.dtype)
    aligned[:] = values.ravel()
    return aligned


def compile_with_llvm(kernel: dict[str, Any]) -> tuple[int, Any]:
    """Compiles the kernel with llvmlite for this CPU. Returns the entry's address and objects that keep it loaded."""
    import llvmlite.binding as llvm

    name, effort = kernel["name"], kernel["effort"]
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    features = llvm.get_host_cpu_features().flatten()
    machine = llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=features, opt=CODE[effort], reloc="pic", codemodel="small"
    )
    module = llvm.parse_assembly(kernel["llvm"])
    module.triple, module.data_layout = machine.triple, str(machine.target_data)
    module.verify()
    tuning = llvm.create_pipeline_tuning_options(speed_level=LLVM_LEVELS[effort])
    if LLVM_LEVELS[effort]:
        tuning.loop_vectorization, tuning.slp_vectorization, tuning.loop_unrolling = True, False, False
        builder = llvm.create_pass_builder(machine, tuning)
        builder.getModulePassManager().run(module, builder)
    elif kernel["branches"]:
        manager = llvm.create_new_module_pass_manager()
        manager.add_simplify_cfg_pass()
        manager.run(module, llvm.create_pass_builder(machine, tuning))
    jit = llvm.create_lljit_compiler(machine, use_jit_link=True)
    library = llvm.JITLibraryBuilder().add_object_img(machine.emit_object(module)).add_current_process()
    tracker = library.export_symbol(f"{name}_entry").link(jit, name)
    return tracker[f"{name}_entry"], (tracker, jit)


def compile_with_c(kernel: dict[str, Any]) -> tuple[int, Any]:
    """Compiles the kernel with the C compiler on the path for this CPU. Returns the entry's address and its library."""
    name, source = kernel["name"], kernel["c"]
    native = "-mcpu=native" if platform.machine().lower() in ("aarch64", "arm64") else "-march=native"
    compiler = next((path for path in map(shutil.which, ("clang", "gcc", "cc")) if path), None)
    if compiler is None:
        raise SystemExit("no C compiler (clang, gcc, cc) is on the path; `pip install llvmlite` does as well")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"{name}.so"
        command = [compiler, *C_FLAGS, native, "-shared", "-x", "c", "-", "-o", str(path), "-lm"]
        subprocess.run(command, input=source, encoding="utf-8", check=True)
        library = ctypes.CDLL(str(path))
    address = ctypes.cast(library[f"{name}_entry"], ctypes.c_void_p).value
    assert address is not None
    return address, library


def main(kernel: dict[str, Any]) -> None:
    """Compiles, runs and times the kernel; prints the times and a summary of its results."""
    name, buffers = kernel["name"], kernel["buffers"]
    parser = argparse.ArgumentParser(description=f"the kernel {name}, alone")
    parser.add_argument(
        "--with", dest="way", choices=("llvm", "c"), help="the compiler (default: llvmlite if it is installed)"
    )
    parser.add_argument(
        "--inputs", metavar="NPZ", help="contents of the buffers by name; default: random, the same each time"
    )
    parser.add_argument("--save", metavar="NPZ", help="file for the results")
    parser.add_argument("--runs", type=int, default=20, help="number of timed runs (20)")
    parser.add_argument("--threads", type=int, default=1, help="number of threads (1)")
    options = parser.parse_args()

    way = options.way or ("llvm" if kernel["llvm"] and has_llvmlite() else "c")
    if not kernel[way]:
        other = "c" if way == "llvm" else "llvm"
        raise SystemExit(f"this script contains no {way} source of the kernel; use --with {other}")
    compiled = compile_with_llvm if way == "llvm" else compile_with_c
    address, keep = compiled(kernel)

    generator = np.random.default_rng(0)
    arrays = {}
    for buffer, (dtype, size, is_read, _) in buffers.items():
        values = random_values(dtype, size, generator)
        arrays[buffer] = aligned_copy(values if is_read else np.zeros_like(values))
    if options.inputs:
        for buffer, values in np.load(options.inputs).items():
            arrays[buffer][:] = values.astype(arrays[buffer].dtype).ravel()

    table = (ctypes.c_int64 * (len(arrays) + len(kernel["variables"])))(
        *(array.ctypes.data for array in arrays.values()), *kernel["variables"].values()
    )
    entry = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)(address)
    extent = kernel["extent"]
    parts = max(1, min(options.threads, extent))
    bounds = [extent * part // parts for part in range(parts + 1)]
    pool = ThreadPoolExecutor(parts) if parts > 1 else None

    def call() -> None:
        if pool is None:
            entry(table, 0, extent)
        else:
            list(pool.map(lambda part: entry(table, bounds[part], bounds[part + 1]), range(parts)))

    contents = {buffer: array.copy() for buffer, array in arrays.items() if buffers[buffer][3]}
    call()
    results: dict[str, Any] = {buffer: arrays[buffer].copy() for buffer in contents}
    times_us = []
    for _ in range(options.runs):
        for buffer, content in contents.items():
            arrays[buffer][:] = content
        began = time.perf_counter()
        call()
        times_us.append((time.perf_counter() - began) * 1e6)

    print(f"{name}, by {way}, {parts} thread{'s' if parts > 1 else ''}")
    for buffer, result in results.items():
        dtype = buffers[buffer][0]
        values = as_float64(dtype, result)
        print(f"  {buffer}: {dtype}[{result.size}], sum {values.sum():.6g}, first {values[:4].tolist()}")
    if times_us:
        low, _, high = statistics.quantiles(times_us, n=4) if len(times_us) > 1 else times_us * 3
        median = statistics.median(times_us)
        print(f"  {median:.2f} us median of {len(times_us)} runs, quartiles {low:.2f} to {high:.2f}")
        print(f"  {kernel['flops'] / median / 1e3:.2f} GFLOP/s, {kernel['bytes_moved'] / median / 1e3:.2f} GB/s")
    if options.save:
        np.savez(options.save, **results)
    del keep


def has_llvmlite() -> bool:
    """Whether llvmlite can be imported."""
    try:
        import llvmlite.binding  # noqa: F401
    except ImportError:
        return False
    return True
