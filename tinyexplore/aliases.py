"""Import paths of tinygrad programs: `tinyexplore.engine.jit`, `tinyexplore.shape.symbolic`, …

The modules of these paths are not files. They are created when they are imported, and each of their names is looked up
in its home module when it is first requested. So they cost nothing, and no package depends on a higher one. If a
function of the module's name exists already (`engine.realize`), it stays, and gets the names as attributes: Python
accepts any object in `sys.modules` as a module.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from tinyexplore.util import GlobalCounters

_PACKAGE = __name__.partition(".")[0]

# path → name there → "home" or "home:name in it"; homes are modules of this package
_PATHS: dict[str, dict[str, str]] = {
    "engine.jit": {"TinyJit": "jit"},
    "engine.realize": {
        "CompiledRunner": "engine:Runner",
        "ExecItem": "engine",
        "Runner": "engine",
        "lower_schedule": "aliases",
        "lower_schedule_item": "engine:compile_item",
        "run_schedule": "aliases",
    },
    "engine.schedule": {
        "ScheduleItem": "schedule",
        "create_schedule": "aliases",
        "create_schedule_with_vars": "aliases",
    },
    "multi": {"MultiLazyBuffer": "lazy:ShardedBuffer"},
    "ops": {
        "Ops": "uop",
        "PatternMatcher": "uop",
        "UOp": "uop",
        "UPat": "uop",
        "Variable": "uop.symbolic",
        "graph_rewrite": "uop",
        "sint": "uop.symbolic",
    },
    "shape.symbolic": {
        "Variable": "uop.symbolic",
        "sint": "uop.symbolic",
        "sym_infer": "uop.symbolic:value_of",
    },
    "codegen.kernel": {
        "Kernel": "kernel",
        "KernelOptError": "kernel:OptError",
        "Opt": "kernel",
        "OptOps": "kernel",
    },
}


class _AliasFinder:
    """Import finder for the modules of `_PATHS`. Python asks it last, so that files take precedence."""

    @staticmethod
    def find_spec(fullname: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        package, _, name = fullname.partition(".")
        return ModuleSpec(fullname, _AliasLoader()) if package == _PACKAGE and name in _PATHS else None  # type: ignore[arg-type]


class _AliasLoader:
    """Import loader for a module of `_PATHS`: gives it the names of the table, each imported on first use."""

    @staticmethod
    def create_module(spec: ModuleSpec) -> None:
        return None  # let Python create it

    @staticmethod
    def exec_module(module: ModuleType) -> None:
        parent, _, child = module.__name__.rpartition(".")
        homes = _PATHS[module.__name__.partition(".")[2]]
        existing = vars(sys.modules[parent]).get(child)
        if existing is not None:
            vars(existing).update({name: _look_up(homes, name) for name in homes}, __all__=sorted(homes))
            sys.modules[module.__name__] = existing
            return

        def find(name: str) -> Any:
            if name not in homes:
                names = ", ".join(sorted(homes))
                raise AttributeError(f"module {module.__name__!r} has no attribute {name!r}; available: {names}")
            value = _look_up(homes, name)
            setattr(module, name, value)
            return value

        module.__doc__ = "Names by which tinygrad programs import them: " + ", ".join(sorted(homes))
        vars(module).update(__getattr__=find, __dir__=lambda: sorted(homes), __all__=sorted(homes))


def _look_up(homes: Mapping[str, str], name: str) -> Any:
    module_name, _, attribute = homes[name].partition(":")
    return getattr(importlib.import_module(f"{_PACKAGE}.{module_name}"), attribute or name)


def register_aliases() -> None:
    """Registers the paths in the import system."""
    if _AliasFinder not in sys.meta_path:
        sys.meta_path.append(_AliasFinder)


# *** functions without a counterpart of the same form ***


def create_schedule(outputs: Sequence[Any], seen: Any = None) -> list[Any]:
    """Returns the ScheduleItems that compute these LazyBuffers (`tensor.lazydata`), in order. Runs nothing."""
    from tinyexplore import engine

    if seen:
        raise ValueError("create_schedule: `seen` is not supported; realize the earlier schedule first")
    return list(engine.schedule(outputs))


def create_schedule_with_vars(outputs: Sequence[Any]) -> tuple[list[Any], dict[Any, int]]:
    """Returns `create_schedule`, and the values that the Variables in it are bound to."""
    items = create_schedule(outputs)
    return items, {variable: value for item in items for variable, value in item.bound.items()}


def lower_schedule(schedule: Sequence[Any]) -> Iterator[Any]:
    """Compiles and yields each ScheduleItem in turn."""
    from tinyexplore import engine

    for item in schedule:
        yield engine.compile_item(item)


def run_schedule(
    schedule: Sequence[Any], var_vals: Mapping[Any, int] | None = None, do_update_stats: bool = True
) -> None:
    """Runs a schedule. `var_vals` must have the values that its Variables are bound to.

    `do_update_stats=False`: `GlobalCounters` do not count the work.
    """
    from tinyexplore import engine

    for item in schedule:
        for variable, value in item.bound.items():
            if (given_value := (var_vals or {}).get(variable, value)) != value:
                raise ValueError(
                    f"run_schedule with {variable.expr}={given_value}: it was scheduled with {variable.expr}={value}; "
                    "bind the Variable again and schedule again"
                )
    with nullcontext() if do_update_stats else GlobalCounters.paused():
        engine.run_each(engine.compile_many(list(schedule)))
