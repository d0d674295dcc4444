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
    module = _parsed(text)
    if module[:1] != ["module"]:
        raise _error("a module is expected", module)
    functions = [_Function(form) for form in module[1:] if form[0] == "func"]
    numbers = {function.name: number for number, function in enumerate(functions)}
    types: dict[bytes, int] = {}
    type_numbers = [types.setdefault(function.signature, len(types)) for function in functions]
    exports = [
        _string(function.exported) + b"\0" + leb(number)
        for number, function in enumerate(functions)
        if function.exported is not None
    ]
    imports = [_memory(form) for form in module[1:] if form[0] == "memory"]
    constants = [_constant(form) for form in module[1:] if form[0] == "global"]
    exports[:0] = [_string(name) + b"\3" + leb(number) for number, (name, _) in enumerate(constants)]
    unknown = [form for form in module[1:] if form[0] not in ("func", "memory", "global")]
    if unknown:
        raise _error(f"a module has no {unknown[0][0]!r} here", unknown[0])
    bodies = [_sized(function.body(numbers)) for function in functions]
    return _HEAD + b"".join(
        [
            _section(_TYPES, list(types)),
            _section(_IMPORTS, imports),
            _section(_FUNCTIONS, [leb(number) for number in type_numbers]),
            _section(_GLOBALS, [content for _, content in constants]),
            _section(_EXPORTS, exports),
            _section(_CODE, bodies),
        ]
    )


def _parsed(text: str) -> Form:
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
                raise AssemblerError(f"line {line}: a form begins with a word")
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


def _error(problem: str, form: Any) -> AssemblerError:
    word = form
    while isinstance(word, list) and word:
        word = word[0]
    line = f"line {word.line}: " if isinstance(word, _Atom) else ""
    return AssemblerError(f"{line}{problem} ({word})")


def _section(number: int, entries: Sequence[bytes]) -> bytes:
    if not entries:
        return b""
    return bytes([number]) + _sized(leb(len(entries)) + b"".join(entries))


def _sized(content: bytes) -> bytes:
    return leb(len(content)) + content


def _string(text: str) -> bytes:
    return _sized(text.encode())


def _memory(form: Form) -> bytes:
    """Encodes an imported memory: `(memory (import "a" "b") pages)`."""
    if len(form) != 3 or form[1][0] != "import":
        raise _error("the memory is imported, (memory (import …) pages)", form)
    module, name = (word.strip('"') for word in form[1][1:])
    return _string(module) + _string(name) + b"\x02\x00" + leb(int(form[2]))


def _constant(form: Form) -> tuple[str, bytes]:
    """Returns the name and the content of an exported constant: `(global (export "a") i32 (i32.const 1))`."""
    if len(form) != 4 or form[1][0] != "export" or form[2] not in TYPE or form[3][0] not in CONST:
        raise _error("a global is an exported constant, (global (export …) type (type.const …))", form)
    value = CONST[form[3][0]] + _number(form[2], form[3][1])
    return form[1][1].strip('"'), TYPE[form[2]] + b"\0" + value + _END


