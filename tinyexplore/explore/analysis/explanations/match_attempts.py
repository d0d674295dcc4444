"""Explains why a rule does not fire on a node: compares its pattern part by part until a part does not match.

The compiled matcher (`uop/pattern.py`) returns only whether a pattern matches. This slower matcher gives the same
result and records the nearest miss. For a commutative operation it tries both operand orders and records the order
that matched most parts. `tests/explore/test_why.py` compares the two matchers on every node of recorded programs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from tinyexplore.explore.analysis.explanations.return_sites import ReturnSite, watch_returns
from tinyexplore.explore.recording.expression import Printer, dtype_text, number_text
from tinyexplore.explore.tracefile.result_display import DisplayableRow
from tinyexplore.uop import Ops, Rule, UOp, UPat

Kind = Literal[
    "operation", "sources", "type", "argument", "another node", "function", "nothing new", "error", "context"
]
PartState = Literal["matched", "differs", "not reached"]
Path = tuple[int, ...]  # operand numbers, from the node on which the rule is tried

_CONST_ONLY = frozenset((Ops.CONST,))
_ANY_ARG = UPat().arg
_NEARER: dict[Kind, int] = {"operation": 0, "sources": 1, "type": 2, "argument": 3, "another node": 4}
_MAX_OPS = 4  # most operations that are listed by name
_LONGEST = 60  # characters of a node's text


@dataclass(frozen=True, slots=True, repr=False)
class Mismatch(DisplayableRow):
    """Why a rule does not fire.

    kind: the kind of the mismatch.
    path: the operand numbers from the matched node to the one that differs.
    expected: the pattern's requirement there.
    actual: the node, as text.
    places: the lines at which the rule's function returned nothing, the innermost call first.
    """

    kind: Kind
    path: Path
    expected: str
    actual: str
    places: tuple[ReturnSite, ...] = ()


@dataclass(frozen=True, slots=True, repr=False)
class PatternPart(DisplayableRow):
    """One part of a rule's pattern and the node that it was compared with.

    place: its position in the pattern, as source numbers.
    expected: its requirement: operations, a constant, or a name for any node.
    state: whether the node matched; matching stopped at the part that "differs".
    path: the position of the node, as operand numbers.
    actual: the node as text; "" if matching did not reach it.
    at: the node of the trace; None if unknown.
    """

    place: Path
    expected: str
    state: PartState
    path: Path
    actual: str
    at: int | None = None


_Taken = tuple[tuple[Path, UOp, Path], ...]  # (position of a part in the pattern, node, position of the node)


@dataclass(slots=True, repr=False)
class MatchAttempt(DisplayableRow):
    """The result of one rule on one node. Of several operand orders, it is the one that matched most parts.

    after: the resulting node, None if the rule does not fire.
    mismatch: the mismatch, None if the rule fires.
    passed: the number of parts of the pattern that match.
    parts: the number of all parts of the pattern.
    bound: the nodes of the pattern's names, as far as matching came.
    rank: the order of attempts; (-1, -1) before the first.
    taken: the parts that match, with their nodes.
    missed: the part that does not match, its node, and its path; None if all match.
    """

    after: UOp | None = None
    mismatch: Mismatch | None = None
    passed: int = 0
    parts: int = 0
    bound: dict[str, UOp] = field(default_factory=dict)
    rank: tuple[int, int] = (-1, -1)
    taken: _Taken = ()
    missed: tuple[Path, UOp, Path] | None = None


class NoContext:
    """A placeholder for the unknown context that a pass passes to its rules."""


NO_CONTEXT = NoContext()


class _PatternWalk:
    """Matches one rule against one node."""

    def __init__(self, rule: Rule, root: UOp, ctx: Any, *, places: bool) -> None:
        self.rule = rule
        self.root = root
        self.ctx = ctx
        self.places = places
        self.printer = Printer()
        self.match = MatchAttempt(parts=_count_parts(rule.pattern))

    def run(self) -> MatchAttempt:
        match = self.match
        for bound, matches in self.ways([(self.rule.pattern, self.root, (), ())], {}, ()):
            after = self.call_rule(bound, matches)
            if after is not None:
                match.after, match.mismatch, match.bound, match.passed = after, None, bound, match.parts
                match.taken, match.missed = matches, None
                break
        return match

    def ways(
        self, pending: list[tuple[UPat, UOp, Path, Path]], bound: dict[str, UOp], matches: _Taken
    ) -> Iterator[tuple[dict[str, UOp], _Taken]]:
        """Yields the matches of all `pending` patterns, in the order in which the compiled matcher finds them."""
        if not pending:
            yield bound, matches
            return
        (pattern, node, path, location), *rest = pending
        mismatch = self.difference(pattern, node, path, bound)
        if mismatch is not None:
            self.miss(mismatch, (len(matches), _NEARER[mismatch.kind]), bound, matches, (location, node, path))
            return
        if pattern.name is not None:
            bound = {**bound, pattern.name: node}
        sources = () if pattern.ops == _CONST_ONLY else pattern.src or ()
        for order in _list_operand_orders(pattern, sources, node):
            inner = [
                (src, node.src[source], (*path, source), (*location, index))
                for index, (src, source) in enumerate(zip(sources, order, strict=True))
            ]
            yield from self.ways([*inner, *rest], bound, (*matches, (location, node, path)))

    def miss(
        self,
        mismatch: Mismatch,
        rank: tuple[int, int],
        bound: dict[str, UOp],
        matches: _Taken,
        missed: tuple[Path, UOp, Path] | None = None,
    ) -> None:
        """Records this mismatch if no other operand order matched more parts."""
        if rank > self.match.rank:
            self.match.rank, self.match.mismatch = rank, mismatch
            self.match.passed, self.match.bound = rank[0], bound
            self.match.taken, self.match.missed = matches, missed

    def difference(self, pattern: UPat, node: UOp, path: Path, bound: dict[str, UOp]) -> Mismatch | None:
        """Returns the first requirement of `pattern` that `node` itself does not meet."""
        text = self.text(node)
        if pattern.ops is not None and node.op not in pattern.ops:
            return Mismatch("operation", path, ops_text(pattern), text)
        if pattern.arg is not _ANY_ARG and node.arg != pattern.arg:
            return Mismatch("argument", path, value_text(pattern.arg), value_text(node.arg))
        if pattern.dtypes is not None and getattr(node.dtype, "scalar", None) not in pattern.dtypes:
            names = " or ".join(dtype.name for dtype in pattern.dtypes)
            return Mismatch("type", path, names, f"{dtype_text(node.dtype)} ({text})")
        sources = pattern.src
        if sources is not None and (sources or pattern.more_src) and pattern.ops != _CONST_ONLY:
            fits = len(node.src) >= len(sources) if pattern.more_src else len(node.src) == len(sources)
            if not fits:
                at_least = "at least " if pattern.more_src else ""
                return Mismatch("sources", path, f"{at_least}{len(sources)} sources", str(len(node.src)))
        if pattern.every is not None and (other := [src for src in node.src if src.op not in pattern.every]):
            names = " or ".join(sorted(op.name for op in pattern.every))
            return Mismatch("operation", (*path, node.src.index(other[0])), names, self.text(other[0]))
        bound_node = bound.get(pattern.name) if pattern.name is not None else None
        if bound_node is not None and bound_node is not node:
            return Mismatch("another node", path, f"{pattern.name} again: {self.text(bound_node)}", text)
        return None

    def call_rule(self, bound: dict[str, UOp], matches: _Taken) -> UOp | None:
        """Returns the result of the rule's function on the nodes that its pattern bound."""
        rule, match = self.rule, self.match
        code = rule.function.__code__
        parameters = code.co_varnames[: code.co_argcount]
        if "ctx" in parameters and self.ctx is NO_CONTEXT:
            text = f"{rule.name} needs facts of the kernel and its target (ctx), which are unknown here"
            self.miss(Mismatch("context", (), "a context", text), (match.parts, 0), bound, matches)
            return None
        arguments_by_name = {"root": self.root, "ctx": self.ctx, **bound}
        arguments = [arguments_by_name[name] for name in parameters]
        try:
            after: UOp | None = rule.function(*arguments)
            if rule.result is not None:
                after = build_result(rule.result, bound, self.root) if after else None
        except Exception as error:
            self.miss(
                Mismatch("error", (), "no error", f"{type(error).__name__}: {error}"), (match.parts, 1), bound, matches
            )
            return None
        if after is self.root:
            self.miss(
                Mismatch("nothing new", (), "another node", "the rule gives the node itself"),
                (match.parts, 3),
                bound,
                matches,
            )
            return None
        if after is None:
            word = "the condition of the law to hold" if rule.result is not None else "a node"
            reason = "it does not" if rule.result is not None else f"{code.co_name}() returns None"
            places = watch_returns(rule.function, arguments, self.printer) if self.places else ()
            self.miss(Mismatch("function", (), word, reason, places), (match.parts, 2), bound, matches)
        return after

    def text(self, node: UOp) -> str:
        return node_text(node, self.printer)


