"""CompileError: raised if a compiler rejects a program."""

from __future__ import annotations

import re


class CompileError(RuntimeError):
    """Raised if a compiler rejects a program. The message has the compiler's message and the line of the source."""


def compile_error(compiler: str, message: str, source: str, line_pattern: str) -> CompileError:
    """Returns the error of a `compiler` with the message `message`, and the first source line that it names.

    line_pattern: a regular expression whose only group is the number of this line in `message`.
    """
    match = re.search(line_pattern, message)
    lines = source.splitlines()
    excerpt = ""
    if match is not None and 1 <= int(match[1]) <= len(lines):
        excerpt = f"\nline {match[1]}: {lines[int(match[1]) - 1].strip()}"
    return CompileError(f"{compiler} could not compile the kernel:\n{message.strip()}{excerpt}")


__all__ = ["CompileError", "compile_error"]