class _Function:
    """A function: its head, and the encoding of its body."""

    def __init__(self, form: Form) -> None:
        rest = form[1:]
        self.name = rest.pop(0) if rest and isinstance(rest[0], str) else ""
        self.exported: str | None = None
        self.locals: dict[str, int] = {}
        self.labels: list[str] = []
        parameters, results, self._local_types = b"", b"", b""
        while rest and isinstance(rest[0], list) and rest[0][0] in ("export", "param", "result", "local"):
            kind, *words = rest.pop(0)
            if kind == "export":
                self.exported = words[0].strip('"')
                continue
            types = b"".join([self._type(word) for word in words[-1:]])
            if kind == "result":
                results += types
                continue
            if len(words) != 2:
                raise _error(f"a {kind} has a name and a type", [kind, *words])
            self.locals[words[0]] = len(self.locals)
            if kind == "param":
                parameters += types
            else:
                self._local_types += types
        self._forms = rest
        count = [len(part) for part in (parameters, results)]
        self.signature = b"\x60" + leb(count[0]) + parameters + leb(count[1]) + results

    def _type(self, word: Any) -> bytes:
        if word not in TYPE:
            raise _error(f"{word} is not a type", word)
        return TYPE[word]

    def body(self, functions: dict[str, int]) -> bytes:
        """Returns the declarations of locals, grouped by consecutive types, and the instructions."""
        self._functions = functions
        runs: list[tuple[int, int]] = []
        for kind in self._local_types:
            if runs and runs[-1][1] == kind:
                runs[-1] = runs[-1][0] + 1, kind
            else:
                runs.append((1, kind))
        code = bytearray()
        for form in self._forms:
            self._encode(form, code)
        declared = b"".join([leb(count) + bytes([kind]) for count, kind in runs])
        return leb(len(runs)) + declared + bytes(code) + _END

    def _encode(self, form: Any, code: bytearray) -> None:
        """Appends the instructions of a folded expression: its operands first."""
        if not isinstance(form, list):
            raise _error("instructions stand in parentheses here", form)
        name, rest = form[0], form[1:]
        if name in _BLOCKS:
            self._block(_BLOCKS[name], rest, code)
            return
        if name == "if":
            self._if(form, code)
            return
        words = []
        while rest and isinstance(rest[0], str):
            words.append(rest.pop(0))
        for operand in rest:
            self._encode(operand, code)
        try:
            code += self._instruction(name, words)
        except (KeyError, ValueError, IndexError, struct.error) as error:
            raise _error(f"{' '.join([name, *words])} is not an instruction that this assembler knows", form) from error

    def _instruction(self, name: str, words: list[str]) -> bytes:
        """Encodes the opcode of an instruction and its immediate operands."""
        if name in PLAIN and not words:
            return PLAIN[name]
        if name in LOCAL:
            return LOCAL[name] + leb(self.locals[words[0]])
        if name in CONST:
            return CONST[name] + _number(name[:3], words[0])
        if name in MEMORY:
            return MEMORY[name] + _address(name, words)
        if name in LANE:
            return LANE[name] + bytes([int(words[0])])
        if name in MEMORY_LANE:
            return MEMORY_LANE[name] + _address(name, words[:-1]) + bytes([int(words[-1])])
        if name == "v128.const":
            count, letter = _SHAPES[words[0]]
            return _V128_CONST + b"".join([_lane(word, letter) for word in _exactly(count, words[1:])])
        if name == "i8x16.shuffle":
            return _SHUFFLE + bytes([int(word) for word in _exactly(16, words)])
        if name in ("br", "br_if"):
            depth = self.labels[::-1].index(words[0])
            return (_BRANCH if name == "br" else _BRANCH_IF) + leb(depth)
        if name == "call":
            return _CALL + leb(self._functions[words[0]])
        raise KeyError(name)

    def _label(self, rest: Form) -> None:
        self.labels.append(rest.pop(0) if rest and isinstance(rest[0], str) else "")

    def _result(self, rest: Form) -> bytes:
        if rest and rest[0][0] == "result":
            return self._type(rest.pop(0)[1])
        return _EMPTY

    def _block(self, opcode: bytes, rest: Form, code: bytearray) -> None:
        self._label(rest)
        code += opcode + self._result(rest)
        for form in rest:
            self._encode(form, code)
        code += _END
        self.labels.pop()

    def _if(self, form: Form, code: bytearray) -> None:
        """Assembles `(if (result t) condition (then …) (else …))`."""
        rest = form[1:]
        result = self._result(rest)
        if not 2 <= len(rest) <= 3 or rest[1][0] != "then" or rest[2:] and rest[2][0] != "else":
            raise _error("an if has a condition, a then and perhaps an else", form)
        self._encode(rest[0], code)
        code += _IF + result
        self.labels.append("")
        for number, branch in enumerate(rest[1:]):
            if number:
                code += _ELSE
            for inner in branch[1:]:
                self._encode(inner, code)
        code += _END
        self.labels.pop()


def _exactly(count: int, words: list[str]) -> list[str]:
    if len(words) != count:
        raise ValueError(f"{count} numbers are expected")
    return words


def _number(kind: str, word: str) -> bytes:
    if kind[0] == "f":
        return _lane(word, "f" if kind == "f32" else "d")
    bits = 1 << int(kind[1:])
    value = int(word, 0) % bits
    return signed_leb(value - bits if value >= bits // 2 else value)


def _lane(word: str, letter: str) -> bytes:
    if letter in "fd":
        return struct.pack(f"<{letter}", float(word))
    bits = 8 * struct.calcsize(letter)
    return struct.pack(f"<{letter}", int(word, 0) % (1 << bits))


def _address(name: str, words: list[str]) -> bytes:
    offset = 0
    for word in words:
        key, _, value = word.partition("=")
        if key != "offset":
            raise ValueError(word)
        offset = int(value)
    return leb(alignment(name)) + leb(offset)
