"""Patterns over UOps, and rules: values with a name, a law, a docstring and a location in the source.

A pattern is data. A Python function, generated on first use, matches it. It is printed as the law that the explorer
shows. The right side of a `law` is also a pattern, from which the new node is built. A rule sees only the nodes that
its pattern names, and returns a node or None.
"""

from __future__ import annotations

import inspect
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cache
from types import CodeType, FunctionType
from typing import Any, Union

from tinyexplore.dtype import DType
from tinyexplore.uop.ops import OpGroups, Ops
from tinyexplore.uop.uop import UOp, dtypes_mask, ops_mask

PatternLike = Union["UPat", int, float, bool]
_ANY_ARG = object()
_CONST_ONLY = frozenset((Ops.CONST,))


@dataclass(frozen=True, eq=False)
class UPat:
    """A pattern that a UOp must match. None (or `_ANY_ARG`) matches anything.

    ops: the operations allowed.
    src: patterns of the sources, in this order unless the operation is commutative.
    arg: the argument required.
    name: the name of the node in the rule; two nodes of one name must be identical.
    dtypes: the scalar dtypes allowed.
    more_src: whether further sources may follow.
    every: the operations allowed for all sources, whose number is free.
    in_order: whether the sources must be in this order although the operation is commutative.
    """

    ops: frozenset[Ops] | None = None
    src: tuple[UPat, ...] | None = None
    arg: Any = _ANY_ARG
    name: str | None = None
    dtypes: tuple[DType, ...] | None = None
    more_src: bool = False
    every: frozenset[Ops] | None = None
    in_order: bool = False

    @staticmethod
    def of(
        ops: Ops | Iterable[Ops],
        *src: PatternLike,
        name: str | None = None,
        arg: Any = _ANY_ARG,
        dtypes: Iterable[DType] | None = None,
        more_src: bool = False,
        every: Ops | None = None,
        in_order: bool = False,
    ) -> UPat:
        """Returns a pattern for nodes with these operations. Without `src`, any sources match."""
        allowed = frozenset((ops,)) if isinstance(ops, Ops) else frozenset(ops)
        sources = tuple(_to_pattern(item) for item in src) if src or more_src else None
        required_ops = None if every is None else frozenset((every,))
        allowed_dtypes = tuple(dtypes) if dtypes is not None else None
        return UPat(allowed, sources, arg, name, allowed_dtypes, more_src, required_ops, in_order)

    @property
    def is_commutative(self) -> bool:
        """Whether the two sources match in either order."""
        if self.in_order or self.ops is None or self.src is None:
            return False
        return len(self.src) == 2 and self.ops <= OpGroups.COMMUTATIVE

    def named(self, name: str) -> UPat:
        return replace(self, name=name)

    def _make_binary(self, op: Ops, other: PatternLike, *, reverse: bool = False) -> UPat:
        pair = (_to_pattern(other), self) if reverse else (self, _to_pattern(other))
        return UPat(frozenset((op,)), pair)

    def __add__(self, other: PatternLike) -> UPat:
        return self._make_binary(Ops.ADD, other)

    def __radd__(self, other: PatternLike) -> UPat:
        return self._make_binary(Ops.ADD, other, reverse=True)

    def __mul__(self, other: PatternLike) -> UPat:
        return self._make_binary(Ops.MUL, other)

    def __rmul__(self, other: PatternLike) -> UPat:
        return self._make_binary(Ops.MUL, other, reverse=True)

    def __truediv__(self, other: PatternLike) -> UPat:
        return self._make_binary(Ops.FDIV, other)

    def __floordiv__(self, other: PatternLike) -> UPat:
        return self._make_binary(Ops.IDIV, other)

    def __mod__(self, other: PatternLike) -> UPat:
        return self._make_binary(Ops.MOD, other)

    def __and__(self, other: PatternLike) -> UPat:
        return self._make_binary(Ops.AND, other)

    def __or__(self, other: PatternLike) -> UPat:
        return self._make_binary(Ops.OR, other)

    def __xor__(self, other: PatternLike) -> UPat:
        return self._make_binary(Ops.XOR, other)

    def __lt__(self, other: PatternLike) -> UPat:
        return self._make_binary(Ops.CMPLT, other)

    def __le__(self, other: PatternLike) -> UPat:
        return self._make_binary(Ops.CMPLE, other)

    def __neg__(self) -> UPat:
        return UPat(frozenset((Ops.NEG,)), (self,))

    def eq(self, other: PatternLike) -> UPat:
        return self._make_binary(Ops.CMPEQ, other)

    def ne(self, other: PatternLike) -> UPat:
        return self._make_binary(Ops.CMPNE, other)

    def maximum(self, other: PatternLike) -> UPat:
        return self._make_binary(Ops.MAX, other)

    def minimum(self, other: PatternLike) -> UPat:
        return self._make_binary(Ops.MIN, other)

    def where(self, yes: PatternLike, no: PatternLike) -> UPat:
        return UPat(frozenset((Ops.WHERE,)), (self, _to_pattern(yes), _to_pattern(no)))

    def __str__(self) -> str:
        return _format_law(self)


