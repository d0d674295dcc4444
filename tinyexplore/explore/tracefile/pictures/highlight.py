"""Colored listings by Pygments' lexers: HTML for pages and notebooks, escape codes for terminals.

This module has its own lexers for linear programs, which Pygments lacks, and for vector types, which it does not know.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from html import escape
from typing import Any, TextIO

from tinyexplore.util import getenv

Token = tuple[str, str]  # (kind, text); the kind of plain text is ""

# kind → colors of the views in light and dark mode (widgets/src/style.css), JupyterLab's variable, terminal code
TOKEN_KINDS: dict[str, tuple[str, str, str, str]] = {
    "comment": ("#5f6a78", "#9aa6b4", "--jp-mirror-editor-comment-color", "2;3"),
    "string": ("#8a5a00", "#e0b36a", "--jp-mirror-editor-string-color", "33"),
    "keyword": ("#8a3b9e", "#d6a0e6", "--jp-mirror-editor-keyword-color", "35"),
    "number": ("#0b63ce", "#8cc2ff", "--jp-mirror-editor-number-color", "34"),
    "call": ("#005f8f", "#7fd0f5", "--jp-mirror-editor-def-color", "36"),
    "type": ("#00674d", "#6fdcb8", "--jp-mirror-editor-builtin-color", "32"),
    "register": ("#7a4a00", "#f0c48a", "--jp-mirror-editor-variable-2-color", "93"),
    "global": ("#7a4a00", "#f0c48a", "--jp-mirror-editor-variable-3-color", "93"),
    "label": ("#8a3b9e", "#d6a0e6", "--jp-mirror-editor-tag-color", "95"),
    "macro": ("#5f6a78", "#9aa6b4", "--jp-mirror-editor-meta-color", "2"),
}

_UOP_TYPES = r"\b(?:void|bool|bfloat16|u?int(?:8|16|32|64)|float(?:16|32|64)|fp8e\dm\d)\b(?:×\d+)?"
_LEXERS = {
    "llvm": "llvm",
    "llvm-opt": "llvm",
    "asm": "nasm",  # Intel's syntax, which listings for x86 use
    "python": "python",
    "aten": "python",
    "ptx": "ptx",
    "amdgcn": "nasm",
    "cuda": "cuda",
    "hip": "cuda",
    "wgsl": "wgsl",
}


def tokens(language: str, lines: Sequence[str]) -> list[list[Token]]:
    """Returns the tokens of each line. The texts of a line's tokens join to the line. Constructs may span lines."""
    if not lines:
        return []
    token_lines: list[list[Token]] = [[]]
    kind_of = _make_kind_function(language)
    for token_type, text in lexer(language).get_tokens("\n".join(lines)):
        kind = kind_of(token_type)
        first, *further = text.split("\n")
        for number, part in enumerate((first, *further)):
            if number:
                token_lines.append([])
            if part and token_lines[-1] and token_lines[-1][-1][0] == kind:
                token_lines[-1][-1] = (kind, token_lines[-1][-1][1] + part)
            elif part:
                token_lines[-1].append((kind, part))
    return token_lines[: len(lines)]


def lines_html(language: str, lines: Sequence[str], *, inline: bool = False) -> list[str]:
    """Returns each line as HTML: spans of the classes t-keyword, t-number, … (`style_sheet` has their colors).

    inline: write the colors of JupyterLab's theme into `style` attributes, for an output without a style sheet.
    """
    return ["".join(_write_span(kind, text, inline) for kind, text in line) for line in tokens(language, lines)]


def lines_ansi(language: str, lines: Sequence[str]) -> list[str]:
    """Returns each line with escape codes for a terminal."""
    return [
        "".join(f"\x1b[{TOKEN_KINDS[kind][3]}m{text}\x1b[0m" if kind else text for kind, text in line)
        for line in tokens(language, lines)
    ]


def for_stream(language: str, lines: Sequence[str], stream: TextIO) -> list[str]:
    """Returns the lines for `stream`: colored if it is a terminal and NO_COLOR is not set."""
    is_plain = getenv("NO_COLOR", "") or getenv("TERM", "") == "dumb" or not stream.isatty()
    return list(lines) if is_plain else lines_ansi(language, lines)


def style_sheet(scope: str = "") -> str:
    """Returns the style sheet with the colors of the classes, for light and dark mode."""
    light = "".join(f"{scope} .t-{kind}{{color:{colors[0]}}}" for kind, colors in TOKEN_KINDS.items())
    dark = "".join(f"{scope} .t-{kind}{{color:{colors[1]}}}" for kind, colors in TOKEN_KINDS.items())
    return f"{light}@media(prefers-color-scheme:dark){{{dark}}}"


