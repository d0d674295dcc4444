"""CUDA graphs: kernels in order, built once, and launched by one call of the driver."""

from __future__ import annotations

import ctypes
from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any
from weakref import ref

if TYPE_CHECKING:
    from tinyexplore.runtime.cuda import CUDA, BoundKernel


class KernelGraph:
    """A graph of `kernels`, one after the other.

    A kernel may be replaced by the same kernel with other arguments or another grid: its node is updated, and the graph
    stays.
    """

    def __init__(self, kernels: Sequence[BoundKernel]) -> None:
        self.cuda = cuda = kernels[0].cuda
        driver = cuda.driver
        cuda.enter()
        _destroy_unused(cuda)
        self._handles = _GraphHandles()
        finalizer = _GraphFinalizer(self._handles, _unused.append)
        finalizer.cuda, finalizer.graph, finalizer.executable = cuda, cuda.do(driver.cuGraphCreate, 0), None
        _kept.add(finalizer)
        self.nodes: list[Any] = []
        for kernel in kernels:
            previous_nodes = self.nodes[-1:]
            parameters = _make_parameters(kernel)
            self.nodes.append(
                cuda.do(driver.cuGraphAddKernelNode, finalizer.graph, previous_nodes, len(previous_nodes), parameters)
            )
        finalizer.executable = self.executable = cuda.do(driver.cuGraphInstantiate, finalizer.graph, 0)
        self.kernels: list[BoundKernel | None] = list(kernels)
        self._collect(kernels)

    def _collect(self, kernels: Sequence[BoundKernel]) -> None:
        self.blocks = list(dict.fromkeys([block for kernel in kernels for block in kernel.blocks]))
        self.names = [kernel.program.spec.name for kernel in kernels]
        self.copying = [kernel for kernel in kernels if kernel.copied]

    def launch(self, kernels: Sequence[BoundKernel]) -> None:
        """Launches all kernels with their arguments in `kernels`. Memory that the GPU cannot access is copied
        before."""
        cuda, driver = self.cuda, self.cuda.driver
        changed = [number for number, kernel in enumerate(kernels) if kernel is not self.kernels[number]]
        if changed:
            cuda.enter()
            for number in changed:
                # until the node is updated, so that a call after an interrupt updates it again
                self.kernels[number] = None
                parameters = _make_parameters(kernels[number])
                cuda.do(driver.cuGraphExecKernelNodeSetParams, self.executable, self.nodes[number], parameters)
            self._collect(kernels)
            for number in changed:
                self.kernels[number] = kernels[number]
        for kernel in self.copying:
            kernel.copy_to_gpu()
        cuda.launch(self.names, self.blocks, self._enqueue)

    def _enqueue(self) -> None:
        self.cuda.do(self.cuda.driver.cuGraphLaunch, self.executable, self.cuda.stream)


def refusal(kernels: Sequence[BoundKernel]) -> str:
    """Returns the reason why these kernels, with their arguments, cannot be one graph, or "" if they can."""
    for kernel in kernels:
        name = kernel.program.spec.name
        if 0 in kernel.sizes:
            return f"{name} has nothing to do for these sizes, and a graph has no kernel without work-items"
        if any(is_written for _, _, is_written in kernel.copied):
            return f"{name} writes to memory that the GPU cannot reach (an array of NumPy's): it is copied back at once"
    return ""


def _make_parameters(kernel: BoundKernel) -> Any:
    """Returns a kernel with its arguments, in the form that the driver copies."""
    parameters = kernel.cuda.driver.CUDA_KERNEL_NODE_PARAMS()
    parameters.func = kernel.program.function
    parameters.gridDimX, parameters.gridDimY, parameters.gridDimZ = kernel.sizes[:3]
    parameters.blockDimX, parameters.blockDimY, parameters.blockDimZ = kernel.sizes[3:]
    parameters.sharedMemBytes = 0
    parameters.kernelParams = ctypes.addressof(kernel.arguments)
    return parameters


class _GraphHandles:
    """Owns a graph of the driver, which is destroyed after this object."""

    __slots__ = ("__weakref__",)


class _GraphFinalizer(ref[_GraphHandles]):
    """Weak reference to the owner of a graph, with the graph's handles."""

    __slots__ = ("cuda", "graph", "executable")
    cuda: CUDA
    graph: Any
    executable: Any


_kept: set[_GraphFinalizer] = set()
_unused: deque[_GraphFinalizer] = deque()


def _destroy_unused(cuda: CUDA) -> None:
    """Destroys the graphs of this GPU that will not be launched again, after their last launch has ended."""
    for _ in range(len(_unused)):
        finalizer = _unused.popleft()
        if finalizer.cuda is not cuda:
            _unused.append(finalizer)
            continue
        _kept.discard(finalizer)
        cuda.synchronize()
        if finalizer.executable is not None:
            cuda.do(cuda.driver.cuGraphExecDestroy, finalizer.executable)
        cuda.do(cuda.driver.cuGraphDestroy, finalizer.graph)


__all__ = ["KernelGraph", "refusal"]
