"""Generates TypeScript from Python: types and checks of the Trace, types of requests, and the rows of panels.

`python -m tinyexplore.explore.schema` writes `model.ts`, `requests.ts`, `panel_rows.ts`, `panel_views.ts`,
`command_palette/panel_descriptions.ts` and the entries of panels in `chunks/`, all in `widgets/src`. With `--check` it
compares.
"""

from __future__ import annotations

import argparse
import dataclasses
import importlib
import inspect
import json
import re
import sys
import types
import typing
from pathlib import Path

from tinyexplore.explore.analysis.requests import REQUESTS, Request
from tinyexplore.explore.live import typed_programs  # noqa: F401  it registers a request, too
from tinyexplore.explore.notebook import requests as _requests  # noqa: F401  as do those of what-if
from tinyexplore.explore.tracefile import model
from tinyexplore.explore.tracefile.validation import AtLeast, Id, Index, OneOf, constraint_of, hints_of
from tinyexplore.widgets.panels import PANEL_GROUPS, PANELS, Panel  # noqa: TID253 (plain data)

FOLDER = Path(__file__).resolve().parents[2] / "widgets" / "src"

_SCALARS = {int: "number", float: "number", str: "string", bool: "boolean", type(None): "null"}


class SchemaError(TypeError):
    """A field of the model has a type that JSON, and therefore the front end, cannot represent."""


def to_typescript() -> str:
    """Returns the text of `model.ts`: one interface for each dataclass of the model, in the order of the module."""
    parts = [
        "// Generated from tinyexplore/explore/tracefile/model.py by `python -m tinyexplore.explore.schema`. "
        "Do not edit.",
        f"export const TRACE_VERSION = {model.TRACE_VERSION};",
    ]
    parts.extend(_write_interface(cls) for cls in _list_dataclasses())
    parts.append(_write_shapes())
    return "\n\n".join(parts) + "\n"


def requests_to_typescript() -> str:
    """Returns the text of `requests.ts`: an interface for each request, and for each response that is a dataclass."""
    responses = {name: _response_of(cls) for name, cls in REQUESTS.items()}
    classes: dict[str, type] = {}
    for response in responses.values():
        if response is not None:
            _collect(response, classes)
    interfaces = [_write_interface(cls) for cls in classes.values() if cls.__module__ != model.__name__]
    of_model = sorted(cls.__name__ for cls in classes.values() if cls.__module__ == model.__name__)
    imported = [name for name in of_model if any(re.search(rf"\b{name}\b", text) for text in interfaces)]
    parts = [
        "// Generated from the table of requests, tinyexplore/explore/analysis/requests.py, "
        "by `python -m tinyexplore.explore.schema`. Do not edit.",
        *([f'import type {{ {", ".join(imported)} }} from "./model";'] if imported else []),
        *(_request(name, cls) for name, cls in REQUESTS.items()),
        "/** A request, as JSON. */\nexport type Question =\n"
        + "\n".join(f"  | {cls.__name__}Request" for cls in REQUESTS.values())
        + ";",
        *interfaces,
    ]
    rows = [f'  "{name}": {"unknown" if cls is None else cls.__name__};' for name, cls in responses.items()]
    parts.append(_write_defaults())
    parts.append(
        "/** The response to each request; `unknown`: plain data, whose type its view has. */\n"
        "export interface Responses {\n" + "\n".join(rows) + "\n}"
    )
    return "\n\n".join(parts) + "\n"


def _response_of(cls: type[Request]) -> type | None:
    """Returns the class of a request's responses; None for plain data."""
    if not cls.response:
        return None
    module, _, name = cls.response.partition(":")
    response: type = getattr(importlib.import_module(module), name)
    return response


def _collect(cls: type, classes: dict[str, type]) -> None:
    """Adds `cls` and all dataclasses in its fields to `classes`, those in fields first."""
    if cls.__name__ in classes:
        if classes[cls.__name__] is not cls:
            raise SchemaError(f"two classes of responses have one name: {cls} and {classes[cls.__name__]}")
        return
    for hint in typing.get_type_hints(cls).values():
        for part in _list_parts(hint):
            if isinstance(part, type) and dataclasses.is_dataclass(part):
                _collect(part, classes)
    classes[cls.__name__] = cls


def _list_parts(hint: typing.Any) -> list[typing.Any]:
    """Returns `hint` and all types inside it."""
    return [hint, *(part for argument in typing.get_args(hint) for part in _list_parts(argument))]


def _request(name: str, cls: type[Request]) -> str:
    hints = typing.get_type_hints(cls)
    lines = [f"/** {_write_doc(cls)} */", f"export interface {cls.__name__}Request {{", f'  ask: "{name}";']
    for field in dataclasses.fields(cls):  # type: ignore[arg-type]
        optional = "" if field.default is dataclasses.MISSING else "?"
        lines.append(f"  {field.name}{optional}: {_write_type(hints[field.name], f'{cls.__name__}.{field.name}')};")
    return "\n".join([*lines, "}"])


