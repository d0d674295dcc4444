"""Renders WGSL, the language of WebGPU: the code of one work-item, in the C writer's order of a program.

Its numbers have 32 bits: indices are i32, which the bounds of a program must allow. Memory has no smaller elements: a
bool in a buffer takes a word, and the runtime converts it when it copies the buffer.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from tinyexplore.dtype import DType, PtrDType, dtypes
from tinyexplore.renderer.c.parts import literal, short_name
from tinyexplore.renderer.c.renderer import CWriter
from tinyexplore.renderer.program import (
    Launch,
    RenderError,
    global_buffers,
    is_group_barrier,
    is_shared,
    variable_arguments,
)
from tinyexplore.renderer.text import ATOM, LOOSE, SUM, variable_name
from tinyexplore.trace import SourceLine
from tinyexplore.uop import OpGroups, Ops, UOp
from tinyexplore.uop.bounds import bounds
from tinyexplore.uop.symbolic import text as size_text

TYPES = {
    dtypes.bool: "bool",
    dtypes.int32: "i32",
    dtypes.uint32: "u32",
    dtypes.int64: "i32",
    dtypes.float32: "f32",
}
ITEMS = 64  # work-items of a group, if the program leaves it to the runtime
MAX_GROUPS = 65_535  # greatest number of groups in one dimension, on any device
# the indices of a work-item, by the first letters of a SPECIAL
INDEX_NAMES = {
    "gidx": ("workgroup_id", "group"),
    "lidx": ("local_invocation_id", "item"),
    "idx": ("global_invocation_id", "place"),
}
# computed from bits at run time: WGSL rejects constants that are not finite
_NOT_FINITE = {"INFINITY": ("inf", "0x7f800000u"), "NAN": ("nan", "0x7fc00000u")}
# tested by bits: WGSL compilers may assume that no value is NaN, also in comparisons;
# WGSL does not define the conversion of a float outside an integer's range
_TO_INT = {
    "f32_to_i32": """\
fn f32_to_i32(x: f32) -> i32 {
  return select(i32(0x80000000u), i32(x), (bitcast<u32>(x) & 0x7fffffffu) < 0x4f000000u);
}""",
    "f32_to_u32": """\
