"""Graphs, tables and timelines for other programs."""

from __future__ import annotations

import csv
import json
import re
import sys

import pytest

from tinyexplore import Tensor, cli, explore
from tinyexplore.explore import MissingPackage, NoDotProgram, Trace, rows_of
from tinyexplore.explore.tracefile import graph_export
from tinyexplore.explore.tracefile.perfetto import to_perfetto
from tinyexplore.explore.tracefile.table_export import TABLES, table_text
from tinyexplore.util import Context


@pytest.fixture(scope="module")
def trace() -> Trace:
    with Context(DEVICE="PYTHON"):
        x = Tensor([[1.0, 2.0], [3.0, 4.0]]).realize()
        return explore(lambda: (x.contiguous() + 1).sum(1).contiguous() * 2, title="rows", repeat=1).trace


# *** graphs ***


def test_a_digraph_has_a_cluster_per_kernel_with_its_own_nodes(trace):
    source = trace.to_graphviz().source
    for kernel in trace.kernels:
        (inside,) = re.findall(rf"subgraph cluster_{kernel.id} \{{(.*?)\n\t\}}", source, re.DOTALL)
        drawn = {int(number) for number in re.findall(r"^\t\tn(\d+) \[", inside, re.MULTILINE)}
        assert drawn
        assert drawn <= {*kernel.nodes, *kernel.roots}
        assert f'label="{kernel.id}: {kernel.name} · ' in inside


def test_a_graph_of_uops_has_no_clusters(trace):
    stage = next(stage.id for stage in trace.stages if stage.steps)
    graph = trace.graph(stage, "before")
    assert "cluster" not in graph.to_graphviz().source
    assert {node.kind for node in graph.nodes} == {"uop"}
    assert repr(graph) == f"Graph({len(graph.nodes)} nodes of 'rows' before stage {stage} ({trace.stages[stage].name}))"


def test_without_graphviz_a_picture_has_our_layout(trace, tmp_path, monkeypatch):
    monkeypatch.setattr(graph_export.shutil, "which", lambda name: None)
    graph = trace.graph()
    assert graph.save(tmp_path / "x.svg").read_text() == graph.svg()
    assert graph.save(tmp_path / "x.dot").read_text() == graph.to_graphviz().source
    with pytest.raises(NoDotProgram, match=r"x.png: .png needs Graphviz's program `dot`"):
        graph.save(tmp_path / "x.png")


