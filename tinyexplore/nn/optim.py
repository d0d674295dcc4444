"""Optimizers. `step()` computes the new parameters and the optimizer's state in one realization."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tinyexplore.dtype import dtypes
from tinyexplore.tensor import Tensor
from tinyexplore.tensor.change_log import ChangeLog, undo_on_error
from tinyexplore.tensor.checks import need_number, need_tensor, shown


def _remove_duplicates(tensors: Sequence[Tensor]) -> list[Tensor]:
    return list({id(tensor): tensor for tensor in tensors}.values())


def _number(value: float, device: str) -> Tensor:
    """Returns a number as a tensor, so that kernels do not depend on its value."""
    return Tensor([value], device=device, dtype=dtypes.float32, requires_grad=False)


class Optimizer:
    """Base of all optimizers. Parameters with `requires_grad=None` get `requires_grad=True`.

    Tensors with `requires_grad=False` (running averages, for example) become `buffers`. A step computes them together
    with the parameters.
    """

    def __init__(self, params: Sequence[Tensor], lr: float) -> None:
        name = type(self).__name__
        need_number(lr, f"{name}: lr", 0.0)
        if isinstance(params, (str, dict, Tensor)) or not isinstance(params, Iterable):
            raise TypeError(
                f"{name}: params is {shown(params)}: need a list of Tensors; nn.state.get_parameters(model) gives "
                "those of a model"
            )
        params = list(params)
        for number, tensor in enumerate(params):
            need_tensor(tensor, f"{name}: params[{number}]")
        for tensor in params:
            if tensor.requires_grad is None:
                tensor.requires_grad = True
        self.params = _remove_duplicates([tensor for tensor in params if tensor.requires_grad])
        self.buffers = _remove_duplicates([tensor for tensor in params if not tensor.requires_grad])
        if not self.params:
            raise ValueError("an optimizer needs one parameter at least that requires a gradient")
        self.device = self.params[0].device
        self.lr = _number(lr, self.device)

    def _need_numbers(self, **hyperparameters: float) -> None:
        """Raises if a hyperparameter is not a number, or is negative."""
        for name, value in hyperparameters.items():
            need_number(value, f"{type(self).__name__}: {name}", 0.0)

    def zero_grad(self) -> None:
        """Sets the gradients of all parameters to None."""
        for tensor in self.params:
            tensor.grad = None

    def step(self) -> None:
        """Takes one step along the gradients and computes it."""
        first_tensor, *other_tensors = self.schedule_step()
        first_tensor.realize(*other_tensors)

    def schedule_step(self) -> list[Tensor]:
        """Takes one step along the gradients without computing it. Returns the tensors that it changes. If interrupted,
        it changes none."""
        was_off, Tensor.no_grad = Tensor.no_grad, True
        try:
            return [*undo_on_error(ChangeLog(), self._step), *self.params, *self.buffers]
        finally:
            Tensor.no_grad = was_off

    def _step(self) -> list[Tensor]:
        """Assigns the new parameters and state. Returns the state."""
        raise NotImplementedError(f"{type(self).__name__} must implement _step()")

    def _learning_rate(self) -> Tensor:
        """Returns `lr`, a vector of one element, as a scalar, so that scalar parameters stay scalars."""
        return self.lr.reshape(())

    def _collect_gradients(self) -> list[Tensor]:
        without_gradient = [number for number, tensor in enumerate(self.params) if tensor.grad is None]
        if without_gradient:
            shapes = ", ".join(f"{number} {self.params[number].shape}" for number in without_gradient[:5])
            raise RuntimeError(f"parameters without a gradient: {shapes}; call backward() on a loss that uses them")
        return [tensor.grad for tensor in self.params if tensor.grad is not None]

    def _make_state(self) -> list[Tensor]:
        """Returns a tensor of zeros, in float32 or wider, for each parameter."""
        state = []
        for tensor in self.params:
            dtype = dtypes.float32 if tensor.dtype.itemsize < 4 else tensor.dtype
            state.append(tensor.zeros_like(dtype=dtype, requires_grad=False).contiguous())
        return state


class OptimizerGroup(Optimizer):
    """Combines several optimizers to one."""

    def __init__(self, *optimizers: Optimizer) -> None:
        for number, optimizer in enumerate(optimizers):
            if not isinstance(optimizer, Optimizer):
                raise TypeError(f"OptimizerGroup: argument {number} is {shown(optimizer)}: need optimizers, one by one")
        self.optimizers = optimizers
        self.params = [tensor for optimizer in optimizers for tensor in optimizer.params]
        self.buffers = [tensor for optimizer in optimizers for tensor in optimizer.buffers]

    def __getitem__(self, index: int) -> Optimizer:
        return self.optimizers[index]

    def zero_grad(self) -> None:
        for optimizer in self.optimizers:
            optimizer.zero_grad()

    def _step(self) -> list[Tensor]:
        return [tensor for optimizer in self.optimizers for tensor in optimizer._step()]


def _norm(x: Tensor) -> Tensor:
    return x.cast(dtypes.float32).square().sum().sqrt()


class LARS(Optimizer):
    """Momentum whose step is scaled by |parameter| / |gradient| per layer (You et al., 2017).

    `classic` puts the learning rate into the momentum. With tcoef = 0 no step is scaled, which is SGD.
    """

    def __init__(
        self,
        params: Sequence[Tensor],
        lr: float = 0.001,
        momentum: float = 0.9,
        weight_decay: float = 1e-4,
        nesterov: bool = False,
        classic: bool = True,
        tcoef: float = 0.001,
    ) -> None:
        super().__init__(params, lr)
        self._need_numbers(momentum=momentum, weight_decay=weight_decay, tcoef=tcoef)
        self.momentum, self.wd, self.nesterov, self.classic, self.tcoef = (
            momentum,
            weight_decay,
            nesterov,
            classic,
            tcoef,
        )
        self.b = self._make_state() if momentum else []

    def _step(self) -> list[Tensor]:
        for number, (tensor, gradient) in enumerate(zip(self.params, self._collect_gradients())):
            rate = self._adapt_rate(tensor, gradient).cast(tensor.dtype)
            if self.wd:
                gradient = gradient + tensor._detach_value() * self.wd
            if self.classic:
                gradient = gradient * rate
            if self.momentum:
                speed = self.b[number]
                speed.assign(speed * self.momentum + gradient.cast(speed.dtype))
                gradient = gradient + speed * self.momentum if self.nesterov else speed
            if not self.classic:
                gradient = gradient * rate
            tensor.assign((tensor._detach_value() - gradient).cast(tensor.dtype))
        return self.b

    def _adapt_rate(self, tensor: Tensor, gradient: Tensor) -> Tensor:
        if not self.tcoef:
            return self._learning_rate()
        size, slope = _norm(tensor._detach_value()), _norm(gradient)
        scale = (size > 0).where((slope > 0).where(size * self.tcoef / (slope + size * self.wd), 1.0), 1.0)
        return self._learning_rate() * scale


class SGD(LARS):
    """Stochastic gradient descent, with momentum if requested."""

    def __init__(
        self,
        params: Sequence[Tensor],
        lr: float = 0.001,
        momentum: float = 0.0,
        weight_decay: float = 0.0,
        nesterov: bool = False,
        classic: bool = False,
    ) -> None:
        super().__init__(params, lr, momentum, weight_decay, nesterov, classic, tcoef=0.0)


class LAMB(Optimizer):
    """Adam whose step is scaled by |parameter| / |step| per layer (You et al., 2020). `adam`: no scaling.

    Let a = m / first and b = v / second be the averages without their bias. a / (√b + eps) is computed as m · (√second
    / first) / (√v + √second · eps), which saves two divisions per element (Kingma and Ba, end of section 2).
    """

    def __init__(
        self,
        params: Sequence[Tensor],
        lr: float = 0.001,
        b1: float = 0.9,
        b2: float = 0.999,
        eps: float = 1e-6,
        weight_decay: float = 0.0,
        adam: bool = False,
    ) -> None:
        super().__init__(params, lr)
        self._need_numbers(eps=eps, weight_decay=weight_decay)
        need_number(b1, f"{type(self).__name__}: b1", 0.0, below=1.0)
        need_number(b2, f"{type(self).__name__}: b2", 0.0, below=1.0)
        self.b1, self.b2, self.eps, self.wd, self.adam = b1, b2, eps, weight_decay, adam
        self.b1_t, self.b2_t = _number(1.0, self.device), _number(1.0, self.device)
        self.m, self.v = self._make_state(), self._make_state()

    def _step(self) -> list[Tensor]:
        self.b1_t.assign(self.b1_t * self.b1)
        self.b2_t.assign(self.b2_t * self.b2)
        rate = self._learning_rate()
        first_correction, second_correction = (1.0 - power.reshape(()) for power in (self.b1_t, self.b2_t))
        root = second_correction.sqrt()
        scale, smallest = root / first_correction, root * self.eps
        for tensor, gradient, m, v in zip(self.params, self._collect_gradients(), self.m, self.v):
            slope = gradient.cast(m.dtype)
            m.assign(m * self.b1 + slope * (1.0 - self.b1))
            v.assign(v * self.b2 + slope.square() * (1.0 - self.b2))
            value = tensor._detach_value().cast(m.dtype)
            change = m * scale.cast(m.dtype) / (v.sqrt() + smallest.cast(v.dtype))
            if self.wd:
                change = change + value * self.wd
            if not self.adam:
                size, length = _norm(value), _norm(change)
                change = change * (size > 0).where((length > 0).where(size / length, 1.0), 1.0).cast(change.dtype)
            tensor.assign((value - change * rate.cast(m.dtype)).cast(tensor.dtype))
        return [self.b1_t, self.b2_t, *self.m, *self.v]


class AdamW(LAMB):
    """Adam with decoupled weight decay (Loshchilov and Hutter, 2019)."""

    def __init__(
        self,
        params: Sequence[Tensor],
        lr: float = 0.001,
        b1: float = 0.9,
        b2: float = 0.999,
        eps: float = 1e-8,
        weight_decay: float = 0.01,
    ) -> None:
        super().__init__(params, lr, b1, b2, eps, weight_decay, adam=True)


class Adam(LAMB):
    """Steps by running averages of the gradient and of its square (Kingma and Ba, 2015)."""

    def __init__(
        self, params: Sequence[Tensor], lr: float = 0.001, b1: float = 0.9, b2: float = 0.999, eps: float = 1e-8
    ) -> None:
        super().__init__(params, lr, b1, b2, eps, 0.0, adam=True)


class Muon(Optimizer):
    """Momentum whose step, as a matrix, is made nearly orthogonal (Jordan et al., 2024).

    Each parameter is treated as a matrix of its first axis and all other axes. `ns_steps` Newton-Schulz steps X ← a·X +
    b·(XXᵀ)X + c·(XXᵀ)²X, with (a, b, c) = `ns_coefficients`, move its singular values to about 1. The weight decay is
    decoupled.
    """

    def __init__(
        self,
        params: Sequence[Tensor],
        lr: float = 0.001,
        momentum: float = 0.95,
        weight_decay: float = 0.1,
        ns_steps: int = 5,
        ns_coefficients: tuple[float, float, float] = (3.4445, -4.775, 2.0315),
        nesterov: bool = True,
    ) -> None:
        super().__init__(params, lr)
        self._need_numbers(momentum=momentum, weight_decay=weight_decay)
        if scalars := [number for number, tensor in enumerate(self.params) if tensor.ndim == 0]:
            raise ValueError(
                f"Muon: parameters {scalars} are scalars; it needs matrices, give these to another optimizer"
            )
        self.momentum, self.wd, self.nesterov = momentum, weight_decay, nesterov
        self.ns_steps, self.ns_coefficients = ns_steps, ns_coefficients
        self.b = self._make_state() if momentum else []

    def _step(self) -> list[Tensor]:
        for number, (tensor, gradient) in enumerate(zip(self.params, self._collect_gradients())):
            rate = self._learning_rate().cast(tensor.dtype)
            if self.momentum:
                speed = self.b[number]
                speed.assign(speed * self.momentum + gradient.cast(speed.dtype))
                gradient = gradient + speed * self.momentum if self.nesterov else speed
            step = self._orthogonalize(gradient.reshape(gradient.shape[0], -1)).reshape(tensor.shape)
            value = tensor._detach_value() * (1.0 - rate * self.wd) if self.wd else tensor._detach_value()
            tensor.assign((value - step * rate).cast(tensor.dtype))
        return self.b

    def _orthogonalize(self, x: Tensor) -> Tensor:
        a, b, c = self.ns_coefficients
        is_tall = x.shape[0] > x.shape[1]
        x = x.T if is_tall else x
        x = x / (_norm(x) + 1e-7).cast(x.dtype)
        for _ in range(self.ns_steps):
            square = x @ x.T
            x = x * a + (square * b + square @ square * c) @ x
        return x.T if is_tall else x
