"""The front end's types and checks in TypeScript, generated from the Trace model, so that they cannot drift apart.

`python -m tinyexplore.explore.schema` writes `widgets/src/model.ts`; with `--check` it compares instead.
"""

from __future__ import annotations

import argparse
import dataclasses
import inspect
import json
import sys
import types
import typing
from pathlib import Path

from tinyexplore.explore import model
from tinyexplore.explore.valid import AtLeast, Id, Index, OneOf, constraint_of, hints_of

TARGET = Path(__file__).resolve().parents[2] / "widgets" / "src" / "model.ts"

_SCALARS = {int: "number", float: "number", str: "string", bool: "boolean", type(None): "null"}


class SchemaError(TypeError):
    """A field of the model has a type that JSON, and so the front end, cannot carry."""


def to_typescript() -> str:
    """The text of `model.ts`: one interface for each dataclass of the model, in the order of the module."""
    parts = [
        "// Generated from tinyexplore/explore/model.py by `python -m tinyexplore.explore.schema`. Do not edit.",
        f"export const TRACE_VERSION = {model.TRACE_VERSION};",
    ]
    parts.extend(_interface(cls) for cls in _dataclasses())
    parts.append(_shapes())
    return "\n\n".join(parts) + "\n"


def _dataclasses() -> list[type]:
    found = [value for value in vars(model).values() if isinstance(value, type) and dataclasses.is_dataclass(value)]
    return [cls for cls in found if cls.__module__ == model.__name__]


def _interface(cls: type) -> str:
    hints = typing.get_type_hints(cls)
    lines = [f"/** {_one_paragraph(cls)} */", f"export interface {cls.__name__} {{"]
    for field in dataclasses.fields(cls):
        lines.append(f"  {field.name}: {_type(hints[field.name], f'{cls.__name__}.{field.name}')};")
    lines.append("}")
    return "\n".join(lines)


def _shapes() -> str:
    """What the fields must be, as data for `valid.ts`: [shape] each, or [shape, what stands for a missing one]."""
    lines = [
        "/** What each field must be, for valid.ts: [shape], or [shape, what a trace without that field means]. */",
        "export const SHAPES: Readonly<Record<string, Readonly<Record<string, readonly unknown[]>>>> = {",
    ]
    for cls in _dataclasses():
        lines.append(f"  {cls.__name__}: {{")
        for field in dataclasses.fields(cls):
            entry = [_shape(hints_of(cls)[field.name])]
            if field.default is not dataclasses.MISSING:
                entry.append(field.default)
            lines.append(f"    {field.name}: {json.dumps(entry)},")
        lines.append("  },")
    return "\n".join([*lines, "};"])


def _shape(hint: typing.Any) -> typing.Any:
    kind, constraint = constraint_of(hint)
    match constraint:
        case Id():
            return {"id": True}
        case Index(table, before):
            return {"index": table, "before": before}
        case AtLeast(least):
            return {"least": least, "of": _shape(kind)}
        case OneOf(words):
            return {"words": list(words)}
    if kind in _SCALARS:
        return "null" if kind is type(None) else kind.__name__
    if isinstance(kind, type) and dataclasses.is_dataclass(kind):
        return {"row": kind.__name__}
    arguments = typing.get_args(kind)
    if typing.get_origin(kind) is not tuple:
        return {"either": [_shape(argument) for argument in arguments]}
    if arguments[-1] is Ellipsis:
        return {"many": _shape(arguments[0])}
    return {"each": [_shape(argument) for argument in arguments]}


def _one_paragraph(cls: type) -> str:
    return " ".join((inspect.getdoc(cls) or cls.__name__).split())


def _type(hint: typing.Any, where: str) -> str:
    if hint in _SCALARS:
        return _SCALARS[hint]
    if isinstance(hint, type) and dataclasses.is_dataclass(hint):
        return hint.__name__
    origin = typing.get_origin(hint)
    arguments = typing.get_args(hint)
    if origin is tuple and len(arguments) == 2 and arguments[1] is Ellipsis:
        element = _type(arguments[0], where)
        return f"({element})[]" if " | " in element else f"{element}[]"
    if origin is tuple:
        return "[" + ", ".join(_type(argument, where) for argument in arguments) + "]"
    if origin in (typing.Union, types.UnionType):
        return " | ".join(_type(argument, where) for argument in arguments)
    raise SchemaError(
        f"{where}: cannot say {hint!r} in TypeScript; use int, float, str, bool, None, tuples of these, or a dataclass"
    )


def main(arguments: list[str] | None = None) -> int:
    """Write the file, or compare it (`--check`: exit status 1 where it is stale)."""
    parser = argparse.ArgumentParser(prog="python -m tinyexplore.explore.schema", description=__doc__)
    parser.add_argument("--check", action="store_true", help="compare instead of writing")
    parser.add_argument("--output", type=Path, default=TARGET, help="the file to write or compare")
    options = parser.parse_args(arguments)
    text = to_typescript()
    if not options.check:
        options.output.write_text(text, encoding="utf-8")
        return 0
    found = options.output.read_text(encoding="utf-8") if options.output.exists() else ""
    if found == text:
        return 0
    sys.stderr.write(f"{options.output} does not say what model.py says; run: python -m tinyexplore.explore.schema\n")
    return 1


if __name__ == "__main__":
    raise SystemExit(main())
