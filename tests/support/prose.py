"""Findings in the project's language: words that a term of the field replaces, long sentences, undocumented fields.

Texts are docstrings, comments, strings, documents, the front end's TypeScript, and the notebooks' markdown cells. Of
tests, only docstrings and comments are checked. Their strings are data, and fields of helpers may stay undescribed.

`python -m tests.support.prose` prints the number of findings for each package; `python -m tests.support.prose PATH…`
prints the findings of these files or folders. `--check` fails where there is any.
"""

from __future__ import annotations

import argparse
import ast
import json
import re
import tokenize
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LONGEST_SENTENCE = 35  # words
KINDS = (".py", ".md", ".ts", ".ipynb")
SKIPPED = {".venv", "node_modules", "static"}
# comments and strings of TypeScript; of a comment `/* … */` and of a template the lines, too
TYPESCRIPT = re.compile(r"""//[^\n]*|/\*.*?\*/|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|`(?:[^`\\]|\\.)*`""", re.DOTALL)
STRINGS = (tokenize.STRING, getattr(tokenize, "FSTRING_MIDDLE", tokenize.STRING))  # the latter from Python 3.12 on

# a regular expression for words that say something in this project only, and the term to use
REPLACEMENTS = {
    r"\bby hand\b(?! *(opt|tun))": "manually; kernel analysis",
    r"\btells?\b|\btold\b|\btelling\b": "emit, record, report, say",
    r"\bhears?\b|\bheard\b|\blisten(s|ed|ing)?\b": "record; recorder attached",
    r"\bsomebody\b|\bnobody\b|\bwhoever\b|\banybody\b": "name the caller, the user, the recorder",
    r"\bhand-coded choice\b": "heuristics, default schedule",
    r"\bobstacles?\b": "legality error; illegal because",
    r"\bkept rows?\b|\bkeeps? a row\b": "row buffer",
    r"\bat hand\b": "available",
    r"\bat work\b": "running",
    r"\bby itself\b|\bby themselves\b": "automatically; alone",
    r"\bmade up\b|\bmade-up\b": "generated, random",
    r"\bgiven out\b": "allocated",
    r"\blooked at\b": "read, examined",
    r"\bin words\b": "as text",
    r"\bwas there before\b|\bwere there before\b": "existing",
    r"\bidle pass(es)?\b": "passes without a change",
    r"\bprograms of (this|the) family\b": "tinygrad programs",
    r"\bbiograph(y|ies)\b": "rewrite history",
    r"\btwins?\b": "unrolled copies",
    r"(?<!dependency )\bcones?\b": "dependency cone, fan-in, fan-out",
    r"\btouch(es|ed)?\b": "access",
    r"\brare branch(es)?\b": "cold path",
    r"\blive pages?\b": "page with engine, interactive page",
    r"\brosetta\b(?!=| scroll)": "language comparison",
    r"\bwhat bounds\b": "bottleneck",
    r"\bstands? against\b|\bstood against\b": "limit; legality error",
    r"\bthe one door\b": "entry point, API",
    r"\bcomes? to nothing\b": "fail",
    r"\banew\b": "rebuild, again",
    r"\bsets? apart\b|\bkept apart\b": "sandbox, separate",
    r"\bis asked of\b|\bare asked of\b|\basked for\b": "request",
    r"\banswers? alike\b": "give the same answer",
    r"\bin turns\b": "interleaved, alternately",
    r"\bgoes by\b|\bgo by\b": "depend on, follow",
    r"\bso many\b|\bas many as\b": "name the number",
    r"\bthe way of\b": "the path of",
    r"\bwas not answered\b|\bdid not answer\b": "miss, miss rate",
    r"\bhand[- ]coded\b": "default schedule, heuristic",
    r"\bthe least beside each\b": "instructions per multiply-add",
    r"\bwhat the compiler keeps\b": "cache",
    r"\bremade\b|\brevived?\b": "rebuilt",
    r"\bfences\b": "guard pages",
    r"\bworked out\b": "computed",
}
PATTERNS = {re.compile(pattern, re.IGNORECASE): term for pattern, term in REPLACEMENTS.items()}


@dataclass(frozen=True)
class Finding:
    """One finding.

    path: of the file, from the repository's root.
    line: its first line, from 1.
    kind: "word", "sentence" or "field".
    text: what was found, and what to say instead.
    """

    path: str
    line: int
    kind: str
    text: str


def files(paths: Iterable[Path]) -> Iterator[Path]:
    """The Python, Markdown, TypeScript and notebook files under `paths`."""
    for path in paths:
        if path.is_file():
            yield path
            continue
        yield from (one for one in sorted(path.rglob("*")) if one.suffix in KINDS and not SKIPPED & {*one.parts})


def findings(path: Path) -> Iterator[Finding]:
    """All findings of a file."""
    name = path.relative_to(ROOT).as_posix()
    text = path.read_text("utf-8")
    if path.suffix == ".md":
        yield from in_prose(name, 1, markdown_prose(text))
        return
    if path.suffix == ".ipynb":
        for cell in json.loads(text)["cells"]:
            if cell["cell_type"] == "markdown":
                yield from in_prose(name, 1, markdown_prose("".join(cell["source"])))
        return
    if path.suffix == ".ts":
        if text.startswith("// Generated from"):
            return  # its texts are those of a Python file
        for match in TYPESCRIPT.finditer(text):
            yield from words(name, 1 + text[: match.start()].count("\n"), typescript_prose(match[0]))
        return
    tree = ast.parse(text)
    is_test = name.startswith("tests/")
    docstrings = set()
    for node in ast.walk(tree):
        if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        doc = ast.get_docstring(node, clean=True)
        if doc is not None:
            first = node.body[0].lineno
            docstrings.add(first)
            yield from in_prose(name, first, doc)
        if isinstance(node, ast.ClassDef) and not is_test:
            yield from undocumented_fields(name, node, doc or "", text.splitlines())
    with path.open("rb") as file:
        for token in tokenize.tokenize(file.readline):
            is_string = token.type in STRINGS and token.start[0] not in docstrings and not is_test
            if token.type == tokenize.COMMENT or is_string:
                yield from words(name, token.start[0], python_prose(token.string))


