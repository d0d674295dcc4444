"""Integer rules proved by z3 for all constants at once: a rule's own code runs on symbolic constants and bounds.

Constants, and the bounds of what a pattern leaves free, are symbolic numbers. Where the code compares them, each answer
that is possible is a path of its own. On every path that gives a result, z3 proves it equal to what the rule matched:
for all constants and bounds that lead there, and all values within these bounds.

Values are bit vectors of as many bits as integers have. Python's numbers are longer bit vectors, which never overflow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from types import FunctionType
from typing import Any

import z3

from tinyexplore.dtype import dtypes
from tinyexplore.uop import OpGroups, Ops, Rule, UPat, algebra, divmod, folding
from tinyexplore.uop import bounds as bounds_module
from tinyexplore.uop.pattern import _ANY_ARG

SECONDS = 20  # for one question


class Refuted(AssertionError):
    """z3 has found constants and values for which a rule is false."""


class Number:
    """A number of Python that is not known, as a bit vector that is long enough."""

    def __init__(self, world: World, term: Any) -> None:
        self.world, self.term = world, term

    def _of(self, other: Any) -> Any:
        if isinstance(other, Number):
            return other.term
        return z3.BitVecVal(int(other), self.world.length)

    def _made(self, term: Any) -> Number:
        return Number(self.world, term)

    def __add__(self, other: Any) -> Number:
        return self._made(self.term + self._of(other))

    def __sub__(self, other: Any) -> Number:
        return self._made(self.term - self._of(other))

    def __rsub__(self, other: Any) -> Number:
        return self._made(self._of(other) - self.term)

    def __mul__(self, other: Any) -> Number:
        return self._made(self.term * self._of(other))

    __radd__, __rmul__ = __add__, __mul__

    def __neg__(self) -> Number:
        return self._made(-self.term)

    def __floordiv__(self, other: Any) -> Number:
        x, y = self.term, self._of(other)
        rest = z3.SRem(x, y)
        return self._made(x / y - z3.If(z3.And(rest != 0, (rest < 0) != (y < 0)), *self._one_or_none()))

    def _one_or_none(self) -> tuple[Any, Any]:
        return z3.BitVecVal(1, self.world.length), z3.BitVecVal(0, self.world.length)

    def __mod__(self, other: Any) -> Number:
        return self - (self // other) * other

    def __rfloordiv__(self, other: Any) -> Number:
        return self._made(self._of(other)) // self

    def __rmod__(self, other: Any) -> Number:
        return self._made(self._of(other)) % self

    def __divmod__(self, other: Any) -> tuple[Number, Number]:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> tuple[Number, Number]:
        return other // self, other % self

    def __abs__(self) -> Number:
        return -self if self < 0 else self

    def __lt__(self, other: Any) -> bool:
        return self.world.decide(self.term < self._of(other))

    def __le__(self, other: Any) -> bool:
        return self.world.decide(self.term <= self._of(other))

    def __gt__(self, other: Any) -> bool:
        return self.world.decide(self.term > self._of(other))

    def __ge__(self, other: Any) -> bool:
        return self.world.decide(self.term >= self._of(other))

    def __eq__(self, other: object) -> bool:
        return self.world.decide(self.term == self._of(other))

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __bool__(self) -> bool:
        return self != 0

    __hash__ = object.__hash__


class Node:
    """What a rule sees of a UOp: its operation, its sources and its constant; and its value."""

    _linear = None

    def __init__(self, world: World, op: Ops, dtype: Any, src: tuple[Node, ...] = (), arg: Any = None) -> None:
        self.world, self.op, self.dtype, self.src, self.arg = world, op, dtype, src, arg
        self.value = world.value(self) if src else None

    def alu(self, op: Ops, *others: Node) -> Node:
        dtype = dtypes.bool if op in OpGroups.COMPARE else self.dtype
        return Node(self.world, op, dtype, (self, *[self.world.node(other, self.dtype) for other in others]))

    def __add__(self, other: Any) -> Node:
        return self.alu(Ops.ADD, other)

    def __mul__(self, other: Any) -> Node:
        return self.alu(Ops.MUL, other)


class World:
    """The constants and values of one rule, and the path that its code is on."""

    def __init__(self, bits: int, *, signed: bool) -> None:
        self.bits, self.signed, self.length = bits, signed, 3 * bits + 4
        self.least = -(1 << bits - 1) if signed else 0
        self.most = self.least + (1 << bits) - 1
        self.kind = dtypes.index if signed else dtypes.uint64
        self.given: list[Any] = []  # what holds of the constants and values
        self.path: list[Any] = []
        self.planned: list[bool] = []
        self.answers: list[bool] = []
        self.others: list[list[bool]] = []
        self.limits: dict[Node, tuple[Number, Number]] = {}
        self.count = 0

    # *** values ***

    def fresh(self, name: str) -> Number:
        """A number that the integers have."""
        self.count += 1
        number = Number(self, z3.BitVec(f"{name}{self.count}", self.length))
        self.given += [self.least <= number.term, number.term <= self.most]
        return number

    def constant(self, number: Any, dtype: Any) -> Node:
        made = Node(self, Ops.CONST, dtype, (), number)
        if dtype is dtypes.bool:
            made.value = z3.BoolVal(bool(number))
            return made
        term = number.term if isinstance(number, Number) else z3.BitVecVal(int(number), self.length)
        if isinstance(number, Number) or not self.least <= number <= self.most:
            self.prove(z3.And(self.least <= term, term <= self.most), "a constant that its type does not have")
        made.value = z3.Extract(self.bits - 1, 0, term)
        return made

    def leaf(self, name: str, dtype: Any) -> Node:
        made = Node(self, Ops.DEFINE_VAR, dtype)
        if dtype is dtypes.bool:
            made.value = z3.Bool(name)
            return made
        value, low, high = (self.fresh(part + name) for part in ("", "least_", "greatest_"))
        self.given += [low.term <= value.term, value.term <= high.term]
        made.value = z3.Extract(self.bits - 1, 0, value.term)
        self.limits[made] = low, high
        return made

    def node(self, value: Any, dtype: Any) -> Node:
        return value if isinstance(value, Node) else self.constant(value, dtype)

    def value(self, node: Node) -> Any:
        x, *more = [src.value for src in node.src]
        of_bool = node.src[-1].dtype is dtypes.bool
        y = more[0] if more else None
        zero = None if of_bool else z3.BitVecVal(0, self.bits)
        less, at_most = (z3.ULT, z3.ULE) if not self.signed else (lambda a, b: a < b, lambda a, b: a <= b)
        match node.op:
            case Ops.ADD | Ops.MAX if of_bool:
                return z3.Or(x, y)
            case Ops.MUL | Ops.MIN if of_bool:
                return z3.And(x, y)
            case Ops.NEG:
                return -x
            case Ops.ADD:
                return x + y
            case Ops.MUL:
                return x * y
            case Ops.IDIV:
                return z3.If(y == zero, zero, x / y if self.signed else z3.UDiv(x, y))
            case Ops.MOD:
                return z3.If(y == zero, zero, z3.SRem(x, y) if self.signed else z3.URem(x, y))
            case Ops.MAX:
                return z3.If(less(y, x), x, y)
            case Ops.MIN:
                return z3.If(less(x, y), x, y)
            case Ops.AND:
                return z3.And(x, y) if of_bool else x & y
            case Ops.OR:
                return z3.Or(x, y) if of_bool else x | y
            case Ops.XOR:
                return z3.Xor(x, y) if of_bool else x ^ y
            case Ops.SHL:
                return x << y
            case Ops.SHR:
                return x >> y if self.signed else z3.LShR(x, y)
            case Ops.CMPLT:
                return less(x, y)
            case Ops.CMPLE:
                return at_most(x, y)
            case Ops.CMPEQ:
                return x == y
            case Ops.CMPNE:
                return x != y
            case Ops.WHERE:
                return z3.If(x, *more)
        raise NotImplementedError(node.op)

    # *** what the code of rules calls ***

    def bounds(self, node: Node) -> tuple[Any, Any]:
        if node in self.limits:
            return self.limits[node]
        if node.op is Ops.CONST:
            return node.arg, node.arg
        if node.op in OpGroups.COMPARE:
            return self.function(bounds_module._compare)(node.op, node.src)
        interval = self.interval(node)
        if self.least <= interval[0] and interval[1] <= self.most:
            return interval
        return self.fresh("any") * 0 + self.least, self.fresh("any") * 0 + self.most

    def interval(self, node: Node) -> tuple[Any, Any]:
        (a, b), (c, d) = (self.bounds(src) for src in node.src)
        if node.op is Ops.ADD:
            return a + c, b + d
        assert node.op is Ops.MUL and node.src[1].op is Ops.CONST
        return (a * c, b * c) if c >= 0 else (b * c, a * c)

    def is_exact(self, node: Node) -> bool:
        if node.op not in (Ops.ADD, Ops.MUL):
            return True
        low, high = self.interval(node)
        return self.least <= low and high <= self.most

    def wrap(self, number: Any, dtype: Any) -> Any:
        if not isinstance(number, Number):
            return (number - self.least) % (1 << self.bits) + self.least
        part = z3.Extract(self.bits - 1, 0, number.term)
        extend = z3.SignExt if self.signed else z3.ZeroExt
        return Number(self, extend(self.length - self.bits, part))

    def gcd(self, first: Any, *others: Any) -> Any:
        """Some divisor of all: the greatest is one."""
        found = self.fresh("gcd")
        zero = z3.BitVecVal(0, self.length)
        numbers = [one.term if isinstance(one, Number) else z3.BitVecVal(one, self.length) for one in (first, *others)]
        self.path += [found.term > 0, *[z3.SRem(one, found.term) == zero for one in numbers]]
        return found

    def function(self, written: FunctionType) -> Callable[..., Any]:
        """`written`, with symbolic nodes and numbers in place of the package's."""
        world, space = self, {**vars(divmod), **written.__globals__}

        class Types:
            min = staticmethod(lambda _: world.least)
            max = staticmethod(lambda _: world.most)
            bool, index = dtypes.bool, dtypes.index

        class Nodes:
            const = staticmethod(lambda dtype, value: world.constant(value, dtype))

        for module in (divmod, algebra, folding):
            for name, value in vars(module).items():
                if isinstance(value, FunctionType) and value.__module__ in (
                    divmod.__name__,
                    algebra.__name__,
                    folding.__name__,
                ):
                    space[name] = FunctionType(value.__code__, space, name, value.__defaults__)
        space.update(
            dtypes=Types,
            UOp=Nodes,
            bounds=self.bounds,
            is_exact=self.is_exact,
            wrap=self.wrap,
            gcd=self.gcd,
            index_const=lambda value: self.constant(value, self.kind),
            wrapped_index=lambda value: self.constant(self.wrap(value, self.kind), self.kind),
            make_uop=lambda op, dtype, src: Node(self, op, dtype, src),
            limits=lambda _: (self.least, self.most),
            _is_countable=lambda _: True,
        )
        return FunctionType(written.__code__, space, written.__name__, written.__defaults__)

    # *** paths ***

    def solver(self) -> z3.Solver:
        solver = z3.SolverFor("QF_BV")
        solver.set("timeout", SECONDS * 1000)
        solver.add(*self.given, *self.path)
        return solver

    def decide(self, condition: Any) -> bool:
        """An answer that is possible on this path; the other one is tried later."""
        if z3.is_true(condition := z3.simplify(condition)) or z3.is_false(condition):
            return bool(z3.is_true(condition))
        place = len(self.answers)
        if place < len(self.planned):
            answer = self.planned[place]
        else:
            possible = []
            for choice in (True, False):
                solver = self.solver()
                solver.add(condition if choice else z3.Not(condition))
                if solver.check() != z3.unsat:
                    possible.append(choice)
            answer = possible[0]
            if len(possible) == 2:
                self.others.append([*self.answers, False])
        self.answers.append(answer)
        self.path.append(condition if answer else z3.Not(condition))
        return answer

    def prove(self, claim: Any, what: str) -> None:
        solver = self.solver()
        solver.add(z3.Not(claim))
        found = solver.check()
        if found == z3.sat:
            raise Refuted(f"{what}: {solver.model()}")
        assert found == z3.unsat, f"z3 does not decide: {what}"


