"""Dumps of unknown origin: readers have limits, load no pickle, and read what they can of unknown versions."""

from __future__ import annotations

import gzip
import json
import pickle
import random
from dataclasses import replace
from pathlib import Path

import pytest

from tests.explore.test_foreign_readers import DUMPS, FOLDER, dump, traced
from tinyexplore import explore
from tinyexplore.cli import main
from tinyexplore.explore import Dump, DumpLimits, Explorer, ForeignError
from tinyexplore.explore.foreign import read_dump
from tinyexplore.explore.foreign.dump import Budget
from tinyexplore.explore.tracefile.validation import TraceFormatError

SMALL = (
    "tinygrad_mean_and_cast",
    "jax_gradient",
    "numba_sum_of_squares",
    "triton_add",
    "xdsl_product",
    "inductor_softmax_of_product",
)


class Bomb:
    """A pickle that would leave a file behind."""

    def __reduce__(self) -> tuple[object, tuple[str, str]]:
        return open, ("loaded", "w")


@pytest.mark.parametrize("packed", [False, True])
def test_a_pickle_is_never_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, packed: bool) -> None:
    monkeypatch.chdir(tmp_path)
    data = pickle.dumps(Bomb())
    for name in ("rewrites.pkl", "rewrites.json.gz"):
        path = tmp_path / name
        path.write_bytes(gzip.compress(data) if packed else data)
        with pytest.raises(ForeignError, match="pickle"):
            explore.open(path)
    assert not (tmp_path / "loaded").exists()


@pytest.mark.parametrize("name", SMALL)
def test_damaged_dumps_are_refused_or_read_in_part(name: str) -> None:
    chance = random.Random(0)
    whole = dump(name)
    for _ in range(6):
        files = dict(whole.files)
        victim = chance.choice(sorted(file for file in files if not file.startswith("sources/")))
        text = files[victim]
        start = chance.randrange(len(text))
        files[victim] = {
            0: text[:start],
            1: text[:start] + chance.choice(["{", "(" * 50, "\0", "]]", "%", "loc(", '"']) + text[start:],
            2: "".join(chance.sample(text[:4000].splitlines(keepends=True), min(40, text[:4000].count("\n")))),
        }[chance.randrange(3)]
        try:
            read_dump(replace(whole, files=files))
        except (ForeignError, TraceFormatError):
            continue


@pytest.mark.parametrize("name", SMALL)
@pytest.mark.parametrize("limit", ["nodes", "lines", "steps", "seconds"])
def test_every_reader_stops_at_the_limits(name: str, limit: str) -> None:
    if limit == "lines" and name.startswith("tinygrad"):
        limit = "steps"  # it has hardly any lines
    if limit == "steps" and name.startswith(("numba", "inductor", "jax", "triton", "xdsl")):
        limit = "lines"  # it has a step or two in a pass
    limits = DumpLimits(**{limit: 0.0 if limit == "seconds" else 3})
    with pytest.raises(ForeignError, match="more than"):
        read_dump(dump(name), limits)


def test_sizes_are_bounded_before_anything_is_read(tmp_path: Path) -> None:
    path = tmp_path / "bomb.json.gz"
    path.write_bytes(gzip.compress(b"{" + b" " * (1 << 22)))
    with pytest.raises(ForeignError, match="more than 1000000 bytes"):
        Dump.load(path, DumpLimits(nbytes=1_000_000))
    folder = tmp_path / "dump"
    folder.mkdir()
    for number in range(5):
        (folder / f"{number}.txt").write_text("x")
    with pytest.raises(ForeignError, match="more than 4 texts"):
        Dump.load(folder, DumpLimits(files=4))
    (tmp_path / "secret.txt").write_text("secret")
    (folder / "link.txt").symlink_to(tmp_path / "secret.txt")
    assert "secret" not in Dump.load(folder).files.values()


def test_depth_is_bounded() -> None:
    nested = "builtin.module {\n" + "".join(f"{' ' * depth}scf.execute_region {{\n" for depth in range(300))
    with pytest.raises(ForeignError, match="nested more than 200 deep"):
        explore.mlir(nested)
    itself = "#loc = loc(callsite(#loc1 at #loc1))\n#loc1 = loc(fused[#loc, #loc1])\nmodule {\n  a.b loc(#loc)\n}\n"
    assert explore.mlir(itself).trace.frames == ()
    chain = "".join(f"#loc{n} = loc(fused[#loc{n + 1}, #loc{n + 1}])\n" for n in range(100))
    assert explore.mlir(chain + "module {\n  a.b loc(#loc0)\n}\n").trace.frames == ()


def test_long_lines_take_linear_time() -> None:
    budget = DumpLimits(seconds=5)
    for text in ("%a, " * 100_000, "loc(" * 100_000, '"' * 100_001, "tensor<" * 50_000, "@f(" * 50_000):
        explore.mlir(f"module {{\n  {text}\n  %x = a.b {text}\n}}\n", limits=budget)
        for line in (f"  %x = f32[] add({text}", f"ENTRY %m ({text}", text):
            read_dump(Dump("jax", "", "x", {"xla/module_0001.f.before_optimizations.txt": line}), budget)
        read_dump(Dump("jax", "", "x", {"jaxpr.txt": f"    a:f32[] = {text}\n"}), budget)