def in_prose(path: str, line: int, text: str) -> Iterator[Finding]:
    """Words and long sentences of a docstring or a page. The name at the begin of a field's line is code."""
    yield from words(path, line, re.sub(r"^ *\w+(?=: )", lambda match: " " * len(match[0]), text, flags=re.MULTILINE))
    blocks = r"```.*?```|::\n\n(?: +[^\n]*\n|\n)+"
    prose = re.sub(blocks, lambda match: "\n" * match[0].count("\n"), text, flags=re.DOTALL)
    for block in re.finditer(r"(?:^(?!\s*[|#>]).+\n?)+", prose, re.MULTILINE):
        start = line + prose[: block.start()].count("\n")
        for sentence in re.split(r"(?<=[.:;!?])\s+|\n\s*(?=[-*]|\d+\.)|\n(?=\w+: )", block[0]):
            count = len(re.findall(r"[^\s]*\w[^\s]*", sentence))
            if count > LONGEST_SENTENCE:
                yield Finding(path, start, "sentence", f"{count} words: {' '.join(sentence.split())[:90]}…")


def words(path: str, line: int, text: str) -> Iterator[Finding]:
    """Words of this project's own in a text that begins at `line`."""
    plain = re.sub(r"`[^`\n]*`", lambda match: " " * len(match[0]), text)
    for pattern, term in PATTERNS.items():
        for match in pattern.finditer(plain):
            yield Finding(path, line + plain[: match.start()].count("\n"), "word", f"{match[0]!r}: say {term}")


def python_prose(text: str) -> str:
    """A comment, or the words of a string: one without spaces is a key or a name, and `{…}` in a string is code."""
    if text.startswith("#"):
        return text
    inner = re.sub(r"\{[^{}]*\}", " ", text)
    return inner if " " in inner.strip() else ""


def typescript_prose(text: str) -> str:
    """A comment, or the words of a string: a single word is a key or a CSS class, and `${…}` is code."""
    if text.startswith("/"):
        return text
    inner = re.sub(r"\$\{[^{}]*\}", " ", text[1:-1])
    return inner if " " in inner.strip() else ""


def markdown_prose(text: str) -> str:
    """A page without its code blocks; lines keep their numbers."""
    return re.sub(r"```.*?```", lambda match: "\n" * match[0].count("\n"), text, flags=re.DOTALL)


def undocumented_fields(path: str, node: ast.ClassDef, doc: str, lines: list[str]) -> Iterator[Finding]:
    """Fields of a dataclass that its docstring, a comment on their line and a string below them leave undescribed."""
    if not any("dataclass" in ast.unparse(one) for one in node.decorator_list):
        return
    for field, following in zip(node.body, [*node.body[1:], None]):
        if not isinstance(field, ast.AnnAssign) or not isinstance(field.target, ast.Name):
            continue
        name = field.target.id
        last = field.end_lineno or field.lineno
        described = re.search(rf"\b{re.escape(name)}\b[^:\n.]*:", doc) or "#" in lines[last - 1]
        described = described or (isinstance(following, ast.Expr) and isinstance(following.value, ast.Constant))
        if not name.startswith("_") and "ClassVar" not in ast.unparse(field.annotation) and not described:
            yield Finding(path, field.lineno, "field", f"{node.name}.{name} is not described")


def packages() -> dict[str, list[Path]]:
    """What is counted together: each package of the project, and its documents."""
    parts = {path.name: [path] for path in sorted((ROOT / "tinyexplore").iterdir()) if (path / "__init__.py").exists()}
    parts["root"] = sorted((ROOT / "tinyexplore").glob("*.py"))
    parts["docs"] = [
        *sorted((ROOT / "docs").glob("*.md")),
        ROOT / "docs" / "decisions",
        ROOT / "docs" / "explorer",
        ROOT / "README.md",
    ]
    parts["bench"] = [ROOT / "bench"]
    parts["tests"] = [ROOT / "tests"]
    parts["front end"] = [ROOT / "widgets" / "src"]
    parts["notebooks"] = [ROOT / "notebooks"]
    return parts


def counted() -> dict[str, dict[str, int]]:
    """The number of findings of each kind, for each package."""
    counts = {}
    for name, paths in packages().items():
        kinds = Counter(finding.kind for path in files(paths) for finding in findings(path))
        counts[name] = {kind: kinds[kind] for kind in ("word", "sentence", "field")}
    return counts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("paths", nargs="*", type=Path, help="files or folders; none: a table of the counts")
    parser.add_argument("--check", action="store_true", help="print all findings, and fail if there is any")
    args = parser.parse_args()
    if args.paths or args.check:
        paths = [path.resolve() for path in args.paths] or [path for part in packages().values() for path in part]
        found = [finding for path in files(paths) for finding in findings(path)]
        for finding in found:
            print(f"{finding.path}:{finding.line}: {finding.kind}: {finding.text}")
        raise SystemExit(1 if args.check and found else 0)
    for name, kinds in counted().items():
        print(f"{name:12}", *(f"{kind} {number:4}" for kind, number in kinds.items()))


if __name__ == "__main__":
    main()
