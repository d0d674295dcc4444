"""equivalent(before, after): whether two graphs of UOps mean the same, and if not, values at which they do not.

Three questions, the cheapest first. What both have in common may be anything within its bounds: where they agree then,
they agree whatever it is. If not, only what is read and reduced may be anything; then all is computed from memory and
loops. A difference that stays is a counterexample; one that cannot be computed is told as "not checked".

Equal is: integers and truths exactly, floats bit for bit, one NaN being as good as another. With a `tolerance` (of a
rule that says so: one that adds in another order, or that approximates) values of usual sizes are compared, within so
much of the greatest number that came up.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from tinyexplore.dtype import DType, dtypes
from tinyexplore.explore.playground.meaning import (
    Address,
    Effects,
    NotEvaluated,
    NoValue,
    Wanted,
    World,
    is_loop,
    is_value,
    lane_count,
    memory_name,
)
from tinyexplore.explore.playground.proof import Proof, proved
from tinyexplore.explore.playground.samples import Choose, choices, simpler_values
from tinyexplore.explore.recording.expression import Printer, dtype_text, number_text
from tinyexplore.uop import Ops, UOp

SAMPLES = 256
MOST_OPERATIONS = 400  # of a sample on average: where it takes more, fewer samples are compared, `FEWEST` at least
FEWEST = 2
MOST_SIMPLIFIED, MOST_TRIES = 32, 240  # inputs of a counterexample for which simpler ones are tried; how often
_ONLY_READ = frozenset({Ops.LOAD, Ops.REDUCE, Ops.RESULT, Ops.SCAN, Ops.DEFINE_ACC})
_NEVER_CUT = frozenset({Ops.CONST, Ops.RANGE, Ops.DEFINE_VAR, Ops.BIND, Ops.VECTORIZE})
_LONGEST = 60
_ZEROS = ("0", "0.0", "False")
MANY_ZEROS = 4  # elements of memory that are 0 in a counterexample: so many are not told one by one

Status = Literal["proved", "agrees", "differs", "not checked"]


@dataclass(frozen=True, slots=True)
class Counterexample:
    """Values at which two graphs differ: `inputs` by name, what came of the graph `before` and of that `after`."""

    inputs: tuple[tuple[str, str], ...]
    before: str
    after: str

    def __str__(self) -> str:
        given = ", ".join(f"{name} = {value}" for name, value in self.inputs) or "whatever is given"
        return f"{given}: {self.before} has become {self.after}"


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a firing keeps what is computed. status: "proved" for all values, "agrees" on `samples`, "differs" at the
    `counterexample`, "not checked", then `reason` says why."""

    status: Status
    samples: int = 0
    reason: str = ""
    counterexample: Counterexample | None = None
    tolerance: float | None = None

    @property
    def holds(self) -> bool:
        """Whether nothing speaks against it: proved, or on all samples."""
        return self.status in ("proved", "agrees")

    def __str__(self) -> str:
        match self.status:
            case "proved":
                return "proved for all values"
            case "agrees":
                within = "" if self.tolerance is None else f" within {self.tolerance:g}"
                return f"{self.samples} samples agree{within}{f' ({self.reason})' if self.reason else ''}"
            case "differs":
                return f"differs: {self.counterexample or self.reason}"
        return f"not checked: {self.reason}"


def equivalent(
    before: UOp, after: UOp, *, samples: int = SAMPLES, tolerance: float | None = None, prove: bool = True
) -> Verdict:
    """Whether `after` may stand wherever `before` does. `prove`: by z3 where it is installed and the types allow it."""
    if before is after:
        return Verdict("proved", reason="it is the same node")
    types = _types_differ(before, after)
    if types:
        return Verdict("differs", reason=types)
    verdict = Verdict("not checked", reason="nothing was computed")
    doubt = ""
    for cut in _cuts(before, after):
        try:
            verdict = _Pair(before, after, cut, tolerance).compared(samples)
        except NotEvaluated as error:
            more = f"; with anything in the place of its parts: {doubt:.200}" if doubt else ""
            return Verdict("not checked", reason=f"{error}{more}")
        if verdict.holds:
            if prove and tolerance is None and is_value(before):
                proof = proved(before, after, cut)
                return _after_proof(verdict, proof, before, after, cut)
            return verdict
        doubt = str(verdict.counterexample or verdict.reason)
    return verdict