fn f32_to_u32(x: f32) -> u32 {
  let whole: f32 = bitcast<f32>(bitcast<u32>(x) & 0x7fffffffu);
  let rest: u32 = u32(whole - floor(whole * 0x1p-32f) * 0x1p32f);
  return select(0u, select(rest, 0u - rest, x < 0.0f), (bitcast<u32>(x) & 0x7fffffffu) < 0x5f000000u);
}""",
}
_IS_NAN = "fn is_nan(x: f32) -> bool { return (bitcast<u32>(x) & 0x7fffffffu) > 0x7f800000u; }"
# WGSL does not define the power of a negative number
_POW = """\
fn pow_f32(x: f32, y: f32) -> f32 {{
  let p: f32 = pow(abs(x), y);
  let below: f32 = select({nan}, select(p, -p, y % 2.0f != 0.0f), y == floor(y) || abs(x) == {inf});
  let all: f32 = select(select(p, below, x < 0.0f), {nan}, is_nan(x) || is_nan(y));
  return select(all, 1.0f, y == 0.0f || x == 1.0f || (x == -1.0f && abs(y) == {inf}));
}}"""
# an implementation may compute tanh by sinh and cosh, which overflow
_TANH = "fn tanh_f32(x: f32) -> f32 { return select(tanh(clamp(x, -10.0f, 10.0f)), x, is_nan(x)); }"
# Exact, while WGSL's own x - y * trunc(x / y) is rounded. Subtracts y times a power of 2, which is at least half of
# the rest, until the rest is less than y. For a subnormal y the result is 0.
_FMOD = """\
fn fmod_f32(x: f32, y: f32) -> f32 {{
  let b: u32 = bitcast<u32>(y) & 0x7fffffffu;
  var r: u32 = bitcast<u32>(x) & 0x7fffffffu;
  if (r >= 0x7f800000u || b > 0x7f800000u || b == 0u) {{ return {nan}; }}
  if (b == 0x7f800000u || r < b) {{ return x; }}
  if (b < 0x800000u) {{ return 0.0f * x; }}
  while (r >= b) {{
    let steps: u32 = (r >> 23u) - (b >> 23u) - u32((b & 0x7fffffu) > (r & 0x7fffffu) && (r >> 23u) > (b >> 23u));
    let half: f32 = bitcast<f32>((steps / 2u + 127u) << 23u);
    let rest: f32 = bitcast<f32>((steps - steps / 2u + 127u) << 23u);
    r = bitcast<u32>(bitcast<f32>(r) - bitcast<f32>(b) * half * rest);
  }}
  return bitcast<f32>(r | (bitcast<u32>(x) & 0x80000000u));
}}"""
_BOOL_COMPARE = {Ops.CMPLT: "!{0} & {1}", Ops.CMPLE: "!{0} | {1}", Ops.CMPEQ: "{0} == {1}", Ops.CMPNE: "{0} != {1}"}


def find_unsupported_type(uops: Sequence[UOp]) -> str:
    """Returns the dtypes of a program that WGSL lacks, as text; "" if it has all."""
    for node in uops:
        base = node.dtype.base if isinstance(node.dtype, PtrDType) else node.dtype
        if base is dtypes.int64 and (isinstance(node.dtype, PtrDType) or not is_short(node)):
            return "int64: WGSL has integers of 32 bits, and these may need more"
    return ""


def is_spread(launch: Launch) -> bool:
    """Whether a dimension may have more groups than any device allows. Then one number counts all groups."""
    most_groups = [bounds(size)[1] for size in launch.grid]
    if launch.group is None:
        most_groups[0] = -(-most_groups[0] // ITEMS)
    return max(most_groups) > MAX_GROUPS


def group_counts(launch: Launch, values: Sequence[int] = ()) -> tuple[int, ...]:
    """Returns the number of groups to launch, by dimension, for these values of the Variables."""
    sizes = launch.sizes(values)
    if is_spread(launch):
        total = prod(sizes) if launch.group is not None else -(-prod(sizes) // ITEMS)
        return min(total, MAX_GROUPS), -(-total // MAX_GROUPS)
    return (-(-sizes[0] // ITEMS), *sizes[1:]) if launch.group is None else sizes


def is_short(node: UOp) -> bool:
    """Whether every value of a 64-bit integer fits in 32 bits."""
    low, high = bounds(node)
    return -(1 << 31) <= low and high < 1 << 31


def is_stored_in_words(index: UOp) -> bool:
    """Whether this is an element of a buffer of bools, which takes a word."""
    buffer = index.src[0]
    return buffer.op is Ops.DEFINE_GLOBAL and isinstance(buffer.dtype, PtrDType) and dtypes.is_bool(buffer.dtype.base)


class WGSLWriter(CWriter):
    """Writes a program as WGSL, in the C writer's order."""

    indent_text = "  "

    def __init__(self, uops: Sequence[UOp]) -> None:
        super().__init__(uops, as_x86=False)
        self.shared: list[SourceLine] = []
        self.spread = is_spread(Launch.of(uops))
        self.index_nodes = [node for node in uops if node.op is Ops.SPECIAL and not node.arg.startswith("lidx")]

    def write(self, name: str) -> list[SourceLine]:
        launch = Launch.of(self.uops)
        buffers, variables = global_buffers(self.uops), variable_arguments(self.uops)
        written_memory = {node.src[0].src[0] for node in self.uops if node.op is Ops.STORE}
        for node in variables:
            self.name(node, variable_name(node))
        for node in self.uops:
            self.begin(node)
            self.write_node(node)
        bindings = []
        for node in buffers:
            assert isinstance(node.dtype, PtrDType)
            access = "read_write" if node in written_memory else "read"
            element = "u32" if dtypes.is_bool(node.dtype.base) else TYPES[node.dtype.base]
            declaration = f"var<storage, {access}> data{node.arg}: array<{element}>"
            bindings.append(SourceLine(f"@group(0) @binding({node.arg}) {declaration};", (node,)))
        for number, node in enumerate(variables, len(buffers)):
            declaration = f"var<uniform> {self.texts[node][0]}: i32"
            bindings.append(SourceLine(f"@group(0) @binding({number}) {declaration};", (node,)))
        roots = tuple(node for node in self.uops if node.op in (Ops.STORE, Ops.RANGE, Ops.SPECIAL))
        index_kinds = {node.arg[:-1] for node in self.uops if node.op is Ops.SPECIAL}
        if self.spread:
            index_kinds.add("gidx")
        parameters = [
            f"@builtin({builtin}) {name}: vec3<u32>"
            for index_kind, (builtin, name) in INDEX_NAMES.items()
            if index_kind in index_kinds
        ]
        if self.spread:
            parameters += ["@builtin(num_workgroups) groups: vec3<u32>", "@builtin(local_invocation_index) one: u32"]
        sizes = ", ".join(map(str, launch.group or (ITEMS,)))
        return [
            *bindings,
            *self.shared,
            *self.prelude(),
            SourceLine(f"@compute @workgroup_size({sizes})", ()),
            SourceLine(f"fn {name}({', '.join(parameters)}) {{", (*buffers, *variables, *roots)),
            *self.lines,
            SourceLine("}", ()),
        ]

    # *** statements ***

    def write_node(self, node: UOp) -> None:
        match node.op:
            case Ops.SPECIAL:
                self.special(node)
            case Ops.DEFINE_VAR:
                pass
            case Ops.DEFINE_ACC:
                value = self.operand(node.src[0])
                self.line(f"var {self.name(node, f'acc{node.arg}')}: {self.type_of(node)} = {value};")
            case Ops.RANGE:
                name = self.name(node, node.arg.name)
                self.line(f"for (var {name}: i32 = 0; {name} < {self.operand(node.src[0], ATOM)}; {name}++) {{")
                self.depth += 1
            case Ops.BARRIER if is_group_barrier(node):
                self.line("workgroupBarrier();")
            case _:
                super().write_node(node)

    def special(self, node: UOp) -> None:
        """Writes the index of a work-item or a group. The node has their number."""
        index_kind, dimension = node.arg[:-1], "xyz"[int(node.arg[-1])]
        name, size = self.name(node, node.arg), node.src[0]
        if self.spread and node in self.index_nodes:
            self.share_of_number(node, name)
            return
        self.line(f"let {name}: i32 = i32({INDEX_NAMES[index_kind][1]}.{dimension}); // {size_text(size)}")
        if index_kind == "idx":
            self.line(f"if ({name} >= {self.operand(size)}) {{ return; }}")

    def share_of_number(self, node: UOp, name: str) -> None:
        """Writes the index in one dimension of a grid whose groups, or work-items, are counted by one number."""
        size, is_item = self.operand(node.src[0], ATOM), node.arg.startswith("idx")
        if node is self.index_nodes[0]:
            number = "group.x + group.y * groups.x"
            self.line(f"var rest: i32 = i32({f'({number}) * {ITEMS}u + one' if is_item else number});")
        if node is self.index_nodes[-1]:
            self.line(f"let {name}: i32 = rest; // {size_text(node.src[0])}")
            self.line(f"if ({name} >= {size}) {{ return; }}")
        else:
            self.line(f"let {name}: i32 = rest % {size}; // {size_text(node.src[0])}")
            self.line(f"rest = rest / {size};")

    def declare(self, node: UOp, text: str) -> None:
        wgsl_type = self.type_of(node)
        self.line(f"let {self.variable(node)}: {wgsl_type} = {text};")

    def define_local(self, node: UOp) -> None:
        assert isinstance(node.dtype, PtrDType)
        declaration = f"{self.name(node, str(node.arg))}: array<{TYPES[node.dtype.base]}, {node.dtype.size}>;"
        if is_shared(node):
            self.shared.append(SourceLine(f"var<workgroup> {declaration}", (node,)))
        else:
            self.line(f"var {declaration}")

    def load(self, node: UOp) -> None:
        dtype = node.dtype
        assert isinstance(dtype, DType)
        buffer, position, valid = self.index_operands(node.src[0])
        text = f"{buffer}[{position}]"
        if is_stored_in_words(node.src[0]):
            text += " != 0u"
        if valid is not None:  # WGSL defines out-of-range accesses, but the program masks them anyway
            text = f"select({TYPES[dtype]}(0), {text}, {self.operand(valid)})"
        self.declare(node, text)

    def store(self, node: UOp) -> None:
        index, value = node.src[:2]
        buffer, position, valid = self.index_operands(index)
        stored = f"u32({self.operand(value)})" if is_stored_in_words(index) else self.operand(value)
        text = f"{buffer}[{position}] = {stored};"
        self.line(text if valid is None else f"if ({self.operand(valid)}) {{ {text} }}")

    # *** expressions ***

    def vector(self, dtype: DType) -> str:
        if dtype not in TYPES:
            raise RenderError(
                f"{dtype!r}: WGSL has no such type; supported: {', '.join(dict.fromkeys(TYPES.values()))}"
            )
        return TYPES[dtype]

    def constant(self, node: UOp) -> str:
        assert isinstance(node.dtype, DType)
        text = literal(node.arg, node.dtype).removesuffix("ll")
        name = text.lstrip("-")
        return text.replace(name, self.render_nonfinite(name)) if name in _NOT_FINITE else text

    def is_nan(self) -> str:
        return self.needs("is_nan", lambda: _IS_NAN)

    def render_nonfinite(self, name: str) -> str:
        """Returns a call that gives NAN or INFINITY, because WGSL has no literals for them."""
        function, bits = _NOT_FINITE[name]
        body = f"var bits: u32 = {bits}; return bitcast<f32>(bits);"
        return self.needs(function, lambda: f"fn {function}() -> f32 {{ {body} }}") + "()"

    def alu(self, node: UOp) -> tuple[str, int]:
        op, source = node.op, node.src[0].dtype
        if op in (Ops.SHL, Ops.SHR):
            left, right = (self.operand(src, ATOM) for src in node.src)
            return f"{left} {'<<' if op is Ops.SHL else '>>'} u32({right})", LOOSE
        if (rounded := _match_rounding(node)) is not None:
            return f"round({self.operand(rounded)})", ATOM
        if op in OpGroups.COMPARE and source is dtypes.bool:
            return _BOOL_COMPARE[op].format(*[self.operand(src, ATOM) for src in node.src]), LOOSE
        if op is Ops.CMPNE and isinstance(source, DType) and dtypes.is_float(source):  # != is not reliable for NaN
            return "!({} == {})".format(*[self.operand(src, ATOM) for src in node.src]), ATOM
        return super().alu(node)

    def arithmetic(self, op: Ops, dtype: DType, values: list[str]) -> tuple[str, int]:
        if op is Ops.NEG and dtypes.is_unsigned(dtype):
            return f"0u - {values[0]}", SUM
        return super().arithmetic(op, dtype, values)

    def bool_arithmetic(self, op: Ops, dtype: DType, values: list[str]) -> tuple[str, int]:
        if op is Ops.XOR:
            return f"{values[0]} != {values[1]}", LOOSE
        return super().bool_arithmetic(op, dtype, values)

    def where(self, node: UOp, source: DType, dtype: DType) -> str:
        condition, yes, no = (self.operand(src) for src in node.src)
        return f"select({no}, {yes}, {condition})"

    def extreme(self, op: Ops, dtype: DType, values: list[str]) -> str:
        name, wgsl_type = f"{op.name.lower()}_{short_name(dtype)}", TYPES[dtype]
        nan = f" || {self.is_nan()}(x)" if dtypes.is_float(dtype) else ""
        body = f"return select(y, x, x {'>' if op is Ops.MAX else '<'} y{nan});"
        self.needs(name, lambda: f"fn {name}(x: {wgsl_type}, y: {wgsl_type}) -> {wgsl_type} {{ {body} }}")
        return f"{name}({', '.join(values)})"

    def libm(self, op: Ops, dtype: DType, values: list[str]) -> str:
        if op is Ops.MOD:
            nan = self.render_nonfinite("NAN")
            return f"{self.needs('fmod_f32', lambda: _FMOD.format(nan=nan))}({', '.join(values)})"
        if op is Ops.POW:
            self.is_nan()
            special_values = {"nan": self.render_nonfinite("NAN"), "inf": self.render_nonfinite("INFINITY")}
            return f"{self.needs('pow_f32', lambda: _POW.format(**special_values))}({', '.join(values)})"
        if op is Ops.TANH:
            self.is_nan()
            return f"{self.needs('tanh_f32', lambda: _TANH)}({values[0]})"
        return f"{op.name.lower()}({', '.join(values)})"

    def divide(self, node: UOp, op: Ops, dtype: DType) -> tuple[str, int]:
        left, right = (self.operand(src, ATOM) for src in node.src)
        symbol = "/" if op is Ops.IDIV else "%"
        low, high = bounds(node.src[1])
        if low > 0 or high < -1:
            return f"{left} {symbol} {right}", LOOSE
        name, wgsl_type = f"{op.name.lower()}_{short_name(dtype)}", TYPES[dtype]
        text = f"x {symbol} y"
        if not dtypes.is_unsigned(dtype):
            text = f"select({text}, {'-x' if op is Ops.IDIV else '0'}, y == -1)"
        body = f"return select({text}, {wgsl_type}(0), y == 0);"
        self.needs(name, lambda: f"fn {name}(x: {wgsl_type}, y: {wgsl_type}) -> {wgsl_type} {{ {body} }}")
        return f"{name}({left}, {right})", ATOM

    def scalar_cast(self, text: str, source: DType, target: DType) -> str:
        if dtypes.is_bool(target):
            return f"(!({text} == {TYPES[source]}(0)))"
        return text if TYPES[source] == TYPES[target] else f"{TYPES[target]}({text})"

    def float_to_int(self, text: str, source: DType, target: DType) -> str:
        name = f"f32_to_{TYPES[target]}"
        return f"{self.needs(name, lambda: _TO_INT[name])}({text})"

    def bitcast(self, text: str, source: DType, target: DType) -> str:
        if dtypes.is_bool(source) or dtypes.is_bool(target) or source.itemsize != target.itemsize:
            raise RenderError(
                f"BITCAST of {source!r} to {target!r}: WGSL bitcasts between types of equal size only, and no bools"
            )
        return text if source is target else f"bitcast<{TYPES[target]}>({text})"

    def table(self, node: UOp) -> str:
        raise RenderError(f"{node!r}: WGSL has no instruction for a table lookup")


def _match_rounding(node: UOp) -> UOp | None:
    """Returns the x of (x + c) - c, where c is so large that the sum has no fraction; else None.

    WGSL compilers may cancel this expression.
    """
    if node.op is not Ops.ADD or node.dtype is not dtypes.float32 or node.src[0].op is not Ops.ADD:
        return None
    (x, c), subtracted = node.src[0].src, node.src[1]
    is_large = c.op is subtracted.op is Ops.CONST and c.arg == -subtracted.arg and abs(c.arg) >= 1 << 23
    return x if is_large else None


__all__ = ["WGSLWriter", "group_counts", "is_spread", "find_unsupported_type"]
