"""Explains rules at a node: which could fire, which fired, and what prevented the others.

A node is a live UOp, or a row of a trace at some step of a pass. For the latter, its graph is rebuilt from the trace,
and the rules of that pass are tried on it with the context of the pass.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields, replace
from typing import Any, Literal

from tinyexplore.codegen import PASSES, Pass, Rewrite
from tinyexplore.codegen.lowering import ARGUMENTS, Lowering
from tinyexplore.device import Device, DeviceUnavailable
from tinyexplore.explore.analysis.explanations.match_attempts import (
    NO_CONTEXT,
    Mismatch,
    PatternPart,
    match_rule,
    node_text,
    pattern_parts,
)
from tinyexplore.explore.analysis.explanations.rebuilt_uops import RebuildError, RebuiltUOps
from tinyexplore.explore.recording.sources import package_path, rule_text
from tinyexplore.explore.tracefile.model import Node, Stage
from tinyexplore.explore.tracefile.pictures.drawn_graph import reachable
from tinyexplore.explore.tracefile.replay import DisplayedGraph, StageReplay
from tinyexplore.explore.tracefile.result_display import DisplayableResult, DisplayableRow, Table
from tinyexplore.explore.tracefile.trace import Trace
from tinyexplore.uop import PatternMatcher, Rule, UOp
from tinyexplore.uop.algebra import SIMPLIFY
from tinyexplore.util import Config, Context
from tinyexplore.util.config import check_option

_OWN = frozenset(("DEVICE", "DEBUG", "SPEC", "EXPLORER_MB"))  # settings of a trace that no rule reads
_KEPT_TRACES = 2
_KEPT_REPLAYS = 4
_COLUMNS = ("rule", "result", "law", "reason")
_CODE_COLUMNS = frozenset(("rule", "law"))


@dataclass(frozen=True, slots=True, repr=False)
class RuleAttempt(DisplayableResult):
    """A rule tried on a node.

    rule: the name of the rule.
    law: the law that it states.
    doc: its docstring.
    file: the file that defines it.
    line: the first line of the definition.
    text: its source code.
    verdict: "fires", "stopped" (see `mismatch`), or "unknown": it needs data that the trace lacks.
    passed: the number of parts of its pattern that match.
    parts: the number of all parts of its pattern.
    bound: (name, node as text) of the names in its pattern.
    first: whether the pass would apply it, as the first of the rules that fire.
    after: the resulting node, as text; "" if it does not fire.
    mismatch: why it does not fire, None if it does.
    at: the node of the trace with the mismatch, None for none.
    pattern: its parts, the whole first, with the nodes that they were compared with.
    """

    rule: str
    law: str
    doc: str
    file: str
    line: int
    text: str
    verdict: Literal["fires", "stopped", "unknown"]
    passed: int
    parts: int
    bound: tuple[tuple[str, str], ...]
    first: bool = False
    after: str = ""
    mismatch: Mismatch | None = None
    at: int | None = None
    pattern: tuple[PatternPart, ...] = ()

    def table(self) -> Table:
        """Returns a table with one row: the rule, whether it fires, its law and the reason."""
        return Table(self.text, _COLUMNS, (self.row(),), code=_CODE_COLUMNS)

    def row(self) -> tuple[str, str, str, str]:
        """Returns the row of this rule in a table of several."""
        if self.mismatch is None:
            return self.rule, "fires first" if self.first else "fires", self.law, f"gives {self.after}"
        matched = f"{self.verdict}: {self.passed} of {self.parts} parts match"
        return self.rule, matched, self.law, mismatch_text(self.mismatch)

    def __str__(self) -> str:
        names = ", ".join(f"{name} = {text}" for name, text in self.bound)
        if self.verdict == "fires":
            return (
                f"{self.rule}: fires{' first' if self.first else ''}: {self.law}\n    {names}\n    gives {self.after}"
            )
        assert self.mismatch is not None
        lines = [f"{self.rule}: {self.verdict} ({self.passed} of {self.parts} parts match): {self.law}"]
        lines.append(f"    {mismatch_text(self.mismatch)}")
        for line in self.mismatch.places:
            why = f"{line.because} {line.text}".strip()
            lines.append(f"    {line.file}:{line.line} {line.function}: {why}")
            lines += [f"      {name} = {text}" for name, text in line.values]
        return "\n".join(lines)


@dataclass(frozen=True, slots=True, repr=False)
class RecordedRewrite(DisplayableRow):
    """A recorded firing.

    step: the number of the step, from 1.
    rule: the name of the rule.
    before: the node that was replaced.
    after: the replacement.
    """

    step: int
    rule: str
    before: int
    after: int


@dataclass(frozen=True, slots=True, repr=False)
class WhyNot(DisplayableResult):
    """The rules at a node of a trace, at one step of a pass.

    stage: the id of the pass.
    name: the name of the pass.
    step: the number of finished steps.
    node: the node.
    what: the node as text.
    note: a remark for the reader, "" for none.
    fired: the rules that replaced or produced the node.
    could: the rules that could fire now, in the order of the pass.
    stopped: the rules that do not match, the nearest miss first.
    """

    stage: int
    name: str
    step: int
    node: int
    what: str
    note: str
    fired: tuple[RecordedRewrite, ...]
    could: tuple[RuleAttempt, ...]
    stopped: tuple[RuleAttempt, ...]

    def table(self) -> Table:
        """Returns one row per rule: those that could fire first, then the others, nearest miss first."""
        counts = f"{len(self.could)} could fire, {len(self.stopped)} cannot"
        title = f"{self.what}, in {self.name} after step {self.step}: {counts}"
        notes = [self.note] if self.note else []
        notes += [f"Step {firing.step}: {firing.rule} fired." for firing in self.fired]
        return Table(
            title,
            _COLUMNS,
            tuple(attempt.row() for attempt in (*self.could, *self.stopped)),
            tuple(notes),
            _CODE_COLUMNS,
        )

    def __str__(self) -> str:
        counts = f"{len(self.could)} could fire, {len(self.stopped)} cannot"
        lines = [f"{self.what}, in {self.name} after step {self.step}: {counts}"]
        if self.note:
            lines.append(self.note)
        lines += [f"step {firing.step}: {firing.rule} fired" for firing in self.fired]
        return "\n".join([*lines, *map(str, self.could), *map(str, self.stopped)])

    def __getitem__(self, rule: str) -> RuleAttempt:
        """Returns the attempt of the rule with this name."""
        for attempt in (*self.could, *self.stopped):
            if attempt.rule == rule:
                return attempt
        names = ", ".join(attempt.rule for attempt in (*self.could, *self.stopped)) or "none"
        raise KeyError(
            f"no rule {rule!r} in pass {self.name} matches the operation of {self.what}; rules tried: {names}"
        )


# *** live nodes ***


def why_not(rule: Rule | str, node: UOp, *, ctx: Any = NO_CONTEXT) -> RuleAttempt:
    """Returns the result of `rule` (a rule or its name) on `node`: it fires, or the mismatch.

    ctx: the context that a pass would give its rules (a `Lowering`). Without one, a rule that needs it has the verdict
        "unknown".
    """
    rules = (
        [rule]
        if isinstance(rule, Rule)
        else [candidate for candidate in _list_rules(tables().values()) if candidate.name == rule]
    )
    if not rules:
        names = ", ".join(sorted({candidate.name for candidate in _list_rules(tables().values())}))
        raise ValueError(f"no rule {rule!r} in any pass; available: {names}")
    # if several rules have the name, the best match counts
    attempts = [_try_rule(candidate, node, ctx) for candidate in rules]
    return max(attempts, key=lambda attempt: (attempt.verdict == "fires", attempt.passed))


def could_fire(node: UOp, stage: str | None = None, *, ctx: Any = NO_CONTEXT) -> tuple[RuleAttempt, ...]:
    """Returns the rules that would fire on `node` now: those of pass `stage` in order, or those of all passes."""
    matchers = tables()
    if stage is not None and stage not in matchers:
        raise ValueError(f"no pass {stage!r} with rules; available: {', '.join(matchers)}")
    rules = _list_rules(matchers.values() if stage is None else [matchers[stage]])
    attempts = [_try_rule(rule, node, ctx, places=False) for rule in rules if _is_about(rule, node)]
    found_to_fire = [attempt for attempt in attempts if attempt.verdict == "fires"]
    return tuple(found_to_fire) if stage is None else _mark_first(found_to_fire)


def tables() -> dict[str, PatternMatcher]:
    """Returns the tables of rules, by the stages that use them."""
    passes = {step.name: step.table for step in PASSES if isinstance(step, Rewrite)}
    return {"split axes": SIMPLIFY, **passes}


def _list_rules(matchers: Iterable[PatternMatcher]) -> list[Rule]:
    return list(dict.fromkeys(rule for table in matchers for rule in table.rules))


def _is_about(rule: Rule, node: UOp) -> bool:
    return rule.pattern.ops is None or node.op in rule.pattern.ops


def _try_rule(rule: Rule, node: UOp, ctx: Any, *, places: bool = True) -> RuleAttempt:
    """Tries a rule on a node, and returns the result with the first mismatch."""
    match = match_rule(rule, node, ctx, places=places)
    unknown = match.mismatch is not None and match.mismatch.kind == "context"
    return RuleAttempt(
        rule=rule.name,
        law=rule.law,
        doc=rule.doc,
        file=package_path(rule.file),
        line=rule.line,
        text=rule_text(rule),
        verdict="fires" if match.after is not None else "unknown" if unknown else "stopped",
        passed=match.passed,
        parts=match.parts,
        bound=tuple((name, node_text(bound_node)) for name, bound_node in match.bound.items()),
        after="" if match.after is None else node_text(match.after),
        mismatch=match.mismatch,
        pattern=pattern_parts(rule, match),
    )


def _mark_first(attempts: list[RuleAttempt]) -> tuple[RuleAttempt, ...]:
    """Sets `first` on the first rule that fires: the pass applies this rule."""
    return tuple(replace(attempt, first=number == 0) for number, attempt in enumerate(attempts))


_NEAR = ("context", "nothing new", "function", "error", "another node", "argument", "type", "sources", "operation")


def _measure_distance_to_match(attempt: RuleAttempt) -> tuple[float, int]:
    assert attempt.mismatch is not None
    return attempt.parts - attempt.passed, _NEAR.index(attempt.mismatch.kind)


def place_text(path: tuple[int, ...]) -> str:
    """Returns the position in a pattern as text: "the node itself", "source 1", "source 0 of source 1"."""
    return " of ".join(f"source {source}" for source in reversed(path)) or "the node itself"


def mismatch_text(mismatch: Mismatch) -> str:
    """Describes a mismatch as a sentence."""
    match mismatch.kind:
        case "function" | "nothing new" | "error" | "context":
            return f"expected {mismatch.expected}; {mismatch.actual}"
        case "another node":
            return f"{place_text(mismatch.path)}: expected {mismatch.expected}; found {mismatch.actual}"
        case kind:
            return f"{place_text(mismatch.path)}: expected the {kind} {mismatch.expected}; found {mismatch.actual}"


# *** nodes of a trace ***


class Explainer:
    """Explains rules in one trace. It replays graphs and rebuilds UOps on demand."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.rebuilt = RebuiltUOps(trace)
        self.replays: OrderedDict[int, StageReplay] = OrderedDict()
        self.graphs: OrderedDict[tuple[int, int], tuple[DisplayedGraph, dict[int, UOp]]] = OrderedDict()

    def why_not(self, node: Node | int, stage: Stage | int, step: int | None = None, rule: str | None = None) -> WhyNot:
        """Explains the rules at `node` after `step` steps of the stage (None: all).

        rule: only rules of this name.
        """
        row = self.trace.stages[stage] if isinstance(stage, int) else stage
        number = node.id if isinstance(node, Node) else node
        steps_done = len(row.steps) if step is None else step
        if not 0 <= number < len(self.trace.nodes) or not 0 <= steps_done <= len(row.steps):
            raise ValueError(
                f"node {number} at step {steps_done} of stage {row.id} ({row.name}): this trace has nodes "
                f"0 … {len(self.trace.nodes) - 1}, and the stage has steps 0 … {len(row.steps)}"
            )
        if self.trace.nodes[number].kind != "uop":
            raise RebuildError(
                f"node {number} is a LazyBuffer: rules are about UOps; why_kernels says what the scheduler made of it"
            )
        uop, graph, number_in_graph, note = self._locate(number, row, steps_done)
        table = tables().get(row.name)
        if table is None:
            note = f"{_explain_no_rules(self.trace, row)} {note}".strip()
            return WhyNot(row.id, row.name, steps_done, number, node_text(uop), note, (), (), ())
        with Context(**settings_of(self.trace)):
            ctx = context_of(self.trace, row, self.rebuilt)
            rules = [
                candidate for candidate in table.rules if _is_about(candidate, uop) and rule in (None, candidate.name)
            ]
            if rule is not None and not any(candidate.name == rule for candidate in table.rules):
                names = ", ".join(candidate.name for candidate in table.rules)
                raise ValueError(f"no rule {rule!r} in {row.name}; available: {names}")
            attempts = [_try_rule(candidate, uop, ctx) for candidate in rules]
        could = [attempt for attempt in attempts if attempt.verdict == "fires"]
        stopped = sorted(
            (attempt for attempt in attempts if attempt.verdict != "fires"), key=_measure_distance_to_match
        )
        return WhyNot(
            stage=row.id,
            name=row.name,
            step=steps_done,
            node=number,
            what=node_text(uop),
            note=note,
            fired=firings_on(self.trace, row, number),
            could=tuple(_add_trace_nodes(attempt, graph, number_in_graph) for attempt in _mark_first(could)),
            stopped=tuple(_add_trace_nodes(attempt, graph, number_in_graph) for attempt in stopped),
        )

    def find_step(self, node: int, stage: int | None = None, step: int | None = None) -> tuple[int, int | None]:
        """Returns the stage and step for a question about `node`.

        These are the given ones if the node is in that pass. Otherwise it is the first pass with rules that contains
        the node, at the step where it appears, or simply the first pass with rules.
        """
        if stage is not None and self._step_of(node, self.trace.stages[stage]) is not None:
            return stage, step
        with_rules = [row for row in self.trace.stages if row.name in tables()]
        for row in with_rules:
            if (step_id := self._step_of(node, row)) is not None:
                return row.id, step_id
        if not with_rules:
            raise ValueError("this trace has no pass with rules: nothing was compiled in it")
        return with_rules[0].id, 0

    def _step_of(self, node: int, stage: Stage) -> int | None:
        """Returns the number of steps after which `node` is in the stage's graph; None if it never is."""
        nodes = dict(enumerate(self.trace.nodes))
        if any(row.id == node for row in reachable(nodes, stage.before)):
            return 0
        steps = (number for number, step in enumerate(stage.steps, 1) if node == step.after)
        return next(steps, None)

    def _locate(self, node: int, stage: Stage, step: int) -> tuple[UOp, DisplayedGraph | None, int | None, str]:
        """Returns the UOp of `node` at that step, the graph, the node's id in it, and a remark."""
        if not stage.steps:
            return self.rebuilt.uop(node), None, None, ""
        graph, uops = self._show_graph(stage, step)
        number_in_graph = next((key for key, shown in graph.nodes.items() if shown.node == node), None)
        if number_in_graph is not None:
            return uops[number_in_graph], graph, number_in_graph, ""
        return (
            self.rebuilt.uop(node),
            None,
            None,
            "It is not in the graph at this step, so the rules are tried on the node as recorded.",
        )

    def _show_graph(self, stage: Stage, step: int) -> tuple[DisplayedGraph, dict[int, UOp]]:
        shown_graph = self.graphs.get((stage.id, step))
        if shown_graph is None:
            replay = self.replays.get(stage.id)
            if replay is None:
                replay = self.replays[stage.id] = StageReplay(self.trace, stage.id)
            graph = replay.graph_at(step, marked=False)
            shown_graph = self.graphs[stage.id, step] = graph, self.rebuilt.graph(graph)
            for store in (self.replays, self.graphs):
                if len(store) > _KEPT_REPLAYS:
                    store.popitem(last=False)
        return shown_graph


