"""Sizes that change from call to call: Variables, arithmetic on them in one normal form, and their values.

A size is an int or a UOp of index dtype (`sint`). A Variable occurs in a shape unbound (DEFINE_VAR) or with its value
in this call (BIND). Comparisons of sizes are decided for all values that the Variables may have, so the result holds in
every call. If a comparison depends on the value (`if v.bind(4) > 0`), the value of this call decides. Inside
`call_guarded` the answer then becomes a guard: a condition on the values of other calls.
"""

from __future__ import annotations

import dis
import sys
from collections.abc import Callable, Iterable, Mapping
from contextvars import ContextVar
from functools import lru_cache
from types import CodeType
from typing import Any, TypeVar

from tinyexplore.dtype import dtypes
from tinyexplore.uop.bounds import bounds, is_exact
from tinyexplore.uop.ops import OpGroups, Ops
from tinyexplore.uop.uop import NO_SIZE, Queries, UOp, index_const
from tinyexplore.util import toposort

sint = int | UOp
T = TypeVar("T")
Monomial = tuple[UOp, ...]  # a product of inseparable factors, in a fixed order
Polynomial = dict[Monomial, int]


class SymbolicError(ValueError):
    """Raised if a comparison of sizes depends on the values of unbound Variables, or if a value is not known."""


class BindingCount:
    """Counts bindings in this process. While the count is 0, no graph contains a binding, so none is searched."""

    count = 0


class _VariableMeta(type):
    def __instancecheck__(cls, value: object) -> bool:
        return isinstance(value, UOp) and value.op in (Ops.DEFINE_VAR, Ops.BIND)


class Variable(metaclass=_VariableMeta):
    """A size or a position with a new value in every call: `Variable(name, min_val, max_val)`, then `v.bind(value)`."""

    def __new__(cls, name: str, min_val: int, max_val: int) -> UOp:  # type: ignore[misc]
        if not 0 <= min_val <= max_val:
            raise ValueError(f"Variable {name!r} from {min_val} to {max_val}: need 0 ≤ min_val ≤ max_val")
        if not _fits(max_val):
            raise ValueError(f"Variable {name!r} up to {max_val}: sizes have 64 bits, the greatest is {_LARGEST_SIZE}")
        return UOp(Ops.DEFINE_VAR, dtypes.index, (), (name, int(min_val), int(max_val)))


_LARGEST_SIZE = dtypes.max(dtypes.index)


def _fits(number: int) -> bool:
    """Whether the index dtype can represent the number."""
    return dtypes.min(dtypes.index) <= number <= _LARGEST_SIZE


# *** normal form ***


def simplified(size: Any) -> Any:
    """Returns the normal form: a sum of products with the constant last; an int if no Variable remains.

    Equal polynomials in the Variables become the same object.
    """
    if isinstance(size, int):
        return size
    return size.arg if size.op is Ops.CONST else _simplify(size)


@lru_cache(1 << 12)
def _simplify(node: UOp) -> sint:
    return _check_overflow(_from_polynomial(_to_polynomial(node)))


def _check_overflow(size: sint) -> sint:
    """Returns `size`. Raises OverflowError if it, or a part of it, exceeds 64 bits for some values of its Variables."""
    nodes = as_size(size).toposort()
    if all([_fits(node.arg) if node.op is Ops.CONST else is_exact(node) for node in nodes]):
        return size
    where = ", ".join(f"{name} in {low}..{high}" for name, low, high in sorted(var.arg for var in variables(size)))
    raise OverflowError(f"the size {text(size)} ({where}) may exceed 64 bits: give its Variables narrower bounds")


def product(sizes: Iterable[sint]) -> Any:
    """Returns the product of all sizes."""
    total: sint = 1
    for size in sizes:
        total = total * size
    return simplified(total)


def is_symbolic(values: Any) -> bool:
    """Whether `values` contain a UOp. They may be nested tuples: a shape, or the bounds of a shrink."""
    if type(values) is tuple:
        return any([is_symbolic(value) for value in values])
    return type(values) is UOp


