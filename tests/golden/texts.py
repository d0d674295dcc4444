"""Shared code of the golden text commands: compares each language's text with its golden file, or writes it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tests.golden.__main__ import differences, path_of
from tests.golden.record import Sections, read, written


def main(arguments: list[str], command: str, targets: Mapping[str, str], made: Callable[[str], Sections]) -> int:
    """Compares what `made` gives for each language of `targets` (its TARGET) with the file, and shows what differs;
    with `--update` writes it. Exit status 1 where something differs and is not updated."""
    is_update = "--update" in arguments
    count = 0
    for language, target in targets.items():
        path = path_of(language)
        after = made(language)
        for difference in differences(read(path), after):
            count += 1
            print(f"--- {language}\n{difference}\n")
        if is_update:
            head = f"Kernels for TARGET={target}; made by `python -m {command} --update`."
            path.write_text(written(head, after), encoding="utf-8")
    print(f"{len(targets)} languages: {f'{count} sections differ' if count else 'all equal'}")
    return 1 if count and not is_update else 0
