"""`python -m bench.gpu --out gpu.json`: measures this project on the GPU of this machine, in at most eight minutes.

The parts are speed compared with PyTorch, replays by CUDA graphs, the tests of every operation, and the fuzz of opts.
Each part is a process with its own time limit, since a faulty kernel destroys the GPU state of its process. The file
is written as soon as a part ends. `--report gpu.json` prints its tables.

A bare machine needs Python 3.10 and NVIDIA's driver. Missing packages come from a folder of wheels:
`python -m bench.gpu --collect wheels --python 3.12` fills it on another machine, and `--wheels wheels` installs from
it. This module needs the standard library only.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
MARGIN_S = 5.0  # seconds reserved to write the file
SMALL = "--small"
# modules that the parts import, with the distributions that contain them
NEEDED = {
    "numpy": ("numpy",),
    "llvmlite": ("llvmlite",),
    "cuda.bindings": ("cuda-bindings", "cuda-pathfinder", "nvidia-cuda-nvrtc"),
    "pytest": ("pytest", "pluggy", "iniconfig", "packaging", "pygments"),
    "hypothesis": ("hypothesis", "sortedcontainers"),
}
PLATFORMS = ("manylinux_2_28_x86_64", "manylinux_2_27_x86_64", "manylinux_2_17_x86_64", "manylinux2014_x86_64")
# seconds of each part, the most important part first
PARTS = {"machine": 20, "speed": 200, "graphs": 40, "backends": 110, "fuzz": 100}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command. Return 1 if a part failed, did not end or found a wrong result, else 0."""
    options = _parser().parse_args(arguments)
    if options.report:
        from bench.gpu.report import markdown

        print(markdown(json.loads(Path(options.report).read_text())))
        return 0
    if options.collect:
        return collect(options.collect, options.python)
    if options.part:
        from bench.gpu.parts import run

        return run(options.part, Path(options.out), options.seconds, small=options.small, stand_in=options.stand_in)
    return run_all_parts(options)


def run_all_parts(options: argparse.Namespace) -> int:
    """Run all parts, each in its own process, until the time is over. Return the exit status."""
    began = time.monotonic()
    environment = prepare_environment(options.wheels)
    unknown = set(options.only) - PARTS.keys()
    if unknown:
        raise SystemExit(f"no part is called {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    names = [name for name in PARTS if not options.only or name in options.only]
    results: dict[str, Any] = {"date": time.strftime("%Y-%m-%d %H:%M"), "stand_in": options.stand_in, "parts": {}}
    for place, name in enumerate(names):
        left = options.minutes * 60 - (time.monotonic() - began) - MARGIN_S
        share = PARTS[name] / sum(PARTS[other] for other in names[place:])
        part = run_part(name, max(1.0, left * share), options, environment)
        results["parts"][name] = part
        results["seconds"] = round(time.monotonic() - began, 1)
        Path(options.out).write_text(json.dumps(results, indent=1))
        print(f"{name}: {len(part['rows'])} rows, {part['ended']}, {part['seconds']} s", flush=True)
        for row in part["rows"]:
            if row.get("wrong"):
                print(f"  {row['name']}: {row['wrong']}", flush=True)
    return int(any(part["ended"] != "whole" or failures(part) for part in results["parts"].values()))


def failures(part: dict[str, Any]) -> int:
    """Return how many rows of a part report a failure."""
    return sum(bool(row.get("wrong")) for row in part["rows"])


def run_part(name: str, seconds: float, options: argparse.Namespace, environment: dict[str, str]) -> dict[str, Any]:
    """Run a part and return its output, up to its end or the time limit.

    A part should end within seven eighths of its time. After its whole time, the process is stopped.
    """
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        rows, log = Path(folder, "rows"), Path(folder, "log")
        rows.touch()
        words = [sys.executable, "-m", "bench.gpu", "--part", name, "--out", str(rows)]
        words += ["--seconds", f"{seconds * 7 / 8:.1f}", *([SMALL] if options.small else [])]
        words += ["--stand-in"] if options.stand_in else []
        with log.open("w") as output:
            process = subprocess.Popen(
                words, cwd=ROOT, env=environment, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
            )
            try:
                status = process.wait(seconds)
                ended = "whole" if status == 0 else f"exit {status}"
            except subprocess.TimeoutExpired:
                ended = f"stopped after {seconds:.0f} s"
            finally:
                if process.poll() is None:
                    os.killpg(process.pid, signal.SIGKILL)
                    process.wait()
        return {
            "ended": ended,
            "seconds": round(time.monotonic() - began, 1),
            "rows": [json.loads(line) for line in rows.read_text().splitlines()],
            "log": log.read_text(errors="replace")[-4000:],
        }


# *** packages ***


def is_missing(module: str) -> bool:
    """Whether a module cannot be imported. The packages that contain it are imported."""
    try:
        return importlib.util.find_spec(module) is None
    except ImportError:
        return True


def prepare_environment(wheels: str) -> dict[str, str]:
    """Return the environment of the parts.

    Packages that this Python lacks are installed from the folder `wheels`.
    """
    environment = dict(os.environ, PYTHONUNBUFFERED="1")
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, (str(ROOT), environment.get("PYTHONPATH"))))
    missing = [name for module, names in NEEDED.items() if is_missing(module) for name in names]
    if not wheels or not missing:
        return environment
    site = tempfile.mkdtemp(prefix="bench-gpu-")
    available = {path.name.split("-")[0].replace("_", "-").lower() for path in Path(wheels).glob("*.whl")}
    install = [name for name in missing if name in available]
    if install:
        options = ["--quiet", "--no-index", "--no-deps", "--find-links", wheels, "--target", site]
        subprocess.run([sys.executable, "-m", "pip", "install", *options, *install], check=True)
    libraries = [str(path) for path in Path(site).glob("nvidia/*/lib")]
    for variable, added in (("PYTHONPATH", [site]), ("LD_LIBRARY_PATH", libraries)):
        environment[variable] = os.pathsep.join([*filter(None, [environment.get(variable)]), *added])
    return environment


def collect(folder: str, python: str) -> int:
    """Download to `folder` the wheels of all packages that a bare machine with that Python may lack.

    Return pip's status.
    """
    names = [name for names in NEEDED.values() for name in names]
    platforms = [word for platform in PLATFORMS for word in ("--platform", platform)]
    options = ["--no-deps", "--only-binary=:all:", "--python-version", python, "--implementation", "cp", *platforms]
    return subprocess.run([sys.executable, "-m", "pip", "download", "-d", folder, *options, *names]).returncode


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m bench.gpu", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", default="gpu.json", metavar="FILE", help="the file that has everything (gpu.json)")
    parser.add_argument("--minutes", type=float, default=8, help="how long all parts may take (8)")
    parser.add_argument("--only", nargs="+", default=[], metavar="PART", help=f"of {', '.join(PARTS)}")
    parser.add_argument("--wheels", default="", metavar="FOLDER", help="packages that this Python lacks")
    parser.add_argument("--collect", default="", metavar="FOLDER", help="download these packages, and end")
    parser.add_argument("--python", default="3.12", help="the Python of the machine that --collect is for")
    parser.add_argument("--report", default="", metavar="FILE", help="print a file's tables, and end")
    parser.add_argument("--stand-in", action="store_true", help="a driver that runs kernels on this processor")
    parser.add_argument(SMALL, action="store_true", help="tiny sizes and few cases")
    parser.add_argument("--part", default="", help=argparse.SUPPRESS)
    parser.add_argument("--seconds", type=float, default=0, help=argparse.SUPPRESS)
    return parser


if __name__ == "__main__":
    sys.exit(main())
