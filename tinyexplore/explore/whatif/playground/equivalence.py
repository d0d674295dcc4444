"""Checks whether two graphs of UOps are equivalent; if not, finds values at which they differ.

There are three checks, the cheapest first:

1. Each common subexpression is a free variable within its bounds. If the graphs are equal then, they are equal for all
   inputs.
2. Only loads and reductions are free variables.
3. Everything is computed from memory and loops. A remaining difference is a counterexample. If it cannot be computed,
   the result is "not checked".

Integers and booleans must be equal. Floats must be equal bit for bit, and all NaNs are equal. A `tolerance` is for
rules that reorder a sum or approximate. Values of usual sizes may then differ by this share of the largest number that
occurred.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from tinyexplore.dtype import DType, dtypes
from tinyexplore.explore.recording.expression import Printer, dtype_text, number_text
from tinyexplore.explore.whatif.playground.evaluator import (
    Address,
    Effects,
    EvaluationError,
    Evaluator,
    InputRequirement,
    UnknownValue,
    is_loop,
    is_value,
    lane_count,
    memory_name,
)
from tinyexplore.explore.whatif.playground.proof import Proof, prove_equal
from tinyexplore.explore.whatif.playground.samples import Choose, choices, constants_of, simpler_values
from tinyexplore.uop import Ops, UOp
from tinyexplore.uop.bounds import bounds
from tinyexplore.uop.semantics import to_dtype_range

INPUT_SAMPLES = 256
MAX_OPERATIONS = 400  # operations per sample on average; a larger graph gets fewer samples, at least `MIN_SAMPLES`
MIN_SAMPLES = 2
COMBINATION_FACTOR = 8  # factor for the number of samples, if that covers every combination of special values
MAX_RETRIED_DIFFERENCES = 6  # differences under free variables that are tried again with fewer free variables
MAX_TRIES = 320  # simpler inputs to try for a counterexample; fewer if a sample needs many operations
MAX_SIMPLIFYING_OPERATIONS = 60_000  # operations for all these tries
_ONLY_READ = frozenset({Ops.LOAD, Ops.REDUCE, Ops.RESULT, Ops.SCAN, Ops.DEFINE_ACC})
_NEVER_CUT = frozenset({Ops.CONST, Ops.RANGE, Ops.DEFINE_VAR, Ops.BIND, Ops.VECTORIZE})
_LONGEST = 60
PageData = Mapping[tuple[UOp, int], Any]  # values by (node, lane) or (memory, element)
MIN_EQUAL_ELEMENTS = 4  # from this number on, equal elements of memory are one entry of a counterexample

Status = Literal["proved", "agrees", "differs", "not checked"]


@dataclass(frozen=True, slots=True, repr=False)
class Counterexample:
    """Values at which two graphs differ.

    inputs: (name, value) of each input.
    before: the value of the first graph.
    after: the value of the second graph.
    """

    inputs: tuple[tuple[str, str], ...]
    before: str
    after: str

    def __str__(self) -> str:
        inputs_text = ", ".join(f"{name} = {value}" for name, value in self.inputs) or "for all inputs"
        return f"{inputs_text}: {self.before} has become {self.after}"

    __repr__ = __str__


@dataclass(frozen=True, slots=True, repr=False)
class Verdict:
    """Whether a firing keeps the value of a graph.

    status: "proved" for all values, "agrees" on samples, "differs", or "not checked".
    samples: the number of samples that were compared.
    reason: the reason why it was not checked, else "".
    counterexample: inputs for which the values differ, or None.
    tolerance: the relative error that the rule allows, None for the usual one.
    """

    status: Status
    samples: int = 0
    reason: str = ""
    counterexample: Counterexample | None = None
    tolerance: float | None = None

    @property
    def holds(self) -> bool:
        """Whether the graphs are equivalent as far as the check shows: proved, or equal on all samples."""
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

    __repr__ = __str__


def equivalent(
    before: UOp, after: UOp, *, samples: int = INPUT_SAMPLES, tolerance: float | None = None, prove: bool = True
) -> Verdict:
    """Checks whether `after` may replace `before`.

    prove: whether to use z3 too, if it is installed and supports the types.
    """
    if before is after:
        return Verdict("proved", reason="it is the same node")
    if reason := _compare_types(before, after) or _order_differs(before, after):
        return Verdict("differs", reason=reason)
    verdict = Verdict("not checked", reason="nothing was computed")
    doubt = ""
    carried: list[PageData] = []
    for cut in _cut_candidates(before, after):
        pair = _GraphPair(before, after, cut, tolerance)
        try:
            verdict = pair.compare(samples, carried)
        except EvaluationError as error:
            more = f"; with arbitrary values for its parts: {doubt:.200}" if doubt else ""
            return Verdict("not checked", reason=f"{error}{more}")
        if verdict.holds:
            if prove and tolerance is None and is_value(before):
                proof = prove_equal(before, after, cut)
                return _combine_with_proof(verdict, proof, before, after, cut)
            return verdict
        doubt = str(verdict.counterexample or verdict.reason)
        carried = pair.carried
    return verdict


def _combine_with_proof(verdict: Verdict, proof: Proof, before: UOp, after: UOp, cut: frozenset[UOp]) -> Verdict:
    """Returns the verdict of samples, improved by a proof or by a verified counterexample."""
    if proof.status == "proved":
        return Verdict("proved", verdict.samples)
    if proof.status == "differs":
        pair = _GraphPair(before, after, cut, None)
        counterexample = pair.compare_once(
            lambda requirement: proof.values.get((requirement.node, requirement.lane), _zero_of(requirement.dtype))
        )
        if isinstance(counterexample, Counterexample):
            return Verdict("differs", verdict.samples, counterexample=counterexample)
    return verdict


def _zero_of(dtype: DType) -> Any:
    return False if dtype is dtypes.bool else 0.0 if dtypes.is_float(dtype) else 0


def _compare_types(before: UOp, after: UOp) -> str:
    """Returns the difference of the types of two nodes as text; "" if they agree."""
    first, other = before.dtype, after.dtype
    if not isinstance(first, DType) or not isinstance(other, DType):
        return "" if type(first) is type(other) else f"{dtype_text(first)} has become {dtype_text(other)}"
    if first.scalar is not other.scalar:
        return f"{dtype_text(first)} has become {dtype_text(other)}"
    if (
        is_value(before)
        and lane_count(before) != lane_count(after)
        and 1 not in (lane_count(before), lane_count(after))
    ):
        return f"{lane_count(before)} lanes have become {lane_count(after)}"
    return ""


def _order_differs(before: UOp, after: UOp) -> str:
    """Returns the ordering error of a load in `after` as text, or "" if there is none.

    The error is a load without the barrier on which all loads of the same memory in `before` depend. Its value is
    undefined.
    """
    all_ordered: dict[UOp, bool] = {}
    for load in before.find(Ops.LOAD):
        if load.src[0].op is Ops.INDEX:
            pointer = load.src[0].src[0]
            all_ordered[pointer] = all_ordered.get(pointer, True) and _depends_on_barrier(load)
    for load in after.find(Ops.LOAD):
        if load.src[0].op is Ops.INDEX and not _depends_on_barrier(load) and all_ordered.get(load.src[0].src[0]):
            return f"{memory_name(load.src[0].src[0])} is loaded without a dependence on the stores that fill it"
    return ""


def _depends_on_barrier(load: UOp) -> bool:
    """Whether a barrier orders the load after the stores that fill the memory."""
    return any(src.op is Ops.BARRIER for src in load.src[1:])


def _cut_candidates(before: UOp, after: UOp) -> list[frozenset[UOp]]:
    """Returns the sets of nodes to try as free variables: all common nodes, then loads and reductions, then none."""
    nodes_before, nodes_after = set(before.toposort()), set(after.toposort())
    common = nodes_before & nodes_after
    if all(node in common or node.op not in _ONLY_READ for node in nodes_after):
        common |= {node for node in nodes_before if node.op in _ONLY_READ}  # `after` does not need them
    values = {node for node in common if is_value(node) and node.op not in _NEVER_CUT}
    values = {node for node in values if all(is_loop(axis) or node.dtype.count == 1 for axis in node.ranges)}
    cuts = [frozenset(values), frozenset(node for node in values if node.op in _ONLY_READ), frozenset[UOp]()]
    return list(dict.fromkeys(cuts))


class _GraphPair:
    """Two graphs, and the nodes that are free variables in both."""

    def __init__(self, before: UOp, after: UOp, cut: frozenset[UOp], tolerance: float | None) -> None:
        self.before = before
        self.after = after
        self.cut = cut
        self.tolerance = tolerance
        self.carried: list[PageData] = []  # the inputs of the differences found
        self.last: Evaluator
        self.lane = 0  # the lane of the last difference

    def compare(self, samples: int, carried: Sequence[PageData] = ()) -> Verdict:
        """Compares the graphs on `samples` samples, or fewer if the time is over.

        carried: inputs for which the graphs differed with more free variables. They are tried first.
        """
        first = Evaluator(lambda requirement: _zero_of(requirement.dtype), self.cut)
        self._compute_results(first)
        # loops and free variables in the order of first use; memory contents depend on the addresses that are read
        inputs = [
            requirement
            for requirement in first.chosen
            if requirement.node.op not in (Ops.DEFINE_GLOBAL, Ops.DEFINE_LOCAL)
        ]
        budget = MAX_OPERATIONS * samples // max(1, first.steps)
        most_samples = max(MIN_SAMPLES, min(samples, budget))
        compared = 0
        skipped = ""
        doubt: Counterexample | None = None
        for choose, carried_values in self._yield_samples(
            carried, inputs, most_samples, min(COMBINATION_FACTOR * samples, max(most_samples, budget))
        ):
            counterexample = self.compare_once(choose, carried_values)
            if isinstance(counterexample, Counterexample):
                if not self.cut:
                    return Verdict("differs", compared, counterexample=self.simplify(self.last, choose, counterexample))
                doubt = doubt or counterexample
                self.carried.append(_list_carried_values(self.last, self.lane))
                if len(self.carried) == MAX_RETRIED_DIFFERENCES:
                    break
            elif counterexample:
                skipped = counterexample
            else:
                compared += 1
        if doubt is not None:
            return Verdict("differs", compared, counterexample=doubt)
        if not compared:
            return Verdict("not checked", reason=f"the original graph has no value for any sample: {skipped}")
        return Verdict("agrees", compared, tolerance=self.tolerance)

    def _yield_samples(
        self, carried: Sequence[PageData], inputs: Sequence[InputRequirement], most_samples: int, budget: int
    ) -> Iterator[tuple[Choose, PageData]]:
        for carried_values in carried:
            yield _choose_carried(carried_values), carried_values
        usual = self.tolerance is not None
        constants = constants_of(node.arg for root in (self.after, self.before) for node in root.find(Ops.CONST))
        for choose in choices(inputs, most_samples, usual=usual, constants=constants, budget=budget):
            yield choose, {}

    def simplify(self, evaluator: Evaluator, choose: Choose, counterexample: Counterexample) -> Counterexample:
        """Returns a counterexample with the most zeros and ones among its inputs.

        The search sets half of the inputs to zero, then a quarter, and so on, then each input alone (delta debugging,
        Zeller 1999).

        evaluator: the inputs of `counterexample`.
        """
        chosen = dict(evaluator.chosen)
        tries = 0
        most_tries = max(8, min(MAX_TRIES, MAX_SIMPLIFYING_OPERATIONS // max(1, evaluator.steps)))

        def differs(values: Mapping[InputRequirement, Any]) -> bool:
            nonlocal chosen, counterexample, tries
            tries += 1
            other = self.compare_once(_choose_from(values, choose))
            if not isinstance(other, Counterexample):
                return False
            chosen, counterexample = (
                {needed: value for needed, value in values.items() if needed in self.last.chosen},
                other,
            )
            return True

        size = len(chosen)
        while size > 1 and tries < most_tries:
            names = list(chosen)
            for start in range(0, len(names), size):
                some = [
                    name for name in names[start : start + size] if name in chosen and not _is_zero(name, chosen[name])
                ]
                if some and tries < most_tries:
                    differs({**chosen, **{needed: _choose_simplest_value(needed) for needed in some}})
            size //= 2
        for _ in range(2):
            for requirement in [needed for needed in chosen if not _is_zero(needed, chosen[needed])]:
                for simple in simpler_values(requirement, chosen[requirement]) if requirement in chosen else ():
                    if tries >= most_tries or differs({**chosen, requirement: simple}):
                        break
        return counterexample

    def compare_once(self, choose: Choose, carried: PageData | None = None) -> Counterexample | str:
        """Returns the result of one sample: a counterexample, "" if both graphs agree, or why none was compared."""
        evaluator = self.last = Evaluator(choose, self.cut, carried)
        before, after, faults = self._compute_results(evaluator)
        if faults[0]:
            return faults[0][0]
        if faults[1]:
            return self._make_counterexample(evaluator, before, faults[1][0])
        if isinstance(before, dict):
            return self._compare_effects(evaluator, before, after)
        if isinstance(before, Address):
            before, after = (
                tuple([_place_text(location) for location in _list_addressed_elements(side)])
                for side in (before, after)
            )
        count = max(len(before), len(after))
        before, after = (lanes * count if len(lanes) == 1 else lanes for lanes in (before, after))
        if len(before) != len(after):
            return self._make_counterexample(evaluator, f"{len(before)} lanes", f"{len(after)} lanes")
        undefined = ""
        for lane, (first, other) in enumerate(zip(before, after, strict=True)):
            if type(first) is UnknownValue:
                undefined = str(first)
            elif not self._is_same(first, other, evaluator.greatest):
                self.lane = lane
                prefix = f"lane {lane}: " if count > 1 else ""
                return self._make_counterexample(evaluator, f"{prefix}{value_text(first)}", value_text(other))
        return undefined if all(type(value) is UnknownValue for value in before) else ""

    def _compute_results(self, evaluator: Evaluator) -> tuple[Any, Any, tuple[list[str], list[str]]]:
        loops_before, loops_after = self.before.ranges, self.after.ranges
        before = self._compute_result(evaluator, self.before, loops_before - loops_after)
        faults, evaluator.faults = evaluator.faults, []
        after = self._compute_result(evaluator, self.after, loops_after - loops_before)
        return before, after, (faults, evaluator.faults)

    def _compute_result(self, evaluator: Evaluator, root: UOp, own_loops: frozenset[UOp]) -> Any:
        if root.op in (Ops.STORE, Ops.SINK, Ops.BARRIER):
            return evaluator.effects(root, [axis for axis in own_loops if is_loop(axis)])
        if any(is_loop(axis) for axis in own_loops) and self.after.op is not Ops.CONST and root is self.after:
            raise EvaluationError(
                "the new graph has a loop that the original graph lacks; only common loops can be sampled"
            )
        return evaluator.lanes(root)

    def _is_same(self, first: Any, other: Any, greatest: float) -> bool:
        if type(other) is UnknownValue:
            return False
        if isinstance(first, Address) or isinstance(other, Address):
            return (
                isinstance(first, Address)
                and isinstance(other, Address)
                and _list_addressed_elements(first) == _list_addressed_elements(other)
            )
        if isinstance(first, float) and isinstance(other, float):
            if first != first or other != other:
                return first != first and other != other
            if self.tolerance is not None:
                return first == other or abs(first - other) <= self.tolerance * greatest
            return first == other and math.copysign(1, first) == math.copysign(1, other)
        return type(first) is type(other) and bool(first == other)

    def _compare_effects(self, evaluator: Evaluator, before: Effects, after: Effects) -> Counterexample | str:
        for pointer, index in dict.fromkeys((*before, *after)):
            lay = evaluator.element(pointer, index)
            first, other = before.get((pointer, index), lay), after.get((pointer, index), lay)
            if type(first) is not UnknownValue and not self._is_same(first, other, evaluator.greatest):
                name = f"{memory_name(pointer)}[{index}]"
                return self._make_counterexample(
                    evaluator, f"{name} = {value_text(first)}", f"{name} = {value_text(other)}"
                )
        return ""

    def _make_counterexample(self, evaluator: Evaluator, before: Any, after: Any) -> Counterexample:
        printer = Printer()
        inputs: dict[str, list[str]] = {}
        for requirement, value in evaluator.chosen.items():
            inputs.setdefault(_name(requirement, printer), []).append(value_text(value))
        texts = [(name, values[0] if len(values) == 1 else f"[{', '.join(values)}]") for name, values in inputs.items()]
        texts = _merge_equal_elements(texts)
        return Counterexample(tuple(texts), lanes_text(before), lanes_text(after))


def _merge_equal_elements(texts: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """Merges equal elements of memory into one entry; the most frequent value stands for all other elements."""
    alike: dict[str, list[str]] = {}
    for name, value in texts:
        if name.endswith("]"):
            alike.setdefault(value, []).append(name)
    frequent = {value: names for value, names in alike.items() if len(names) >= MIN_EQUAL_ELEMENTS}
    rest = max(frequent, key=lambda value: len(frequent[value]), default=None)
    inputs = []
    for name, value in texts:
        if not name.endswith("]") or value not in frequent:
            inputs.append((name, value))
        elif value != rest and name == frequent[value][0]:
            inputs.append((f"{name}, {frequent[value][1]}, … {frequent[value][-1]}", value))
    return inputs if rest is None else [*inputs, ("all other inputs", rest)]


def _choose_from(values: Mapping[InputRequirement, Any], choose: Choose) -> Choose:
    return lambda requirement: values[requirement] if requirement in values else choose(requirement)


def _choose_simplest_value(requirement: InputRequirement) -> Any:
    zero = _zero_of(requirement.dtype)
    return (
        zero if dtypes.is_float(requirement.dtype) or requirement.low <= zero <= requirement.high else requirement.low
    )


def _is_zero(requirement: InputRequirement, value: Any) -> bool:
    return repr(value) == repr(_choose_simplest_value(requirement))


def _list_carried_values(evaluator: Evaluator, lane: int) -> PageData:
    """Returns the values of free variables, those of `lane` first, with source values that produce them if found."""
    carried: dict[tuple[UOp, int], Any] = {}
    chosen = sorted(evaluator.chosen.items(), key=lambda item: item[0].lane != lane)
    for requirement, value in chosen:
        if requirement.node.op in (Ops.DEFINE_GLOBAL, Ops.DEFINE_LOCAL):
            carried.setdefault((requirement.node, requirement.place or 0), value)
            continue
        parts = [(requirement.node, value)]
        while parts:
            node, value = parts.pop()
            key = node, requirement.lane if lane_count(node) > 1 else 0
            if key not in carried:
                carried[key] = value
                parts += _propose_sources(node, value)
    return carried


def _propose_sources(node: UOp, value: Any) -> list[tuple[UOp, Any]]:
    """Proposes values of `node`'s sources from which `node` may get `value`. The caller computes the actual result."""
    if not node.src or not is_value(node.src[0]) or type(value) is bool:
        return []
    source, *others = node.src
    kind = source.dtype.scalar
    other = others[0] if others else source
    by = other.arg if other.op is Ops.CONST else None
    match node.op:
        case Ops.REDUCE if node.arg is Ops.ADD:
            return [(source, value)]  # this value once, then zeros
        case Ops.ADD if by is not None:
            return [(source, to_dtype_range(value - by, kind))]
        case Ops.ADD if dtypes.is_int(kind) and source.op is Ops.MUL and source.src[1].op is Ops.CONST:
            step = abs(source.src[1].arg) or 1  # row and column of an element
            return [(source, value - value % step), (other, value % step)]
        case Ops.ADD if dtypes.is_int(kind):
            lowest = bounds(other)[0]
            return [(source, to_dtype_range(value - lowest, kind)), (other, lowest)]
        case Ops.MIN | Ops.MAX if by is not None:
            return [(source, value)]
        case Ops.MUL if by:
            return [(source, to_dtype_range(value / by if dtypes.is_float(kind) else value // by, kind))]
        case Ops.NEG:
            return [(source, to_dtype_range(-value, kind))]
        case Ops.CAST if dtypes.is_float(kind):
            return [(source, to_dtype_range(value, kind))]
        case Ops.CAST if dtypes.is_int(kind) and math.isfinite(value):
            return [(source, to_dtype_range(int(value), kind))]
    return []


def _choose_carried(carried: PageData) -> Choose:
    def choose(requirement: InputRequirement) -> Any:
        key = requirement.node, requirement.lane
        if requirement.node.op in (Ops.DEFINE_GLOBAL, Ops.DEFINE_LOCAL):
            key = requirement.node, requirement.place or 0
        return carried[key] if key in carried else _choose_simplest_value(requirement)

    return choose


def _list_addressed_elements(address: Address) -> tuple[Any, ...]:
    """Returns the elements that an address refers to, one per lane; None for masked lanes."""
    count = max(len(address.idx), len(address.valid or ()))
    idx = address.idx * count if len(address.idx) == 1 else address.idx
    valid = address.valid or (True,)
    valid = valid * count if len(valid) == 1 else valid
    return tuple([(address.pointer, index) if allowed else None for index, allowed in zip(idx, valid)])


def _place_text(location: tuple[UOp, Any] | None) -> str:
    """Returns an element of memory as text, with the name that the graph shows."""
    if location is None:
        return "nothing (masked)"
    pointer, number = location
    if type(number) is UnknownValue:
        return f"{memory_name(pointer)} at no place: {number}"
    size = pointer.dtype.size
    return f"{memory_name(pointer)}[{number}]{'' if 0 <= number < size else f', outside of its {size}'}"


def _name(requirement: InputRequirement, printer: Printer) -> str:
    if requirement.node.op in (Ops.DEFINE_GLOBAL, Ops.DEFINE_LOCAL):
        return f"{memory_name(requirement.node)}[{requirement.place}]"
    text = printer.text(requirement.node)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def value_text(value: Any) -> str:
    """Returns a value as Python writes it, with all digits."""
    if type(value) is float and math.isfinite(value):
        return repr(value)
    return str(value) if type(value) is UnknownValue else number_text(value)


def lanes_text(lanes: Any) -> str:
    """Returns one value as text, or the values of all lanes."""
    if isinstance(lanes, str):
        return lanes
    if isinstance(lanes, Sequence):
        texts = [value_text(lane) for lane in lanes]
        return texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
    return str(lanes)


__all__ = ["INPUT_SAMPLES", "Counterexample", "Verdict", "equivalent"]