def test_an_unknown_version_is_read_in_part_with_a_message() -> None:
    old = dump("jax_gradient")
    newer = replace(old, version="99.0", files={name: text for name, text in old.files.items() if ".txt" not in name})
    trace = read_dump(newer)
    assert trace.dialect is not None
    assert trace.dialect.version == "99.0"
    assert [message.text.split(":")[0] for message in trace.messages] == ["could not read HLO"]
    assert [note.split(":")[0] for note in trace.dialect.notes] == ["could not read HLO"]
    assert {text.language for text in trace.stage_texts} == {"mlir"}
    log = dump("inductor_softmax_of_product").files["torch_trace.log"]
    newer_log = log.replace('{"dynamo_output_graph":', '{"of the future": 1, "dynamo_output_graph": !').replace(
        "aot_joint_graph", "joint_graph_of_the_future"
    )
    trace = read_dump(Dump("", "", "log", {"x.log": newer_log}))
    assert "could not read 1 records" in [message.text.split(":")[0] for message in trace.messages]
    names = [trace.stages[text.stage].name for text in trace.stage_texts]
    assert "joint graph" not in names
    assert "forward graph" in names
    numba = dump("numba_sum_of_squares")
    less = {name: text for name, text in numba.files.items() if name != "numba/00.txt"}
    messages = [message.text.split(":")[0] for message in read_dump(replace(numba, files=less)).messages]
    assert messages == ["could not read the IR after translate_bytecode"]


def test_tables_of_tinygrad_with_cycles_are_refused() -> None:
    whole = dump("tinygrad_mean_and_cast")
    tables = json.loads(whole.files["rewrites.json"])
    tables["uops"]["src"][5] = [0]
    with pytest.raises(ForeignError, match=r"rewrites.json is damaged"):
        read_dump(replace(whole, files={"rewrites.json": json.dumps(tables)}))
    tables = json.loads(whole.files["rewrites.json"])
    rewrite = next(one for group in tables["groups"] for one in group[1] if len(one[5]) > 1)
    rewrite[5][:2], rewrite[6][:2] = [rewrite[1], rewrite[5][0]], [rewrite[5][0], rewrite[1]]  # a → b → a
    read_dump(replace(whole, files={"rewrites.json": json.dumps(tables)}))


def test_unknown_formats_are_refused_with_the_list_of_known_ones(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("hello\n")
    with pytest.raises(ForeignError, match=r"notes.txt.*of no known format.*TORCH_TRACE"):
        explore.open(path)
    with pytest.raises(ForeignError, match="no module of MLIR"):
        explore.mlir("hello\nworld\n")


def test_open_takes_every_format_and_traces(tmp_path: Path) -> None:
    for name in SMALL:
        assert isinstance(explore.open(FOLDER / f"{name}.json.gz"), Explorer)
    saved = Explorer(traced("xdsl_product")).save(tmp_path / "trace.json.gz")
    assert explore.open(saved).trace == traced("xdsl_product")
    log = tmp_path / "dedicated_log_torch_trace_x.log"
    log.write_text(dump("inductor_softmax_of_product").files["torch_trace.log"])
    assert explore.open(log).trace.dialect.compiler == "TorchInductor"
    folder = tmp_path / "xla"
    folder.mkdir()
    for name, text in dump("jax_gradient").files.items():
        if name.startswith("xla/"):
            (folder / name.removeprefix("xla/")).write_text(text)
    trace = explore.open(folder).trace
    assert trace.dialect.compiler == "JAX/XLA"
    assert [kernel.name for kernel in trace.kernels] == ["multiply_add_fusion"]
    text = tmp_path / "mlir.txt"
    text.write_text(dump("triton_add").files["passes.txt"])  # type: ignore[attr-defined]
    assert explore.mlir(text).trace.dialect.compiler == "Triton"


def test_the_command_opens_a_dump_as_a_page_or_a_trace(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page, trace = tmp_path / "page.html", tmp_path / "trace.json.gz"
    assert main(["open", str(FOLDER / "xdsl_product.json.gz"), "--html", str(page), "--trace", str(trace)]) == 0
    assert page.stat().st_size > 100_000
    assert explore.open(trace).trace == traced("xdsl_product")
    assert main(["open", str(tmp_path / "missing")]) == 2
    (tmp_path / "rewrites.pkl").write_bytes(pickle.dumps(1))
    assert main(["open", str(tmp_path / "rewrites.pkl")]) == 2
    assert "pickle" in capsys.readouterr().err


def test_a_bundle_is_equal_after_saving(tmp_path: Path) -> None:
    for name in DUMPS[:2]:
        assert Dump.load(dump(name).save(tmp_path / "dump.json.gz")) == dump(name)
    with pytest.raises(ForeignError, match="more than"):
        Budget(DumpLimits(nodes=1)).spend("nodes", 2)
