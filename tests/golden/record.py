"""The golden file of a program: the text of its kernels or of its trace, and a summary line."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from hashlib import blake2b
from pathlib import Path

from tests.golden.machines import MACHINES, Machine, opened
from tests.golden.programs import PROGRAMS, SMALL
from tinyexplore.explore import Trace, capture

FOLDER = Path(__file__).resolve().parent
LONGEST = 12_000  # characters of a source that is kept whole
Sections = dict[str, str]  # a file: by title, in order


def digest(text: str) -> str:
    return blake2b(text.encode(), digest_size=8).hexdigest()


def sources(name: str, machine: Machine) -> dict[str, str]:
    """The sources of the kernels of a program in the order in which they first run, by number and name."""
    with opened(machine) as listener:
        PROGRAMS[name]()
    found = listener.bound.values()
    return {f"{number} {program.spec.name}": program.source.rstrip() for number, program in enumerate(found, 1)}


def shown_sources(name: str, machine: Machine) -> Sections:
    """The section of a program: a line for each kernel, and the sources of small programs' that are not too long."""
    found = sources(name, machine)
    lines = [f"{kernel}: {text.count(chr(10)) + 1} lines, {digest(text)}" for kernel, text in found.items()]
    whole = {f"{name} · {kernel}": text for kernel, text in found.items() if name in SMALL and len(text) <= LONGEST}
    return {name: "\n".join(lines), **whole}


def shown_trace(name: str, machine: Machine) -> Sections:
    """The section of a recorded program: what each stage did, in counts and digests."""
    with opened(machine):
        with capture(title=name) as session:
            PROGRAMS[name]()
        return {name: "\n".join(trace_lines(session.trace))}  # made now, while the machine is known


def trace_lines(trace: Trace) -> Iterator[str]:
    """All of a trace but times, places in files and what runs differ in."""
    nodes = {node.id: node.digest for node in trace.nodes}
    rules: dict[int | None, str] = {rule.id: rule.name for rule in trace.rules}
    yield f"nodes: {listed(f'{node.op} {node.digest}' for node in trace.nodes)}"
    yield f"links: {listed(f'{nodes[link.src]} {nodes[link.dst]} {link.how}' for link in trace.links)}"
    names = {kernel.id: kernel.name for kernel in trace.kernels}
    for stage in trace.stages:
        fired = [rules[step.rule] for step in stage.steps if step.rule is not None]
        steps = [f"{rules.get(step.rule)} {nodes[step.before]} {nodes[step.after]}" for step in stage.steps]
        parts = [f"{listed(steps)} steps"] if steps else []
        parts += [f"{count} × {rule}" for rule, count in sorted(Counter(fired).items())]
        parts += [f"{'' if one.applied else 'not '}{one.opt}" for one in stage.opts]
        where = "" if stage.kernel is None else f"{names.get(stage.kernel, '?')} · "
        for one in stage.decisions:
            yield f"{stage.name}: {nodes[one.node][:6]} {one.decision}: {one.reason}"
        if parts:
            yield f"{where}{stage.name}: {'; '.join(parts)}"
    for kernel in trace.kernels:
        same = "" if kernel.same_as is None else f", the same as {names[kernel.same_as]}"
        yield f"kernel {kernel.name}: {', '.join(kernel.opts) or 'no opts'}; {kernel.flops} flops{same}"
    for program in trace.programs:
        yield f"{names[program.kernel]} · {program.language}: {listed(line.text for line in program.lines)}"


def made(machine: Machine, names: Iterable[str]) -> Sections:
    """The sections of these programs' sources."""
    return {title: text for name in names for title, text in shown_sources(name, machine).items()}


def made_traces(names: Iterable[str]) -> Sections:
    return {title: text for name in names for title, text in shown_trace(name, MACHINES[1]).items()}


def read(path: Path) -> Sections:
    """A golden file's sections."""
    if not path.exists():
        return {}
    sections = path.read_text(encoding="utf-8").split("\n=== ")[1:]
    return {title: text.rstrip() for title, _, text in (section.partition("\n") for section in sections)}


def written(head: str, sections: Mapping[str, str]) -> str:
    """The text of a golden file."""
    return "\n".join([head, *[f"=== {title}\n{text}" for title, text in sections.items()], ""])


def listed(texts: Iterable[str]) -> str:
    """How many, and the digest of all in order."""
    found = list(texts)
    return f"{len(found)} ({digest(chr(10).join(found))})"
