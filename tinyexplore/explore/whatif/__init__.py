"""What if: a command is data; a session carries it out; the answer is a branch of the trace.

`commands/` has a file for each kind of command, `branches.py` the session's branches, `bench.py` compiles and times,
`door.py` is what an Explorer has of it.
"""

from __future__ import annotations

from tinyexplore.explore.whatif.branches import WhatIf
from tinyexplore.explore.whatif.commands import (
    COMMANDS,
    ApplyOpt,
    AsCaptured,
    AsScheduled,
    Command,
    Cut,
    Edit,
    HandCode,
    Join,
    Leave,
    Search,
    SetOpts,
    UndoOpt,
    from_data,
    from_info,
    from_json,
    info_of,
    to_json,
)
from tinyexplore.explore.whatif.place import Outcome, Place, Refused, WhatIfError

__all__ = [
    "COMMANDS",
    "ApplyOpt",
    "AsCaptured",
    "AsScheduled",
    "Command",
    "Cut",
    "Edit",
    "HandCode",
    "Join",
    "Leave",
    "Outcome",
    "Place",
    "Refused",
    "Search",
    "SetOpts",
    "UndoOpt",
    "WhatIf",
    "WhatIfError",
    "from_data",
    "from_info",
    "from_json",
    "info_of",
    "to_json",
]