def _after_proof(verdict: Verdict, proof: Proof, before: UOp, after: UOp, cut: frozenset[UOp]) -> Verdict:
    if proof.status == "proved":
        return Verdict("proved", verdict.samples)
    if proof.status == "differs":
        pair = _Pair(before, after, cut, None)
        found = pair.one(lambda wanted: proof.values.get((wanted.node, wanted.lane), _zero(wanted.dtype)))
        if isinstance(found, Counterexample):
            return Verdict("differs", verdict.samples, counterexample=found)
    return verdict


def _zero(dtype: DType) -> Any:
    return False if dtype is dtypes.bool else 0.0 if dtypes.is_float(dtype) else 0


def _types_differ(before: UOp, after: UOp) -> str:
    one, other = before.dtype, after.dtype
    if not isinstance(one, DType) or not isinstance(other, DType):
        return "" if type(one) is type(other) else f"{dtype_text(one)} has become {dtype_text(other)}"
    if one.scalar is not other.scalar:
        return f"{dtype_text(one)} has become {dtype_text(other)}"
    if (
        is_value(before)
        and lane_count(before) != lane_count(after)
        and 1 not in (lane_count(before), lane_count(after))
    ):
        return f"{lane_count(before)} lanes have become {lane_count(after)}"
    return ""


def _cuts(before: UOp, after: UOp) -> list[frozenset[UOp]]:
    """What stands for any value: all that both have, then what is read and reduced of it, then nothing."""
    mine, others = set(before.toposort()), set(after.toposort())
    common = mine & others
    if all(node in common or node.op not in _ONLY_READ for node in others):
        common |= {node for node in mine if node.op in _ONLY_READ}  # `after` does without
    values = {node for node in common if is_value(node) and node.op not in _NEVER_CUT}
    values = {node for node in values if all(is_loop(axis) or node.dtype.count == 1 for axis in node.ranges)}
    found = [frozenset(values), frozenset(node for node in values if node.op in _ONLY_READ), frozenset[UOp]()]
    return list(dict.fromkeys(found))


