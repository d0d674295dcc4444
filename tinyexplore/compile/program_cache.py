"""The disk cache of lowering results: another process need not choose opts, lower or render the same kernels.

An entry has the facts of a program that a call needs, and the key of its machine code, which is stored beside it
(`runtime/disk_cache.py`). The key of an entry is the inputs of the result: the ast node by node, the target, the
compiler, every option and the number of threads. The entry itself has a digest of the text of the modules that did the
work. So a change of one rule of one pass invalidates all entries. A change in the running process, as in a notebook,
switches the cache off. The program's UOps and source are made when needed.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, fields, replace
from functools import cache
from hashlib import blake2b
from importlib import resources
from types import FunctionType, ModuleType
from typing import Any

from tinyexplore.codegen import PASSES, Rewrite
from tinyexplore.device import Device
from tinyexplore.execute.threads import thread_count
from tinyexplore.renderer.program import ProgramSpec, StoredSpec
from tinyexplore.runtime import disk_cache
from tinyexplore.target import Target
from tinyexplore.uop import Rule, UOp, index_const
from tinyexplore.uop.serialization import to_plain
from tinyexplore.util import config

FORMAT = 2
UNCACHED_LANGUAGES = ("python", "opencl")  # languages of devices that execute the UOps, or need them for a launch
DIGESTED_PACKAGES = ("util", "dtype", "uop", "target", "kernel", "codegen", "renderer")
# modules outside these packages that lowering uses
DIGESTED_MODULES = ("tinyexplore.compile.lowering", "tinyexplore.compile.compiler", "tinyexplore.execute.runner")


@dataclass(frozen=True)
class ProgramFacts:
    """The fields of a `ProgramSpec` that the disk cache stores with its code.

    name: the name of its function.
    language: the language of its source.
    key: the digest of its source.
    thread_extent: the length of the THREAD axis, None without one.
    n_buffers: the number of buffers that a call takes.
    writes: positions of the buffers that it stores to.
    aligned: positions of buffers that must start at a cache line.
    flops: floating-point operations of one run.
    bytes_moved: bytes read and written in one run.
    operations: `flops`, with each function weighted by its time.
    engine: the version of the engine that wrote the entry.
    """

    name: str
    language: str
    key: str
    thread_extent: int | None
    n_buffers: int
    writes: list[int]
    aligned: list[int]
    flops: int
    bytes_moved: int
    operations: int
    engine: str = ""

    @staticmethod
    def of(spec: ProgramSpec, flops: int, bytes_moved: int, operations: int) -> ProgramFacts:
        return ProgramFacts(
            spec.name,
            spec.language,
            spec.key,
            spec.thread_extent,
            spec.n_buffers,
            sorted(spec.writes),
            sorted(spec.aligned),
            flops,
            bytes_moved,
            operations,
        )

    def spec(self, device: str, rebuild: Callable[[], ProgramSpec]) -> ProgramSpec:
        """Returns the program. The function `rebuild` rebuilds its text when needed."""
        interface = Device[device]
        return StoredSpec(
            rebuild,
            self.key,
            name=self.name,
            target=interface.target,
            language=self.language,
            thread_end=None if self.thread_extent is None else index_const(self.thread_extent),
            n_buffers=self.n_buffers,
            writes=frozenset(self.writes),
            compiler=interface.renderer.compiler,
            aligned=frozenset(self.aligned),
        )


def lowering_key(device: str, ast: UOp) -> str | None:
    """Returns the key under which the lowering of `ast` is stored; None if it is not stored.

    It is not stored without a disk cache, nor with measured opts, which are stored separately. Nor is it stored for a
    device that executes the UOps or needs them to launch its programs.
    """
    settings = config()
    renderer = Device[device].renderer
    if (
        settings.CACHELEVEL < 1
        or settings.BEAM
        or renderer.language in UNCACHED_LANGUAGES
        or Device[device].target.has_local
    ):
        return None
    key_parts = [FORMAT, device, _target_to_text(Device[device].target), renderer.compiler, thread_count()]
    try:
        text = json.dumps([*key_parts, settings.values, to_plain([ast])])
    except TypeError:  # an arg cannot be converted to plain data
        return None
    return blake2b(text.encode(), digest_size=20).hexdigest()


@cache
def _target_to_text(target: Target) -> list[str]:
    """Returns all fields of a target as text, sets in an order that is the same in every process."""
    values = [getattr(target, field.name) for field in fields(target)]
    return [str(sorted(map(repr, value)) if isinstance(value, frozenset) else repr(value)) for value in values]


def find_facts(key: str) -> ProgramFacts | None:
    """Returns the facts stored under `key` by this version of the engine; None if there are none."""
    stored = disk_cache.find(key)
    if stored is None:
        return None
    try:
        facts = ProgramFacts(**json.loads(stored))
    except (ValueError, TypeError):
        return None
    return facts if facts.engine == engine_digest() else None


def keep_facts(key: str, facts: ProgramFacts) -> None:
    """Stores `facts` for `find_facts`. A later version of the engine overwrites them."""
    disk_cache.keep(key, json.dumps(asdict(replace(facts, engine=engine_digest()))).encode())


@cache
def engine_digest() -> str:
    """Returns a digest of the text of every module that lowering uses."""
    digest = blake2b(digest_size=16)
    for floor in DIGESTED_PACKAGES:
        for name, text in sorted(_read_modules(floor)):
            digest.update(name.encode() + b"\0" + text + b"\0")
    return digest.hexdigest()


def _read_modules(floor: str) -> Iterator[tuple[str, bytes]]:
    """Yields the name and the text of each module of `floor`, including subfolders."""
    folder = os.path.join(os.path.dirname(__file__), os.pardir, floor)
    if not os.path.isdir(folder):  # the package is in an archive
        stack = [resources.files("tinyexplore").joinpath(floor)]
        while stack:
            entry = stack.pop()
            if entry.is_dir():
                stack.extend(entry.iterdir())
            elif entry.name.endswith(".py"):
                yield entry.name, entry.read_bytes()
        return
    for directory, _, names in os.walk(folder):  # `resources` takes twice as long
        for name in names:
            if name.endswith(".py"):
                with open(os.path.join(directory, name), "rb", buffering=0) as file:
                    yield name, file.read()


def is_as_written() -> bool:
    """Whether no module that lowering uses has been changed since it was first seen, so that its text describes its
    behavior.

    A change is another function, class or constant.
    """
    prefixes = tuple(f"tinyexplore.{floor}" for floor in DIGESTED_PACKAGES)
    for name, module in list(sys.modules.items()):
        if name.startswith(prefixes) or name in DIGESTED_MODULES:
            definitions = _written.get(name)
            if definitions is None:
                spaces = [module, *(value for value in vars(module).values() if _is_class_of(value, name))]
                definitions = _written[name] = [(space, dict(vars(space))) for space in spaces]
                _foreign.update(name for value in vars(module).values() if not _is_our_own(value))
            if any(vars(space) != names and _has_changed(vars(space), names) for space, names in definitions):
                return False
    rules = tuple(step.table.rules for step in PASSES if isinstance(step, Rewrite))
    return not _foreign and rules == _tables.setdefault("rules", rules)


_written: dict[str, list[tuple[Any, dict[str, Any]]]] = {}  # for each module: its names, and those of its classes
_tables: dict[str, tuple[tuple[Rule, ...], ...]] = {}
_foreign: set[str] = set()  # modules that had a foreign function when they were first seen


def _is_class_of(value: Any, module: str) -> bool:
    return isinstance(value, type) and value.__module__ == module


def _is_our_own(value: Any) -> bool:
    """Whether this package or Python's library defines the value. Another function replaces one of this package."""
    if not isinstance(value, FunctionType):
        return True
    package = (value.__module__ or "").split(".")[0]
    return package == __name__.split(".")[0] or package in sys.stdlib_module_names


def _has_changed(current: Mapping[str, Any], earlier: dict[str, Any]) -> bool:
    """Whether anything was replaced, added or removed.

    Modules, which are imported on demand, counters (numbers whose names are not those of constants), and Python's
    registry of warnings do not count.
    """
    for name in (current.keys() | earlier.keys()) - {"__warningregistry__"}:
        old, new = earlier.get(name), current.get(name)
        if old is not new and not isinstance(new, ModuleType) and (name.isupper() or not isinstance(new, int)):
            return True
    earlier.update(current)
    return False


__all__ = ["ProgramFacts", "engine_digest", "find_facts", "is_as_written", "keep_facts", "lowering_key"]