def _add_trace_nodes(attempt: RuleAttempt, graph: DisplayedGraph | None, number_in_graph: int | None) -> RuleAttempt:
    """Returns the attempt with the trace's nodes for the parts of its pattern and for the mismatch."""
    if graph is None or number_in_graph is None:
        return attempt

    def node_at(path: tuple[int, ...]) -> int:
        node = number_in_graph
        for source in path:
            node = graph.nodes[node].src[source]
        return graph.nodes[node].node

    parts = tuple(replace(part, at=node_at(part.path)) if part.actual else part for part in attempt.pattern)
    return replace(attempt, at=None if attempt.mismatch is None else node_at(attempt.mismatch.path), pattern=parts)


def firings_on(trace: Trace, stage: Stage, node: int) -> tuple[RecordedRewrite, ...]:
    """Returns the firings of a stage that replaced a node or produced it."""
    firings = []
    for number, step in enumerate(stage.steps, 1):
        if step.rule is not None and node in (step.before, step.after):
            firings.append(RecordedRewrite(number, trace.rules[step.rule].name, step.before, step.after))
    return tuple(firings)


def _explain_no_rules(trace: Trace, stage: Stage) -> str:
    if stage.transform is not None:
        law = trace.transforms[stage.transform].law.partition("\n")[0]
        return f"{stage.name} has no rules: it is a transform, one function of the whole graph. {law}"
    return f"{stage.name} has no rules; those that have are: {', '.join(tables())}."