class _Pair:
    """Two graphs, and what stands for any value in them."""

    def __init__(self, before: UOp, after: UOp, cut: frozenset[UOp], tolerance: float | None) -> None:
        self.before = before
        self.after = after
        self.cut = cut
        self.tolerance = tolerance
        self.last: World

    def compared(self, samples: int) -> Verdict:
        first = World(lambda wanted: _zero(wanted.dtype), self.cut)
        self._results(first)
        # loops and parts in the order in which they come up; what lies in memory depends on where is read
        inputs = [wanted for wanted in first.chosen if wanted.node.op not in (Ops.DEFINE_GLOBAL, Ops.DEFINE_LOCAL)]
        most = max(FEWEST, min(samples, MOST_OPERATIONS * samples // max(1, first.steps)))
        compared = 0
        skipped = ""
        for choose in choices(inputs, most, usual=self.tolerance is not None):
            found = self.one(choose)
            if isinstance(found, Counterexample):
                return Verdict("differs", compared, counterexample=self.simplified(self.last, choose, found))
            if found:
                skipped = found
            else:
                compared += 1
            if compared >= most:
                break
        if not compared:
            return Verdict("not checked", reason=f"the graph before has no value on any sample: {skipped}")
        return Verdict("agrees", compared, tolerance=self.tolerance)

    def simplified(self, world: World, choose: Choose, found: Counterexample) -> Counterexample:
        """A counterexample with as many zeros and ones among its inputs as there can be. `world`: where it came up."""
        chosen = dict(world.chosen)
        tries = 0
        for wanted in [*list(chosen)[:MOST_SIMPLIFIED]] * 2:
            for simple in simpler_values(wanted, chosen[wanted]):
                tries += 1
                given = {**chosen, wanted: simple}
                other = self.one(_mostly(given, choose))
                if isinstance(other, Counterexample):
                    chosen, found = given, other
                    break
                if tries > MOST_TRIES:
                    return found
        return found

    def one(self, choose: Choose) -> Counterexample | str:
        """What one sample says: a counterexample, "" where they agree, or why there is nothing to compare."""
        world = self.last = World(choose, self.cut)
        before, after, faults = self._results(world)
        if faults[0]:
            return faults[0][0]
        if faults[1]:
            return self._counterexample(world, before, faults[1][0])
        if isinstance(before, dict):
            return self._effects_differ(world, before, after)
        if isinstance(before, Address):
            before, after = _places(before), _places(after)
        count = max(len(before), len(after))
        before, after = (lanes * count if len(lanes) == 1 else lanes for lanes in (before, after))
        if len(before) != len(after):
            return self._counterexample(world, f"{len(before)} lanes", f"{len(after)} lanes")
        undefined = ""
        for lane, (one, other) in enumerate(zip(before, after, strict=True)):
            if type(one) is NoValue:
                undefined = str(one)
            elif not self._same(one, other, world.greatest):
                where = f"lane {lane}: " if count > 1 else ""
                return self._counterexample(world, f"{where}{value_text(one)}", value_text(other))
        return undefined if all(type(one) is NoValue for one in before) else ""

    def _results(self, world: World) -> tuple[Any, Any, tuple[list[str], list[str]]]:
        mine, others = self.before.ranges, self.after.ranges
        before = self._result(world, self.before, mine - others)
        faults, world.faults = world.faults, []
        after = self._result(world, self.after, others - mine)
        return before, after, (faults, world.faults)

    def _result(self, world: World, root: UOp, own: frozenset[UOp]) -> Any:
        if root.op in (Ops.STORE, Ops.SINK, Ops.BARRIER):
            return world.effects(root, [axis for axis in own if is_loop(axis)])
        if any(is_loop(axis) for axis in own) and self.after.op is not Ops.CONST and root is self.after:
            raise NotEvaluated("a loop that the graph before does not depend on")
        return world.lanes(root)

    def _same(self, one: Any, other: Any, greatest: float) -> bool:
        if type(other) is NoValue:
            return False
        if isinstance(one, Address) or isinstance(other, Address):
            return isinstance(one, Address) and isinstance(other, Address) and _places(one) == _places(other)
        if isinstance(one, float) and isinstance(other, float):
            if one != one or other != other:
                return one != one and other != other
            if self.tolerance is not None:
                return one == other or abs(one - other) <= self.tolerance * greatest
            return one == other and math.copysign(1, one) == math.copysign(1, other)
        return type(one) is type(other) and bool(one == other)

    def _effects_differ(self, world: World, before: Effects, after: Effects) -> Counterexample | str:
        for pointer, place in dict.fromkeys((*before, *after)):
            lay = world.element(pointer, place)
            one, other = before.get((pointer, place), lay), after.get((pointer, place), lay)
            if type(one) is not NoValue and not self._same(one, other, world.greatest):
                name = f"{memory_name(pointer)}[{place}]"
                return self._counterexample(world, f"{name} = {value_text(one)}", f"{name} = {value_text(other)}")
        return ""

    def _counterexample(self, world: World, before: Any, after: Any) -> Counterexample:
        printer = Printer()
        inputs: dict[str, list[str]] = {}
        for wanted, value in world.chosen.items():
            inputs.setdefault(_name(wanted, printer), []).append(value_text(value))
        given = [(name, values[0] if len(values) == 1 else f"[{', '.join(values)}]") for name, values in inputs.items()]
        zeros = [pair for pair in given if pair[0].endswith("]") and pair[1] in _ZEROS]
        if len(zeros) >= MANY_ZEROS:
            given = [pair for pair in given if pair not in zeros] + [("all else that is read", zeros[0][1])]
        return Counterexample(tuple(given), lanes_text(before), lanes_text(after))


def _mostly(given: Mapping[Wanted, Any], choose: Choose) -> Choose:
    return lambda wanted: given[wanted] if wanted in given else choose(wanted)


def _places(address: Address) -> tuple[Any, ...]:
    """Which elements an address names; None for lanes that are not valid."""
    count = max(len(address.idx), len(address.valid or ()))
    idx = address.idx * count if len(address.idx) == 1 else address.idx
    valid = address.valid or (True,)
    valid = valid * count if len(valid) == 1 else valid
    return tuple([(memory_name(address.pointer), place) if allowed else None for place, allowed in zip(idx, valid)])


def _name(wanted: Wanted, printer: Printer) -> str:
    if wanted.node.op in (Ops.DEFINE_GLOBAL, Ops.DEFINE_LOCAL):
        return f"{memory_name(wanted.node)}[{wanted.place}]"
    text = printer.text(wanted.node)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def value_text(value: Any) -> str:
    """A value as Python writes it, all of its digits."""
    if type(value) is float and math.isfinite(value):
        return repr(value)
    return str(value) if type(value) is NoValue else number_text(value)


def lanes_text(lanes: Any) -> str:
    """One value, or those of all lanes."""
    if isinstance(lanes, str):
        return lanes
    if isinstance(lanes, Sequence):
        texts = [value_text(lane) for lane in lanes]
        return texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
    return str(lanes)


__all__ = ["SAMPLES", "Counterexample", "Verdict", "equivalent"]