def _to_pattern(value: PatternLike) -> UPat:
    if isinstance(value, UPat):
        return value
    return UPat(frozenset((Ops.CONST,)), (), value)


def var(name: str, dtypes: Iterable[DType] | None = None) -> UPat:
    """Returns a pattern that matches any node (of these scalar dtypes)."""
    return UPat(name=name, dtypes=tuple(dtypes) if dtypes is not None else None)


def cvar(name: str, dtypes: Iterable[DType] | None = None) -> UPat:
    """Returns a pattern that matches any constant (of these scalar dtypes)."""
    return UPat(frozenset((Ops.CONST,)), (), name=name, dtypes=tuple(dtypes) if dtypes is not None else None)


_INFIX = {
    Ops.ADD: "+",
    Ops.MUL: "*",
    Ops.FDIV: "/",
    Ops.IDIV: "//",
    Ops.MOD: "%",
    Ops.AND: "&",
    Ops.OR: "|",
    Ops.XOR: "^",
    Ops.SHL: "<<",
    Ops.SHR: ">>",
    Ops.CMPLT: "<",
    Ops.CMPLE: "<=",
    Ops.CMPEQ: "==",
    Ops.CMPNE: "!=",
}


def _format_law(pattern: UPat, *, inner: bool = False) -> str:
    """Writes a pattern as text: `x + 1`, or `load(index, …)` for other operations."""
    if pattern.ops is None:
        return pattern.name or "_"
    if pattern.ops == _CONST_ONLY:
        return pattern.name or (str(pattern.arg) if pattern.arg is not _ANY_ARG else "const")
    names = sorted(op.name.lower() for op in pattern.ops)
    head = names[0] if len(names) == 1 else (pattern.name or "|".join(names[:3]) + ("|…" if len(names) > 3 else ""))
    if pattern.src is None:
        return f"{pattern.name}:{head}" if pattern.name and head != pattern.name else head
    single_op = next(iter(pattern.ops))
    if len(names) == 1 and single_op in _INFIX and len(pattern.src) == 2:
        left_text, right_text = (_format_law(src, inner=True) for src in pattern.src)
        text = f"{left_text} {_INFIX[single_op]} {right_text}"
        return f"({text})" if inner else text
    sources = ", ".join(_format_law(src) for src in pattern.src)
    return f"{head}({sources}{', …' if pattern.more_src else ''})"


@dataclass(frozen=True, eq=False)
class Rule:
    """A named rewrite rule.

    name: unique in its table.
    pattern: the pattern that the node must match.
    function: returns the new node, given the nodes that `pattern` names; with a `result`, returns whether the rule
    applies.
    law: the equation of the rule, as text.
    doc: the docstring of `function`.
    file: the file that defines the rule.
    line: the line of its definition, from 1.
    result: the pattern of the new node, if the rule is an equation.
    matchers: compiled matching functions, by the operation of the node.
    """

    name: str
    pattern: UPat
    function: Callable[..., Any]
    law: str
    doc: str
    file: str
    line: int
    result: UPat | None = None
    matchers: dict[Ops | None, Any] = field(default_factory=dict, repr=False)

    def __call__(self, node: UOp, ctx: Any = None) -> UOp | None:
        """Applies the rule to `node`. Returns its replacement, or None if the rule does not apply."""
        match = self.matchers.get(None)
        if match is None:
            match = self.matchers[None] = _compile(self)
        return match(node, self.function, ctx)