def _to_polynomial(node: UOp) -> Polynomial:
    """Converts a size to a polynomial: a factor for each product of atoms."""
    if node.op is Ops.CONST:
        return {(): node.arg} if node.arg else {}
    if node.op is Ops.NEG:
        return _multiply_polynomials(_to_polynomial(node.src[0]), {(): -1})
    if node.op is Ops.ADD:
        total = dict(_to_polynomial(node.src[0]))
        for monomial, factor in _to_polynomial(node.src[1]).items():
            total[monomial] = total.get(monomial, 0) + factor
        return {monomial: factor for monomial, factor in total.items() if factor}
    if node.op is Ops.MUL:
        return _multiply_polynomials(_to_polynomial(node.src[0]), _to_polynomial(node.src[1]))
    if node.op in (Ops.IDIV, Ops.MOD, Ops.MAX, Ops.MIN):
        polynomial = _simplify_inseparable(node.op, simplified(node.src[0]), simplified(node.src[1]))
        return (
            {(): polynomial}
            if isinstance(polynomial, int)
            else {(polynomial,): 1}
            if polynomial.op is node.op
            else _to_polynomial(polynomial)
        )
    return {(node,): 1}


def _multiply_polynomials(a: Polynomial, b: Polynomial) -> Polynomial:
    total: Polynomial = {}
    for first_monomial, x in a.items():
        for second_monomial, y in b.items():
            key = tuple(sorted((*first_monomial, *second_monomial), key=_order))
            total[key] = total.get(key, 0) + x * y
    return {monomial: factor for monomial, factor in total.items() if factor}


def _order(atom: UOp) -> tuple[str, str]:
    variable = atom.src[0] if atom.op is Ops.BIND else atom
    return (variable.arg[0] if variable.op is Ops.DEFINE_VAR else "~"), atom.digest


def _from_polynomial(terms: Polynomial) -> sint:
    """Builds the size of a polynomial, in normal form."""
    constant = terms.get((), 0)
    total: UOp | None = None
    for monomial in sorted(terms, key=lambda monomial: (-len(monomial), [_order(atom) for atom in monomial])):
        if not monomial:
            continue
        product = monomial[0]
        for atom in monomial[1:]:
            product = product * atom
        product = product if terms[monomial] == 1 else product * index_const(terms[monomial])
        total = product if total is None else total + product
    if total is None:
        return constant
    return total + index_const(constant) if constant else total


