"""An assembler: converts the text of a module, as the renderer writes it, to WebAssembly's binary format.

It supports the part of the text format that kernels use: folded expressions, one imported memory, exported constants,
functions with named parameters and locals, their export, `block`, `loop` and `if`. It needs only Python, so a module
can be assembled wherever a kernel can be rendered.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Sequence
from typing import Any

from tinyexplore.renderer.wasm.opcodes import (
    CONST,
    LANE,
    LOCAL,
    MEMORY,
    MEMORY_LANE,
    PLAIN,
    TYPE,
    alignment,
    leb,
    signed_leb,
)

Form = list[Any]  # atoms are strings, forms are lists

_TOKEN = re.compile(r';;[^\n]*|"[^"]*"|[()]|[^\s()";]+|\S')
_HEAD = b"\0asm\1\0\0\0"
_END, _ELSE, _EMPTY = b"\x0b", b"\x05", b"\x40"
_BLOCKS = {"block": b"\x02", "loop": b"\x03"}
_IF, _BRANCH, _BRANCH_IF, _CALL = b"\x04", b"\x0c", b"\x0d", b"\x10"
_V128_CONST, _SHUFFLE = b"\xfd\x0c", b"\xfd\x0d"
_SHAPES = {
    "i8x16": (16, "B"),
    "i16x8": (8, "H"),
    "i32x4": (4, "I"),
    "i64x2": (2, "Q"),
    "f32x4": (4, "f"),
    "f64x2": (2, "d"),
}
_TYPES, _IMPORTS, _FUNCTIONS, _GLOBALS, _EXPORTS, _CODE = 1, 2, 3, 6, 7, 10


class AssemblerError(ValueError):
    """Raised for a text that the assembler does not support. The message has the form and its line."""


class _Atom(str):
    """A word of the text, with its line."""

    line: int


def assemble(text: str) -> bytes:
    """Returns the binary of a module in the text format."""
    module = _parse(text)
    if module[:1] != ["module"]:
        raise _make_error("expected a module", module)
    functions = [_Function(form) for form in module[1:] if form[0] == "func"]
    numbers = {function.name: number for number, function in enumerate(functions)}
    types: dict[bytes, int] = {}
    type_numbers = [types.setdefault(function.signature, len(types)) for function in functions]
    exports = [
        _encode_string(function.exported) + b"\0" + leb(number)
        for number, function in enumerate(functions)
        if function.exported is not None
    ]
    imports = [_encode_memory(form) for form in module[1:] if form[0] == "memory"]
    constants = [_encode_constant(form) for form in module[1:] if form[0] == "global"]
    exports[:0] = [_encode_string(name) + b"\3" + leb(number) for number, (name, _) in enumerate(constants)]
    unknown = [form for form in module[1:] if form[0] not in ("func", "memory", "global")]
    if unknown:
        raise _make_error(f"a module has no {unknown[0][0]!r} here", unknown[0])
    bodies = [_encode_sized(function.body(numbers)) for function in functions]
    return _HEAD + b"".join(
        [
            _encode_section(_TYPES, list(types)),
            _encode_section(_IMPORTS, imports),
            _encode_section(_FUNCTIONS, [leb(number) for number in type_numbers]),
            _encode_section(_GLOBALS, [content for _, content in constants]),
            _encode_section(_EXPORTS, exports),
            _encode_section(_CODE, bodies),
        ]
    )


def _parse(text: str) -> Form:
    """Returns the single form of the text."""
    forms: list[Form] = [[]]
    line, position = 1, 0
    for match in _TOKEN.finditer(text):
        line += text.count("\n", position, match.start())
        position = match.start()
        word = match[0]
        if word.startswith(";;"):
            continue
        if word == "(":
            forms.append([])
        elif word == ")":
            if len(forms) == 1:
                raise AssemblerError(f"line {line}: a closing parenthesis without its opening one")
            closed = forms.pop()
            if not closed or isinstance(closed[0], list):
                raise AssemblerError(f"line {line}: a form must begin with a word")
            forms[-1].append(closed)
        else:
            atom = _Atom(word)
            atom.line = line
            forms[-1].append(atom)
    if len(forms) > 1:
        raise AssemblerError(f"line {line}: {len(forms) - 1} parentheses are not closed")
    if len(forms[0]) != 1 or not isinstance(forms[0][0], list):
        raise AssemblerError("the text is not one module")
    return forms[0][0]


def _make_error(problem: str, form: Any) -> AssemblerError:
    word = form
    while isinstance(word, list) and word:
        word = word[0]
    line = f"line {word.line}: " if isinstance(word, _Atom) else ""
    return AssemblerError(f"{line}{problem} ({word})")


def _encode_section(number: int, entries: Sequence[bytes]) -> bytes:
    if not entries:
        return b""
    return bytes([number]) + _encode_sized(leb(len(entries)) + b"".join(entries))


def _encode_sized(content: bytes) -> bytes:
    return leb(len(content)) + content


def _encode_string(text: str) -> bytes:
    return _encode_sized(text.encode())


def _encode_memory(form: Form) -> bytes:
    """Encodes an imported memory: `(memory (import "a" "b") pages)`."""
    if len(form) != 3 or form[1][0] != "import":
        raise _make_error("the memory must be imported: (memory (import …) pages)", form)
    module, name = (word.strip('"') for word in form[1][1:])
    return _encode_string(module) + _encode_string(name) + b"\x02\x00" + leb(int(form[2]))


def _encode_constant(form: Form) -> tuple[str, bytes]:
    """Returns the name and the content of an exported constant: `(global (export "a") i32 (i32.const 1))`."""
    if len(form) != 4 or form[1][0] != "export" or form[2] not in TYPE or form[3][0] not in CONST:
        raise _make_error("a global must be an exported constant: (global (export …) type (type.const …))", form)
    value = CONST[form[3][0]] + _encode_number(form[2], form[3][1])
    return form[1][1].strip('"'), TYPE[form[2]] + b"\0" + value + _END


class _Function:
    """A function: its head, and the encoding of its body."""

    def __init__(self, form: Form) -> None:
        remaining = form[1:]
        self.name = remaining.pop(0) if remaining and isinstance(remaining[0], str) else ""
        self.exported: str | None = None
        self.locals: dict[str, int] = {}
        self.labels: list[str] = []
        parameters, results, self._local_types = b"", b"", b""
        while (
            remaining and isinstance(remaining[0], list) and remaining[0][0] in ("export", "param", "result", "local")
        ):
            keyword, *words = remaining.pop(0)
            if keyword == "export":
                self.exported = words[0].strip('"')
                continue
            types = b"".join([self._encode_type(word) for word in words[-1:]])
            if keyword == "result":
                results += types
                continue
            if len(words) != 2:
                raise _make_error(f"a {keyword} needs a name and a type", [keyword, *words])
            self.locals[words[0]] = len(self.locals)
            if keyword == "param":
                parameters += types
            else:
                self._local_types += types
        self._forms = remaining
        count = [len(type_list) for type_list in (parameters, results)]
        self.signature = b"\x60" + leb(count[0]) + parameters + leb(count[1]) + results

    def _encode_type(self, word: Any) -> bytes:
        if word not in TYPE:
            raise _make_error(f"{word} is not a type", word)
        return TYPE[word]

    def body(self, functions: dict[str, int]) -> bytes:
        """Returns the declarations of locals, grouped by consecutive types, and the instructions."""
        self._functions = functions
        runs: list[tuple[int, int]] = []
        for wasm_type in self._local_types:
            if runs and runs[-1][1] == wasm_type:
                runs[-1] = runs[-1][0] + 1, wasm_type
            else:
                runs.append((1, wasm_type))
        code = bytearray()
        for form in self._forms:
            self._encode(form, code)
        declared = b"".join([leb(count) + bytes([wasm_type]) for count, wasm_type in runs])
        return leb(len(runs)) + declared + bytes(code) + _END

    def _encode(self, form: Any, code: bytearray) -> None:
        """Appends the instructions of a folded expression: its operands first."""
        if not isinstance(form, list):
            raise _make_error("instructions must be in parentheses", form)
        name, operands = form[0], form[1:]
        if name in _BLOCKS:
            self._encode_block(_BLOCKS[name], operands, code)
            return
        if name == "if":
            self._encode_if(form, code)
            return
        words = []
        while operands and isinstance(operands[0], str):
            words.append(operands.pop(0))
        for operand in operands:
            self._encode(operand, code)
        try:
            code += self._encode_instruction(name, words)
        except (KeyError, ValueError, IndexError, struct.error) as error:
            raise _make_error(
                f"{' '.join([name, *words])} is not an instruction that this assembler knows", form
            ) from error

    def _encode_instruction(self, name: str, words: list[str]) -> bytes:
        """Encodes the opcode of an instruction and its immediate operands."""
        if name in PLAIN and not words:
            return PLAIN[name]
        if name in LOCAL:
            return LOCAL[name] + leb(self.locals[words[0]])
        if name in CONST:
            return CONST[name] + _encode_number(name[:3], words[0])
        if name in MEMORY:
            return MEMORY[name] + _encode_address(name, words)
        if name in LANE:
            return LANE[name] + bytes([int(words[0])])
        if name in MEMORY_LANE:
            return MEMORY_LANE[name] + _encode_address(name, words[:-1]) + bytes([int(words[-1])])
        if name == "v128.const":
            count, letter = _SHAPES[words[0]]
            return _V128_CONST + b"".join([_encode_lane(word, letter) for word in _check_count(count, words[1:])])
        if name == "i8x16.shuffle":
            return _SHUFFLE + bytes([int(word) for word in _check_count(16, words)])
        if name in ("br", "br_if"):
            depth = self.labels[::-1].index(words[0])
            return (_BRANCH if name == "br" else _BRANCH_IF) + leb(depth)
        if name == "call":
            return _CALL + leb(self._functions[words[0]])
        raise KeyError(name)

    def _push_label(self, forms: Form) -> None:
        self.labels.append(forms.pop(0) if forms and isinstance(forms[0], str) else "")

    def _encode_result(self, forms: Form) -> bytes:
        if forms and forms[0][0] == "result":
            return self._encode_type(forms.pop(0)[1])
        return _EMPTY

    def _encode_block(self, opcode: bytes, forms: Form, code: bytearray) -> None:
        self._push_label(forms)
        code += opcode + self._encode_result(forms)
        for form in forms:
            self._encode(form, code)
        code += _END
        self.labels.pop()

    def _encode_if(self, form: Form, code: bytearray) -> None:
        """Assembles `(if (result t) condition (then …) (else …))`."""
        forms = form[1:]
        result = self._encode_result(forms)
        if not 2 <= len(forms) <= 3 or forms[1][0] != "then" or forms[2:] and forms[2][0] != "else":
            raise _make_error("an if needs a condition, a then and optionally an else", form)
        self._encode(forms[0], code)
        code += _IF + result
        self.labels.append("")
        for number, branch in enumerate(forms[1:]):
            if number:
                code += _ELSE
            for inner in branch[1:]:
                self._encode(inner, code)
        code += _END
        self.labels.pop()


def _check_count(count: int, words: list[str]) -> list[str]:
    if len(words) != count:
        raise ValueError(f"expected {count} numbers")
    return words


def _encode_number(wasm_type: str, word: str) -> bytes:
    if wasm_type[0] == "f":
        return _encode_lane(word, "f" if wasm_type == "f32" else "d")
    bits = 1 << int(wasm_type[1:])
    value = int(word, 0) % bits
    return signed_leb(value - bits if value >= bits // 2 else value)


def _encode_lane(word: str, letter: str) -> bytes:
    if letter in "fd":
        return struct.pack(f"<{letter}", float(word))
    bits = 8 * struct.calcsize(letter)
    return struct.pack(f"<{letter}", int(word, 0) % (1 << bits))


def _encode_address(name: str, words: list[str]) -> bytes:
    offset = 0
    for word in words:
        key, _, value = word.partition("=")
        if key != "offset":
            raise ValueError(word)
        offset = int(value)
    return leb(alignment(name)) + leb(offset)
