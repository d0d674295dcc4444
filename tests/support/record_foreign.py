"""Records the dumps in notebooks/recorded: `python -m tests.support.record_foreign jax` in an environment that has JAX.

The names are those of the functions below. Paths of this machine are replaced in the dumps.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tinyexplore.explore.foreign.dump import Dump

FOLDER = Path(__file__).resolve().parents[2] / "notebooks" / "recorded"
PROGRAMS = FOLDER / "programs"
RECORDED = {"tinygrad", "jax", "numba", "triton", "xdsl", "inductor"}
TINYGRAD = "0.14.0"  # of the five programs; of an earlier version only the last one is recorded
FUNCTIONS = ("get_kernel_graph", "run_rangeify")  # of tinygrad: they only call rewrites
_KEPT = ("graph", "inductor_output_code", "provenance", "torch_version", "dynamo_start")


def save(name: str, dump: Dump) -> None:
    """Writes a dump without the paths of this machine."""
    files = {_portable(file): _portable(text) for file, text in dump.files.items()}
    files = {file: text for file, text in files.items() if "sources/" not in file or "programs/" in file}
    path = Dump(dump.compiler, dump.version, dump.title, files, dump.facts).save(FOLDER / f"{name}.json.gz")
    print(path.name, path.stat().st_size)


def _portable(text: str) -> str:
    text = text.replace(str(PROGRAMS), "/home/user/programs").replace(str(PROGRAMS).lstrip("/"), "home/user/programs")
    text = re.sub(r"/[\w./-]*/(?=lib/python3\.\d+/site-packages)", "/home/user/venv/", text)
    support = str(Path(__file__).parent)  # a library, to a reader
    text = text.replace(support, "/home/user/venv/lib/python3.11/site-packages/support")
    return text.replace(str(FOLDER.parents[1]), "/home/user")


def tinygrad() -> None:
    """Five programs, or the last one of an earlier version, with the node counts of the graphs that tinygrad made."""
    from tinyexplore.explore.foreign import tinygrad as reader

    os.environ.update({**reader.TRACKING, "DEV": "CPU", "CPU": "1"})
    import tinygrad_programs as programs

    from tinyexplore.explore.foreign.tinygrad_versions import Tracking, name_of

    tracking = Tracking()
    ops = tracking._ops
    sizes: dict[int, list[Any]] = {}

    def watched(run: Callable[..., Any]) -> Callable[..., Any]:
        def rewrite(self: Any, root: Any) -> Any:
            one = ops.active_rewrites[-1] if ops.active_rewrites else None
            result = run(self, root)
            is_own = one is not None and tracking.number(one.sink) == number(root) and one.name not in FUNCTIONS
            if is_own and id(one) not in sizes:
                sizes[id(one)] = [name_of(one), len(root.toposort()), len(result.toposort())]
            return result

        return rewrite

    def number(root: Any) -> int:
        if hasattr(root, "trace_num"):
            return root.trace_num
        return ops.track_uop(root) if hasattr(ops, "track_uop") else tracking.number(root)

    for name in ("walk_rewrite", "unified_rewrite", "top_down_rewrite", "bottom_up_rewrite"):
        if hasattr(ops.RewriteContext, name):
            setattr(ops.RewriteContext, name, watched(getattr(ops.RewriteContext, name)))
    is_newest = tracking.version == TINYGRAD
    names = ("softmax_of_product", "layer_norm", "matmul", "convolution", "mean_and_cast")
    for name in names if is_newest else names[-1:]:
        first = tracking.count
        dump = reader.record(getattr(programs, name), title=name)
        own = [sizes[id(one)] for group in ops.tracked_ctxs[first:] for one in group if id(one) in sizes]
        dump = Dump(dump.compiler, dump.version, dump.title, {**dump.files, "own_graphs.json": json.dumps(own)})
        save(f"tinygrad_{name}" if is_newest else f"tinygrad_{tracking.version}_{name}", dump)
    tracking.stop()


def jax() -> None:
    """Five programs for the CPU."""
    import jax_programs as programs
    import numpy as np

    from tinyexplore.explore.foreign.jax import record

    def ones(*shape: int) -> Any:
        return np.ones(shape, np.float32)

    save("jax_softmax_of_product", record(programs.softmax_of_product, ones(64, 48), ones(48, 32), ones(32)))
    save("jax_layer_norm", record(programs.layer_norm, ones(16, 32)))
    save("jax_gradient", record(programs.gradient, ones(16, 32), ones(32, 8)))
    save("jax_loop", record(programs.loop, ones(64)))
    save("jax_convolution", record(programs.convolution, ones(1, 2, 8, 8), ones(3, 2, 3, 3)))


def numba() -> None:
    """Two functions for the CPU."""
    import numba as package
    import numba_programs as programs

    from tinyexplore.explore.foreign.numba import record

    matrix, vector = package.float32[:, ::1], package.float32[::1]
    save("numba_softmax_of_product", record(programs.softmax_of_product, (matrix, matrix, vector)))
    save("numba_sum_of_squares", record(programs.sum_of_squares, (vector,)))


def triton() -> None:
    """Three kernels for an NVIDIA GPU of compute capability 8.0; none is needed."""
    kernels = {
        "softmax": ({"out": "*fp32", "x": "*fp32", "stride": "i32", "n": "i32"}, 64),
        "add": ({"out": "*fp32", "x": "*fp32", "y": "*fp32", "n": "i32"}, 64),
        "matmul": ({"out": "*fp32", "x": "*fp16", "y": "*fp16", "n": "i32"}, 16),
    }
    script = (
        "import sys, triton_kernels as kernels, triton\n"
        "from triton.backends.compiler import GPUTarget\n"
        "name, types, block = sys.argv[1], eval(sys.argv[2]), int(sys.argv[3])\n"
        "source = triton.compiler.ASTSource(fn=getattr(kernels, name), signature={**types, 'BLOCK': 'constexpr'}, "
        "constexprs={'BLOCK': block})\n"
        "print(triton.__version__)\n"
        "triton.compile(source, target=GPUTarget('cuda', 80, 32))\n"
    )
    for name, (types, block) in kernels.items():
        with tempfile.TemporaryDirectory() as folder:
            settings = {**os.environ, "MLIR_ENABLE_DUMP": "1", "TRITON_CACHE_DIR": folder, "PYTHONPATH": str(PROGRAMS)}
            command = [sys.executable, "-c", script, name, repr(types), str(block)]
            done = subprocess.run(command, env=settings, capture_output=True, text=True, check=True)
            files = {"passes.txt": done.stderr[done.stderr.index("// -----//") :]}
            for suffix in ("llir", "ptx"):
                (path,) = Path(folder).glob(f"*/{name}.{suffix}")
                files[path.name] = path.read_text()
        source = PROGRAMS / "triton_kernels.py"
        files[f"sources{source}"] = source.read_text()
        title = f"{name}, a Triton kernel for sm_80"
        save(f"triton_{name}", Dump("triton", done.stdout.strip(), title, files, {"target": "cuda sm_80"}))


def xdsl() -> None:
    """A matrix product, lowered to branches."""
    from tinyexplore.explore.foreign.xdsl import record

    passes = "convert-linalg-to-loops,canonicalize,convert-scf-to-cf,canonicalize"
    text = (PROGRAMS / "product.mlir").read_text()
    save("xdsl_product", record(text, passes, title="a matrix product, lowered by xDSL"))


def inductor() -> None:
    """Three programs for the CPU; records that the reader does not read are left out."""
    for name in ("softmax_of_product", "convolution_block", "training_step"):
        file = "torch_programs.py" if name == "softmax_of_product" else f"torch_{name}.py"
        _inductor(name, PROGRAMS / file)


def _inductor(name: str, source: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        settings = {"TORCH_TRACE": folder, "INDUCTOR_PROVENANCE": "1", "TORCHINDUCTOR_FORCE_DISABLE_CACHES": "1"}
        subprocess.run([sys.executable, str(source)], env={**os.environ, **settings}, check=True)
        (log,) = Path(folder).glob("*.log")
        lines, is_kept = [], False
        for line in log.read_text().splitlines(keepends=True):
            if not line.startswith("\t"):
                is_kept = any(word in line[:400] for word in _KEPT) and "fx_graph_runnable" not in line
            lines += [line] if is_kept else []
    text = re.sub(r"/tmp/[\w/]+/(?=\w+\.py)", "/tmp/", "".join(lines))
    files = {"torch_trace.log": text, f"sources{source}": source.read_text()}
    save(f"inductor_{name}", Dump("", "", f"{name}, compiled by TorchInductor", files))


if __name__ == "__main__":
    sys.path.insert(0, str(PROGRAMS))
    for one in sys.argv[1:]:
        if one not in RECORDED:
            sys.exit(f"{one}: give {', '.join(sorted(RECORDED))}")
        globals()[one]()
