"""Listings in colors."""

from __future__ import annotations

import io
import re

import pytest

from tinyexplore import Tensor, cli, explore
from tinyexplore.explore import Trace
from tinyexplore.explore.tracefile.pictures import highlight
from tinyexplore.explore.tracefile.pictures.highlight import (
    TOKEN_KINDS,
    for_stream,
    lines_ansi,
    lines_html,
    style_sheet,
    tokens,
)
from tinyexplore.util import Context


@pytest.fixture(scope="module")
def trace() -> Trace:
    with Context(DEVICE="LLVM"):
        x = Tensor.ones(32, 32).contiguous().realize()
        return explore(lambda: (x @ x).softmax(), repeat=1).trace


def test_the_tokens_of_every_listing_are_its_text(trace):
    assert {program.language for program in trace.programs} == {"uops", "llvm", "c", "llvm-opt", "asm"}
    for program in trace.programs:
        text = [line.text for line in program.lines]
        found = tokens(program.language, text)
        assert ["".join(part for _, part in line) for line in found] == text
        assert {kind for line in found for kind, _ in line} <= {"", *TOKEN_KINDS}


def kinds(language: str, line: str) -> list[tuple[str, str]]:
    return [(kind, text.strip()) for kind, text in tokens(language, [line])[0] if kind]


@pytest.mark.parametrize(
    ("language", "line", "expected"),
    [
        (
            "uops",
            "12    %7 = MUL %5, 2.0 : float32×4  # twice",
            [
                ("comment", "12"),
                ("register", "%7"),
                ("call", "MUL"),
                ("register", "%5"),
                ("number", "2.0"),
                ("type", "float32×4"),
                ("comment", "# twice"),
            ],
        ),
        (
            "uops",
            " 3  for g0 in range(64):",
            [("comment", "3"), ("keyword", "for"), ("keyword", "in"), ("keyword", "range"), ("number", "64")],
        ),
        (
            "wat",
            "(local.set $v1 (f32x4.mul (local.get $v0) (v128.const f32x4 0.5 1 -inf 2e9))) ;; twice",
            [
                ("call", "local.set"),
                ("register", "$v1"),
                ("call", "f32x4.mul"),
                ("call", "local.get"),
                ("register", "$v0"),
                ("call", "v128.const"),
                ("type", "f32x4"),
                *[("number", number) for number in ("0.5", "1", "-inf", "2e9")],
                ("comment", ";; twice"),
            ],
        ),
        ("c", "  f32x16 v0 = splat_f32x16(1.0f);", [("type", "f32x16"), ("call", "splat_f32x16"), ("number", "1.0f")]),
        (
            "llvm",
            "  %x = fadd float %y, %z",
            [("register", "%x"), ("keyword", "fadd"), ("type", "float"), ("register", "%y"), ("register", "%z")],
        ),
        (
            "asm",
            "    vxorps       xmm0, xmm0, xmm0",
            [("call", "vxorps"), ("register", "xmm0"), ("register", "xmm0"), ("register", "xmm0")],
        ),
        ("python", "def f(x):  # why", [("keyword", "def"), ("call", "f"), ("comment", "# why")]),
    ],
)
def test_tokens_have_their_kinds(language, line, expected):
    assert kinds(language, line) == expected


def test_a_construct_may_span_lines():
    found = tokens("python", ['"""two', 'lines"""', "x = 1"])
    assert [line[0][0] for line in found[:2]] == ["string", "string"]
    assert ("number", "1") in found[2]


def test_html_is_the_text_escaped_and_inline_needs_no_sheet():
    (line,) = lines_html("c", ["a < b && 1 > 0;"])
    assert re.sub(r"</?span[^>]*>", "", line) == "a &lt; b &amp;&amp; 1 &gt; 0;"
    assert '<span class="t-number">1</span>' in line
    (inline,) = lines_html("c", ["1"], inline=True)
    assert inline == '<span style="color:var(--jp-mirror-editor-number-color,#0b63ce)">1</span>'


def test_colors_are_those_of_the_views(repository):
    sheet = (repository / "widgets" / "src" / "style.css").read_text(encoding="utf-8")
    for kind in ("comment", "string", "keyword", "number", "call", "type", "register"):
        assert re.findall(rf"--tok-{kind}: (#\w+);", sheet)[:2] == list(TOKEN_KINDS[kind][:2])
    assert style_sheet(".page").count(".page .t-keyword{") == 2


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_only_a_terminal_gets_colors_unless_disabled(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    lines = ["return 1;"]
    assert for_stream("c", lines, io.StringIO()) == lines
    assert for_stream("c", lines, Terminal()) == lines_ansi("c", lines)
    assert re.sub(r"\x1b\[[\d;]*m", "", lines_ansi("c", lines)[0]) == lines[0]
    monkeypatch.setenv("NO_COLOR", "1")
    assert for_stream("c", lines, Terminal()) == lines


def test_an_unknown_language_is_read_as_c():
    assert highlight.lexer("metal").name == highlight.lexer("c").name


def test_the_command_prints_a_listing(trace, tmp_path, capsys):
    path = str(trace.save(tmp_path / "trace.json.gz"))
    asm = next(program for program in trace.programs if program.language == "asm" and program.kernel == 0)
    assert cli.main(["code", path, "0", "asm"]) == 0
    assert capsys.readouterr().out.splitlines() == [line.text.rstrip("\n") for line in asm.lines]
    assert cli.main(["code", path, "0", "ptx"]) == 2
    assert "no 'ptx'" in capsys.readouterr().err
    assert cli.main(["code", path, "9"]) == 2
    assert "kernel 9 has no listings" in capsys.readouterr().err
