"""WebAssembly: the text of kernels, and the binary of our own assembler."""

from __future__ import annotations

import re
import subprocess
from functools import cache
from pathlib import Path
from random import Random

import pytest
import wasmtime

from tests.backends.programs import elementwise, end, linear, load, loop, pointer, store
from tests.fuzz.programs import PROGRAMS
from tests.support.node import need_node
from tinyexplore.codegen import lower
from tinyexplore.dtype import dtypes
from tinyexplore.engine import create_schedule
from tinyexplore.kernel import Kernel, apply_heuristics
from tinyexplore.renderer import RenderError
from tinyexplore.renderer.wasm import AssemblerError, WASMRenderer, assemble
from tinyexplore.renderer.wasm.helpers import HELPERS
from tinyexplore.renderer.wasm.opcodes import LANE, MEMORY, MEMORY_LANE, PLAIN
from tinyexplore.runtime.wasm import wasm_target
from tinyexplore.uop import Axis, AxisKind, Ops, UOp

f32 = dtypes.float32
RENDERER = WASMRenderer(wasm_target())

SCALED = """\
(module
  (memory (import "tinyexplore" "memory") 1)
  (func $scaled (export "scaled") (param $data0 i32) (param $data1 i32) (param $var_n i32)
    (local $g0 i32) (local $v0 i32) (local $a0 i32) (local $a1 i32) (local $v1 v128) (local $v2 v128)
    (local.set $g0 (i32.const 0))
    (if (i32.lt_s (local.get $g0) (local.get $var_n)) (then (loop $g0
      (local.set $v0 (i32.mul (local.get $g0) (i32.const 4)))
      (local.set $a0 (i32.add (local.get $data0) (i32.shl (local.get $v0) (i32.const 2))))
      (local.set $a1 (i32.add (local.get $data1) (i32.shl (local.get $v0) (i32.const 2))))
      (local.set $v1 (v128.load offset=16 (local.get $a1)))
      (local.set $v2 (f32x4.mul (local.get $v1) (v128.const f32x4 0.1 0.1 0.1 0.1)))
      (v128.store (local.get $a0) (local.get $v2))
      (local.set $g0 (i32.add (local.get $g0) (i32.const 1)))
      (br_if $g0 (i32.lt_s (local.get $g0) (local.get $var_n)))
    )))
  )
)
"""


def scaled() -> list[UOp]:
    n = UOp(Ops.DEFINE_VAR, dtypes.int64, (), ("n", 0, 9))
    out, source = pointer(0, f32, 36), pointer(1, f32, 40)
    step = UOp.range(n, Axis(0, AxisKind.GLOBAL))
    value = load(source, step * 4 + 4, 4) * UOp.const(f32.vec(4), 0.1)
    return linear(out, source, n, step, store(out, step * 4, value), end(step))


@cache
def kernel_texts() -> dict[str, str]:
    """Kernels of every kind, as the opts of this target make them."""
    found = {}
    for seed, (name, make) in enumerate(PROGRAMS.items()):
        for number, item in enumerate(create_schedule([make(Random(seed), "PYTHON").lazydata])):
            if item.ast is not None:
                kernel = apply_heuristics(Kernel.of(item.ast, RENDERER.target))
                found[f"{name} {number}"] = RENDERER.render("kernel", lower(kernel)).source
    return found


def test_every_line_is_a_statement_and_knows_its_uops() -> None:
    spec = RENDERER.render("scaled", scaled())
    assert spec.source == SCALED
    (multiplied,) = [line for line in spec.lines if "f32x4.mul" in line.text]
    assert {node.op for node in multiplied.uops} == {Ops.MUL, Ops.CONST}
    assert all(line.uops for line in spec.lines[4:-2])


def test_the_binary_equals_the_output_of_wabt() -> None:
    """Another assembler makes the same bytes, but for the names of things, which it keeps."""
    texts = {"scaled": SCALED, **kernel_texts()}
    texts["helpers"] = "\n".join(["(module", *HELPERS.values(), ")"])
    for name, text in texts.items():
        assert assemble(text) == _without_names(bytes(wasmtime.wat2wasm(text))), name


def _without_names(binary: bytes) -> bytes:
    """A module without its custom sections."""
    found, at = binary[:8], 8
    while at < len(binary):
        size, shift, after = 0, 0, at + 1
        while True:
            byte = binary[after]
            size |= (byte & 0x7F) << shift
            shift, after = shift + 7, after + 1
            if byte < 0x80:
                break
        if binary[at] != 0:
            found += binary[at : after + size]
        at = after + size
    return found


def test_every_instruction_has_its_number() -> None:
    for name, code in {**PLAIN, **MEMORY, **LANE, **MEMORY_LANE}.items():
        rest = " offset=3" if name in MEMORY or name in MEMORY_LANE else ""
        rest += " 1" if name in LANE or name in MEMORY_LANE else ""
        body = f"(func $f unreachable {name}{rest} unreachable)"
        memory = '(memory (import "a" "b") 1)' if rest.startswith(" offset") else ""
        theirs = _without_names(bytes(wasmtime.wat2wasm(f"(module {memory} {body})")))
        ours = assemble(f"(module {memory} (func $f (unreachable) ({name}{rest}) (unreachable)))")
        assert ours == theirs and code in ours, name


def test_nodes_validator_accepts_the_kernels(tmp_path: Path) -> None:
    node = need_node()
    texts = kernel_texts()
    for number, text in enumerate(texts.values()):
        (tmp_path / f"{number}.wasm").write_bytes(assemble(text))
    script = (
        "const fs = require('fs');"
        f"for (let i = 0; i < {len(texts)}; i++)"
        f" if (!WebAssembly.validate(fs.readFileSync('{tmp_path}/' + i + '.wasm'))) console.log(i);"
    )
    said = subprocess.run([node, "-e", script], capture_output=True, text=True, check=True).stdout
    assert [list(texts)[int(number)] for number in said.split()] == []


def test_errors_name_the_line() -> None:
    for text, said in (
        ("(module\n  (func $f (i32.frob)))", "line 2: i32.frob is not an instruction"),
        ("(module (func $f (local.get $x)))", r"local.get \$x is not an instruction"),
        ("(module (func $f (v128.const i32x4 1 2)))", "is not an instruction"),
        ("(module (table 1))", "a module has no 'table' here"),
        ("(module", "1 parentheses are not closed"),
        ("(module))", "a closing parenthesis without"),
        ("(func)", "expected a module"),
    ):
        with pytest.raises(AssemblerError, match=said):
            assemble(text)


def test_an_operation_that_the_target_lacks_raises_an_error() -> None:
    uops, _ = elementwise([f32], lambda x: [x[0].alu(Ops.EXP)], 4)
    with pytest.raises(RenderError, match="EXP of dtypes.float32: WebAssembly"):
        RENDERER.render("exponential", uops)


def test_scratch_memory_is_an_argument_with_a_declared_size() -> None:
    from tinyexplore.dtype import PtrDType

    out = pointer(0, f32, 4)
    tile = UOp(Ops.DEFINE_LOCAL, PtrDType(f32, 20, "local"), (), "tile")
    steps = loop(4)
    kept = store(tile, steps, steps.cast(f32))
    uops = linear(out, tile, steps, kept, store(out, steps, load(tile, steps)), end(steps))
    text = RENDERER.render("tiled", uops).source
    assert '(global (export "scratch") i32 (i32.const 128))' in text  # 80 bytes, in whole cache lines
    assert re.search(r"\(param \$data0 i32\) \(param \$scratch i32\)\n", text)
