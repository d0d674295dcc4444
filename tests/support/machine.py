"""The cache sizes and the number of threads that tests assume.

Heuristics choose kernels by the caches and threads of the target. Tests must not depend on those of the machine
that runs them, so the suite completes TARGET with the sizes below. The instruction set stays that of the machine, or
the one that TARGET names. A test that asserts the structure of a kernel has the mark `pinned`: it also ignores the
sizes in TARGET, so that `TARGET=x86-64-v3,l2=2M pytest` changes what other tests see and not what this one claims.
"""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager

CACHES = {"l1": "32K", "l2": "512K", "l3": "32M"}
THREADS = 2


def complete_target(target: str) -> str:
    """`target` with the cache sizes of CACHES that it does not state.

    A CPU whose caches are known by its name keeps them: the package completes those.
    """
    cpu, *details = target.split(",")
    if cpu not in ("", "native") and not cpu.startswith("x86-64"):
        return target
    stated = {detail.partition("=")[0].strip() for detail in details}
    missing = [f"{name}={size}" for name, size in CACHES.items() if name not in stated]
    return ",".join([cpu or "native", *details, *missing])


def complete_environment(environ: MutableMapping[str, str]) -> None:
    """Set TARGET and THREADS in `environ` where they are not stated."""
    environ["TARGET"] = complete_target(environ.get("TARGET", ""))
    environ.setdefault("THREADS", str(THREADS))


@contextmanager
def pinned_machine() -> Iterator[None]:
    """Caches and threads of this module for the CPU that TARGET names."""
    from tinyexplore.util import Context
    from tinyexplore.util.config import config

    cpu = config().TARGET.partition(",")[0]
    with Context(TARGET=complete_target(cpu), THREADS=THREADS):
        yield