def _simplify_inseparable(op: Ops, a: sint, b: sint) -> sint:
    """Returns a division, remainder or extreme of sizes in normal form, simplified by their bounds or a common
    factor."""
    if op in (Ops.MAX, Ops.MIN):
        low, high = limits(a - b)
        if low >= 0 or high <= 0:
            return a if (low >= 0) == (op is Ops.MAX) else b
    elif isinstance(b, int) and b > 0 and limits(a)[0] >= 0:
        terms = {(): a} if isinstance(a, int) else _to_polynomial(a)
        remainder_terms = {monomial: factor % b for monomial, factor in terms.items() if factor % b}
        low, high = limits(_from_polynomial(remainder_terms))
        if low // b == high // b:
            quotient_terms = {monomial: factor // b for monomial, factor in terms.items() if factor // b}
            if op is Ops.IDIV:
                return simplified(_from_polynomial(quotient_terms) + low // b)
            return simplified(_from_polynomial(remainder_terms) - low // b * b)
    elif isinstance(b, UOp) and op is Ops.IDIV and limits(b)[0] > 0:
        divided = _divide_exactly(a, b)
        if divided is not None:
            return divided
    return as_size(a).alu(op, as_size(b))


def _divide_exactly(a: sint, b: UOp) -> sint | None:
    """Returns a / b if b is a product of Variables that occurs in every term of a; else None."""
    divisor = _to_polynomial(b)
    if len(divisor) != 1:
        return None
    ((atoms, divisor_factor),) = divisor.items()
    quotient: Polynomial = {}
    for monomial, factor in ({(): a} if isinstance(a, int) else _to_polynomial(a)).items():
        remaining = list(monomial)
        for atom in atoms:
            if atom not in remaining:
                return None
            remaining.remove(atom)
        if factor % divisor_factor:
            return None
        quotient[tuple(remaining)] = factor // divisor_factor
    return _from_polynomial(quotient)


def as_size(size: sint) -> UOp:
    """Returns the size as a UOp."""
    return size if isinstance(size, UOp) else index_const(size)


def floor_divided(size: sint, divisor: sint) -> UOp:
    """Returns `size // divisor` as Python defines it: rounded down. (IDIV rounds towards 0, which differs below 0.)

    Raises ZeroDivisionError if `divisor` is 0 for some values of its Variables.
    """
    size, divisor = _positive_divisor(size, divisor, "//")
    if (lift := _lift(size, divisor)) is not None:
        quotient = (size + lift * divisor.arg if lift else size).alu(Ops.IDIV, divisor)
        return quotient - lift if lift else quotient
    quotient = size.alu(Ops.IDIV, divisor)
    remainder = size - quotient * divisor
    return quotient + remainder.minimum(0).maximum(-1)  # one less if the remainder is negative


def floor_remainder(size: sint, divisor: sint) -> UOp:
    """Returns `size % divisor` as Python defines it: with the sign of `divisor`. Raises ZeroDivisionError like
    `floor_divided`."""
    if limits(divisor)[1] < 0:
        return -floor_remainder(-as_size(size), -as_size(divisor))
    size, divisor = _positive_divisor(size, divisor, "%")
    if (lift := _lift(size, divisor)) is not None:
        return (size + lift * divisor.arg if lift else size).alu(Ops.MOD, divisor)
    remainder = size.alu(Ops.MOD, divisor)
    return remainder - divisor * remainder.minimum(0).maximum(-1)


def _positive_divisor(size: sint, divisor_size: sint, sign: str) -> tuple[UOp, UOp]:
    """Returns dividend and divisor, both negated if the divisor is negative. Raises ZeroDivisionError if it may be
    0."""
    low, high = limits(divisor_size)
    if low <= 0 <= high:
        divisor = f"({text(divisor_size)})" if " " in text(divisor_size) else text(divisor_size)
        quotient = f"{text(size)} {sign} {divisor}"
        if low == high:
            raise ZeroDivisionError(f"division by zero: {quotient}")
        raise ZeroDivisionError(f"the divisor of {quotient} may be 0 (its range is {low} to {high})")
    size, divisor_size = as_size(size), as_size(divisor_size)
    if low > 0:
        return size, divisor_size
    return -size, (index_const(-divisor_size.arg) if divisor_size.op is Ops.CONST else -divisor_size)


def _lift(size: UOp, divisor: UOp) -> int | None:
    """Returns how often `divisor` must be added to `size` to make it nonnegative.

    None if there is no such number, or the index dtype cannot represent it.
    """
    low, high = bounds(size)
    if low >= 0:
        return 0
    if divisor.op is not Ops.CONST:
        return None
    lift = -(low // divisor.arg)
    return lift if _fits(high + lift * divisor.arg) else None


def as_number(condition: UOp) -> UOp:
    """Converts a comparison of sizes, or several joined by &, | and ^, to a size: 1 if it holds, else 0."""
    first_source, second_source = condition.src
    if condition.op in (Ops.AND, Ops.OR, Ops.XOR):
        a, b = as_number(first_source), as_number(second_source)
        return a * b if condition.op is Ops.AND else a.maximum(b) if condition.op is Ops.OR else a + b - a * b * 2
    difference = second_source - first_source
    if condition.op is Ops.CMPLT:
        return difference.maximum(0).minimum(1)
    if condition.op is Ops.CMPLE:
        return (difference + 1).maximum(0).minimum(1)
    differs = difference.maximum(-difference).minimum(1)
    return differs if condition.op is Ops.CMPNE else 1 - differs


# *** decisions ***


def limits(size: sint) -> tuple[int, int]:
    """Returns the least and the greatest value."""
    size = simplified(size)
    return (size, size) if isinstance(size, int) else bounds(size)


def greatest(size: sint) -> int:
    return size if isinstance(size, int) else bounds(size)[1]


def truth(node: UOp) -> bool:
    """Whether a comparison of sizes holds, or a size is not 0: for all values, else for the bound values.

    Inside `call_guarded`, an answer for the bound values becomes a guard. Raises SymbolicError if it depends on an
    unbound Variable.
    """
    answer = _decide(node)
    if answer is not None:
        return answer
    if not free_variables(node):
        answer = bool(value_of(node))
        _add_guard(_claim(node, answer))
        return answer
    where = ", ".join(f"{name} in {low}..{high}" for name, low, high in sorted(var.arg for var in variables(node)))
    raise SymbolicError(
        f"whether {text(node)} holds depends on the value of a Variable ({where}): bind it, narrow its bounds, or use "
        "a fixed size"
    )


_guards: ContextVar[list[UOp] | None] = ContextVar("tinyexplore_guards", default=None)


def call_guarded(conditions: list[UOp], work: Callable[[], T]) -> T:
    """Calls `work` and returns its result. Adds guards to `conditions` for the comparisons of bound Variables inside
    `work`.

    The guards hold for the current values. For other values that satisfy all guards, `work` does the same.
    """
    outer_guards = _guards.get()
    try:
        _guards.set(conditions)
        return work()
    finally:
        _guards.set(outer_guards)


def _add_guard(condition: UOp) -> None:
    if (conditions := _guards.get()) is not None:
        conditions.append(unbound(condition))


def _claim(question: UOp, answer: bool) -> UOp:
    """Returns the comparison (or `size != 0`) as a condition that holds: negated if the answer is no."""
    if question.op not in OpGroups.COMPARE:
        return question.ne(0) if answer else question.eq(0)
    a, b = question.src
    opposites = {Ops.CMPLT: b <= a, Ops.CMPLE: b < a, Ops.CMPEQ: a.ne(b), Ops.CMPNE: a.eq(b)}
    return question if answer else opposites[question.op]


def read_value(size: UOp) -> int:
    """Returns `value_of` for `size.val`. Inside `call_guarded`, the value becomes a guard.

    If the program immediately compares the value with a number (`size.val == 0`), only the outcome of the comparison
    becomes the guard.
    """
    value = value_of(size)
    if _guards.get() is not None:
        frame = sys._getframe(2)
        if compared := _read_comparison(frame.f_code, frame.f_lasti):
            sign, number = compared
            truth(_COMPARISONS[sign](size, number))
        else:
            _add_guard(as_size(size).eq(value))
    return value


@lru_cache(1 << 10)
def _read_comparison(code: CodeType, offset: int) -> tuple[str, int] | None:
    """Returns ("==", 0), for example, if `code` reads an attribute at `offset` and only compares it with a number;
    else None."""
    instructions = list(dis.get_instructions(code))
    # inline caches follow an instruction; `place` may point into them
    position = sum([instruction.offset <= offset for instruction in instructions]) - 1
    window = instructions[position : position + 3]
    if [instruction.opname for instruction in window] not in _COMPARED or type(window[1].argval) is not int:
        return None
    return window[2].argval, window[1].argval


_COMPARED = [["LOAD_ATTR", load, "COMPARE_OP"] for load in ("LOAD_CONST", "LOAD_SMALL_INT")]
_COMPARISONS: dict[str, Callable[[UOp, int], UOp]] = {
    "==": UOp.eq,
    "!=": UOp.ne,
    "<": lambda size, number: size < number,
    "<=": lambda size, number: size <= number,
    ">": lambda size, number: size > number,
    ">=": lambda size, number: size >= number,
}


def _decide(node: UOp) -> bool | None:
    """Returns whether a condition holds for all values of its Variables; None if that depends on them."""
    if node.op in OpGroups.COMPARE:
        low, high = limits(node.src[1] - node.src[0])
        answers = {
            Ops.CMPLT: (low > 0, high <= 0),
            Ops.CMPLE: (low >= 0, high < 0),
            Ops.CMPEQ: (low == high == 0, low > 0 or high < 0),
            Ops.CMPNE: (low > 0 or high < 0, low == high == 0),
        }
        yes, no = answers[node.op]
    else:
        low, high = limits(node)
        yes, no = low > 0 or high < 0, low == high == 0
    return yes if yes != no else None


def is_undecided(condition: UOp) -> bool:
    """Whether the condition holds for some values of its Variables, but not for all."""
    return _decide(condition) is None


def holds(condition: bool | UOp) -> bool:
    """Whether the condition holds for all values of its Variables, else for the bound values.

    If no value is bound, it counts as holding. Callers that rely on the answer check it again when the values change
    (`LazyBuffer.requirements`).
    """
    if type(condition) is not UOp:
        return bool(condition)
    answer = _decide(condition)
    if answer is not None:
        return answer
    return bool(free_variables(condition)) or bool(value_of(condition))


def free_variables(size: sint) -> set[UOp]:
    """Returns the unbound Variables in a size."""
    return variables(size) - set(bindings(size))


def variables(*values: Any) -> set[UOp]:
    """Returns the (unbound) Variables in `values`, which may be nested tuples."""
    names: set[UOp] = set()
    for value in values:
        if type(value) is UOp:
            names.update(node for node in value.toposort() if node.op is Ops.DEFINE_VAR)
        elif type(value) is tuple:
            names |= variables(*value)
    return names


def bindings(*values: Any) -> dict[UOp, int]:
    """Returns the values that the Variables in `values` are bound to. Raises SymbolicError if one has two values."""
    values_of: dict[UOp, int] = {}
    for value in values:
        if type(value) is UOp:
            for variable, bound_to in _compile_size(value)[1]:
                if bound_to is not None:
                    bind_together(values_of, variable, bound_to)
        elif type(value) is tuple:
            for variable, bound in bindings(*value).items():
                bind_together(values_of, variable, bound)
    return values_of


def bind_together(bound: dict[UOp, int], variable: UOp, value: int) -> None:
    """Adds one binding to `bound`. Raises SymbolicError if the Variable has another value there."""
    if bound.setdefault(variable, value) != value:
        raise SymbolicError(
            f"Variable {variable.arg[0]!r} is bound to {bound[variable]} and to {value} in one computation: "
            "realize the tensors with one value first, or use two Variables"
        )


# *** values ***


def unbound(value: Any) -> Any:
    """Replaces each bound Variable in `value` (a size, or nested tuples) by the Variable itself."""
    if type(value) is tuple:
        return tuple([unbound(item) for item in value])
    if type(value) is not UOp:
        return value
    if value.op is Ops.BIND:
        return value.src[0]
    return value.substitute({node: node.src[0] for node in value.toposort() if node.op is Ops.BIND})


def rebound(value: Any, values: Mapping[UOp, int]) -> Any:
    """Binds the Variables in `value` (a size, or nested tuples) to `values`."""
    if type(value) is tuple:
        return tuple([rebound(item, values) for item in value])
    if type(value) is not UOp:
        return value
    free = unbound(value)
    if free in values:
        return bound(free, values[free])
    return simplified(free.substitute({variable: bound(variable, number) for variable, number in values.items()}))


def bound(variable: UOp, value: int) -> UOp:
    """Returns the Variable bound to its value of this call. Raises ValueError if the value is outside its bounds."""
    if variable.op is not Ops.DEFINE_VAR:
        raise ValueError(f"bind {text(variable)} to {value}: only a Variable that has no value yet can be bound")
    name, low, high = variable.arg
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"bind Variable {name!r} to {value!r} ({type(value).__name__}): need an int")
    if not low <= value <= high:
        raise ValueError(f"bind Variable {name!r} to {value}: its values are {low} to {high}")
    BindingCount.count += 1
    return UOp(Ops.BIND, dtypes.index, (variable, index_const(value)))


def value_of(size: sint, values: Mapping[UOp, int] | None = None) -> int:
    """Returns the size for the Variables' values in `values`, else for their bound values.

    Raises SymbolicError for a Variable without a value.
    """
    if isinstance(size, int):
        return size
    bound_values: Mapping[UOp, int] = {} if values is None else values
    function, leaves = _compile_size(size)
    numbers = []
    for variable, bound_to in leaves:
        number = bound_values.get(variable, bound_to)
        if number is None:
            name, low, high = variable.arg
            raise SymbolicError(f"Variable {name!r} has no value: bind it, {name}.bind({low}) to {name}.bind({high})")
        numbers.append(number)
    return int(function(*numbers))


@lru_cache(1 << 12)
def _compile_size(size: UOp) -> tuple[Callable[..., int], list[tuple[UOp, int | None]]]:
    """Returns the size as a Python function of its Variables, and the Variables with their bound values (None:
    unbound)."""
    names: dict[UOp, str] = {}
    leaves: list[tuple[UOp, int | None]] = []
    texts: dict[UOp, str] = {}
    for node in _sort_down_to_variables(size):
        if node.op is Ops.CONST:
            texts[node] = repr(node.arg)
        elif node.op in (Ops.DEFINE_VAR, Ops.BIND):
            texts[node] = names[node] = f"v{len(names)}"
            leaves.append((node.src[0], node.src[1].arg) if node.op is Ops.BIND else (node, None))
        else:
            operands = [texts[src] for src in node.src]
            texts[node] = _PYTHON[node.op].format(*operands)
    return eval(f"lambda {', '.join(names.values())}: {texts[size]}", {"quotient": _divide_towards_zero}), leaves


def _sort_down_to_variables(size: UOp) -> list[UOp]:
    return toposort((size,), lambda node: () if node.op is Ops.BIND else node.src)


def _divide_towards_zero(a: int, b: int) -> int:
    return -(-a // b) if a < 0 else a // b


_PYTHON = {
    Ops.NEG: "(-{})",
    Ops.ADD: "({} + {})",
    Ops.MUL: "({} * {})",
    Ops.IDIV: "quotient({}, {})",
    Ops.MOD: "({0} - {1} * quotient({0}, {1}))",
    Ops.MAX: "max({}, {})",
    Ops.MIN: "min({}, {})",
    Ops.CMPLT: "({} < {})",
    Ops.CMPLE: "({} <= {})",
    Ops.CMPEQ: "({} == {})",
    Ops.CMPNE: "({} != {})",
    Ops.AND: "({} & {})",
    Ops.OR: "({} | {})",
    Ops.XOR: "({} ^ {})",
    Ops.SHL: "({} << {})",
    Ops.SHR: "({} >> {})",
}


def concrete(value: Any) -> Any:
    """Returns `value` (a size, or nested tuples) as ints: bound Variables at their value, others at their greatest
    value."""
    if type(value) is tuple:
        return tuple([concrete(item) for item in value])
    if type(value) is not UOp:
        return value
    free = {variable: variable.arg[2] for variable in variables(value)}
    return value_of(value, {**free, **bindings(value)})


# *** text ***


def is_size(node: UOp) -> bool:
    """Whether `node` is arithmetic on constants and Variables only."""
    return not node.mask & NO_SIZE


def write_out(node: UOp) -> sint:
    """Returns a size, or both sides of a comparison, in the normal form."""
    if node.op in OpGroups.COMPARE:
        return node.replace(src=tuple([as_size(simplified(side)) for side in node.src]))
    return simplified(node)


def text(size: sint) -> str:
    """Returns the size as source text: `v`, `4*v + 1`. A bound Variable appears by its name."""
    if isinstance(size, int):
        return str(size)
    op, src = size.op, size.src
    if op is Ops.CONST:
        return str(size.arg)
    if op is Ops.DEFINE_VAR:
        return str(size.arg[0])
    if op is Ops.BIND:
        return text(src[0])
    operands = [text(operand) for operand in src]
    if op is Ops.NEG:
        return f"-({operands[0]})" if " " in operands[0] else f"-{operands[0]}"
    if op not in _SYMBOLS or len(src) != 2:
        return f"{op.name.lower()}({', '.join(operands)})"
    left_text, right_text = operands
    if op in OpGroups.COMPARE and src[0].op is Ops.CONST and src[1].op is not Ops.CONST and op in _MIRRORED_SYMBOLS:
        return f"{right_text} {_MIRRORED_SYMBOLS[op]} {left_text}"  # 0 < p was written p > 0
    if op is Ops.ADD:
        return f"{left_text} - {right_text[1:]}" if right_text.startswith("-") else f"{left_text} + {right_text}"
    if op is Ops.MUL and src[1].op is Ops.CONST:
        left_text, right_text = right_text, left_text
    left_text, right_text = (f"({operand})" if " " in operand else operand for operand in (left_text, right_text))
    if op is Ops.MUL and left_text == "-1":
        return f"-{right_text}"
    return f"{left_text}*{right_text}" if op is Ops.MUL else f"{left_text} {_SYMBOLS[op]} {right_text}"


def valued_text(size: UOp) -> str:
    """Returns `text`, and the value if all Variables are bound: `4*v=12`."""
    return text(size) if free_variables(size) else f"{text(size)}={value_of(size)}"


_SYMBOLS = {
    Ops.ADD: "+",
    Ops.MUL: "*",
    Ops.IDIV: "//",
    Ops.MOD: "%",
    Ops.CMPLT: "<",
    Ops.CMPLE: "<=",
    Ops.CMPEQ: "==",
    Ops.CMPNE: "!=",
    Ops.AND: "&",
    Ops.OR: "|",
    Ops.XOR: "^",
    Ops.SHL: "<<",
    Ops.SHR: ">>",
}
_MIRRORED_SYMBOLS = {Ops.CMPLT: ">", Ops.CMPLE: ">="}


Queries.as_number = as_number
Queries.bound = bound
Queries.floor_divided = floor_divided
Queries.floor_remainder = floor_remainder
Queries.is_size = is_size
Queries.read_value = read_value
Queries.text = text
Queries.truth = truth
Queries.valued_text = valued_text
Queries.written_out = write_out