def settings_of(trace: Trace) -> dict[str, Any]:
    """Returns the settings of a trace's capture that rules may read."""
    default = Config()
    kinds = {field.name: type(getattr(default, field.name)) for field in fields(Config)}
    settings = {}
    for name, text in trace.options:
        if name in kinds and name not in _OWN and kinds[name] in (int, str):
            try:
                value = kinds[name](text)
                check_option(name, value)
            except ValueError:
                continue  # another version has a different setting of that name
            settings[name] = value
    return settings


def context_of(trace: Trace, stage: Stage, rebuilt: RebuiltUOps) -> Any:
    """Returns the context that the pass of `stage` gave its rules; NO_CONTEXT if the device is not available here."""
    step: Pass | None = next((step for step in PASSES if step.name == stage.name), None)
    if not isinstance(step, Rewrite) or stage.kernel is None:
        return None
    try:
        target = Device[trace.kernels[stage.kernel].device].target
    except (DeviceUnavailable, ValueError, KeyError):
        return NO_CONTEXT
    return step.context(Lowering(target, tuple(_yield_arguments(trace, stage.kernel, rebuilt))))


def _yield_arguments(trace: Trace, kernel: int, rebuilt: RebuiltUOps) -> Iterator[UOp]:
    """Yields the arguments of a kernel as scheduled."""
    for stage in trace.stages:
        if stage.kernel == kernel and len(stage.before) == 1 and trace.nodes[stage.before[0]].kind == "uop":
            ast = rebuilt.uop(stage.before[0])
            yield from [node for node in ast.toposort() if node.op in ARGUMENTS]
            return


_explainers: OrderedDict[int, Explainer] = OrderedDict()


def explainer(trace: Trace) -> Explainer:
    """Returns the Explainer of `trace`, cached for the traces used last."""
    made_explainer = _explainers.get(id(trace))
    if made_explainer is None or made_explainer.trace is not trace:
        made_explainer = _explainers[id(trace)] = Explainer(trace)
        if len(_explainers) > _KEPT_TRACES:
            _explainers.popitem(last=False)
    _explainers.move_to_end(id(trace))
    return made_explainer


__all__ = ["Explainer", "RecordedRewrite", "RuleAttempt", "WhyNot", "could_fire", "explainer", "tables", "why_not"]