def _write_span(kind: str, text: str, inline: bool) -> str:
    if not kind:
        return escape(text)
    if inline:
        light, _, variable, _ = TOKEN_KINDS[kind]
        return f'<span style="color:var({variable},{light})">{escape(text)}</span>'
    return f'<span class="t-{kind}">{escape(text)}</span>'


# *** lexers ***


@cache
def lexer(language: str) -> Any:
    """Returns the Pygments lexer for a language of listings; that of C for an unknown language."""
    from pygments.lexers import get_lexer_by_name

    options = {"stripnl": False, "ensurenl": False}
    if language == "uops":
        return _make_uop_lexer()(**options)
    if language == "wat":
        return _make_wat_lexer()(**options)
    name = _LEXERS.get(language)
    return get_lexer_by_name(name, **options) if name is not None else _make_c_lexer()(**options)


@cache
def _make_uop_lexer() -> type[Any]:
    """Returns the lexer class for linear programs: `12    %7 = MUL %5, %6 : float32×4`."""
    from pygments.lexer import RegexLexer
    from pygments.token import Comment, Keyword, Name, Number, Punctuation, Whitespace

    class UOpLexer(RegexLexer):
        name = "Linear UOps"
        aliases = ["uops"]
        tokens = {
            "root": [
                (r"^\s*\d+(?=\s|$)", Comment),  # the line number
                (r"\s+", Whitespace),
                (r"#.*", Comment),
                (r"\b(?:for|in|range|end|if|from|to|lane|of)\b", Keyword),
                (_UOP_TYPES, Keyword.Type),
                (r"%\w+", Name.Variable),
                (r"-?\b\d+(?:\.\d+)?(?:e[+-]?\d+)?\b", Number),
                (r"\b[A-Z][A-Z0-9_]{2,}\b", Name.Function),
                (r"\w+", Name),
                (r".", Punctuation),
            ]
        }

    return UOpLexer


@cache
def _make_wat_lexer() -> type[Any]:
    """Returns the lexer class for WebAssembly's text format with vector instructions, which Pygments does not know."""
    from pygments.lexer import RegexLexer
    from pygments.token import Comment, Keyword, Name, Number, Punctuation, String, Whitespace

    shape = r"(?:[if](?:32|64|8x16|16x8|32x4|64x2)|v128)"

    class WatLexer(RegexLexer):
        name = "WebAssembly's text format"
        aliases = ["wat"]
        tokens = {
            "root": [
                (r"\s+", Whitespace),
                (r";;.*", Comment),
                (r'"[^"]*"', String),
                (r"\$[\w.]+", Name.Variable),
                (rf"\b(?:{shape}|local)\.\w+", Name.Function),
                (rf"\b{shape}\b", Keyword.Type),
                (
                    r"\b(?:module|memory|import|export|func|param|result|local|global|loop|block|if|then|else|br|br_if|"
                    r"call|return|select|drop)\b",
                    Keyword,
                ),
                (r"-?\b(?:0x[\da-fA-F]+|\d+(?:\.\d+)?(?:e[+-]?\d+)?|inf|nan)\b", Number),
                (r"\w+", Name),
                (r".", Punctuation),
            ]
        }

    return WatLexer


@cache
def _make_c_lexer() -> type[Any]:
    """Returns the lexer class for C with vector types (`f32x16`) and function calls."""
    from pygments.lexers import CLexer
    from pygments.token import Keyword, Name

    vector = re.compile(r"[fiub]\d+x\d+(?:_u)?")

    class KernelCLexer(CLexer):
        def get_tokens_unprocessed(self, text: str, stack: Any = ("root",)) -> Iterator[tuple[int, Any, str]]:
            for index, kind, value in super().get_tokens_unprocessed(text, stack):
                if kind is Name and vector.fullmatch(value):
                    kind = Keyword.Type
                elif kind is Name and text[index + len(value) : index + len(value) + 1] == "(":
                    kind = Name.Function
                yield index, kind, value

    return KernelCLexer


@cache
def _make_kind_function(language: str) -> Callable[[Any], str]:
    """Returns a function from a Pygments token type to our kind of token, by the most specific entry."""
    from pygments.token import Comment, Keyword, Name, Number, String

    table: dict[Any, str] = {
        Comment: "comment",
        Comment.Preproc: "macro",
        Comment.PreprocFile: "string",
        String: "string",
        Keyword: "keyword",
        Keyword.Type: "type",
        Number: "number",
        Name.Function: "call",
        Name.Class: "call",
        Name.Builtin: "register" if language == "asm" else "call",
        Name.Variable: "" if language == "asm" else "register",
        Name.Variable.Global: "global",
        Name.Label: "label",
        Name.Decorator: "macro",
    }

    @cache
    def kind_of(token_type: Any) -> str:
        while token_type is not None:
            if token_type in table:
                return table[token_type]
            token_type = token_type.parent
        return ""

    return kind_of
