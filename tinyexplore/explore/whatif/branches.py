"""WhatIf: the branches of a session. A command is carried out from a branch on, and becomes another branch."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from threading import RLock

from tinyexplore.explore.model import Branch, OptLaw, Run, Trace
from tinyexplore.explore.whatif.bench import Bench, Subject
from tinyexplore.explore.whatif.commands import AsCaptured, SetOpts, from_info, info_of
from tinyexplore.explore.whatif.place import Command, Outcome, Place, Refused, WhatIfError
from tinyexplore.kernel import Kernel, OptOps
from tinyexplore.util import Config

NOT_HERE = "this trace came from a file: it says what was, and has no program to change; capture it again"


class WhatIf:
    """The what-ifs of one capture: `do(command)` gives a branch, `branches` are all of them.

    kernels: the captured kernels by their numbers, none where a trace came from a file. Each kernel has a branch at
    which its reader is; commands go on from there, unless they are told another one. One is carried out at a time.
    """

    def __init__(
        self, trace: Trace, kernels: Mapping[int, Kernel] | None = None, settings: Config | None = None
    ) -> None:
        self.branches: list[Branch] = list(trace.branches)
        self.on_change: Callable[[Branch], None] | None = None
        self._count = len(trace.kernels)
        self._at: dict[int, int] = {branch.kernel: branch.id for branch in self.branches if branch.kernel is not None}
        self._turn = RLock()
        self._bench: Bench | None = None
        self._extended: tuple[Trace, Trace] | None = None
        if kernels and settings is not None:
            subjects = {number: Subject.of(trace.kernels[number].device, one) for number, one in kernels.items()}
            names = {info.id: tuple(trace.buffers[number].name for number in info.buffers) for info in trace.kernels}
            self._bench = Bench(subjects, settings, names)

    # *** asking ***

    @property
    def is_live(self) -> bool:
        """Whether there is anything to compile again."""
        return self._bench is not None

    def of_kernel(self, kernel: int) -> tuple[Branch, ...]:
        """The branches about one kernel, in the order in which they were made."""
        return tuple(branch for branch in self.branches if branch.kernel == kernel)

    def at(self, kernel: int) -> Branch | None:
        """The branch at which the reader is; None where nothing was asked of that kernel yet."""
        number = self._at.get(kernel)
        return None if number is None else self.branches[number]

    def bench(self, kernel: int | None = None) -> Bench:
        """What compiles; WhatIfError where this kernel cannot be compiled again."""
        if self._bench is None:
            raise WhatIfError(NOT_HERE)
        if kernel is not None and kernel not in self._bench.subjects:
            if 0 <= kernel < self._count:
                raise WhatIfError(f"kernel {kernel} is a copy between devices: there are no loops to change")
            raise WhatIfError(f"no kernel {kernel}; this trace has kernels 0 … {self._count - 1}")
        return self._bench

    def extended(self, trace: Trace) -> Trace:
        """`trace` with the branches; itself where there are none but its own."""
        if len(self.branches) == len(trace.branches) and tuple(self.branches) == trace.branches:
            return trace
        if self._extended is not None and self._extended[0] is trace:
            known = self._extended[1]
            if known.branches == tuple(self.branches):
                return known
        extended = replace(trace, branches=tuple(self.branches), laws=with_all_laws(trace.laws))
        self._extended = (trace, extended)
        return extended

    # *** doing ***

    def do(self, command: Command, parent: Branch | int | None = None) -> Branch:
        """The branch that `command` leads to from `parent` on (by default from where the reader is), which is where the
        reader is then; an earlier one where that is the same.

        A branch that failed says why, and leaves the reader where he was. WhatIfError for what cannot be asked.
        """
        with self._turn:
            number = command.about
            bench = self.bench(number)
            origin = self._origin(command, parent)
            try:
                outcome = command.carry_out(Place(bench, self.branches, origin))
            except Refused as error:
                return self._add(command, origin, Outcome(error.kernels, note=str(error)), "failed")
            if outcome.same is not None:
                return self._know(outcome.same, command.label)
            light = self._light(number, outcome)
            if light is not None:
                return self._know(
                    self._put(replace(light, kernels=outcome.kernels, reason=outcome.note)), command.label
                )
            return self._add(command, origin, outcome, "done")

    def go(self, branch: Branch | int) -> Branch:
        """Makes `branch` the one at which the reader of its kernel is."""
        found = self._branch(branch)
        if found.kernel is not None:
            self._at[found.kernel] = found.id
        return found

    def whole(self, branch: Branch | int) -> Branch:
        """`branch` with its listings, nest and offers: what a search timed is compiled for that."""
        found = self._branch(branch)
        if found.kernel is None or found.status == "failed" or all(one.listings for one in found.kernels):
            return found
        return self.do(SetOpts(found.kernel, ", ".join(found.kernels[0].opts)), found)

    def replay(self, branches: Iterable[Branch]) -> tuple[Branch, ...]:
        """The commands of `branches` (of another capture of the same program, say) carried out here, in their order."""
        made: dict[int, Branch] = {}
        for branch in branches:
            parent = None if branch.parent is None else made.get(branch.parent)
            made[branch.id] = self.do(from_info(branch.command), parent)
        return tuple(made.values())

    def trace_of(self, branch: Branch | int) -> Trace:
        """The kernel of `branch` compiled once more as a trace of its own: every stage, step and listing, and the times
        of the branch."""
        found = self._branch(branch)
        if found.kernel is None or not found.kernels:
            raise WhatIfError(f"branch {found.id} has no kernel: {found.reason or 'it is about none'}")
        variant, bench = found.kernels[0], self.bench(found.kernel)
        place = Place(bench, self.branches, found)
        trace, _, _ = bench.recorded(found.kernel, lambda: place.kernel(variant.kernel or 0))
        if variant.median_us is None or variant.low_us is None or variant.high_us is None:
            return trace
        return replace(trace, runs=(Run(0, 0, variant.times_us, variant.median_us, variant.low_us, variant.high_us),))

    # *** keeping ***

    def _branch(self, branch: Branch | int) -> Branch:
        number = branch if isinstance(branch, int) else branch.id
        if not 0 <= number < len(self.branches):
            raise WhatIfError(f"no branch {number}; there are {len(self.branches)}")
        return self.branches[number]

    def _origin(self, command: Command, parent: Branch | int | None) -> Branch | None:
        """Where a command goes on from: the first one about a kernel is about the kernel as it was captured."""
        if parent is not None:
            return self._branch(parent)
        if command.about is None or isinstance(command, AsCaptured):
            return None
        return self.at(command.about) or self.do(AsCaptured(command.about))

    def _light(self, number: int | None, outcome: Outcome) -> Branch | None:
        """A branch that a search has timed, and nobody has looked at."""
        if number is None or not outcome.kernels:
            return None
        for branch in self.of_kernel(number):
            if branch.status == "done" and branch.kernels and not branch.kernels[0].listings:
                if branch.kernels[0].opts == outcome.kernels[0].opts:
                    return branch
        return None

    def _add(self, command: Command, parent: Branch | None, outcome: Outcome, status: str) -> Branch:
        branch = Branch(
            id=len(self.branches),
            parent=None if parent is None else parent.id,
            kernel=command.about,
            command=info_of(command),
            status=status,
            reason=outcome.note,
            kernels=outcome.kernels,
            labels=(command.label,) if command.label and status == "done" else (),
        )
        self.branches.append(branch)
        if status == "done":
            self.go(branch)
        self._tell(branch)
        return branch

    def _know(self, branch: Branch, label: str) -> Branch:
        """`branch`, which is known for something more now."""
        if label and label not in branch.labels:
            branch = self._put(replace(branch, labels=(*branch.labels, label)))
        self.go(branch)
        self._tell(branch)
        return branch

    def _put(self, branch: Branch) -> Branch:
        self.branches[branch.id] = branch
        return branch

    def _tell(self, branch: Branch) -> None:
        if self.on_change is not None:
            self.on_change(branch)


def with_all_laws(laws: tuple[OptLaw, ...]) -> tuple[OptLaw, ...]:
    """`laws`, and those of every other kind of opt."""
    known = {law.name for law in laws}
    found = list(laws)
    for op in OptOps:
        if op.name not in known:
            for law in op.kind.laws:
                found.append(OptLaw(len(found), op.name, law.words, law.before, law.after))
    return tuple(found)


__all__ = ["WhatIf", "with_all_laws"]