# *** rules ***


def shapes(pattern: UPat) -> Iterator[UPat]:
    """`pattern` with one operation in each place, in both orders where the operation is commutative."""
    if pattern.ops is None or pattern.ops == {Ops.CONST}:
        yield pattern
        return
    for op in sorted(pattern.ops):
        for sources in product(*[list(shapes(src)) for src in pattern.src or ()]):
            orders = {sources, sources[::-1]} if pattern.is_commutative else {sources}
            for order in orders:
                yield UPat(frozenset((op,)), order, pattern.arg, pattern.name, pattern.dtypes)


def made(world: World, pattern: UPat, dtype: Any, bound: dict[str, Node], forms: dict[str, UPat]) -> Node:
    """A symbolic node that `pattern` matches."""
    if pattern.name in bound:
        return bound[pattern.name]
    if pattern.ops is None and pattern.name in forms:
        found = made(world, forms[pattern.name], dtype, bound, {})
    elif pattern.ops is None:
        truths = pattern.dtypes is not None and set(pattern.dtypes) == {dtypes.bool}
        found = world.leaf(pattern.name or "_", dtypes.bool if truths else dtype)
    elif pattern.ops == {Ops.CONST}:
        is_bool = isinstance(pattern.arg, bool)
        number = world.fresh(pattern.name or "c") if pattern.arg is _ANY_ARG else pattern.arg
        found = world.constant(number, dtypes.bool if is_bool else dtype)
    else:
        (op,) = pattern.ops
        sources = tuple([made(world, src, dtype, bound, forms) for src in pattern.src or ()])
        kind = dtypes.bool if op in OpGroups.COMPARE else sources[-1].dtype
        found = Node(world, op, kind, sources)
    if pattern.name is not None:
        bound[pattern.name] = found
    return found


def prove(rule: Rule, *, bits: int, signed: bool, forms: dict[str, UPat] | None = None) -> int:
    """z3 proves `rule` for all constants; on how many paths it gives a result. Refuted where it is false.

    forms: sums in place of what the pattern leaves free, with constants that are symbolic as well.
    """
    proofs = 0
    for shape in shapes(rule.pattern):
        plans: list[list[bool]] = [[]]
        while plans:
            world = World(bits, signed=signed)
            world.planned = plans.pop()
            bound: dict[str, Node] = {}
            before = made(world, shape, world.kind, bound, forms or {})
            after = applied(world, rule, before, bound)
            plans += world.others
            if after is None or after is before:
                continue
            world.prove(before.value == after.value, f"{rule.name} ({rule.law}) differs")
            proofs += 1
    return proofs


def applied(world: World, rule: Rule, before: Node, bound: dict[str, Node]) -> Node | None:
    code = rule.function.__code__
    names = code.co_varnames[: code.co_argcount]
    found = world.function(rule.function)(*[bound[name] for name in names])  # type: ignore[arg-type]
    if rule.result is None:
        return None if found is None else world.node(found, before.dtype)
    return made(world, rule.result, before.dtype, bound, {}) if found else None