def _write_defaults() -> str:
    """Returns the default values of the fields of requests as TypeScript. Canonical requests omit such fields."""
    lines = [
        "/** What stands for a field of a request that is left out, unless that is null. */",
        "export const DEFAULTS: { readonly [ask: string]: Readonly<Record<string, unknown>> | undefined } = {",
    ]
    for name, cls in REQUESTS.items():
        defaults = {field.name: field.default for field in dataclasses.fields(cls)}  # type: ignore[arg-type]
        row = {key: value for key, value in defaults.items() if value not in (dataclasses.MISSING, None)}
        if row:
            lines.append(f"  {json.dumps(name)}: {json.dumps(row)},")
    return "\n".join([*lines, "};"])


def _list_dataclasses() -> list[type]:
    classes = [value for value in vars(model).values() if isinstance(value, type) and dataclasses.is_dataclass(value)]
    return [cls for cls in classes if cls.__module__ == model.__name__]


def _name(cls: type) -> str:
    """Returns the name of a dataclass in TypeScript, where `TraceTables` is called `Trace`."""
    return "Trace" if cls is model.TraceTables else cls.__name__


def _write_interface(cls: type) -> str:
    hints = typing.get_type_hints(cls)
    lines = [f"/** {_write_doc(cls)} */", f"export interface {_name(cls)} {{"]
    for field in dataclasses.fields(cls):
        lines.append(f"  {field.name}: {_write_type(hints[field.name], f'{cls.__name__}.{field.name}')};")
    lines.append("}")
    return "\n".join(lines)


def _write_shapes() -> str:
    """Returns the constraints of the fields for `trace_validation.ts`: [shape] or [shape, value of a missing field]."""
    lines = [
        "/** The constraint of each field, for trace_validation.ts: [shape], or [shape, value of a missing field]. */",
        "export const SHAPES: Readonly<Record<string, Readonly<Record<string, readonly unknown[]>>>> = {",
    ]
    for cls in _list_dataclasses():
        lines.append(f"  {_name(cls)}: {{")
        for field in dataclasses.fields(cls):
            entry = [_shape(hints_of(cls)[field.name])]
            if field.default is not dataclasses.MISSING:
                entry.append(field.default)
            lines.append(f"    {field.name}: {json.dumps(entry)},")
        lines.append("  },")
    return "\n".join([*lines, "};"])


def _shape(hint: typing.Any) -> typing.Any:
    """Returns the constraint of a type as data for `trace_validation.ts`."""
    kind, constraint = constraint_of(hint)
    match constraint:
        case Id():
            return {"id": True}
        case Index(table, before):
            return {"index": table, "before": before}
        case AtLeast(least, None):
            return {"least": least, "of": _shape(kind)}
        case AtLeast(least, most):
            return {"least": least, "most": most, "of": _shape(kind)}
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


def _write_doc(cls: type) -> str:
    return " ".join((inspect.getdoc(cls) or cls.__name__).split())


def _write_type(hint: typing.Any, label: str) -> str:
    """Returns a Python type as TypeScript. `label` names the field in error messages."""
    if hint in _SCALARS:
        return _SCALARS[hint]
    if hint is typing.Any:
        return "unknown"
    if isinstance(hint, type) and dataclasses.is_dataclass(hint):
        return hint.__name__
    origin = typing.get_origin(hint)
    arguments = typing.get_args(hint)
    if origin is typing.Literal:
        return " | ".join(json.dumps(word) for word in arguments)
    if origin is dict:
        return f"Record<{_write_type(arguments[0], label)}, {_write_type(arguments[1], label)}>"
    if origin is tuple and len(arguments) == 2 and arguments[1] is Ellipsis:
        element = _write_type(arguments[0], label)
        return f"({element})[]" if " | " in element else f"{element}[]"
    if origin is tuple:
        return "[" + ", ".join(_write_type(argument, label) for argument in arguments) + "]"
    if origin in (typing.Union, types.UnionType):
        return " | ".join(_write_type(argument, label) for argument in arguments)
    raise SchemaError(
        f"{label}: cannot express {hint!r} in TypeScript; use int, float, str, bool, None, tuples of these, or a "
        "dataclass"
    )


_PANELS_HEADER = (
    "// Generated from tinyexplore/widgets/panels.py by `python -m tinyexplore.explore.schema`. Do not edit.\n"
)


def panel_files() -> dict[str, str]:
    """Returns the files of the front end that are generated from the rows of panels, by path under `widgets/src`."""
    chunks: dict[str, list[Panel]] = {}
    for panel in PANELS:
        if panel.chunk:
            chunks.setdefault(panel.chunk, []).append(panel)
    return {
        "panel_rows.ts": _write_panel_rows(),
        "panel_views.ts": _write_bundled_views(),
        "command_palette/panel_descriptions.ts": _write_descriptions(),
        **{f"chunks/{name}.ts": _write_chunk(panels) for name, panels in chunks.items()},
    }


def _write_descriptions() -> str:
    """Returns the TypeScript module with the description of each panel, for the command palette."""
    descriptions = {panel.name: panel.description for panel in PANELS}
    return f"{_PANELS_HEADER}\nexport const PANEL_DESCRIPTIONS = {_write_object(descriptions)};\n"


