"""Linear programs as editable text: `parse_program(program_text(uops))` returns the same UOp objects.

A line is one UOp, written as in the listing, with nothing omitted:

    DEFINE_GLOBAL data0 : float32[64]
    CONST 0.0:float32x8
    DEFINE_ACC acc0 = 0.0:float32x8 : float32x8
    for r2 in range(16):
      %5 = INDEX data1[r2]
      %6 = LOAD %5 : float32
      %7 = ASSIGN acc0, %6
    end r2

A number without a type belongs to index arithmetic (int64). A constant that no earlier CONST line defines gets a line.
The names %5, %6, … can be chosen freely. An argument is in braces: `GEP{3} %5 : float32`. Text after a # is a comment.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from tinyexplore.dtype import DType, PtrDType, dtypes
from tinyexplore.uop import Axis, AxisKind, Ops, UOp
from tinyexplore.uop.spec import LINEAR_SPEC
from tinyexplore.uop.uop import AnyDType

_KIND_OF = {Axis(0, kind).name[0]: kind for kind in AxisKind}
_SCALARS = {**dtypes.fields(), "void": dtypes.void}
_NUMBER = r"-?(?:inf|nan|True|False|\d[\w.]*(?:(?<=e)[+-]\d+)?)(?::\w+)?"
_NAME = r"%\w+|[A-Za-z_]\w*"
_OPERAND = re.compile(rf"\s*({_NUMBER}|{_NAME})\s*")
_TYPE = re.compile(r"\s*([a-z]\w*?)(?:x(\d+))?(?:\[(\d+)\](?:\s+(local|reg))?)?\s*$")
_RESULT = re.compile(r"\s*(%\w+)\s*=\s*")
_WORD = re.compile(r"\s*([A-Z_0-9]+)")
_FOR = re.compile(r"\s*for\s+([a-z])(\d+)\s+in\s+range\s*\(")
_AHEAD = re.compile(r"\s*:\s*(?:(\d+)\s+ahead)?\s*$")
_DEFINED = {"DEFINE_GLOBAL": r"data(\d+)", "DEFINE_ACC": r"acc(\d+)", "DEFINE_LOCAL": r"(\w+)", "DEFINE_VAR": r"(\w+)"}


class ProgramError(ValueError):
    """The text is no linear program. The error has the position (counted from 1) and what was expected there."""

    def __init__(self, line: int, column: int, message: str) -> None:
        super().__init__(f"line {line}, column {column}: {message}" if column else f"line {line}: {message}")
        self.line, self.column, self.message = line, column, message


@dataclass(frozen=True)
class LocatedUOp:
    """A UOp of a listing.

    uop: the UOp.
    line: the line in which it is.
    """

    uop: UOp
    line: int


# *** printing ***


def program_text(uops: Sequence[UOp]) -> str:
    """Returns a linear program as text, one line per UOp."""
    names: dict[UOp, str] = {}
    lines = []
    depth = 0
    for position, uop in enumerate(uops):
        if uop.op is Ops.ENDRANGE:
            depth = max(0, depth - 1)
        lines.append("  " * depth + _write_line(uop, names, position))
        if uop.op is Ops.RANGE:
            depth += 1
    return "\n".join(lines) + "\n"


def _write_line(uop: UOp, names: dict[UOp, str], position: int) -> str:
    """Returns the line of a UOp in the editable text."""

    def name(node: UOp) -> str:
        return _write_const(node) if node.op is Ops.CONST else names.get(node, f"?{node.op.name}")

    sources = [name(src) for src in uop.src]
    match uop.op:
        case Ops.CONST:
            return f"CONST {_write_const(uop)}"
        case Ops.DEFINE_GLOBAL | Ops.DEFINE_LOCAL:
            names[uop] = f"data{uop.arg}" if uop.op is Ops.DEFINE_GLOBAL else str(uop.arg)
            return f"{uop.op.name} {names[uop]} : {_write_type(uop.dtype)}"
        case Ops.DEFINE_VAR:
            names[uop] = str(uop.arg[0])
            return f"DEFINE_VAR {names[uop]} from {uop.arg[1]} to {uop.arg[2]}"
        case Ops.DEFINE_ACC:
            names[uop] = f"acc{uop.arg}"
            return f"DEFINE_ACC {names[uop]} = {', '.join(sources)} : {_write_type(uop.dtype)}"
        case Ops.RANGE:
            names[uop] = uop.arg.name
            ahead = f" {uop.arg.ahead} ahead" if uop.arg.ahead else ""
            return f"for {names[uop]} in range({', '.join(sources)}):{ahead}"
        case Ops.ENDRANGE:
            return f"end {sources[0]}"
    names[uop] = f"%{position}"
    if uop.op is Ops.INDEX and uop.arg is None and uop.dtype is uop.src[0].dtype and len(sources) in (2, 3):
        valid = f" if {sources[2]}" if len(sources) == 3 else ""
        return f"{names[uop]} = INDEX {sources[0]}[{sources[1]}{valid}]"
    arg = "" if uop.arg is None else f"{{{_arg_text(uop.arg)}}}"
    kind = "" if uop.dtype is dtypes.void else f" : {_write_type(uop.dtype)}"
    return f"{names[uop]} = {uop.op.name}{arg} {', '.join(sources)}".rstrip() + kind


def _write_const(uop: UOp) -> str:
    kind = "" if uop.dtype is dtypes.index and type(uop.arg) is int else f":{_write_type(uop.dtype)}"
    return f"{uop.arg!r}{kind}"


def _write_type(dtype: AnyDType) -> str:
    base = dtype.base if isinstance(dtype, PtrDType) else dtype
    text = base.name if base.count == 1 else f"{base.name}x{base.count}"
    if isinstance(dtype, PtrDType):
        text += f"[{dtype.size}]" + ("" if dtype.space == "global" else f" {dtype.space}")
    return text


def _arg_text(arg: Any) -> str:
    if isinstance(arg, Ops):
        return arg.name
    if isinstance(arg, tuple):
        return f"({', '.join(_arg_text(item) for item in arg)}{',' if len(arg) == 1 else ''})"
    return repr(arg)


# *** parsing ***


def parse_program(text: str) -> list[LocatedUOp]:
    """Parses the program that `program_text` wrote.

    Raises:
        ProgramError: the text is no linear program.
    """
    reader = _ListingReader()
    for number, line in enumerate(text.splitlines(), 1):
        code = line.partition("#")[0].rstrip()
        if code.strip():
            reader.read(number, code)
    if reader.loops:
        first = reader.loops[-1]
        raise ProgramError(
            reader.opened[first], 0, f"the loop {first.arg.name} is not closed: write end {first.arg.name}"
        )
    return reader.found


@dataclass
class _ListingReader:
    """Parses a listing line by line.

    found: the UOps so far.
    names: the UOp of each name.
    constants: the constants that have no line yet.
    loops: the open loops, outermost first.
    opened: the line at which each loop begins.
    home: the loop in which each name was defined, None for outside of all.
    number: the number of the current line.
    line: the current line.
    at: the position in the current line.
    """

    found: list[LocatedUOp] = field(default_factory=list)
    names: dict[str, UOp] = field(default_factory=dict)
    constants: set[UOp] = field(default_factory=set)
    loops: list[UOp] = field(default_factory=list)
    opened: dict[UOp, int] = field(default_factory=dict)
    home: dict[str, UOp | None] = field(default_factory=dict)  # the loop in which each name was defined
    number: int = 0
    line: str = ""
    at: int = 0

    def fail(self, message: str, at: int | None = None) -> ProgramError:
        column = self.at if at is None else at
        while column < len(self.line) and self.line[column] == " ":
            column += 1
        return ProgramError(self.number, column + 1, message)

    def read(self, number: int, line: str) -> None:
        self.number, self.line, self.at = number, line, 0
        result = ""
        if (loop := _FOR.match(line)) is not None:
            return self.read_for(loop)
        if (named := _RESULT.match(line)) is not None:
            result, self.at = named[1], named.end()
        start = self.at
        word = _WORD.match(line, self.at)
        if word is None:
            if line.split()[0] == "end":
                return self.read_end()
            raise self.fail("expected an operation, 'for' or 'end'")
        if word[1] not in Ops.__members__:
            raise self.fail(f"{word[1]} is not an operation", start)
        op, self.at = Ops[word[1]], word.end()
        if op.name in _DEFINED:
            return self.read_definition(op)
        if op is Ops.CONST:
            return self.keep(self.operand())
        if op in (Ops.RANGE, Ops.ENDRANGE):
            raise self.fail("write a loop as: for r0 in range(16): … end r0", start)
        arg = self.argument()
        if op is Ops.INDEX and arg is None and "[" in line:
            uop = self.read_index(line)
        else:
            sources = self.operands()
            uop = UOp(op, self.type_or_void(), tuple(sources), arg)
        self.keep(uop)
        if result:
            self.name(result, uop)

    def read_for(self, loop: re.Match[str]) -> None:
        if loop[1] not in _KIND_OF:
            raise self.fail(
                f"the letter of a loop names its kind: {', '.join(f'{k} {v.value}' for k, v in _KIND_OF.items())}",
                loop.start(1),
            )
        self.at = loop.end()
        sources = self.operands()
        self.expect(")")
        ahead = _AHEAD.match(self.line, self.at)
        if ahead is None:
            raise self.fail("expected ':' after the range")
        axis = Axis(int(loop[2]), AxisKind(_KIND_OF[loop[1]]), int(ahead[1] or 0))
        uop = UOp(Ops.RANGE, dtypes.index, tuple(sources), axis)
        if uop in self.opened:
            raise self.fail(f"loop {axis.name} exists already", loop.start(1))
        self.keep(uop)
        self.loops.append(uop)
        self.opened[uop] = self.number
        self.name(axis.name, uop)

    def read_end(self) -> None:
        self.at = self.line.index("end") + 3
        start = self.at
        uop = self.operand()
        if not self.loops or uop is not self.loops[-1]:
            inner = f"the innermost open loop is {self.loops[-1].arg.name}" if self.loops else "no loop is open"
            raise self.fail(inner, start)
        self.finish()
        self.loops.pop()
        self.keep(UOp(Ops.ENDRANGE, dtypes.void, (uop,)))

    def read_definition(self, op: Ops) -> None:
        named = re.compile(rf"\s*({_DEFINED[op.name]})(?=[\s:=]|$)").match(self.line, self.at)
        if named is None:
            example = {"DEFINE_GLOBAL": "data0", "DEFINE_ACC": "acc0"}.get(op.name, "a name")
            raise self.fail(f"expected {example}")
        start, self.at = self.at, named.end()
        sources: list[UOp] = []
        arg: Any = named[2] if op is Ops.DEFINE_LOCAL else int(named[2]) if op is not Ops.DEFINE_VAR else ()
        if op is Ops.DEFINE_VAR:
            bounds = re.compile(r"\s+from\s+(-?\d+)\s+to\s+(-?\d+)\s*$").match(self.line, self.at)
            if bounds is None:
                raise self.fail("expected: from LEAST to GREATEST")
            uop = UOp(op, dtypes.index, (), (named[1], int(bounds[1]), int(bounds[2])))
        else:
            if op is Ops.DEFINE_ACC:
                self.expect("=")
                sources = self.operands()
            uop = UOp(op, self.type_or_void(), tuple(sources), arg)
        if named[1] in self.names:
            raise self.fail(f"{named[1]} is defined already", start)
        self.keep(uop)
        self.name(named[1], uop)

    def read_index(self, line: str) -> UOp:
        base = self.operand()
        self.expect("[")
        sources = [base, self.operand()]
        if line.startswith("if ", self.at):
            self.at += 3
            sources.append(self.operand())
        self.expect("]")
        self.finish()
        return UOp(Ops.INDEX, base.dtype, tuple(sources))

    # *** parts of a line ***

    def expect(self, sign: str) -> None:
        while self.line[self.at : self.at + 1] == " ":
            self.at += 1
        if not self.line.startswith(sign, self.at):
            raise self.fail(f"expected {sign!r}")
        self.at += 1

    def finish(self) -> None:
        if self.line[self.at :].strip():
            raise self.fail("unexpected extra operand")

    def operands(self) -> list[UOp]:
        if not self.line[self.at :].strip() or self.line[self.at :].lstrip().startswith((":", ")")):
            return []
        operands = [self.operand()]
        while self.line.startswith(",", self.at):
            self.at += 1
            operands.append(self.operand())
        return operands

    def operand(self) -> UOp:
        start = self.at
        read = _OPERAND.match(self.line, self.at)
        if read is None:
            raise self.fail("expected a name or a number")
        self.at = read.end()
        if re.fullmatch(_NUMBER, read[1]):
            return self.constant(read[1], start)
        if read[1] not in self.names:
            raise self.fail(f"{read[1]} is not defined above", start)
        return self.names[read[1]]

    def constant(self, text: str, start: int) -> UOp:
        number, _, kind = text.partition(":")
        try:
            value: Any = {"True": True, "False": False, "nan": math.nan}.get(number)  # all NaN constants are one UOp
            if value is None:
                value = int(number) if re.fullmatch(r"-?\d+", number) else float(number)
        except ValueError:
            raise self.fail(f"{number} is not a number", start) from None
        if not kind and type(value) is not int:
            raise self.fail(f"add its type, for example {number}:float32", start)
        dtype = self.to_type(kind, start) if kind else dtypes.index
        uop = UOp(Ops.CONST, dtype, (), value)
        if uop not in self.constants and not self.line.lstrip().startswith("CONST"):
            self.keep(uop)
        self.constants.add(uop)
        return uop

    def argument(self) -> Any:
        if not self.line.startswith("{", self.at):
            return None
        start, end = self.at + 1, self.line.find("}", self.at)
        if end < 0:
            raise self.fail("this brace is not closed")
        try:
            value = _to_value(ast.parse(self.line[start:end].strip(), mode="eval").body)
        except (SyntaxError, ValueError) as error:
            raise self.fail(f"this is not an argument: {error}", start) from None
        self.at = end + 1
        return value

    def type_or_void(self) -> AnyDType:
        remaining = self.line[self.at :]
        if not remaining.strip():
            return dtypes.void
        self.expect(":")
        return self.to_type(self.line[self.at :], self.at)

    def to_type(self, text: str, start: int) -> AnyDType:
        read = _TYPE.match(text)
        if read is None or read[1] not in _SCALARS:
            raise self.fail(f"{text.strip()!r} is not a type; examples: float32, int64x8, float32[64]", start)
        base: DType = _SCALARS[read[1]].vec(int(read[2] or 1))
        return base if read[3] is None else PtrDType(base, int(read[3]), read[4] or "global")

    # *** definitions ***

    def keep(self, uop: UOp) -> None:
        if uop.op is Ops.CONST:
            self.constants.add(uop)
        self.found.append(LocatedUOp(uop, self.number))

    def name(self, name: str, uop: UOp) -> None:
        if name in self.names:
            raise self.fail(f"{name} is defined already", 0)
        self.names[name] = uop


def _to_value(node: ast.AST) -> Any:
    """Returns the value of an argument: None, numbers, strings, operations by name, tuples."""
    match node:
        case ast.Constant(value=None | bool() | int() | float() | str() as value):
            return value
        case ast.Name(id="inf" | "nan" as name):
            return math.inf if name == "inf" else math.nan
        case ast.Name(id=name) if name in Ops.__members__:
            return Ops[name]
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_to_value(operand)
        case ast.Tuple(elts=items):
            return tuple(_to_value(item) for item in items)
    raise ValueError(ast.unparse(node))


# *** validation of a parsed program ***


def check_program(lines: Sequence[LocatedUOp], before: Sequence[UOp]) -> None:
    """Checks a parsed program.

    Raises:
        ProgramError: a line violates the specification of linear programs, or the arguments differ from those of the
            program `before`.
    """
    _check_arguments(lines, before)
    defined: set[UOp] = set()
    closed: dict[UOp, UOp] = {}  # value → the closed loop in which it was computed
    open_loops: list[UOp] = []
    loop_of: dict[UOp, UOp] = {}
    for line in lines:
        node = line.uop
        check = LINEAR_SPEC.checks.get(node.op)
        if check is None:
            raise ProgramError(line.line, 0, f"{node.op.name} does not belong in a linear program")
        try:
            is_right = check(node)
        except (AttributeError, IndexError, TypeError, ValueError):
            is_right = False
        if not is_right:
            sources = ", ".join(f"{src.op.name} : {_write_type(src.dtype)}" for src in node.src) or "nothing"
            message = f"the spec does not allow this {node.op.name} : {_write_type(node.dtype)} of {sources}"
            raise ProgramError(line.line, 0, message)
        for src in node.src:
            if src not in defined:
                raise ProgramError(line.line, 0, f"{node.op.name} uses {src.op.name}, which is not defined above it")
            if src in closed and node.op not in (Ops.RESULT, Ops.BARRIER) and src.op is not Ops.BARRIER:
                loop = closed[src].arg.name
                raise ProgramError(
                    line.line,
                    0,
                    f"{node.op.name} uses {src.op.name}, which is out of scope after the end of loop {loop}",
                )
        if node.op is Ops.ENDRANGE:
            closed_loop = open_loops.pop()
            closed.update((inner, closed_loop) for inner, owner in loop_of.items() if owner is closed_loop)
            closed[closed_loop] = closed_loop
        if open_loops and node.op not in (Ops.CONST, Ops.RANGE):
            loop_of.setdefault(node, open_loops[-1])
        if node.op is Ops.RANGE:
            if open_loops:
                loop_of[node] = open_loops[-1]
            open_loops.append(node)
        defined.add(node)


def _check_arguments(lines: Sequence[LocatedUOp], before: Sequence[UOp]) -> None:
    """Raises ProgramError if the edit changes the arguments of the kernel."""
    kinds = (Ops.DEFINE_GLOBAL, Ops.DEFINE_VAR)
    arguments = [node for node in before if node.op in kinds]
    for line in lines:
        if line.uop.op in kinds and line.uop not in arguments:
            expected = next((node for node in arguments if node.op is line.uop.op and node.arg == line.uop.arg), None)
            problem = f"expected {_write_line(expected, {}, 0)}" if expected is not None else "it has no such argument"
            raise ProgramError(line.line, 0, f"the arguments of the kernel must not change; {problem}")
    present = {line.uop for line in lines}
    for node in arguments:
        if node not in present:
            raise ProgramError(
                1, 0, f"the arguments of the kernel must not change; expected {_write_line(node, {}, 0)}"
            )


__all__ = ["LocatedUOp", "ProgramError", "check_program", "parse_program", "program_text"]