def test_with_graphviz_a_picture_has_its_layout(trace, tmp_path, monkeypatch):
    """A stand-in for Graphviz's program prints its input."""
    program = tmp_path / "dot"
    program.write_text(f"#!{sys.executable}\nimport sys\nsys.stdout.write(sys.argv[1] + '|' + sys.stdin.read())\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    for suffix in ("svg", "png"):
        told = trace.graph().save(tmp_path / f"x.{suffix}").read_text(encoding="utf-8")
        assert told.partition("|")[0] == "-Kdot"
        assert told.partition("|")[2].strip().startswith("digraph tinyexplore {")


def test_the_networkx_graph_knows_kernels(trace):
    import networkx

    graph = trace.to_networkx()
    assert networkx.is_directed_acyclic_graph(graph)
    for kernel in trace.kernels:
        assert {node for node, members in graph.nodes(data="kernels") if kernel.id in members} == set(kernel.nodes)
    longest = networkx.dag_longest_path(networkx.DiGraph(graph))
    assert [trace.nodes[node].op for node in longest][0] == "BUFFER"


# *** tables ***


@pytest.mark.parametrize("table", list(TABLES))
def test_every_table_has_equal_columns_and_is_serialized_as_json(trace, table):
    rows = rows_of(trace, table)
    assert rows
    assert {tuple(row) for row in rows} == {tuple(rows[0])}
    assert len(json.loads(json.dumps(rows))) == len(rows)
    assert len(table_text(rows).splitlines()) == len(rows) + 1


def test_a_data_frame_has_the_kernels_with_their_times(trace):
    frame = trace.to_dataframe()
    assert list(frame["name"]) == [kernel.name for kernel in trace.kernels]
    assert list(frame["median_us"]) == [run.median_us for run in trace.runs]
    firings = sum(step.rule is not None for stage in trace.stages for step in stage.steps)
    assert len(trace.to_dataframe("firings")) == firings
    assert trace.to_dataframe("passes")["firings"].sum() == firings


def test_an_unknown_table_raises_an_error_with_the_known_ones():
    with pytest.raises(ValueError, match="no table 'rows'; .*kernels, stages"):
        rows_of(Trace(1, "", (), (), (), (), (), (), (), (), (), (), (), ()), "rows")


@pytest.mark.parametrize(
    ("missing", "call"),
    [("pandas", lambda trace: trace.to_dataframe()), ("perfetto", lambda trace: trace.to_perfetto())],
)
def test_a_missing_optional_package_raises_an_error_with_its_installation(trace, monkeypatch, missing, call):
    for name in [name for name in sys.modules if name.partition(".")[0] == missing]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(MissingPackage, match=r"pip install 'tinyexplore\[data\]'"):
        call(trace)


# *** the timeline ***


def test_perfetto_reads_the_same_timeline(trace, tmp_path):
    from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace as Packets
    from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import TrackEvent

    path = tmp_path / "rows.perfetto-trace"
    assert path.write_bytes(to_perfetto(trace)) == len(to_perfetto(trace, path))
    packets = Packets.FromString(path.read_bytes()).packet
    found = trace.timeline()
    tracks = {
        packet.track_descriptor.uuid: packet.track_descriptor
        for packet in packets
        if packet.HasField("track_descriptor")
    }
    assert {track.name for track in tracks.values()} >= {*(name for _, name in found.rows), "memory", "buffers"}
    assert all(track.parent_uuid in tracks for track in tracks.values() if track.parent_uuid)
    events = [packet for packet in packets if packet.HasField("track_event")]
    assert all(packet.trusted_packet_sequence_id for packet in events)
    open_slices: dict[int, list[str]] = {}
    seen = []
    last: dict[int, int] = {}
    for packet in events:
        event = packet.track_event
        assert packet.timestamp >= last.get(event.track_uuid, 0)
        last[event.track_uuid] = packet.timestamp
        if event.type == TrackEvent.TYPE_SLICE_BEGIN:
            open_slices.setdefault(event.track_uuid, []).append(event.name)
            seen.append(event.name)
        elif event.type == TrackEvent.TYPE_SLICE_END:
            open_slices[event.track_uuid].pop()
    assert not any(open_slices.values())
    assert sorted(seen) == sorted(
        [*(span.name for span in found.spans), *(life.name for life in found.lives if life.lane is not None)]
    )
    counted = [
        packet.track_event.counter_value for packet in events if packet.track_event.type == TrackEvent.TYPE_COUNTER
    ]
    assert counted == [total for _, total in found.memory]


def test_live_ranges_of_a_lane_do_not_overlap_and_sum_to_the_memory(trace):
    assert {life.buffer for life in trace.timeline().lives} == {buffer.id for buffer in trace.buffers}
    lives = [life for life in trace.timeline().lives if life.lane is not None]
    assert {life.buffer for life in lives} == {b.id for b in trace.buffers if b.allocated_us is not None}
    for lane in {life.lane for life in lives}:
        inside = [life for life in lives if life.lane == lane]
        assert all(a.ended_us <= b.started_us for a, b in zip(inside, inside[1:], strict=False))
    earlier = sum(buffer.bytes for buffer in trace.buffers if buffer.allocated_us is None and buffer.freed_us is None)
    for time_us, total in [one for one in trace.timeline().memory if one[0] > 0]:
        alive = sum(life.bytes for life in lives if life.started_us <= time_us < life.ended_us)
        assert alive + earlier == total or total == earlier


# *** the command ***


def test_the_command_shows_and_exports(trace, tmp_path, capsys):
    path = str(trace.save(tmp_path / "rows.json.gz"))
    assert cli.main(["show", path, "--json"]) == 0
    assert [row["name"] for row in json.loads(capsys.readouterr().out)] == [kernel.name for kernel in trace.kernels]
    assert cli.main(["show", path, "passes"]) == 0
    assert capsys.readouterr().out.splitlines()[0].split() == ["kernel", "pass", "rule", "firings"]
    for name in ("t.chrome.json", "t.perfetto-trace", "t.csv", "t.html", "t.svg", "t.dot"):
        assert cli.main(["export", path, str(tmp_path / name)]) == 0
        assert (tmp_path / name).stat().st_size > 100
    with (tmp_path / "t.csv").open(newline="") as file:
        assert [row["name"] for row in csv.DictReader(file)] == [kernel.name for kernel in trace.kernels]
    assert cli.main(["export", path, str(tmp_path / "t.xyz")]) == 2
    assert "supported: .chrome.json" in capsys.readouterr().err