def match_rule(rule: Rule, node: UOp, ctx: Any = NO_CONTEXT, *, places: bool = True) -> MatchAttempt:
    """Returns the result of `rule` on `node`.

    ctx: the context that its pass would give it.
    places: whether to trace a function that returns nothing.
    """
    return _PatternWalk(rule, node, ctx, places=places).run()


def _list_operand_orders(pattern: UPat, patterns: Sequence[UPat], node: UOp) -> tuple[tuple[int, ...], ...]:
    """Returns the operand orders to try: both for a commutative operation, unless they are equal."""
    plain = tuple(range(len(patterns)))
    if not pattern.is_commutative:
        return (plain,)
    left, right = patterns
    same = left.ops is None and right.ops is None and left.dtypes == right.dtypes and left.name != right.name
    return (plain,) if same else (plain, (1, 0))


def _count_parts(pattern: UPat) -> int:
    """Returns the number of parts of a pattern: the pattern itself and its patterns for sources."""
    if pattern.ops == _CONST_ONLY:
        return 1
    return 1 + sum([_count_parts(src) for src in pattern.src or ()])


def pattern_parts(rule: Rule, match: MatchAttempt) -> tuple[PatternPart, ...]:
    """Returns the parts of a rule's pattern, the whole first, each with the node that it was compared with."""
    taken = {location: (node, path) for location, node, path in match.taken}
    printer = Printer()
    parts: list[PatternPart] = []

    def walk(pattern: UPat, location: Path) -> None:
        node, path = taken.get(location, (None, ()))
        state: PartState = "not reached" if node is None else "matched"
        if match.missed is not None and match.missed[0] == location:
            (_, node, path), state = match.missed, "differs"
        text = "" if node is None else node_text(node, printer)
        parts.append(PatternPart(location, _part_text(pattern), state, path, text))
        for index, src in enumerate(() if pattern.ops == _CONST_ONLY else pattern.src or ()):
            walk(src, (*location, index))

    walk(rule.pattern, ())
    return tuple(parts)


