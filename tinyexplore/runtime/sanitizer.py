"""Runs C kernels under AddressSanitizer and UndefinedBehaviorSanitizer, to find and report accesses beyond a buffer.

Each run is a separate process, with its buffers in blocks of exactly their sizes. The sanitizers' runtime must be
loaded before anything else in a process, which is too late in this one.
"""

from __future__ import annotations

import re
import shutil
import struct
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

from tinyexplore.device import Buffer
from tinyexplore.renderer.program import ProgramSpec
from tinyexplore.runtime.native import check_arguments

FLAGS = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-fno-omit-frame-pointer", "-g1")
SYMBOLIZERS = ("llvm-symbolizer", "addr2line")  # programs that find source lines; the first available one is used
NO_RUNTIME = (
    "SANITIZE=1: the C compiler lacks the runtime of its sanitizers (Debian: apt-get install libclang-rt-dev, or gcc, "
    "which has its own)"
)
PROGRAM_BYTES = 16 << 10
# Reads from standard input: start, stop, the numbers of buffers and of values, each buffer's size and content, and
# the
# values. Writes the content of the buffers after the run.
DRIVER = """
#include <stdio.h>
#include <stdlib.h>
const char* __asan_default_options(void) {{
  return "detect_leaks=0:handle_segv=1:allocator_may_return_null=0{symbolizer}";
}}
static int64_t tinyexplore_number(void) {{
  int64_t number = 0;
  if (fread(&number, sizeof number, 1, stdin) != 1) exit(3);
  return number;
}}
int main(void) {{
  int64_t start = tinyexplore_number(), stop = tinyexplore_number();
  int64_t buffers = tinyexplore_number(), values = tinyexplore_number();
  void** arguments = calloc(buffers + values + 1, sizeof(void*));
  int64_t* sizes = calloc(buffers + 1, sizeof(int64_t));
  for (int64_t i = 0; i < buffers; i++) {{
    sizes[i] = tinyexplore_number();
    if (posix_memalign(&arguments[i], 64, sizes[i])) exit(3);
    if (sizes[i] && fread(arguments[i], sizes[i], 1, stdin) != 1) exit(3);
  }}
  for (int64_t i = 0; i < values; i++) arguments[buffers + i] = (void*)tinyexplore_number();
  {name}_entry(arguments, start, stop);
  for (int64_t i = 0; i < buffers; i++)
    if (sizes[i] && fwrite(arguments[i], sizes[i], 1, stdout) != 1) exit(3);
  return 0;
}}
"""
_REPORT_PATTERNS = (
    r"runtime error: [^\n]*",
    r"AddressSanitizer: [\w-]+",
    r"(?:READ|WRITE) of size \d+",
    r"is located \d+ bytes [\w ]+ of \d+-byte region",
)


class SanitizerError(RuntimeError):
    """Raised if a kernel has undefined behavior in C. The message states the kind, and the line of its source."""


def driver_source(name: str) -> str:
    """Returns the source text that makes a program of the kernel `name`."""
    symbolizer = shutil.which(SYMBOLIZERS[0]) or shutil.which(SYMBOLIZERS[1])
    return DRIVER.format(name=name, symbolizer=f":external_symbolizer_path={symbolizer}" if symbolizer else "")


class SanitizedProgram:
    """A kernel as a separate program at `path`. `owner` keeps the file."""

    entry_address: int | None = None
    nbytes = PROGRAM_BYTES
    code_bytes = 0
    refusal = ""

    def __init__(self, spec: ProgramSpec, path: Path, owner: object) -> None:
        self.spec = spec
        self.source = spec.source
        self.path = path
        self.owner = owner

    def __repr__(self) -> str:
        return f"SanitizedProgram({self.spec.name!r})"

    def bind(self, buffers: Sequence[Buffer], values: Sequence[int] = ()) -> Callable[[int, int], None]:
        """Returns a function of (start, stop) that runs on copies of `buffers`, and copies the results back."""
        check_arguments(self.spec, buffers, values)
        for buffer in buffers:
            buffer.allocate()

        def run(start: int, stop: int) -> None:
            message = [struct.pack("<4q", start, stop, len(buffers), len(values))]
            for buffer in buffers:
                message += [struct.pack("<q", buffer.nbytes), buffer.copyout()]
            message.append(struct.pack(f"<{len(values)}q", *values))
            process = subprocess.run([str(self.path)], input=b"".join(message), capture_output=True, check=False)
            if process.returncode:
                raise self.sanitizer_error(process.stderr.decode(errors="replace"), process.returncode)
            offset = 0
            for position, buffer in enumerate(buffers):
                if position in self.spec.writes:
                    buffer.copyin(process.stdout[offset : offset + buffer.nbytes])
                offset += buffer.nbytes

        return run

    def sanitizer_error(self, report: str, code: int) -> SanitizerError:
        """Returns the error that a sanitizer found, in short, with the line."""
        matches = [match[0] for pattern in _REPORT_PATTERNS if (match := re.search(pattern, report))]
        text = "; ".join(matches) or f"it ended with {code}: {report.strip()[:400]}"
        lines = self.source.splitlines()
        numbers = [int(number) for number in re.findall(r"<stdin>:(\d+)", report)]
        line_number = next((number for number in numbers if number <= len(lines)), None)
        excerpt = f"\nline {line_number}: {lines[line_number - 1].strip()}" if line_number is not None else ""
        return SanitizerError(f"the kernel {self.spec.name}, under SANITIZE=1: {text}{excerpt}")


__all__ = ["FLAGS", "SanitizedProgram", "SanitizerError", "driver_source"]
