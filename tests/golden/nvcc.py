"""python -m tests.golden.nvcc [sm_80 ...]

Whether nvcc takes every golden text of CUDA C++, for these GPUs (no name: all of the table that it knows), and ptxas
every operation on every dtype as PTX. Needs a CUDA toolkit, or `pip install nvidia-cuda-nvcc`; exit status 3 without.
"""

from __future__ import annotations

import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.golden.__main__ import path_of
from tests.golden.gpu import REFUSED
from tests.golden.record import read
from tests.support import nvidia
from tinyexplore.dtype import dtypes
from tinyexplore.runtime.gpu_assembly import GPUAssembler
from tinyexplore.target import GPUS


def texts(architecture: str) -> dict[str, str]:
    """The programs of the golden file that are for this GPU: of the first with tensor cores only those without."""
    found = read(path_of("cuda"))
    has_cores = architecture != "sm_75"
    return {
        title: text
        for title, text in found.items()
        if not text.startswith(REFUSED) and (has_cores or "mma_" not in text)
    }


def refusals(architecture: str, folder: Path) -> list[str]:
    """What NVIDIA's compilers refuse, with their words."""
    from tests.backends.test_gpu_assembly import all_of, target_of

    commands = []
    for number, (title, text) in enumerate(texts(architecture).items()):
        path = folder / f"{architecture}-{number}.cu"
        path.write_text(text)
        commands.append(
            (title, [nvidia.tool("nvcc"), "-arch", architecture, "-cubin", str(path), "-o", f"{path}.cubin"])
        )
    for dtype in dtypes.all:
        path = folder / f"{architecture}-{dtype.name}.ptx"
        target = target_of(architecture)
        path.write_text(GPUAssembler(target).render("all_of_them", all_of(dtype, target)[0]).source)
        commands.append((dtype.name, [nvidia.tool("ptxas"), "-arch", architecture, str(path), "-o", f"{path}.cubin"]))
    with ThreadPoolExecutor(2) as pool:
        words = list(pool.map(lambda pair: nvidia.refusal(pair[1]), commands))
    print(f"{architecture}: {len(commands)} programs, {sum(map(bool, words))} refused", flush=True)
    return [f"{architecture} · {title}\n{word}" for (title, _), word in zip(commands, words) if word]


def main(arguments: list[str]) -> int:
    """Exit status 1 where something is refused."""
    if nvidia.found("nvcc") is None or nvidia.found("ptxas") is None:
        print(f"no nvcc: CUDA C++ and PTX were not compiled; {nvidia.HOW}")
        return 3
    known = nvidia.known_machines("nvcc")
    wanted = arguments or [name for name, gpu in GPUS.items() if gpu.language == "cuda" and name in known]
    with tempfile.TemporaryDirectory() as folder:
        found = [words for name in wanted for words in refusals(name, Path(folder))]
    print("\n".join(found))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
