"""python -m tests.golden [--update] [--sources FOLDER] [PROGRAM ...]

Makes the sources and traces of the programs (default: all) and compares them with the golden files. What differs is
shown, a diff for each program or source; exit status 1. `--update` rewrites the files, and shows the same.
`--sources` writes every source whole into a folder for each machine: of two commits, `diff -r` shows all of it.
"""

from __future__ import annotations

import argparse
import difflib
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.golden.machines import MACHINES
from tests.golden.programs import PROGRAMS, TRACED
from tests.golden.record import FOLDER, Sections, made, made_traces, read, sources, written

MAX_LINES = 60  # of one diff
TRACES = "traces"


def heads() -> dict[str, str]:
    """The first lines of each golden file, by its name."""
    found = {
        one.name: f"Kernels for TARGET={one.target}; made by `python -m tests.golden --update`." for one in MACHINES
    }
    return {**found, TRACES: f"Recordings for {MACHINES[1].target}; made by `python -m tests.golden --update`."}


def path_of(name: str) -> Path:
    return FOLDER / f"{name}.txt"


def everything(names: list[str]) -> dict[str, Sections]:
    """What each golden file is to have of these programs."""
    found = {machine.name: made(machine, machine.of(names)) for machine in MACHINES}
    return {**found, TRACES: made_traces([name for name in TRACED if name in names])}


def about(title: str) -> str:
    """The program that a section is of."""
    return title.partition(" · ")[0]


def differences(before: Sections, after: Sections) -> Iterator[str]:
    """A diff for each section that differs."""
    for title in [*after, *[title for title in before if title not in after]]:
        old, new = before.get(title), after.get(title)
        if old == new:
            continue
        if old is None or new is None:
            yield f"{'+' if old is None else '-'} {title}"
            continue
        lines = list(difflib.unified_diff(old.splitlines(), new.splitlines(), title, title, "before", "after", 2, ""))
        more = [f"  … and {len(lines) - MAX_LINES} more lines"] if len(lines) > MAX_LINES else []
        yield "\n".join(lines[:MAX_LINES] + more)


def compare(names: list[str], *, update: bool) -> int:
    """Exit status 1 where something differs and is not updated."""
    count = 0
    for file, after in everything(names).items():
        kept = read(path_of(file))
        before = {title: text for title, text in kept.items() if about(title) in names}
        for difference in differences(before, after):
            count += 1
            print(f"--- {file}\n{difference}\n")
        if update:
            others = {title: text for title, text in kept.items() if about(title) not in names}
            known = [name for name in PROGRAMS if name in names or name in map(about, others)]
            both = {**others, **after}
            ordered = {title: both[title] for name in known for title in both if about(title) == name}
            path_of(file).write_text(written(heads()[file], ordered), encoding="utf-8")
    verdict = f"{count} sections differ" if count else "all equal"
    print(f"{len(names)} programs on {len(MACHINES)} machines: {verdict}{', written' if update and count else ''}")
    return 1 if count and not update else 0


def write_sources(names: list[str], folder: Path) -> None:
    for machine in MACHINES:
        (folder / machine.name).mkdir(parents=True, exist_ok=True)
        for name in names:
            for kernel, text in sources(name, machine).items():
                (folder / machine.name / f"{name}, {kernel}.ll".replace(" ", "_")).write_text(text, encoding="utf-8")


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.golden", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("programs", nargs="*", metavar="PROGRAM")
    parser.add_argument("--update", action="store_true", help="write what differs")
    parser.add_argument("--sources", type=Path, metavar="FOLDER", help="write every source, and compare nothing")
    options = parser.parse_args(arguments)
    unknown = [name for name in options.programs if name not in PROGRAMS]
    if unknown:
        parser.error(f"no program is called {unknown[0]!r}; known: {', '.join(PROGRAMS)}")
    names = options.programs or list(PROGRAMS)
    if options.sources is not None:
        write_sources(names, options.sources)
        return 0
    return compare(names, update=options.update)


if __name__ == "__main__":
    sys.exit(main())