def _part_text(pattern: UPat) -> str:
    """Returns the requirement of one part of a pattern as text: "MUL", "CONST 0", "x", "x: ADD or SUB"."""
    name = pattern.name or ""
    if pattern.ops is None:
        return name or "any node"
    return f"{name}: {ops_text(pattern)}" if name else ops_text(pattern)


def build_result(pattern: UPat, bound: dict[str, UOp], like: UOp) -> UOp:
    """Builds the right side of a law; a number gets the type of `like`."""
    if pattern.name is not None and pattern.name in bound:
        return bound[pattern.name]
    assert pattern.ops is not None, f"cannot build {pattern}"
    (op,) = pattern.ops
    if op is Ops.CONST:
        return UOp.const(like.dtype, pattern.arg)
    sources = pattern.src or ()
    typed = None if op is Ops.WHERE else next((src for src in sources if src.ops != _CONST_ONLY), None)
    if typed is not None:
        like = build_result(typed, bound, like)
    first, *others = [like if src is typed else build_result(src, bound, like) for src in sources]
    return first.alu(op, *others)


# *** text ***


def node_text(node: UOp, printer: Printer | None = None) -> str:
    """Returns a node as short text: its operation, and the expression that it computes."""
    if node.op is Ops.CONST:
        return f"CONST {number_text(node.arg)}"
    text = (printer or Printer()).text(node)
    text = text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
    return node.op.name if text.upper() == node.op.name else f"{node.op.name} {text}"


def ops_text(pattern: UPat) -> str:
    """Returns the operations that a pattern allows, as text."""
    assert pattern.ops is not None
    names = sorted(op.name for op in pattern.ops)
    if len(names) > _MAX_OPS:
        return f"{', '.join(names[:_MAX_OPS])} or {len(names) - _MAX_OPS} more"
    text = " or ".join(names)
    if pattern.ops == _CONST_ONLY and pattern.arg is not _ANY_ARG:
        return f"CONST {value_text(pattern.arg)}"
    return text


def value_text(value: Any) -> str:
    """Returns an argument of a node as text."""
    if isinstance(value, Ops):
        return value.name
    return "none" if value is None else number_text(value)


__all__ = [
    "NO_CONTEXT",
    "MatchAttempt",
    "Mismatch",
    "PatternPart",
    "build_result",
    "match_rule",
    "node_text",
    "pattern_parts",
]