def rule(pattern: UPat) -> Callable[[Callable[..., UOp | None]], Rule]:
    """Turns a documented function into a rule. Its parameters name parts of `pattern`; `ctx` is the context of the
    pass."""

    def make(function: Callable[..., UOp | None]) -> Rule:
        code = function.__code__
        doc = inspect.getdoc(function) or ""
        effect = _first_sentence(doc) or f"{function.__name__}({', '.join(_list_parameters(function))})"
        law = f"{pattern}  →  {effect}"
        return Rule(function.__name__, pattern, function, law, doc, code.co_filename, code.co_firstlineno)

    return make


def _first_sentence(doc: str) -> str:
    """Returns the first sentence of a docstring, on one line and without its full stop."""
    paragraph = " ".join(doc.split("\n\n")[0].split())
    return re.split(r"\.(?:\s|$)", paragraph, maxsplit=1)[0]


def _list_parameters(function: Callable[..., Any]) -> tuple[str, ...]:
    code = function.__code__
    return code.co_varnames[: code.co_argcount]


def law(
    name: str,
    left: UPat,
    right: PatternLike,
    doc: str = "",
    when: Callable[..., bool] | None = None,
) -> Rule:
    """Returns a rule whose two sides are patterns: `law("mul_one", x * 1, x)`. A number on the right has the dtype of
    the left.

    when: a condition on names of the left side; the law holds only if it returns True.
    """
    result = _to_pattern(right)
    if unknown := _collect_names(result) - _collect_names(left):
        raise TypeError(f"law {name}: its right side names {', '.join(sorted(unknown))}, which {left} does not")
    caller = inspect.currentframe()
    frame = caller.f_back if caller is not None else None
    file, line = (frame.f_code.co_filename, frame.f_lineno) if frame is not None else ("", 0)
    text = f"{left}  →  {result}"
    if not doc and when is not None:
        doc = inspect.getdoc(when) or ""
    return Rule(name, left, when or _accept_always, text, doc, file, line, result)


def _collect_names(pattern: UPat) -> set[str]:
    names = {pattern.name} if pattern.name else set()
    for src in pattern.src or ():
        names |= _collect_names(src)
    return names


def _accept_always() -> bool:
    return True


