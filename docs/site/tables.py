"""Pages of the reference that are generated: opts, rules, passes, events, targets, settings, the API."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Collection, Iterable, Iterator
from pathlib import Path
from typing import Any


def escaped(text: str) -> str:
    """Text for a cell of a table."""
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")


def table(head: tuple[str, ...], rows: Iterable[tuple[object, ...]]) -> str:
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    lines += ["| " + " | ".join(escaped(str(cell)) for cell in row) + " |" for row in rows]
    return "\n".join(lines)


def opts() -> str:
    from tinyexplore.kernel.opts import OPT_KINDS

    parts = [
        "# Opts",
        "An opt changes the loops of a kernel and nothing else. Each has its law: the loops before and after.",
    ]
    for op, kind in OPT_KINDS.items():
        parts.append(f"## {op.name}")
        parts += [f"```text\n{effect.full_text}\n```" for effect in kind.effects]
    return "\n\n".join(parts)


def passes() -> str:
    from tinyexplore.codegen.passes import Rewrite
    from tinyexplore.codegen.pipeline import PASSES

    rows = []
    for one in PASSES:
        if isinstance(one, Rewrite):
            rows.append((one.name, "rewrite", f"{len(one.table.rules)} rules"))
        else:
            transform = next((value for value in vars_of(one).values() if callable(value)), None)
            rows.append((one.name, "transform", summary(transform)))
    text = (
        "The passes that lower a kernel to its linear program, in order. "
        "A *rewrite* applies a table of rules; a *transform* changes the whole graph."
    )
    return "\n\n".join(["# Passes", text, table(("pass", "kind", "effect"), rows)])


def vars_of(one: Any) -> dict[str, Any]:
    """The fields of a dataclass, also of one with slots."""
    return {name: getattr(one, name) for name in getattr(one, "__dataclass_fields__", {})}


def matchers() -> dict[str, Any]:
    """Every table of rules in the lowering and the algebra, by its name."""
    import importlib
    import pkgutil

    import tinyexplore.codegen.rewrites as rewrites
    from tinyexplore.uop.pattern import PatternMatcher

    names = [f"{rewrites.__name__}.{one.name}" for one in pkgutil.iter_modules(rewrites.__path__)]
    found: dict[str, Any] = {}
    for name in ["tinyexplore.uop.algebra", *names]:
        module = importlib.import_module(name)
        for key, value in vars(module).items():
            if isinstance(value, PatternMatcher) and not key.startswith("_") and value not in found.values():
                found[f"{name.rpartition('.')[2]}.{key}"] = value
    return found


def rules() -> str:
    seen: set[tuple[str, str]] = set()
    parts = [
        "# Rules",
        "Rewrite rules by table, each with its law. A rule that several tables have stands in the first of them.",
    ]
    for name, matcher in matchers().items():
        rows = []
        for rule in matcher.rules:
            if (rule.name, rule.law) not in seen:
                seen.add((rule.name, rule.law))
                rows.append((f"`{rule.name}`", f"`{rule.law.replace('`', '')}`" if rule.law else "", rule.doc or ""))
        if rows:
            parts += [f"## {name}", table(("rule", "law", "condition"), rows)]
    return "\n\n".join(parts)


def events() -> str:
    from tinyexplore.trace import events as module

    rows = []
    for name, one in vars(module).items():
        if inspect.isclass(one) and one.__module__ == module.__name__:
            fields = getattr(one, "__dataclass_fields__", None) or getattr(one, "_fields", ())
            rows.append((f"`{name}`", summary(one), ", ".join(f"`{field}`" for field in fields)))
    text = "The engine emits these events. Recorders collect them, and the explorer builds its traces from them."
    return "\n\n".join(["# Events", text, table(("event", "meaning", "fields"), rows)])


def targets() -> str:
    from tinyexplore.target import GPUS

    gpus = [
        (
            f"`{name}`",
            gpu.title if hasattr(gpu, "title") else next(iter(vars_of(gpu).values())),
            gpu.warp,
            gpu.shared_bytes,
        )
        for name, gpu in GPUS.items()
    ]
    cpus = [
        ("`x86-64-v2`, `x86-64-v3`, `x86-64-v4`", "levels of x86-64: SSE4.2, AVX2, AVX-512"),
        ("`neoverse-n1`, `apple-m1`, …", "AArch64: every name that LLVM knows"),
        ("`sifive-x280`, …", "RISC-V with vectors"),
        ("`native`", "this machine"),
    ]
    return "\n\n".join(
        [
            "# Targets",
            "`explore(f, target=NAME)` or `TARGET=NAME` compiles for a machine that need not be here.",
            "## CPUs",
            table(("name", "machine"), cpus),
            "## GPUs",
            table(("name", "machine", "lanes of a warp", "bytes of shared memory"), gpus),
        ]
    )


def settings() -> str:
    from tinyexplore.util.config import Config

    text = inspect.getdoc(Config) or ""
    rows = []
    for match in re.finditer(r"^([A-Z_0-9]+): (.*(?:\n  .*)*)", text, re.MULTILINE):
        name, meaning = match.groups()
        rows.append((f"`{name}`", f"`{getattr(Config, name, '')!r}`", meaning))
    intro = (
        "Each setting is an environment variable, an argument of `Context(…)`, "
        "and in lower case an option of `explore` and `capture`."
    )
    return "\n\n".join(["# Settings", intro, table(("setting", "default", "meaning"), rows)])


def summary(one: object) -> str:
    """The first paragraph of a docstring."""
    return (inspect.getdoc(one) or "").partition("\n\n")[0] if one is not None else ""


# *** the API ***

SECTIONS = re.compile(r"^(Args|Returns|Raises|Yields|Source|Example|Examples|Attributes):\s*$", re.MULTILINE)

ENTRY = re.compile(r"^(\*{0,2}\w+(?:, \w+)*):")


def docstring(one: object) -> str:
    """A docstring as Markdown: sections become headings in bold, with a list of their entries."""
    text = inspect.getdoc(one) or ""
    parts = SECTIONS.split(text)
    lines = [parts[0].strip()]
    for name, body in zip(parts[1::2], parts[2::2]):
        entries = re.split(r"^ {4}(?=\S)", body, flags=re.MULTILINE)
        found = [" ".join(entry.split()) for entry in entries if entry.strip()]
        lines += [f"**{name}**", "\n".join("- " + ENTRY.sub(r"`\1`:", entry) for entry in found)]
    return "\n\n".join(line for line in lines if line)


def members(owner: type) -> Iterator[tuple[str, object]]:
    """The public methods and properties of a class with docstrings, its own and inherited ones, by name."""
    for name in sorted(dir(owner)):
        one = inspect.getattr_static(owner, name)
        if not name.startswith("_") and inspect.getdoc(getattr(one, "__func__", one)) and one is not None:
            if callable(one) or isinstance(one, (property, classmethod, staticmethod)):
                yield name, one


def signature(name: str, one: object) -> str:
    function = getattr(one, "__func__", one)
    if isinstance(function, property):
        return name
    try:
        text = str(inspect.signature(function)).replace("(self, ", "(").replace("(self)", "()").replace("(cls, ", "(")
    except (TypeError, ValueError):
        return name
    return name + re.sub(r"(: |-> )'([^']*)'", r"\1\2", text)


def class_page(owner: type, intro: str = "") -> str:
    title = owner.__name__
    parts = [f"# {title}", docstring(owner), intro]
    for name, one in members(owner):
        function = one.fget if isinstance(one, property) else getattr(one, "__func__", one)
        parts += [f"## {name}", f"```python\n{signature(name, one)}\n```", docstring(function)]
    return "\n\n".join(part for part in parts if part)


def public_names(module: Any) -> Iterator[tuple[str, Any]]:
    """The public names of a module that are no modules themselves, with what they stand for, by name."""
    names = getattr(module, "__all__", None)
    if names is None:  # what the module defines; what it imports is not its own
        names = [name for name, one in vars(module).items() if getattr(one, "__module__", "") == module.__name__]
    for name in sorted(names):
        one = getattr(module, name, None)
        if not name.startswith("_") and not inspect.ismodule(one) and one is not None:
            yield name, one


def functions_page() -> str:
    import tinyexplore
    from tinyexplore import explore
    from tinyexplore.nn import state

    parts = ["# Functions", "The functions of `tinyexplore`, of `tinyexplore.explore`, and of `tinyexplore.nn.state`."]
    for module in (tinyexplore, explore, state):
        for name, one in public_names(module):
            if inspect.isfunction(one) and one.__doc__:
                parts += [f"## {name}", f"```python\n{signature(name, one)}\n```", docstring(one)]
    return "\n\n".join(parts)


def names_page(title: str, intro: str, names: Iterable[tuple[str, Any]], *, but: Collection[str] = ()) -> str:
    """Classes, and objects such as `Device`: what each is, and a table of its members. `but`: those with a page."""
    parts = [f"# {title}", intro]
    for name, one in names:
        if inspect.isfunction(one) or name in but:
            continue
        owner = one if inspect.isclass(one) else type(one)
        parts.append(f"## {name}")
        if inspect.isclass(one) and not issubclass(one, BaseException):
            parts.append(f"```python\n{signature(name, one)}\n```")
        parts.append(docstring(owner))
        rows = []
        for member, what in members(owner):
            function = what.fget if isinstance(what, property) else getattr(what, "__func__", what)
            rows.append((f"`{signature(member, what)}`", summary(function)))
        if rows and not issubclass(owner, BaseException):
            parts.append(table(("member", "meaning"), rows))
    return "\n\n".join(part for part in parts if part)


def api_pages() -> dict[str, Callable[[], str]]:
    import tinyexplore
    from tinyexplore import Tensor, explore, nn
    from tinyexplore.explore import Explorer
    from tinyexplore.explore.notebook.kernels import KernelView
    from tinyexplore.nn import optim, state

    pages = ("Tensor", "Explorer", "KernelView")
    layers = (*public_names(nn), *public_names(optim), *public_names(state))
    return {
        "functions": functions_page,
        "programs": lambda: names_page(
            "Programs and devices",
            "Settings, devices, dtypes, symbolic sizes and captured functions: the names of `tinyexplore`.",
            public_names(tinyexplore),
            but=pages,
        ),
        "layers": lambda: names_page(
            "Layers and optimizers",
            "The classes of `tinyexplore.nn`, `tinyexplore.nn.optim` and `tinyexplore.nn.state`.",
            layers,
        ),
        "responses": lambda: names_page(
            "What the explorer returns",
            "The classes of `tinyexplore.explore`: traces, verdicts, comparisons, debuggers, and errors.",
            public_names(explore),
            but=pages,
        ),
        "tensor": lambda: class_page(Tensor),
        "explorer": lambda: class_page(Explorer),
        "kernel": lambda: class_page(KernelView),
    }


TABLES: dict[str, Callable[[], str]] = {
    "opts": opts,
    "rules": rules,
    "passes": passes,
    "events": events,
    "targets": targets,
    "settings": settings,
}


def write_tables(folder: Path) -> list[Path]:
    """All generated pages, in the folder `generated`. Returns their paths below `folder`."""
    places = []
    for name, page in {**TABLES, **api_pages()}.items():
        place = Path("generated") / f"{name}.md"
        (folder / place).parent.mkdir(parents=True, exist_ok=True)
        (folder / place).write_text(page() + "\n", encoding="utf-8")
        places.append(place)
    return places
