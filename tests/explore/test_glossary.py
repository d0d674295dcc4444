"""The glossary has every word that a trace may show, and the generated files are current."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import tinyexplore
from tests.widgets.sample_traces import sample_trace
from tinyexplore import Device, Tensor, explore
from tinyexplore.codegen.pipeline import PASSES
from tinyexplore.explore.glossary import FILES, TERM_GROUPS, TERMS, main
from tinyexplore.explore.recording.descriptions import group_of
from tinyexplore.kernel import OptOps
from tinyexplore.uop import AxisKind, Ops

PACKAGE = Path(tinyexplore.__file__).parent


def words(group: str) -> set[str]:
    return {term.word for term in TERMS if term.group == group}


def test_every_word_occurs_once() -> None:
    keys = [(term.group, term.word) for term in TERMS]
    assert len(set(keys)) == len(keys)
    assert {term.group for term in TERMS} == set(TERM_GROUPS)


def test_exactly_the_existing_operations_axes_opts_and_passes_are_explained() -> None:
    assert words("op") == {op.name for op in Ops}
    assert words("axis") == {kind.value for kind in AxisKind}
    assert words("opt") == {kind.name for kind in OptOps}
    assert words("role") == {group_of(op) for op in Ops}
    others = {"schedule", "kernel", "optimize", "lower", "render", "compile", "list"}
    assert words("pass") == {one.name for one in PASSES} | others


def test_names_in_a_trace_are_explained() -> None:
    trace = explore(lambda: (Tensor.rand(16, 8) @ Tensor.rand(8, 4)).softmax(), repeat=2).trace
    assert {stage.name for stage in trace.stages} <= words("pass")
    large = explore(lambda: Tensor.rand(2048, 2048).contiguous().sum(), repeat=1).trace
    decided = {one.decision for stage in (*trace.stages, *large.stages) for one in stage.decisions}
    assert {"realize", "fuse", "view", "split"} <= decided <= words("decision")
    assert {name for name, _ in trace.options} <= words("option")
    assert {node.group for node in (*trace.nodes, *sample_trace().nodes)} <= words("role")


def test_every_device_is_explained() -> None:
    assert words("device") == set(Device.names())
    for term in TERMS:
        if term.group == "device":
            assert ": " in term.meaning  # the chip of a capture shows what stands before


def test_files_that_the_terms_of_compilers_name_exist() -> None:
    files = {file for term in TERMS for file in re.findall(r"[a-z_]+/[\w/]+\.py", term.meaning)}
    assert len(files) > 10
    assert [file for file in sorted(files) if not (PACKAGE / file).exists()] == []


def test_the_page_and_the_views_have_the_same_words(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--check"]) == 0, capsys.readouterr().out
    for path, make in FILES.items():
        text = path.read_text(encoding="utf-8")
        assert text == make()
        assert all(term.meaning in text for term in TERMS)