class _MatcherWriter:
    """Writes the matching function of one pattern as Python source."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.values: dict[str, Any] = {}
        self.bound: dict[str, str] = {}
        self.count = 0

    def fresh(self, prefix: str) -> str:
        self.count += 1
        return f"{prefix}{self.count}"

    def value(self, value: Any) -> str:
        name = self.fresh("k")
        self.values[name] = value
        return name

    def line(self, depth: int, text: str) -> None:
        self.lines.append("  " * depth + text)

    def conditions(self, pattern: UPat, node: str, op_known: bool, type_known: bool) -> list[str]:
        """Returns the conditions of `pattern` on a node, apart from its sources, as Python expressions."""
        conditions = []
        if pattern.ops is not None and not op_known:
            if len(pattern.ops) == 1:
                conditions.append(f"{node}.op is {self.value(next(iter(pattern.ops)))}")
            else:
                conditions.append(f"{node}.op in {self.value(pattern.ops)}")
        if pattern.arg is not _ANY_ARG:
            conditions.append(f"{node}.arg == {self.value(pattern.arg)}")
        if pattern.dtypes is not None and not type_known:
            conditions.append(f"{node}.dtype.scalar in {self.value(frozenset(pattern.dtypes))}")
        if pattern.src is not None and (pattern.src or pattern.more_src) and pattern.ops != _CONST_ONLY:
            comparison = ">=" if pattern.more_src else "=="
            conditions.append(f"len({node}.src) {comparison} {len(pattern.src)}")
        if pattern.every is not None:
            conditions.append(f"all([src.op in {self.value(pattern.every)} for src in {node}.src])")
        if pattern.name is not None and pattern.name in self.bound:
            conditions.append(f"{node} is {self.bound[pattern.name]}")
        return conditions

    def match(self, pending: list[tuple[UPat, str, bool, bool]], depth: int, final: Callable[[int], None]) -> None:
        """Writes the match of each of `pending`, then `final`.

        pending: (a pattern, the node that it must match, whether the node's operation and its dtype are known to be
        allowed).
        """
        if not pending:
            final(depth)
            return
        (pattern, node, op_known, type_known), *later_patterns = pending
        conditions = self.conditions(pattern, node, op_known, type_known)
        if conditions:
            self.line(depth, f"if {' and '.join(conditions)}:")
            depth += 1
        newly_bound = pattern.name is not None and pattern.name not in self.bound
        if newly_bound:
            self.bound[pattern.name] = node  # type: ignore[index]
        sources = pattern.src or ()
        type_known = type_known and _has_one_dtype(pattern)
        if pattern.is_commutative and not _have_same_shape(*sources):
            left_name, right_name, pair = self.fresh("n"), self.fresh("n"), self.fresh("p")
            self.line(depth, f"{pair} = {node}.src")
            self.line(depth, f"for {left_name}, {right_name} in ({pair}, ({pair}[1], {pair}[0])):")
            pair_of = [(sources[0], left_name, False, type_known), (sources[1], right_name, False, type_known)]
            self.match([*pair_of, *later_patterns], depth + 1, final)
        else:
            inner: list[tuple[UPat, str, bool, bool]] = []
            for position, src in enumerate(sources):
                name = self.fresh("n")
                self.line(depth, f"{name} = {node}.src[{position}]")
                inner.append((src, name, False, type_known))
            self.match([*inner, *later_patterns], depth, final)
        if newly_bound and pattern.name is not None:
            del self.bound[pattern.name]

    def build_expression(self, pattern: UPat, like: str, depth: int) -> str:
        """Returns an expression that builds `pattern`, the right side of a law. A number has the dtype of `like`."""
        if pattern.name is not None and pattern.name in self.bound:
            return self.bound[pattern.name]
        assert pattern.ops is not None and len(pattern.ops) == 1, f"cannot build {pattern}"
        (op,) = pattern.ops
        if op is Ops.CONST:
            return f"{self.value(UOp.const)}({like}.dtype, {self.value(pattern.arg)})"
        sources = pattern.src or ()
        typed = None if op is Ops.WHERE else next((src for src in sources if src.ops != _CONST_ONLY), None)
        names: dict[UPat, str] = {}
        if typed is not None:
            like = names[typed] = self.store_value(self.build_expression(typed, like, depth), depth)
        first_operand, *other_operands = [names.get(src) or self.build_expression(src, like, depth) for src in sources]
        return f"{first_operand}.alu({', '.join([self.value(op), *other_operands])})"

    def store_value(self, expression: str, depth: int) -> str:
        """Returns a variable name for the value of `expression`."""
        if expression.isidentifier():
            return expression
        name = self.fresh("n")
        self.line(depth, f"{name} = {expression}")
        return name


def _have_same_shape(a: UPat, b: UPat) -> bool:
    """Whether both patterns are free variables of the same dtypes, so that the other order would only swap their
    names."""
    return a.ops is None and b.ops is None and a.dtypes == b.dtypes and a.name != b.name


def _compile(rule: Rule, *, is_candidate: bool = False) -> Callable[[UOp, Any, Any], UOp | None]:
    text, values = matcher_text(rule, is_candidate=is_candidate)
    code = _compile_text(text).replace(co_filename=f"<matcher of {rule.name}>", co_name="match")
    return FunctionType(code, values)


def matcher_text(rule: Rule, *, is_candidate: bool) -> tuple[str, dict[str, Any]]:
    """Returns the matching function of `rule` as Python source, and its globals.

    is_candidate: whether the function is called only for nodes for which `PatternMatcher.candidates` has the rule.
    """
    writer = _MatcherWriter()
    parameters = _list_parameters(rule.function)

    def final(depth: int) -> None:
        bound_names = {"root": "root", "ctx": "ctx", **writer.bound}
        if missing := [name for name in parameters if name not in bound_names]:
            raise TypeError(f"rule {rule.name}: the pattern {rule.pattern} names no {missing[0]!r}")
        result_text = f"function({', '.join([bound_names[name] for name in parameters])})"
        if rule.result is not None:
            if rule.function is not _accept_always:
                writer.line(depth, f"if {result_text}:")
                depth += 1
            result_text = writer.build_expression(rule.result, "root", depth)
        writer.line(depth, f"found = {result_text}")
        writer.line(depth, "if found is not None and found is not root: return found")

    writer.match([(rule.pattern, "root", is_candidate, is_candidate)], 1, final)
    writer.line(1, "return None")
    return "\n".join(writer.lines), writer.values


@cache
def _compile_text(text: str) -> CodeType:
    """Compiles the matching function `text`. Patterns of the same form share this text; only their globals differ."""
    space: dict[str, Any] = {}
    exec(f"def match(root, function, ctx):\n{text}", space)
    code: CodeType = space["match"].__code__
    return code


Candidates = tuple[tuple[Rule, Any, Any], ...]
MIN_CANDIDATES_TO_FILTER = (
    3  # number of candidates from which they are first filtered by the operations of the node's sources
)
MAX_CACHED_FORMS = 1 << 11  # number of node forms for which a table caches its candidate rules


class PatternMatcher:
    """An ordered table of rules, found by the operation and the type of a node. The first rule that applies wins.

    only: scalar dtypes; no rule applies to a graph without any of them.
    within: bits of `UOp.mask`; no rule applies to a graph without any of them.
    remembers: whether a graph in which no rule fires is marked, and not examined again. For tables that see the same
    graphs several times, and whose rules depend on the nodes only.
    """

    def __init__(
        self,
        rules: Iterable[Rule],
        *,
        only: Iterable[DType] | None = None,
        within: int = -1,
        remembers: bool = False,
    ) -> None:
        self.rules = tuple(rules)
        self.kinds = within if only is None else dtypes_mask(only)
        self.remembers = remembers
        self.mask = 0  # operations; no rule applies to a graph without any of them
        self.ops = frozenset[Ops]()  # the operations of the nodes that rules match
        for rule in self.rules:
            self.mask |= ops_mask(_find_rarest_ops(rule.pattern))
            self.ops |= frozenset(Ops) if rule.pattern.ops is None else rule.pattern.ops
        self._of_op: dict[Ops, list[Rule]] = {}
        self._allowed: dict[tuple[Ops, Any], list[Rule]] = {}
        self._found: dict[tuple[Any, ...], Candidates] = {}
        counts = Counter(op for rule in self.rules for op in rule.pattern.ops or Ops)
        self._crowded = frozenset(op for op, count in counts.items() if count >= MIN_CANDIDATES_TO_FILTER)
        self._literals = frozenset(value for rule in self.rules for value in _literals(rule.pattern))

    def __add__(self, other: PatternMatcher) -> PatternMatcher:
        return PatternMatcher(self.rules + other.rules)

    def candidates(self, node: UOp) -> Candidates:
        """Returns the rules whose pattern allows the operation and the dtype of `node`, with their compiled matchers.

        If there are many, they are also filtered by the operations of the sources. If the second source is a constant
        that some rule names, they are filtered by its value, too.
        """
        op = node.op
        if op in self._crowded:
            src = node.src
            if len(src) == 2:
                left, right = src
                value = right.arg if right.op is Ops.CONST and right.arg in self._literals else None
                form: tuple[Any, ...] = (op, node.dtype, value, left.op, right.op)
            elif len(src) <= 3:
                form = (op, node.dtype, None, *[source.op for source in src])
            else:
                form = (op, node.dtype)
        else:
            form = (op, node.dtype)
        entry = self._found.get(form)
        return self._find(*form) if entry is None else entry

    def _find(self, op: Ops, dtype: Any, value: Any = None, *source_ops: Ops) -> Candidates:
        """Computes `candidates` for nodes of one form, and stores them for the next such node.

        value: the constant that is the second source, if rules are filtered by it.
        source_ops: the operations of the sources, if rules are filtered by them.
        """
        if len(self._found) > MAX_CACHED_FORMS:  # each size of a buffer is a separate type
            self._found.clear()
            self._allowed.clear()
        rules = self._allowed.get((op, dtype))
        if rules is None:
            rules = self._allowed[op, dtype] = self._select_rules(op, dtype)
        form: tuple[Any, ...] = (op, dtype)
        if source_ops:
            form = (op, dtype, value, *source_ops)
            rules = [rule for rule in rules if _allows_sources(rule.pattern, source_ops, value)]
        entry = self._found[form] = self._with_matchers(rules, op)
        return entry

    def _select_rules(self, op: Ops, dtype: Any) -> list[Rule]:
        rules = self._of_op.get(op)
        if rules is None:
            rules = self._of_op[op] = [rule for rule in self.rules if _allows_op(rule.pattern, op)]
        return [rule for rule in rules if _allows_dtype(rule.pattern, dtype)]

    def _with_matchers(self, rules: Iterable[Rule], op: Ops) -> Candidates:
        pairs = []
        for rule in rules:
            match = rule.matchers.get(op)
            if match is None:
                match = rule.matchers[op] = _compile(rule, is_candidate=True)
            pairs.append((rule, match, rule.function))
        return tuple(pairs)

    def rewrite(self, node: UOp, ctx: Any = None) -> tuple[Rule, UOp] | None:
        """Returns the first rule that applies to `node`, and its replacement; None if no rule applies."""
        for rule, match, function in self.candidates(node):
            replacement = match(node, function, ctx)
            if replacement is not None:
                return rule, replacement
        return None


_EVERYWHERE = frozenset((Ops.CONST, Ops.RANGE, Ops.ADD, Ops.MUL, Ops.INDEX, Ops.LOAD, Ops.STORE))
_ONE_DTYPE = frozenset((Ops.ADD, Ops.MUL, Ops.FDIV, Ops.IDIV, Ops.MOD, Ops.MAX, Ops.MIN, Ops.NEG))


def _find_rarest_ops(pattern: UPat) -> frozenset[Ops]:
    """Returns the rarest set of operations such that every graph that `pattern` matches contains one of them."""
    rarest = frozenset(Ops) if pattern.ops is None else pattern.ops
    for src in pattern.src or ():
        if src.ops is not None:
            rarest = min(rarest, _find_rarest_ops(src), key=lambda ops: (len(ops & _EVERYWHERE), len(ops)))
    return rarest


def _literals(pattern: UPat) -> Iterator[Any]:
    """Yields the values of the constants in `pattern`."""
    if pattern.ops == _CONST_ONLY and pattern.arg is not _ANY_ARG:
        yield pattern.arg
    for src in pattern.src or ():
        yield from _literals(src)


def _allows_sources(pattern: UPat, source_ops: tuple[Ops, ...], value: Any) -> bool:
    """Whether a node whose sources have these operations may match.

    value: the value of the second of two sources, if it is a constant that some pattern names; None for another
    constant.
    """
    if pattern.every is not None and any(op not in pattern.every for op in source_ops):
        return False
    patterns = pattern.src
    if patterns is None or (not patterns and not pattern.more_src) or pattern.ops == _CONST_ONLY:
        return True
    if len(source_ops) != len(patterns) and not (pattern.more_src and len(source_ops) > len(patterns)):
        return False
    if len(source_ops) != 2 or len(patterns) != 2:
        return all(src.ops is None or op in src.ops for src, op in zip(patterns, source_ops))
    orders = [patterns, patterns[::-1]] if pattern.is_commutative else [patterns]
    return any(_allows_pair(left, right, source_ops, value) for left, right in orders)


def _allows_pair(left: UPat, right: UPat, source_ops: tuple[Ops, ...], value: Any) -> bool:
    """Returns `_allows_sources` for two sources."""
    if right.ops == _CONST_ONLY and right.arg is not _ANY_ARG and right.arg != value:
        return False
    return all(src.ops is None or op in src.ops for src, op in zip((left, right), source_ops))


def _allows_op(pattern: UPat, op: Ops) -> bool:
    return pattern.ops is None or op in pattern.ops


def _allows_dtype(pattern: UPat, dtype: Any) -> bool:
    """Whether a node of this dtype, whose operation the pattern allows, may match with some sources."""
    scalar = getattr(dtype, "scalar", None)
    if pattern.dtypes is not None and scalar not in pattern.dtypes:
        return False
    return not _has_one_dtype(pattern) or all(_allows_dtype(src, dtype) for src in pattern.src or ())


def _has_one_dtype(pattern: UPat) -> bool:
    """Whether every matching node has the dtype of its sources."""
    return pattern.ops is not None and pattern.ops <= _ONE_DTYPE
