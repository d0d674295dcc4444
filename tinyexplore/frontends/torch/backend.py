"""The backend of `torch.compile`: converts graphs of ATen operations without writes, forward and backward, to
programs."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import torch
from torch._decomp import core_aten_decompositions, get_decompositions
from torch._functorch.aot_autograd import aot_module_simplified, make_boxed_func
from torch._functorch.partitioners import min_cut_rematerialization_partition
from torch.fx.experimental.proxy_tensor import make_fx
from torch.nn.attention import SDPBackend, sdpa_kernel

from tinyexplore.frontends.torch.program import AtenFallbackWarning, TorchProgram

MAX_SIZE_SETS = 8  # most sets of symbolic sizes for which a program is kept
DECOMPOSED = (
    "addcdiv addcmul _cdist_forward _fused_moving_avg_obs_fq_helper _log_softmax_backward_data "
    "_native_batch_norm_legit _native_batch_norm_legit_no_training _scaled_dot_product_flash_attention_for_cpu "
    "_softmax_backward_data grid_sampler_2d masked_scatter native_batch_norm_backward native_group_norm_backward "
    "native_layer_norm_backward reflection_pad1d reflection_pad2d reflection_pad3d replication_pad1d replication_pad2d "
    "replication_pad3d upsample_bilinear2d upsample_nearest2d index_add diagonal_scatter"
)


@cache
def decompositions() -> dict[Any, Callable[..., Any]]:
    """Returns PyTorch's definitions of operations by simpler ones: those of core ATen, and some more."""
    more = [getattr(torch.ops.aten, name) for name in DECOMPOSED.split() if hasattr(torch.ops.aten, name)]
    return {**core_aten_decompositions(), **get_decompositions(more)}


class PartCompiler:
    """Makes a program of each graph that AOTAutograd passes.

    Attributes:
        make: returns a program of a graph module.
        programs: the programs made, in order.
    """

    def __init__(self, make: Callable[[Any], TorchProgram] = TorchProgram) -> None:
        self.make = make
        self.programs: list[TorchProgram] = []

    def __call__(self, module: Any, inputs: Sequence[Any]) -> Any:
        """Returns a graph as a function that AOTAutograd calls."""
        is_sized = any(isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool)) for value in inputs)
        function = self._make_program_by_sizes(module) if is_sized else self._make_program(module)

        def run(*args: Any) -> list[Any]:
            return function(*args)

        return make_boxed_func(torch._dynamo.disable(run))  # Dynamo may trace the frame that calls it

    def _make_program(self, module: Any) -> TorchProgram:
        program = self.make(module)
        self.programs.append(program)
        if message := program.message():
            warnings.warn(message, AtenFallbackWarning, stacklevel=2)
        return program

    def _make_program_by_sizes(self, module: Any) -> Callable[..., Any]:
        """Returns a function that has a program for each set of sizes. The graph is traced again with these sizes as
        constants."""
        programs: dict[Any, TorchProgram] = {}

        def function(*args: Any) -> list[Any]:
            key = tuple([tuple(value.shape) if isinstance(value, torch.Tensor) else value for value in args])
            program = programs.get(key)
            if program is None:
                while len(programs) >= MAX_SIZE_SETS:
                    programs.pop(next(iter(programs)))
                program = programs[key] = self._make_program(_trace_with_sizes(module, args))
            return program(*args)

        return function


def _trace_with_sizes(module: Any, args: Sequence[Any]) -> Any:
    """Traces a graph with symbolic sizes again, with the sizes of these arguments."""

    def interpreted(*values: Any) -> Any:
        return torch.fx.Interpreter(module).run(*values)

    with torch.fx.traceback.preserve_node_meta():
        return make_fx(interpreted, tracing_mode="fake", _allow_non_fake_inputs=True)(*args)


def compiled(compiler: PartCompiler, module: Any, inputs: Sequence[Any]) -> Callable[..., Any]:
    """Returns a graph of Dynamo as a function, forward and backward. The compiler gets its ATen graphs."""
    make = torch._dynamo.disable(compiler.__call__)
    with warnings.catch_warnings(), sdpa_kernel(SDPBackend.MATH):
        warnings.filterwarnings("ignore", "TF32 acceleration")  # a warning of the switch itself
        with torch.backends.mkldnn.flags(enabled=False):
            function: Callable[..., Any] = aot_module_simplified(
                module,
                inputs,
                fw_compiler=make,
                bw_compiler=make,
                partition_fn=min_cut_rematerialization_partition,
                decompositions=decompositions(),
            )
    return function


def tinyexplore(module: Any, inputs: Sequence[Any], **options: Any) -> Callable[..., Any]:
    """Runs f on Tensors, forward and backward: the backend of `torch.compile(f, backend="tinyexplore")`.

    Operations without a translation run in ATen; an `AtenFallbackWarning` lists them.

    Args:
        module: the graph that Dynamo found.
        inputs: fake tensors of its arguments.
        options: none are known.

    Raises:
        TypeError: an option was given.
    """
    if options.pop("mode", None) not in (None, "default") or options.pop("options", None) or options:
        raise TypeError('the backend "tinyexplore" takes no mode and no options')
    return compiled(PartCompiler(), module, inputs)
