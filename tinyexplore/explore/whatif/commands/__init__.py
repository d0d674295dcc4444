"""The what-if commands, one file per kind. This module has their table and their codec.

Widgets, pages and scripts encode and decode commands with this table. A new kind needs a file and a row.
"""

from __future__ import annotations

import json
from dataclasses import fields
from typing import Any

from tinyexplore.explore.analysis.opts import WhatIfError
from tinyexplore.explore.tracefile.model import CommandInfo
from tinyexplore.explore.whatif.command import Command
from tinyexplore.explore.whatif.commands.apply_opt import ApplyOpt
from tinyexplore.explore.whatif.commands.as_captured import AsCaptured
from tinyexplore.explore.whatif.commands.as_scheduled import AsScheduled
from tinyexplore.explore.whatif.commands.cut import Cut
from tinyexplore.explore.whatif.commands.disable_rule import DisableRule
from tinyexplore.explore.whatif.commands.edit import Edit
from tinyexplore.explore.whatif.commands.fire_rule import FireRule
from tinyexplore.explore.whatif.commands.insert_rule import InsertRule
from tinyexplore.explore.whatif.commands.join import Join
from tinyexplore.explore.whatif.commands.leave_to_scheduler import Leave
from tinyexplore.explore.whatif.commands.search import SearchOpts
from tinyexplore.explore.whatif.commands.set_opts import SetOpts
from tinyexplore.explore.whatif.commands.skip_firing import SkipFiring
from tinyexplore.explore.whatif.commands.undo_opt import UndoOpt
from tinyexplore.explore.whatif.commands.use_heuristics import UseHeuristics

COMMANDS: tuple[type[Command], ...] = (
    AsCaptured,
    UseHeuristics,
    SetOpts,
    ApplyOpt,
    UndoOpt,
    SearchOpts,
    Edit,
    InsertRule,
    DisableRule,
    FireRule,
    SkipFiring,
    AsScheduled,
    Cut,
    Join,
    Leave,
)

_KINDS = {kind.__name__: kind for kind in COMMANDS}
# the names of commands in traces that earlier versions saved
_FORMER_KINDS: dict[str, type[Command]] = {"HandCode": UseHeuristics}


def info_of(command: Command) -> CommandInfo:
    """Returns a command as a row of the trace."""
    names = [field.name for field in fields(command)]
    return CommandInfo(type(command).__name__, tuple((name, getattr(command, name)) for name in names))


def from_info(info: CommandInfo) -> Command:
    """Returns the command that `info_of` described.

    Raises:
        WhatIfError: there is no such command, or its arguments differ.
    """
    kind = _KINDS.get(info.kind) or _FORMER_KINDS.get(info.kind)
    if kind is None:
        raise WhatIfError(f"no command {info.kind!r}; supported: {', '.join(_KINDS)}")
    arguments = dict(info.arguments)
    types = {field.name: {"int": int, "str": str}[str(field.type)] for field in fields(kind)}
    if arguments.keys() != types.keys():
        raise WhatIfError(f"{info.kind} takes {', '.join(types)}; given: {', '.join(arguments) or 'nothing'}")
    for name, value in arguments.items():
        if type(value) is not types[name]:
            raise WhatIfError(f"{info.kind}: {name} is {value!r:.60}, expected {types[name].__name__}")
    return kind(**arguments)


def to_json(command: Command) -> str:
    """Returns a command as JSON, as a view sends it: `{"kind": "ApplyOpt", "kernel": 0, "opt": "UPCAST(0, 4)"}`."""
    info = info_of(command)
    return json.dumps({"kind": info.kind, **dict(info.arguments)})


def from_json(text: str) -> Command:
    """Returns the command that `to_json` wrote.

    Raises:
        WhatIfError: the text is not a command.
    """
    try:
        data = json.loads(text)
    except ValueError as error:
        raise WhatIfError(f"this is not a command: {error}") from None
    return from_data(data)


def from_data(data: Any) -> Command:
    """Returns the command in a decoded JSON object."""
    if not isinstance(data, dict) or not isinstance(data.get("kind"), str):
        raise WhatIfError(f'a command is an object with "kind", found {data!r:.60}')
    return from_info(CommandInfo(data["kind"], tuple((name, data[name]) for name in data if name != "kind")))


__all__ = [
    "COMMANDS",
    "ApplyOpt",
    "AsCaptured",
    "AsScheduled",
    "Command",
    "Cut",
    "DisableRule",
    "FireRule",
    "Edit",
    "UseHeuristics",
    "InsertRule",
    "Join",
    "Leave",
    "SearchOpts",
    "SetOpts",
    "SkipFiring",
    "UndoOpt",
    "from_data",
    "from_info",
    "from_json",
    "info_of",
    "to_json",
]
