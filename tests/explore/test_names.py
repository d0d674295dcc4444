"""The user's names: of variables, of assigned tensors, of buffers, and the line that created a buffer's contents."""

from __future__ import annotations

from tinyexplore import Tensor, capture, explore, nn
from tinyexplore.explore.recording.names import assigned_names, names_of_variables
from tinyexplore.explore.tracefile.pictures.graph_picture import pipeline_svg
from tinyexplore.explore.tracefile.trace import Trace


def named(trace: Trace) -> dict[str, set[str]]:
    """Name → the operations of the LazyBuffers of that name."""
    found: dict[str, set[str]] = {}
    for node in trace.nodes:
        if node.name:
            found.setdefault(node.name, set()).add(node.op)
    return found


def head(rows: Tensor, w: Tensor) -> Tensor:
    logits = rows @ w
    shifted = logits - logits.max(-1, keepdim=True)
    return shifted.exp()


def test_nodes_and_buffers_have_the_names_of_variables_arguments_and_assignments() -> None:
    x = Tensor.rand(16, 8).realize()
    view = explore(head, x, Tensor.rand(8, 4).realize())
    ops = named(view.trace)
    assert set(ops) == {"x", "w", "logits", "shifted", "result"}, "x: the caller's name goes before the parameter's"
    assert ops["result"] == {"EXP"}
    assert "BUFFER" in ops["x"] and "BUFFER" in ops["w"]
    trace = view.trace
    made = {buffer.name: buffer.maker for buffer in trace.buffers}
    assert made["x"] is None and made["w"] is None and made["result"] == len(trace.kernels) - 1


def test_variables_at_the_end_name_nodes_and_a_kernels_result_has_its_node() -> None:
    with capture() as session:
        a = (Tensor.ones(64, 64).contiguous() + 1).realize()
        total = (a.sum(1) * 3).realize()
    trace = session.trace
    assert [(buffer.name, buffer.maker) for buffer in trace.buffers if buffer.name] == [("a", 0), ("total", 1)]
    read = [trace.buffers[buffer] for buffer in trace.kernels[1].buffers]
    assert [(buffer.name, buffer.maker) for buffer in read] == [("total", 1), ("a", 0)]
    assert total.shape == (64,)


def test_parameters_of_a_model_have_their_path_as_name() -> None:
    model = nn.Linear(8, 4)
    layers = [Tensor.rand(3), {"scale": Tensor.rand(4)}]
    names = names_of_variables({"model": model, "layers": layers, "_hidden": Tensor.rand(2)})
    found = {names.get(one.lazydata.number) for one in (model.weight, layers[0], layers[1]["scale"])}
    assert found == {"model.weight", "layers[0]", "layers[1]['scale']"}
    assert "_hidden" not in names.values()


def test_names_keep_no_tensor_alive_and_tolerate_unusual_objects() -> None:
    class Proxy:
        def __getattr__(self, name: str) -> object:
            raise RuntimeError("asked from outside")

    ring: list[object] = []
    ring.append(ring)
    assert names_of_variables({"p": Proxy(), "ring": ring, "n": 3, "text": "x"}) == {}


def test_a_line_assigns_one_name_or_none() -> None:
    text = """
h = x @ w
a = 1; b = x + 1
loss = y.mean().item()
self.state = (
    x + 1
)
p, q = x, y
x += y
"""
    assert assigned_names(text) == {2: "h", 5: "self.state", 6: "self.state", 7: "self.state", 9: "x", 3: "b"}
    assert assigned_names("a = x + 1; b = x + 2") == {}
    assert assigned_names("def broken(:") == {}


def test_the_static_picture_has_the_names_too() -> None:
    w = Tensor.rand(8, 4).realize()
    picture = pipeline_svg(explore(lambda: (Tensor.ones(16, 8).contiguous() @ w).softmax()).trace)
    assert ">w</text>" in picture and "result of kernel 0" in picture and ">kernel 0 · " in picture


def test_a_kernel_of_an_earlier_lazy_input_is_named_by_the_input() -> None:
    x, w = Tensor.rand(64, 48), Tensor.rand(48, 32)  # no values yet

    def product() -> Tensor:
        return (x.reshape(1, 64, 48) @ w).relu()

    titles = [kernel.title for kernel in explore(product, repeat=1).trace.kernels]
    assert titles[:2] == ["input x", "input w"] and "x" not in titles[2:]
    alone = explore(Tensor.rand(8, 8).exp(), repeat=1).trace.kernels
    assert not any(kernel.title.startswith("input") for kernel in alone)  # then the inputs are the program