def _write_object(data: typing.Any) -> str:
    return json.dumps(data, ensure_ascii=False, indent=2)


def _write_panel_rows() -> str:
    """Returns the TypeScript module with the tables of panels."""
    groups = {
        group.name: {
            "title": group.title,
            "says": group.description,
            "panels": [panel.name for panel in PANELS if panel.group == group.name],
        }
        for group in PANEL_GROUPS
    }
    rows = {
        panel.name: {
            "title": panel.heading,
            **({"chunk": panel.chunk} if panel.chunk else {}),
            **({"opensTall": True} if panel.opens_tall else {}),
            **({"key": panel.key} if panel.key else {}),
            **({"needs": list(panel.needs)} if panel.needs else {}),
            **({"needsPython": True} if panel.needs_python else {}),
            **({"emptyText": list(panel.empty_text)} if panel.empty_text[0] else {}),
        }
        for panel in PANELS
    }
    widgets = {panel.widget.name: panel.name for panel in PANELS if panel.widget is not None}
    needs = sorted({need for panel in PANELS for need in panel.needs})
    return (
        f"{_PANELS_HEADER}\n"
        "/** The panels by group, in the order of their tabs. */\n"
        f"export const GROUPS = {_write_object(groups)} as const;\n\n"
        'export type Panel = (typeof GROUPS)[keyof typeof GROUPS]["panels"][number];\n\n'
        "/** What a page keeps for panels. */\n"
        f"export type Need = {' | '.join(json.dumps(need) for need in needs)};\n\n"
        "/** What is known of a panel before its code is there: see `Panel` in panels.py. */\n"
        "export interface PanelRow {\n  title: string;\n  chunk?: string;\n  opensTall?: boolean;\n  key?: string;\n"
        "  needs?: Need[];\n  needsPython?: boolean;\n  emptyText?: [text: string, code: string];\n}\n\n"
        f"export const PANEL_ROWS: Record<Panel, PanelRow> = {_write_object(rows)};\n\n"
        "/** The panel of each widget of its own. */\n"
        f"export const WIDGETS = {_write_object(widgets)} as const;\n"
    )


def _write_bundled_views() -> str:
    """Returns the module with the views whose code is in the bundle."""
    bundled = [panel for panel in PANELS if not panel.chunk]
    imports = [_import(panel.view, ".") for panel in bundled]
    rows = [f"  {panel.name}: {panel.view.partition(':')[2]}," for panel in bundled]
    return "\n".join([_PANELS_HEADER, *imports, "", "export const BUNDLED = {", *rows, "};", ""])


def _write_chunk(panels: list[Panel]) -> str:
    """Returns the entry of a chunk: its style, its views, and the views of standalone widgets."""
    styles = list(dict.fromkeys(style for panel in panels for style in panel.styles))
    names = [f"style{number}" for number in range(len(styles))]
    views_alone = {
        panel.name: panel.widget.standalone_view
        for panel in panels
        if panel.widget is not None and panel.widget.standalone_view
    }
    lines = [
        _PANELS_HEADER,
        *(f'import {name} from "../{style}";' for name, style in zip(names, styles)),
        *(_import(view, "..") for view in [*(panel.view for panel in panels), *views_alone.values()]),
        "",
        *([f"export const css = {' + '.join(names)};"] if names else []),
        *(_import(module, "..").replace("import", "export", 1) for panel in panels for module in panel.other_exports),
        _write_views("views", {panel.name: panel.view for panel in panels}),
        *([_write_views("standaloneViews", views_alone)] if views_alone else []),
    ]
    return "\n".join([*lines, ""])


def _write_views(name: str, views: dict[str, str]) -> str:
    rows = ", ".join(f"{key}: {view.partition(':')[2]}" for key, view in views.items())
    return f"export const {name} = {{ {rows} }};"


def _import(view: str, folder: str) -> str:
    module, _, name = view.partition(":")
    return f'import {{ {name} }} from "{folder}/{module}";'


def main(arguments: list[str] | None = None) -> int:
    """Writes the files, or compares them (`--check`: exit status 1 if one is out of date)."""
    parser = argparse.ArgumentParser(prog="python -m tinyexplore.explore.schema", description=__doc__)
    parser.add_argument("--check", action="store_true", help="compare instead of writing")
    parser.add_argument("--output", type=Path, default=FOLDER, help="the folder of the files")
    options = parser.parse_args(arguments)
    stale = 0
    texts = {"model.ts": to_typescript(), "requests.ts": requests_to_typescript(), **panel_files()}
    for path in (options.output / "chunks").glob("*.ts"):
        if f"chunks/{path.name}" not in texts and path.read_text(encoding="utf-8").startswith(_PANELS_HEADER):
            sys.stderr.write(f"{path} belongs to no panel any more; delete it\n")
            stale = 1
    for name, text in texts.items():
        path = options.output / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if not options.check:
            path.write_text(text, encoding="utf-8")
        elif not path.exists() or path.read_text(encoding="utf-8") != text:
            sys.stderr.write(f"{path} is not current; run: python -m tinyexplore.explore.schema\n")
            stale = 1
    return stale


if __name__ == "__main__":
    raise SystemExit(main())
