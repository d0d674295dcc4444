"""The README is correct: its commands exist, its links resolve, and its Python code runs unchanged."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from tests.support.patience import seconds

PROGRAM = """
import re, sys
from IPython.core.interactiveshell import InteractiveShell

shell = InteractiveShell.instance()
for block in re.findall(r"```python\\n(.*?)```", open(sys.argv[1], encoding="utf-8").read(), flags=re.DOTALL):
    shell.run_cell(block, store_history=True).raise_error()
print("ran", shell.execution_count - 1, "blocks")
"""


def test_its_python_runs(repository: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-c", PROGRAM, str(repository / "README.md")]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=seconds(300))
    assert done.returncode == 0, done.stdout + done.stderr
    assert int(re.findall(r"ran (\d+) blocks", done.stdout)[0]) >= 4
    assert (tmp_path / "softmax.html").stat().st_size > 10_000


def test_its_first_block_has_two_commands_that_make_knows(repository: Path) -> None:
    (commands, *_) = re.findall(r"```sh\n(.*?)```", (repository / "README.md").read_text(), flags=re.DOTALL)
    targets = [line.split()[1] for line in commands.splitlines()]
    assert targets == ["lab", "test"]
    for target in targets:
        done = subprocess.run(["make", "--dry-run", target], cwd=repository, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr


def test_its_links_lead_to_files_and_so_do_those_of_the_documents(repository: Path) -> None:
    pages = [repository / "README.md", *(repository / "docs").rglob("*.md")]
    lost = []
    for page in pages:
        prose = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
        links = re.findall(r"\]\(([^)\s]+)\)", prose)
        local = [link.split("#")[0] for link in links if "://" not in link and not link.startswith("#")]
        lost.extend(f"{page.name}: {link}" for link in local if not (page.parent / link).exists())
    assert len(pages) > 5
    assert lost == []


def test_its_picture_comes_first_and_no_line_is_long(repository: Path) -> None:
    lines = (repository / "README.md").read_text("utf-8").splitlines()
    assert next(line for line in lines if line and not line.startswith("#")) == "<picture>"
    assert [line for line in lines if len(line) > 400] == []


def test_the_site_is_a_command(repository: Path) -> None:
    done = subprocess.run(["make", "--dry-run", "site"], cwd=repository, capture_output=True, text=True)
    assert done.returncode == 0 and "docs/make_site.py" in done.stdout, done.stderr
