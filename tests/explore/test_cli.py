"""The command line."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.explore import toy
from tinyexplore import cli
from tinyexplore.course import copy_course, course_folder
from tinyexplore.explore import Trace
from tinyexplore.explore.notebook.requests import REQUESTS, respond_from_trace
from tinyexplore.util import Context

SCRIPT = """
import sys
from tinyexplore import Tensor

x = Tensor.ones(4, 4).contiguous()
print(sys.argv[1:], __name__, (x + 1).sum().item())
"""


@pytest.fixture
def script(tmp_path):
    def write(text: str = SCRIPT):
        path = tmp_path / "script.py"
        path.write_text(text)
        return path

    return write


def test_run_captures_a_script_with_its_arguments(script, tmp_path, capsys):
    out = tmp_path / "trace.json.gz"
    assert cli.main(["run", str(script()), "a", "--b", "--trace", str(out)]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("['a', '--b'] __main__ 32.0\n")
    assert f"wrote {out}\n" in printed
    trace = Trace.load(out)
    assert trace.title == "script.py"
    assert trace.kernels
    assert [source.name for source in trace.sources] == ["script.py"]


def test_options_before_the_script_hold_inside_it(script, tmp_path):
    out = tmp_path / "trace.json"
    assert cli.main(["run", "--device", "PYTHON", "--noopt", "--trace", str(out), str(script())]) == 0
    options = dict(Trace.load(out).options)
    assert (options["DEVICE"], options["NOOPT"]) == ("PYTHON", "1")


def test_a_script_that_raises_leaves_a_partial_trace_and_fails(script, tmp_path, capsys):
    out = tmp_path / "trace.json"
    path = script(SCRIPT + "\nraise RuntimeError('stop')\n")
    assert cli.main(["run", str(path), "--trace", str(out)]) == 1
    printed = capsys.readouterr()
    assert f"wrote {out} (partial)" in printed.out
    assert "RuntimeError: stop" in printed.err
    assert "runpy" not in printed.err
    (message,) = [message for message in Trace.load(out).messages if message.level == "error"]
    assert message.text.startswith("RuntimeError: stop")


@pytest.mark.parametrize(("code", "status"), [("0", 0), ("3", 3), ("", 0), ("'bad'", 1)])
def test_a_script_that_exits_sets_the_status(script, code, status):
    assert cli.main(["run", str(script(f"import sys\nsys.exit({code})\n"))]) == status


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "missing.py"], "missing.py is not a file"),
        (["run", "SCRIPT", "--trace"], "--trace needs a file to write"),
        (["run", "SCRIPT", "--trace", "x.txt"], ".json or .json.gz"),
        (["run", "SCRIPT", "--html", "no/such/folder/x.html"], "the folder no/such/folder does not exist"),
        (["run", "--device", "NVRAM", "SCRIPT"], "unknown device 'NVRAM'; supported: LLVM, CLANG, PYTHON"),
        (["html", "missing.json", "out.html"], "missing.json is not a file"),
        (["html", "SCRIPT", "out.html"], "not a trace: "),
        (["lab", "no/such/folder"], "no/such/folder is not a folder"),
    ],
)
def test_misuse_prints_an_error_with_a_remedy(script, capsys, arguments, message):
    path = str(script())
    assert cli.main([path if word == "SCRIPT" else word for word in arguments]) == 2
    assert message in capsys.readouterr().err


def test_html_makes_one_page_of_a_trace(tmp_path, capsys):
    trace = toy.trace().save(tmp_path / "trace.json.gz")
    page = tmp_path / "page.html"
    assert cli.main(["html", str(trace), str(page)]) == 0
    assert capsys.readouterr().out == f"wrote {page}\n"
    assert page.read_text().startswith("<!doctype html>")


def test_devices_lists_every_device(capsys):
    assert cli.main(["devices"]) == 0
    printed = capsys.readouterr().out
    names = {"LLVM", "CLANG", "PYTHON", "GPU", "CUDA", "WASM", "WEBGPU"}  # in the order in which they were registered
    lines = printed.splitlines()
    listed = [line[2:].split()[0] for line in lines[: lines.index("(* the default)")]]
    assert any(line.startswith("ceilings: ") for line in lines)
    assert set(listed) == names and len(listed) == len(names)


def test_devices_prints_the_target_and_the_available_devices(capsys):
    with Context(TARGET="neoverse-n1,threads=8,l1=32K,l2=512K"):
        assert cli.main(["devices"]) == 0
    told = capsys.readouterr().out.splitlines()[-1]
    assert "target: neoverse-n1, 4 floats per vector, 32 KiB of L1" in told
    assert "; this machine is " in told


def test_devices_shows_another_target_and_refuses_unknown_ones(capsys):
    assert cli.main(["devices", "--target", "sifive-x280"]) == 0
    printed = capsys.readouterr().out
    assert "LLVM · sifive-x280 · 512-bit vectors · " in printed and "cannot run here" in printed
    assert "code for sifive-x280 is generated here" in printed
    assert cli.main(["devices", "--target", "sifive-x28"]) == 2
    assert "close to it: sifive-x280" in capsys.readouterr().err


def test_run_compiles_a_script_for_another_target(script, tmp_path):
    trace = tmp_path / "trace.json.gz"
    assert cli.main(["run", "--target", "neoverse-n1", "--trace", str(trace), str(script())]) == 0
    kernels = [kernel for kernel in Trace.load(trace).kernels if kernel.code_bytes]
    assert kernels and all("cannot run" in kernel.not_run for kernel in kernels)


def test_lab_without_jupyterlab_prints_the_installation_command(monkeypatch, capsys):
    monkeypatch.setattr(cli, "find_spec", lambda name: None)
    assert cli.main(["lab"]) == 2
    assert "pip install 'tinyexplore[lab]'" in capsys.readouterr().err


def test_lab_becomes_jupyterlab_on_the_contents_of_the_course(monkeypatch, tmp_path):
    started = []
    monkeypatch.setattr(cli.os, "execv", lambda program, arguments: started.append(arguments))
    folder = tmp_path / "mine"
    cli.main(["lab", str(folder)])
    ((_, *arguments),) = started
    assert arguments[:3] == ["-m", "jupyterlab", f"--notebook-dir={folder}"]
    (place,) = [one.partition("/lab/tree/")[2] for one in arguments if one.startswith("--LabApp.default_url=")]
    assert (folder / place.partition("?")[0]).is_file() and "factory=Markdown%20Preview" in place
    assert {path.name for path in folder.glob("*.ipynb")} == {path.name for path in course_folder().glob("*.ipynb")}


def test_lab_does_not_overwrite_an_edited_notebook(monkeypatch, tmp_path, capsys):
    source, mine = tmp_path / "source", tmp_path / "mine"
    source.mkdir()
    for name in ("README.md", "01_a.ipynb", "02_b.ipynb"):
        (source / name).write_text(f"{name}, first edition")
    assert copy_course(source, mine) == []
    (mine / "01_a.ipynb").write_text("my answers")
    assert copy_course(source, mine) == []  # nothing new, nothing to report
    for name in ("01_a.ipynb", "02_b.ipynb"):
        (source / name).write_text(f"{name}, second edition")
    assert copy_course(source, mine) == ["01_a.ipynb"]
    assert (mine / "01_a.ipynb").read_text() == "my answers"
    assert (mine / "02_b.ipynb").read_text() == "02_b.ipynb, second edition"
    assert copy_course(source, source) == []
    monkeypatch.setattr(cli, "course_folder", lambda: source)
    monkeypatch.setattr(cli.os, "execv", lambda program, arguments: None)
    cli.main(["lab", str(mine)])
    assert str(mine / "01_a.ipynb") in capsys.readouterr().out


def pages_of(folder):
    """The notebooks and documents of a folder, with the text of their cells."""
    for page in sorted(folder.rglob("*")):
        if page.suffix == ".md":
            yield page, page.read_text("utf-8")
        elif page.suffix == ".ipynb":
            yield page, "\n".join("".join(cell["source"]) for cell in json.loads(page.read_text("utf-8"))["cells"])


def lost_links(root, pages):
    """The links and images of pages that do not lead to a file below `root` with that heading."""
    lost = []
    for page, text in pages:
        for link in re.findall(r"""(?:\]\(|href=["']|src=["'])(?!https?:|#|data:|mailto:)([^)"'\s]+)""", text):
            path, _, heading = link.partition("#")
            file = (page.parent / path).resolve()
            headings = re.findall(r"^#+ (.*)$", file.read_text("utf-8"), re.M) if file.suffix == ".md" else []
            anchors = {re.sub(r"[^\w -]", "", one).lower().replace(" ", "-") for one in headings}
            if not file.is_file() or root.resolve() not in file.parents or (heading and heading not in anchors):
                lost.append(f"{page.name}: {link}")
    return lost


def test_links_of_a_copied_course_lead_to_files_of_the_copy(tmp_path):
    copy_course(course_folder(), tmp_path / "mine")
    assert lost_links(tmp_path / "mine", pages_of(tmp_path / "mine")) == []
    assert "Ops" in (tmp_path / "mine" / "docs" / "howto.md").read_text("utf-8")


def test_jupyterlab_on_the_courses_own_folder_can_open_the_documents_that_lessons_link(monkeypatch):
    """JupyterLab opens no file outside its root: in a checkout the documents lie beside the notebooks."""
    started = []
    monkeypatch.setattr(cli.os, "execv", lambda program, arguments: started.append(arguments))
    cli.main(["lab", str(course_folder())])
    options = dict(one.split("=", 1) for one in started[0] if one.startswith("--"))
    root = Path(options["--notebook-dir"])
    place = options["--LabApp.default_url"].removeprefix("/lab/tree/").partition("?")[0]
    assert (root / place).samefile(course_folder() / "README.md")
    assert lost_links(root, pages_of(course_folder())) == []


def test_the_command_shows_its_usage():
    done = subprocess.run([sys.executable, "-m", "tinyexplore", "--help"], capture_output=True, text=True)
    assert done.returncode == 0
    for command in ("lab", "run", "html", "devices"):
        assert command in done.stdout


def test_the_command_alone_lists_its_commands_one_line_each(capsys):
    assert cli.main([]) == 0
    rows = capsys.readouterr().out.partition("\ncommands:\n")[2].partition("\n\n")[0].splitlines()
    commands = {line.split()[0] for line in rows}
    assert {"lab", "run", "html", "bench", "devices"} <= commands
    assert len(commands) == len(rows) and all(len(line.split()) > 2 for line in rows)


def test_an_invalid_option_is_reported_before_anything_runs(script, capsys):
    assert cli.main(["run", "--beam", "-2", str(script())]) == 2
    printed = capsys.readouterr()
    assert printed.out == "" and printed.err.startswith("tinyexplore run: BEAM=-2: ")


def test_ask_responds_to_a_request_about_a_trace(script, tmp_path, capsys):
    path = tmp_path / "trace.json.gz"
    assert cli.main(["run", str(script()), "--trace", str(path)]) == 0
    trace = Trace.load(path)
    node = next(stage.before[0] for stage in trace.stages if stage.name == "simplify")
    capsys.readouterr()
    request = {"ask": "why", "node": node}
    assert cli.main(["ask", str(path), json.dumps(request)]) == 0
    assert json.loads(capsys.readouterr().out) == respond_from_trace(trace, request)
    assert cli.main(["ask", str(path), '{"ask": "gpu"}']) == 1
    assert list(json.loads(capsys.readouterr().out)) == ["error"]
    assert cli.main(["ask", str(path), "{"]) == 2
    capsys.readouterr()
    assert cli.main(["ask", str(path)]) == 0
    assert [line.partition("(")[0] for line in capsys.readouterr().out.splitlines()] == list(REQUESTS)
