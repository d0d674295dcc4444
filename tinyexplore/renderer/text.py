"""Shared parts of the renderers of structured languages: names, indentation, and inlined expressions."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from tinyexplore.dtype import dtypes
from tinyexplore.renderer.program import RenderError
from tinyexplore.trace import SourceLine
from tinyexplore.uop import OpGroups, Ops, UOp
from tinyexplore.uop.bounds import is_exact

INLINE_LIMIT = 40  # a longer expression gets a separate line and name
ATOM, PRODUCT, SUM, LOOSE = 3, 2, 1, 0  # precedence: how tightly an expression binds

_NEVER_INLINED = frozenset({Ops.IDIV, Ops.MOD, Ops.MULACC, Ops.CAST, Ops.BITCAST, Ops.WHERE, Ops.POW})


def inlinable(uops: Sequence[UOp]) -> set[UOp]:
    """Returns scalar index and condition arithmetic that is used once, in the same loop, and reads no accumulator."""
    users: dict[UOp, list[UOp]] = {}
    loop_of: dict[UOp, UOp | None] = {}
    open_loops: list[UOp] = []
    for node in uops:
        if node.op is Ops.ENDRANGE:
            open_loops.pop()
        loop_of[node] = open_loops[-1] if open_loops else None
        if node.op is Ops.RANGE:
            open_loops.append(node)
        sources = (*node.src, *(inner for src in node.src if src.op is Ops.INDEX for inner in src.src))
        for src in sources:
            users.setdefault(src, []).append(node)
    inlinable_nodes = set()
    for node in uops:
        if node.op not in OpGroups.ALU or node.op in _NEVER_INLINED or node.dtype not in (dtypes.int64, dtypes.bool):
            continue
        if node.dtype is dtypes.int64 and not is_exact(node):
            continue
        if any(src.op is Ops.DEFINE_ACC or dtypes.is_float(src.dtype) for src in node.src):
            continue
        using = [user for user in users.get(node, ()) if user.op is not Ops.INDEX]
        if len(using) == 1 and loop_of.get(using[0], node) is loop_of[node]:
            inlinable_nodes.add(node)
    return inlinable_nodes


def variable_name(node: UOp) -> str:
    """Returns the name of a kernel's Variable in its source. It is neither a keyword nor a name that the writer
    uses."""
    return "var_" + re.sub(r"\W", "_", node.arg[0], flags=re.ASCII)


class TextWriter:
    """Appends indented lines, and keeps the text and the precedence of every UOp so far."""

    indent_text = "  "

    def __init__(self, uops: Sequence[UOp]) -> None:
        self.uops = tuple(uops)
        self.lines: list[SourceLine] = []
        self.depth = 1
        self.node: UOp | None = None
        self.texts: dict[UOp, tuple[str, int]] = {}
        self._made_by: dict[UOp, tuple[UOp, ...]] = {}  # the nodes that an inlined text represents
        self._collected: list[UOp] = []
        self._find_inlinable = inlinable(uops)
        self._used_names: set[str] = set()
        self._variables = 0

    def begin(self, node: UOp) -> None:
        """Attributes the following lines to `node`, and to the nodes that its operands inline."""
        self.node = node
        self._collected = []

    def attribute_to(self, nodes: Iterable[UOp]) -> None:
        """Attributes the following line to `nodes`, too."""
        self._collected.extend(nodes)

    def line(self, text: str) -> None:
        made_by = () if self.node is None else tuple(dict.fromkeys((self.node, *self._collected)))
        self.lines.append(SourceLine(self.indent_text * self.depth + text, made_by))

    def operand(self, node: UOp, tightness: int = LOOSE) -> str:
        """Returns the text of a source, in parentheses if its precedence is lower than `tightness`."""
        if node.op is Ops.CONST:
            self._collected.append(node)
            text = self.constant(node)
            return f"({text})" if text.startswith("-") and tightness > LOOSE else text
        text_and_precedence = self.texts.get(node)
        if text_and_precedence is None:
            raise RenderError(f"{self.node!r} uses {node!r}, which does not come before it in the program")
        self._collected.extend(self._made_by.get(node, ()))
        text, binds = text_and_precedence
        return text if binds >= tightness else f"({text})"

    def constant(self, node: UOp) -> str:
        raise NotImplementedError

    def name(self, node: UOp, text: str) -> str:
        """Names `node` `text`, with a number if the name is in use. Returns the name."""
        count, unique_name = 1, text
        while unique_name in self._used_names:
            count += 1
            unique_name = f"{text}_{count}"
        self._used_names.add(unique_name)
        self.texts[node] = (unique_name, ATOM)
        return unique_name

    def variable(self, node: UOp) -> str:
        """Names `node` v0, v1, … and returns the name."""
        variable_name = self.name(node, f"v{self._variables}")
        self._variables += 1
        return variable_name

    def inlined(self, node: UOp, text: str, tightness: int) -> bool:
        """Whether `text` is written inside the only expression that uses `node`. If so, stores it for that
        expression."""
        if node not in self._find_inlinable or len(text) > INLINE_LIMIT:
            return False
        self.texts[node] = (text, tightness)
        self._made_by[node] = (node, *self._collected)
        return True


INFIX: dict[Ops, tuple[str, int]] = {
    Ops.ADD: ("+", SUM),
    Ops.MUL: ("*", PRODUCT),
    Ops.CMPLT: ("<", LOOSE),
    Ops.CMPLE: ("<=", LOOSE),
    Ops.CMPEQ: ("==", LOOSE),
    Ops.CMPNE: ("!=", LOOSE),
    Ops.AND: ("&", LOOSE),
    Ops.OR: ("|", LOOSE),
    Ops.XOR: ("^", LOOSE),
    Ops.SHL: ("<<", LOOSE),
    Ops.SHR: (">>", LOOSE),
}


def infix(writer: TextWriter, node: UOp) -> tuple[str, int]:
    """Returns `left op right` with only the necessary parentheses, and its precedence."""
    symbol, tightness = INFIX[node.op]
    if tightness == LOOSE:  # always in parentheses, because the languages differ in the precedence of these
        left, right = (writer.operand(src, SUM) for src in node.src)
    else:
        left = writer.operand(node.src[0], tightness)
        right = writer.operand(node.src[1], tightness)
    if symbol == "+" and right.startswith("(-") and node.src[1].op is Ops.CONST:
        return f"{left} - {right[2:-1]}", tightness
    return f"{left} {symbol} {right}", tightness
