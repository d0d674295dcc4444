"""LSTM, GRU and RNN, unrolled over the time axis."""

from __future__ import annotations

from collections.abc import Callable

from tinyexplore.dtype import dtypes
from tinyexplore.frontends.onnx.errors import OnnxError
from tinyexplore.frontends.onnx.node import OnnxNode, operator
from tinyexplore.frontends.onnx.values import Value
from tinyexplore.tensor import Tensor

Activation = Callable[[Tensor], Tensor]
GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
DEFAULTS = {"LSTM": ["Sigmoid", "Tanh", "Tanh"], "GRU": ["Sigmoid", "Tanh"], "RNN": ["Tanh"]}


def _read_activations(node: OnnxNode, direction: int) -> list[Activation]:
    """Returns the activation functions of one direction."""
    names: list[str] = node.attribute("activations", [])
    default = DEFAULTS[node.operator]
    direction_names = names[direction * len(default) : (direction + 1) * len(default)] or default
    alphas: list[float] = list(node.attribute("activation_alpha", []))
    betas: list[float] = list(node.attribute("activation_beta", []))
    functions: list[Activation] = []
    for name in direction_names:
        function = _find_activation(name, alphas, betas)
        if function is None:
            raise node.unsupported(f"the activation {name!r}")
        functions.append(function)
    return functions


def _find_activation(name: str, alphas: list[float], betas: list[float]) -> Activation | None:
    """Returns an activation function by its name; None if it is unknown. Removes its parameters from the lists."""
    kind = name.lower()
    plain: dict[str, Activation] = {
        "sigmoid": Tensor.sigmoid,
        "tanh": Tensor.tanh,
        "relu": Tensor.relu,
        "softsign": Tensor.softsign,
        "softplus": Tensor.softplus,
    }
    if kind in plain:
        return plain[kind]
    if kind in ("leakyrelu", "elu", "thresholdedrelu"):
        alpha = alphas.pop(0) if alphas else {"leakyrelu": 0.01, "elu": 1.0, "thresholdedrelu": 1.0}[kind]
        if kind == "leakyrelu":
            return lambda x: (x < 0).where(x * alpha, x)
        return (lambda x: x.elu(alpha)) if kind == "elu" else (lambda x: (x > alpha).where(x, 0))
    if kind in ("hardsigmoid", "affine", "scaledtanh"):
        alpha = alphas.pop(0) if alphas else {"hardsigmoid": 0.2, "affine": 1.0, "scaledtanh": 1.0}[kind]
        beta = betas.pop(0) if betas else {"hardsigmoid": 0.5, "affine": 0.0, "scaledtanh": 1.0}[kind]
        if kind == "hardsigmoid":
            return lambda x: (x * alpha + beta).clip(0, 1)
        return (lambda x: x * alpha + beta) if kind == "affine" else (lambda x: (x * beta).tanh() * alpha)
    return None


class _Direction:
    """One direction of a recurrent layer: its weights, and one step of it."""

    def __init__(self, node: OnnxNode, index: int, gates: int, dtype_like: Tensor) -> None:
        self.node = node
        self.kind = node.operator
        self.weight, self.recurrent = node.tensor(1)[index], node.tensor(2)[index]
        self.hidden = self.recurrent.shape[-1]
        self.bias = node.tensor(3)[index] if node.has(3) else None
        self.split = gates * self.hidden
        self.peepholes = node.tensor(7)[index].split(self.hidden, 0) if node.has(7) and gates == 4 else None
        self.functions = _read_activations(node, index)
        self.limit = node.attribute("clip", 0.0)
        self.bias_of_state = None if self.bias is None else self.bias[self.split :]
        del dtype_like

    def clip_input(self, x: Tensor) -> Tensor:
        return x.clip(-self.limit, self.limit) if self.limit else x

    def of_input(self, x: Tensor) -> Tensor:
        """Returns the part of the gates that does not depend on the state, for all steps at the same time."""
        product = x.matmul(self.weight.transpose())
        return product if self.bias is None else product + self.bias[: self.split]

    def of_state(self, state: Tensor) -> Tensor:
        product = state.matmul(self.recurrent.transpose())
        return product if self.bias_of_state is None else product + self.bias_of_state

    def step(self, projected: Tensor, state: Tensor, cell: Tensor) -> tuple[Tensor, Tensor]:
        """Returns the next state and cell for the gates that `of_input` returned."""
        return {"LSTM": self._lstm, "GRU": self._gru, "RNN": self._rnn}[self.kind](projected, state, cell)

    def _rnn(self, projected: Tensor, state: Tensor, cell: Tensor) -> tuple[Tensor, Tensor]:
        return self.functions[0](self.clip_input(projected + self.of_state(state))), cell

    def _lstm(self, projected: Tensor, state: Tensor, cell: Tensor) -> tuple[Tensor, Tensor]:
        inputs, outputs, forget, new = (projected + self.of_state(state)).split(self.hidden, 1)
        gate, squash, squash_cell = self.functions
        peep = self.peepholes
        if peep is not None:
            inputs, forget = inputs + peep[0] * cell, forget + peep[2] * cell
        opened = gate(self.clip_input(inputs))
        input_gate = 1 - opened if self.node.attribute("input_forget", 0) else gate(self.clip_input(forget))
        cell = input_gate * cell + opened * squash(self.clip_input(new))
        if peep is not None:
            outputs = outputs + peep[1] * cell
        return gate(self.clip_input(outputs)) * squash_cell(cell), cell

    def _gru(self, projected: Tensor, state: Tensor, cell: Tensor) -> tuple[Tensor, Tensor]:
        gate, squash = self.functions
        n = self.hidden
        update_in, reset_in, new_in = projected.split(n, 1)
        weights = self.recurrent
        bias = self.bias_of_state
        update_and_reset = state.matmul(weights[: 2 * n].transpose())
        if bias is not None:
            update_and_reset = update_and_reset + bias[: 2 * n]
        update_state, reset_state = update_and_reset.split(n, 1)
        update, reset = gate(self.clip_input(update_in + update_state)), gate(self.clip_input(reset_in + reset_state))
        if self.node.attribute("linear_before_reset", 0):
            inner = state.matmul(weights[2 * n :].transpose())
            inner = reset * (inner if bias is None else inner + bias[2 * n :])
        else:
            inner = (reset * state).matmul(weights[2 * n :].transpose())
            inner = inner if bias is None else inner + bias[2 * n :]
        new = squash(self.clip_input(new_in + inner))
        return (1 - update) * new + update * state, cell


@operator("LSTM", "GRU", "RNN")
def _recurrent(node: OnnxNode) -> tuple[Value, ...]:
    x, batch_first = node.tensor(0), bool(node.attribute("layout", 0))
    x = x.permute((1, 0, 2)) if batch_first else x
    length, batch, _ = x.shape
    directions = node.shape(1)[0]
    node_direction = node.attribute("direction", "forward")
    if directions != (2 if node_direction == "bidirectional" else 1):
        raise OnnxError(f"{node.operator}: the direction {node_direction!r} with weights of {directions} directions")
    lengths = node.tensor(4).cast(dtypes.int32).reshape((-1, 1)) if node.has(4) else None
    states, cells = (
        _read_first_state(node, 5, batch_first),
        _read_first_state(node, 6, batch_first) if node.operator == "LSTM" else None,
    )
    rows, last_states, last_cells = [], [], []
    for index in range(directions):
        direction = _Direction(node, index, GATES[node.operator], x)
        zero = Tensor.zeros(batch, direction.hidden, dtype=x.dtype)
        state = states[index] if states is not None else zero
        cell = cells[index] if cells is not None else zero
        backwards = node_direction == "reverse" or index == 1
        projected = direction.of_input(x)
        outputs: list[Tensor] = [zero] * length
        for step in range(length)[:: -1 if backwards else 1]:
            new_state, new_cell = direction.step(projected[step], state, cell)
            output = new_state
            if lengths is not None:  # after its end, a sequence keeps its state, and its output is 0
                is_inside = lengths > step
                output = is_inside.where(new_state, 0)
                new_state, new_cell = is_inside.where(new_state, state), is_inside.where(new_cell, cell)
            state, cell = new_state.contiguous(), new_cell
            outputs[step] = output.contiguous()
        rows.append(outputs[0].stack(*outputs[1:], dim=0))
        last_states.append(state)
        last_cells.append(cell)
    result = rows[0].stack(*rows[1:], dim=1)
    state, cell = (parts[0].stack(*parts[1:], dim=0) for parts in (last_states, last_cells))
    if batch_first:
        result = result.permute((2, 0, 1, 3))
        state, cell = state.permute((1, 0, 2)), cell.permute((1, 0, 2))
    return (result, state, cell) if node.operator == "LSTM" else (result, state)


def _read_first_state(node: OnnxNode, index: int, batch_first: bool) -> Tensor | None:
    value = node.tensor_or(index)
    return value.permute((1, 0, 2)) if value is not None and batch_first else value
