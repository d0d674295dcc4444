"""The base of Tensor: its LazyBuffer, its tape entry, and the operations that make new tensors."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, ClassVar, TypeGuard, cast
from warnings import warn
from weakref import ref

from tinyexplore.autograd import (
    GRADIENTS,
    BackwardPass,
    CustomGradient,
    GradientRule,
    GradientStep,
    MissingGraphError,
    TapedBuffer,
    TapeEntry,
    gradients,
    stationary_gradient,
    taped_graph,
)
from tinyexplore.autograd.rules import REDUCE_GRADIENTS, contiguous_backward_gradient, step_gradient
from tinyexplore.device import Device
from tinyexplore.dtype import ConstType, DType, ImageDType, dtypes, to_dtype
from tinyexplore.lazy import LazyBuffer, Origin, ShardedBuffer, StoredBuffer
from tinyexplore.lazy.lazybuffer import ShapeError
from tinyexplore.tensor import data as conversion
from tinyexplore.tensor.change_log import note_change
from tinyexplore.tensor.checks import need_int, need_tensor
from tinyexplore.uop import Ops, UOp
from tinyexplore.uop.symbolic import simplified
from tinyexplore.util.interpreter import BASE_REFERENCES, TrackedObject, references

if TYPE_CHECKING:
    from typing_extensions import Self

_MARK_ADVICE = "make the targets with requires_grad=True, or call requires_grad_() on them, before computing with them"

Shape = tuple[int, ...]
Axes = int | Sequence[int] | None
DTypeLike = DType | str


_new = TrackedObject.__new__


class TensorBase(TrackedObject):
    """The base class of all methods of Tensor.

    lazydata: the value.
    requires_grad: whether backward() computes a gradient; None if neither the user nor an optimizer has decided.
    grad: the gradient, or None.
    _ctx: the step of the tape that computed the value, or None.
    _root: for a view, the tensor that it is a view of; else None.
    was_changed: set by the first assignment.
    """

    __slots__ = ("lazydata", "requires_grad", "grad", "_ctx", "_root", "was_changed", "__weakref__")
    lazydata: LazyBuffer
    requires_grad: bool | None
    grad: Self | None
    _ctx: TapeEntry | None
    _root: ref[Self] | None
    was_changed: bool

    training: ClassVar[bool] = False
    no_grad: ClassVar[bool] = False

    plain: ClassVar[type[Any]]  # Tensor: the class of all results, also if an operand is of a subclass

    @classmethod
    def _wrap(cls, lazydata: LazyBuffer) -> Self:
        """Returns a new tensor with the value `lazydata`."""
        result: Any = _new(cls.plain)
        result.lazydata = lazydata
        result.requires_grad = None
        result.grad = None
        result._ctx = None
        result._root = None
        return cast("Self", result)

    def __init__(
        self,
        data: Any,
        device: str | Sequence[str] | None = None,
        dtype: DTypeLike | None = None,
        requires_grad: bool | None = None,
    ) -> None:
        self._ctx = self._root = None
        self.grad = None
        self.requires_grad = requires_grad
        target = None if dtype is None else to_dtype(dtype)
        if isinstance(data, TensorBase):
            data = data.lazydata.detached()
        if isinstance(data, PurePath):
            data, target = conversion.file_elements(data, target or dtypes.uint8), None
        if isinstance(data, LazyBuffer):
            lazydata = data if target is None else data.cast(target)
            self.lazydata = lazydata if device is None else lazydata.copy_to_device(Device.canonicalize(device))
        else:
            self.lazydata = conversion.lazydata_of(data, target, Device.canonicalize(device))
            self.lazydata.note = Origin.DATA
        if isinstance(dtype, ImageDType):
            self.lazydata = self.cast(dtype).lazydata

    def __getstate__(self) -> tuple[None, dict[str, Any]]:
        """Returns the state to copy or pickle. A view becomes an independent tensor."""
        names = [name for base_class in type(self).__mro__ for name in vars(base_class).get("__slots__", ())]
        state = {name: getattr(self, name) for name in names if name != "__weakref__" and hasattr(self, name)}
        return None, {**state, "_root": None}

    @classmethod
    def from_node(cls, y: int | UOp, **kwargs: Any) -> Self:
        """Returns a size, symbolic or not, as a tensor without axes."""
        return cls(y, **kwargs)

    @classmethod
    def _is_tensor(cls, value: object) -> TypeGuard[Self]:
        """Whether `value` is a Tensor or an instance of a subclass."""
        return isinstance(value, TensorBase)

    # *** properties ***

    @property
    def shape(self) -> Shape:
        return self.lazydata.shape

    @property
    def dtype(self) -> DType:
        return self.lazydata.dtype

    @property
    def device(self) -> str:
        """The name of the device, or a tuple of names if the tensor is sharded."""
        lazydata = self.lazydata
        return cast(str, lazydata.devices) if isinstance(lazydata, ShardedBuffer) else lazydata.device

    @property
    def ndim(self) -> int:
        return len(self.lazydata.shape)

    def dim(self) -> int:
        """Returns the number of axes."""
        return len(self.lazydata.shape)

    def numel(self) -> int:
        """Returns the number of elements; symbolic if a size is symbolic."""
        count: int = simplified(prod(self.lazydata.shape))
        return count

    def element_size(self) -> int:
        """Returns the size of an element in bytes."""
        return self.dtype.itemsize

    def nbytes(self) -> int:
        """Returns the size of all elements in bytes."""
        count: int = simplified(self.numel() * self.element_size())
        return count

    def size(self, dim: int | None = None) -> int | Shape:
        """Returns the shape, or the size of axis `dim`."""
        return self.shape if dim is None else self.shape[self._resolve_axis(dim)]

    def is_floating_point(self) -> bool:
        return dtypes.is_float(self.dtype)

    def _resolve_axis(self, axis: int, extra: int = 0) -> int:
        """Counts `axis` from the front and checks it. `extra`: how many positions past the last axis are allowed (for a
        new axis)."""
        if type(axis) is not int:
            need_int(axis, "axis")
        rank = len(self.lazydata.shape) + extra
        if not -max(rank, 1) <= axis < max(rank, 1):
            raise IndexError(
                f"axis {axis} of a tensor of shape {self.shape}: choose one of {-max(rank, 1)}..{max(rank, 1) - 1}"
            )
        return axis + rank if axis < 0 and rank else axis

    def _resolve_axes(self, axis: Axes) -> Shape:
        """Counts the axes from the front and sorts them. None means all axes."""
        rank = len(self.lazydata.shape)
        if axis is None:
            return tuple(range(rank))
        if not isinstance(axis, int) and not isinstance(axis, Sequence):
            raise TypeError(f"axis {axis!r} ({type(axis).__name__}): need an int, several ints, or None for all")
        requested = (axis,) if isinstance(axis, int) else tuple(axis)
        for axis_number in requested:
            if not isinstance(axis_number, int):
                raise TypeError(f"axis {axis_number!r} ({type(axis_number).__name__}) in {axis!r}: need ints")
        if rank == 0:
            for axis_number in requested:
                self._resolve_axis(axis_number)
            return ()
        axes = sorted(self._resolve_axis(axis_number) for axis_number in requested)
        if len(set(axes)) != len(axes):
            raise ShapeError(f"axes {requested} of a tensor of shape {self.shape}: an axis is repeated")
        return tuple(axes)

    # *** one operation: a new LazyBuffer, and a tape entry if gradients are needed ***

    def _put_on_tape(self, lazydata: LazyBuffer, rule: GradientRule | None, inputs: tuple[Any, ...], arg: Any) -> Self:
        """Wraps `lazydata`, the result of an operation on `inputs`, and puts it on the tape with the gradient rule
        `rule`."""
        result = self._wrap(lazydata)
        if rule is None or type(self).no_grad:
            return result
        for tensor in inputs:
            if tensor.requires_grad:
                if not dtypes.is_float(lazydata.dtype):
                    return result
                result.requires_grad = True
                result._ctx = TapeEntry(rule, inputs, tuple([source.lazydata for source in inputs]), lazydata, arg)
                return result
        return result

    def _wrap_with_rule(
        self, lazydata: LazyBuffer, rule: GradientRule, inputs: tuple[Any, ...], arg: Any = None
    ) -> Self:
        """Wraps the new node `lazydata`, with the gradient rule `rule` instead of the rules of its operations."""
        lazydata.note = CustomGradient(rule, [tensor.lazydata for tensor in inputs], arg).attached_to(lazydata)
        return self._put_on_tape(lazydata, rule, inputs, arg)

    def _apply_unary(self, op: Ops) -> Self:
        if self.requires_grad:
            return self._put_on_tape(self.lazydata.alu(op), GRADIENTS.get(op), (self,), None)
        return self._wrap(self.lazydata.alu(op))

    def _alu(self, op: Ops, other: Self, third: Self | None = None) -> Self:
        """Applies `op` to tensors of equal shape and dtype."""
        if third is not None:
            lazydata = self.lazydata.alu(op, other.lazydata, third.lazydata)
            return self._put_on_tape(lazydata, GRADIENTS.get(op), (self, other, third), None)
        lazydata = self.lazydata.alu(op, other.lazydata)
        if self.requires_grad or other.requires_grad:
            return self._put_on_tape(lazydata, GRADIENTS.get(op), (self, other), None)
        return self._wrap(lazydata)

    def _wrap_movement(self, op: Ops, lazydata: LazyBuffer) -> Self:
        """Returns the result of a movement, or the tensor itself if the movement changes nothing."""
        if lazydata is self.lazydata:
            return self
        if self.requires_grad:
            result = self._put_on_tape(lazydata, GRADIENTS[op], (self,), lazydata.arg)
        else:
            result = self._wrap(lazydata)
        root = self._root
        result._root = ref(self) if root is None else root
        return result

    def _reshape_checked(self, shape: Shape) -> Self:
        """Reshapes the tensor. The caller has checked `shape`."""
        return self._wrap_movement(Ops.RESHAPE, self.lazydata.reshape(shape))

    def _broadcast_to(self, shape: Shape) -> Self:
        """Expands the tensor to `shape`. The caller has checked `shape`."""
        shape_before = self.lazydata.shape
        if shape_before == shape:
            return self
        padded = (
            self
            if len(shape_before) == len(shape)
            else self._reshape_checked((1,) * (len(shape) - len(shape_before)) + shape_before)
        )
        return padded._wrap_movement(Ops.EXPAND, padded.lazydata.expand(shape))

    def _reduce_axes(self, op: Ops, axes: Shape) -> Self:
        """Reduces the tensor over `axes`, which remain with size 1."""
        if not axes:
            return self
        lazydata = self.lazydata.reduce(op, axes)
        if op in (Ops.MAX, Ops.MIN) and lazydata.src and lazydata.src[0] is not self.lazydata:
            # the reduction takes two steps, but the elements that equal the result share its gradient over both
            return self._wrap_with_rule(lazydata, REDUCE_GRADIENTS[op], (self,), axes)
        return self._put_on_tape(lazydata, REDUCE_GRADIENTS[op], (self,), axes)

    def _constant_with_zero_gradient(self, value: ConstType, shape: Shape) -> Self:
        """Returns a constant tensor on this tensor's tape, with gradient 0."""
        return self._wrap_with_rule(self._const(value, shape=shape).lazydata, step_gradient, (self,))

    def _const(self, value: ConstType | UOp, dtype: DType | None = None, shape: Shape | None = None) -> Self:
        """Returns a constant tensor, with the dtype and shape of this tensor unless others are given."""
        lazydata = self.lazydata
        if isinstance(lazydata, StoredBuffer):
            lazydata.refuse("arithmetic with a number")
        dtype = lazydata.dtype if dtype is None else dtype
        if shape is None:
            shape = lazydata.shape
            if type(lazydata) is LazyBuffer and (type(value) is int or type(value) is float) and dtypes.is_float(dtype):
                return self._wrap(LazyBuffer(Ops.CONST, dtype, shape, (), float(value), lazydata.device))
        return self._wrap(LazyBuffer.const(wrap_value(value, dtype), dtype, lazydata.device, shape))

    # *** dtype and memory ***

    def cast(self, dtype: DTypeLike) -> Self:
        """Converts the elements to `dtype`. Floats are truncated to ints; a bool is whether the element is not 0.

        For a texture dtype (`dtypes.imageh`, `imagef`): if the tensor fills the texture, its elements are stored as
        float16 or float32 and read as float32. Otherwise, the result is float32.
        """
        target = to_dtype(dtype)
        if isinstance(dtype, ImageDType) and dtype.fits(self.shape):  # rounded as in the texture, then read from it
            return self.cast(dtype.scalar).contiguous().cast(target)
        if target is self.lazydata.dtype:
            return self
        return self._put_on_tape(self.lazydata.cast(target), GRADIENTS[Ops.CAST], (self,), None)

    def bitcast(self, dtype: DTypeLike) -> Self:
        """Reinterprets the bits as `dtype`. If the element sizes differ, the last axis grows or shrinks."""
        if self.requires_grad:
            raise RuntimeError("bitcast has no gradient: detach() the tensor first")
        target = to_dtype(dtype)
        own_size, target_size = self.dtype.itemsize, target.itemsize
        if own_size == target_size or isinstance(self.lazydata, StoredBuffer):
            return self._wrap(self.lazydata.bitcast(target))
        if self.ndim == 0 or self.shape[-1] * own_size % target_size:
            raise ShapeError(
                f"bitcast {self.dtype.name} of shape {self.shape} to {target.name}: the last axis "
                f"({self.shape[-1] * own_size if self.ndim else 'there is none'}) must be a whole number of "
                f"{target_size} bytes"
            )
        bits = self.lazydata.bitcast(unsigned_of(own_size))
        resized = _split_words(bits, target_size) if own_size > target_size else _join_words(bits, target_size)
        return self._wrap(resized.bitcast(target))

    def contiguous(self) -> Self:
        """Returns the same values, which get separate memory when they are computed."""
        lazydata = self.lazydata.contiguous()
        if lazydata is self.lazydata:
            return self
        return self._put_on_tape(lazydata, GRADIENTS[Ops.CONTIGUOUS], (self,), None)

    def contiguous_backward(self) -> Self:
        """Returns the tensor, with a gradient that is stored in separate memory (not fused)."""
        if not self.requires_grad:
            return self
        return self._put_on_tape(self.lazydata, contiguous_backward_gradient, (self,), None)

    def to(self, device: str | Sequence[str] | None) -> Self:
        """Copies the values and `grad` to another device (None: the default one). On several devices, each gets all
        values."""
        target = Device.canonicalize(device)
        if target == self.lazydata.device:
            return self
        result = self._put_on_tape(self.lazydata.copy_to_device(target), GRADIENTS[Ops.COPY], (self,), None)
        if self.requires_grad is False:
            result.requires_grad = False
        if self.grad is not None:
            result.grad = self.grad.to(device)
        return result

    def to_(self, device: str | Sequence[str] | None) -> Self:
        """Moves this tensor (a parameter, for example) to another device, in place."""
        note_change(self)
        self.lazydata = self.lazydata.copy_to_device(Device.canonicalize(device))
        if self.grad is not None:
            self.grad.to_(device)
        return self

    def shard(self, devices: Sequence[str], axis: int | None = None, splits: Sequence[int] | None = None) -> Self:
        """Distributes the values over several devices.

        Along `axis` each device gets a part: of the sizes `splits`, or of sizes as equal as possible. Without `axis`,
        or if a part would be empty, each device gets all values.
        """
        if self.requires_grad:
            return self._put_on_tape(self._split_to_devices(devices, axis, splits), GRADIENTS[Ops.COPY], (self,), None)
        result = self._wrap(self._split_to_devices(devices, axis, splits))
        result.requires_grad = self.requires_grad
        return result

    def shard_(self, devices: Sequence[str], axis: int | None = None, splits: Sequence[int] | None = None) -> Self:
        """Distributes this tensor (a parameter, for example) over several devices, in place."""
        shards = self._split_to_devices(devices, axis, splits)
        note_change(self)
        self.lazydata = shards
        return self

    def shard_like(self, y: Self) -> Self:
        """Puts the values where the values of `y` are: on its device, or on its devices and divided in the same way."""
        need_tensor(y, "shard_like: what to lie like")
        model = y.lazydata
        if not isinstance(model, ShardedBuffer):
            return self.to(y.device)
        axis, splits = model.layout
        if axis is not None and self.shape[axis : axis + 1] != y.shape[axis : axis + 1]:
            splits = ()
        if not isinstance(self.lazydata, ShardedBuffer):
            return self.shard(model.devices, axis, splits or None)
        copy = self.to(y.device)
        lazydata: Any = copy.lazydata
        if axis is None or not splits:
            return copy if lazydata.axis == axis else copy.to(model.devices[0]).shard(model.devices, axis)
        return copy._put_on_tape(lazydata.divided_like(model), GRADIENTS[Ops.COPY], (copy,), None)

    def _split_to_devices(self, devices: Sequence[str], axis: int | None, splits: Sequence[int] | None) -> LazyBuffer:
        if not isinstance(devices, (list, tuple)) or not devices:
            raise ValueError(
                f"shard on {devices!r}: need several devices, such as ('LLVM:0', 'LLVM:1'); else use .to()"
            )
        if isinstance(self.lazydata, ShardedBuffer):
            raise RuntimeError(
                f"cannot shard a multi-device tensor: it is on {', '.join(self.device)}; move it to one device first"
            )
        axis_number = None if axis is None else self._resolve_axis(axis)
        if axis_number is not None and (self.shape[axis_number] < len(devices) if splits is None else 0 in splits):
            parts_add_up = splits is None or (len(splits) == len(devices) and sum(splits) == self.shape[axis_number])
            axis_number, splits = (None, None) if parts_add_up else (axis_number, splits)
        if len(devices) == 1:
            return self.lazydata.copy_to_device(Device.canonicalize(devices[0]))
        return ShardedBuffer.of(self.lazydata, Device.canonicalize(devices), axis_number, splits)

    def llvm(self) -> Self:
        return self.to("LLVM")

    def clang(self) -> Self:
        return self.to("CLANG")

    def python(self) -> Self:
        return self.to("PYTHON")

    def cuda(self) -> Self:
        return self.to("CUDA")

    def gpu(self) -> Self:
        return self.to("GPU")

    def llvm_bf16_cast(self, dtype: DTypeLike) -> Self:
        """Converts a bfloat16 tensor on LLVM, for devices that cannot convert it."""
        if self.dtype is not dtypes.bfloat16:
            raise TypeError(f"llvm_bf16_cast of a {self.dtype.name} tensor: it is for bfloat16; use cast()")
        return self.to("LLVM").cast(dtype)

    # *** the tape ***

    def detach(self) -> Self:
        """Returns the same value off the tape: no gradient flows through it."""
        result = self._wrap(self.lazydata.detached())
        result.requires_grad = False
        return result

    def _detach_value(self) -> Self:
        """Returns the same value off the tape, for operations that define their own gradient rule."""
        result = self._wrap(self.lazydata)
        result.requires_grad = False
        return result

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        """Sets whether this tensor requires a gradient. Returns the tensor."""
        self.requires_grad = requires_grad
        return self

    def backward(self, gradient: Self | None = None) -> Self:
        """Adds the gradient of this tensor to the `grad` of each tensor with `requires_grad` that it was computed from.

        `gradient` is the gradient of this tensor; a scalar needs none. Intermediate tensors that the program references
        get a `grad`, too. If no tensor requires a gradient, nothing happens; outside `inference_mode` a warning says
        so.
        """
        seed = self._make_seed(gradient, "backward").lazydata
        if not self.requires_grad:
            if not type(self).no_grad:
                warn(
                    "backward: nothing that this tensor was computed from requires a gradient, so no grad is set; "
                    "make a Tensor with requires_grad=True before computing with it",
                    stacklevel=2,
                )
            return self
        reached = gradients(self, seed)
        for (tensor, gradient_value), is_wanted in zip(reached, _gets_gradient(reached)):
            if (
                not is_wanted or not tensor.requires_grad or not isinstance(tensor, TensorBase)
            ):  # the tape of a repeated walk
                continue
            if tensor.grad is None:
                tensor.grad = self._wrap(gradient_value)
                tensor.grad.requires_grad = False
            else:
                note_change(tensor.grad)
                tensor.grad.lazydata = tensor.grad.lazydata.alu(Ops.ADD, gradient_value)
        return self

    def gradient(self, *targets: Self, gradient: Self | None = None, materialize_grads: bool = False) -> list[Self]:
        """Returns the gradient of this tensor with respect to each target. The fields `grad` do not change.

        Targets are tensors with `requires_grad`, or results of such tensors. If no tensor is marked, any float tensors
        can be targets, as long as no tensor in between was realized (docs/gradients.md). The gradients are on the tape
        again, as functions of all tensors that require a gradient. They can be part of a loss, or be differentiated
        again. To avoid this, call `detach()` on them, or call this method inside `inference_mode`.

        Args:
            gradient: the gradient of this tensor; a scalar needs none.
            materialize_grads: return zeros for a target that this tensor does not depend on, instead of raising an
            error.
        """
        for target in targets:
            need_tensor(target, "gradient: a target")
        if targets and not self.requires_grad and not any([target.requires_grad for target in targets]):
            return self._gradient_of_graph(targets, gradient, materialize_grads)
        unmarked = [position for position, target in enumerate(targets) if not target.requires_grad]
        if unmarked:
            raise RuntimeError(
                f"gradient: targets {unmarked} do not require a gradient, so the graph has no path to them: "
                "make them with requires_grad=True, or call requires_grad_() on them, before computing with them"
            )
        seed = self._check_seed(gradient, "gradient")
        reached = gradients(self, seed.lazydata)
        gradients_by_id = {id(tensor): value for tensor, value in reached}
        unreached = [position for position, target in enumerate(targets) if id(target) not in gradients_by_id]
        if unreached and not materialize_grads:
            raise RuntimeError(
                f"gradient: targets {unreached} were not used in computing this tensor, or only before they required a "
                "gradient; materialize_grads=True gives zeros for them"
            )
        results = [
            self._wrap(gradients_by_id[id(target)]) if id(target) in gradients_by_id else target._const(0.0)
            for target in targets
        ]
        if type(self).no_grad:
            return results
        walk = BackwardPass(reached, TapedBuffer.of(seed, seed.lazydata))
        for target, result in zip(targets, results):
            if id(target) in gradients_by_id:
                result._ctx = GradientStep(walk, target, result.lazydata)
                result.requires_grad = True
        return results

    def _gradient_of_graph(self, targets: Sequence[Self], gradient: Self | None, materialize_grads: bool) -> list[Self]:
        """Computes `gradient` without marked tensors. The dependences come from the graph that will compute this
        tensor."""
        for position, target in enumerate((self, *targets)):
            tensor_text = "this tensor" if position == 0 else f"target {position - 1}"
            if not dtypes.is_float(target.dtype):
                raise TypeError(f"gradient: {tensor_text} is of {target.dtype.name}: only floats have gradients")
            if isinstance(target.lazydata, StoredBuffer):
                raise RuntimeError(f"gradient: {tensor_text} lies on {target.device}; {_MARK_ADVICE}")
        seed = self._make_seed(gradient, "gradient").lazydata
        try:
            assigned = [target.lazydata for target in targets if getattr(target, "was_changed", False)]
            root, taped_targets = taped_graph(self.lazydata, [target.lazydata for target in targets], assigned)
        except MissingGraphError as forgotten:
            raise RuntimeError(
                f"gradient: {forgotten}; {_MARK_ADVICE}, or call gradient() before anything on the way is realized, or "
                "detach() constants"
            ) from None
        reached = {id(taped): value for taped, value in gradients(root, seed)}
        results: list[Self] = []
        for position, target in enumerate(targets):
            value = reached.get(id(taped_targets.get(id(target.lazydata))))
            if value is not None:
                results.append(self._wrap(value))
            elif getattr(target, "was_changed", False):
                raise RuntimeError(
                    f"gradient: target {position} was assigned to, and this tensor does not depend on its value "
                    f"since then; {_MARK_ADVICE}"
                )
            elif materialize_grads:
                results.append(target._const(0.0))
            else:
                raise RuntimeError(
                    f"gradient: target {position} was not used in computing this tensor; materialize_grads=True gives "
                    "zeros for it"
                )
        return results

    @classmethod
    def _wrap_on_tape(cls, value: LazyBuffer | TapedBuffer) -> Self:
        """Wraps a value that a gradient rule received in a tensor."""
        if isinstance(value, LazyBuffer):
            return cls._wrap(value)
        result = cls._wrap(value.lazydata)
        result.requires_grad, result._ctx = value.requires_grad, value._ctx
        return result

    def _wrap_stationary(self, centered: Self) -> Self:
        """Returns `centered`, which is this tensor minus a value at which the result is stationary (for example the
        mean, for a sum of squares).

        The gradient flows to this tensor only. The gradient of the gradient uses the computation of `centered`.
        """
        return self._put_on_tape(centered.lazydata, stationary_gradient, (self,), centered)

    def _check_seed(self, gradient: Self | None, method: str) -> Self:
        """Returns the gradient of this tensor with respect to itself, for the method named `method`."""
        if not self.requires_grad:
            raise RuntimeError(
                f"{method}: nothing that this tensor was computed from requires a gradient; "
                "make a Tensor with requires_grad=True before computing with it"
            )
        return self._make_seed(gradient, method)

    def _make_seed(self, gradient: Self | None, method: str) -> Self:
        if gradient is None:
            if self.shape != ():
                raise RuntimeError(
                    f"{method} of a tensor of shape {self.shape}: reduce it to a scalar (.sum(), .mean()) "
                    f"or give its gradient, {method}({'gradient' if method == 'backward' else '..., gradient=...'})"
                )
            return self._wrap(LazyBuffer.const(1.0, self.dtype, self.lazydata.device))
        need_tensor(gradient, f"{method}: gradient")
        if gradient.shape != self.shape:
            raise ShapeError(f"{method}: the gradient has shape {gradient.shape}, the tensor {self.shape}")
        return gradient.cast(self.dtype).to(self.device)


def _gets_gradient(reached: Sequence[tuple[Any, Any]]) -> list[bool]:
    """Returns whether each tensor gets a `grad`: the tensors at which the tape begins, and those with references from
    outside the tape.

    reached: pairs (tensor, gradient), in a list that only the caller references.
    """
    counts = references([pair[0] for pair in reached])
    taped = {id(pair[0]): 0 for pair in reached}
    for pair in reached:
        for source in () if pair[0]._ctx is None else pair[0]._ctx.inputs:
            if id(source) in taped:
                taped[id(source)] += 1
    return [
        pair[0]._ctx is None or count - taped[id(pair[0])] > BASE_REFERENCES + 1 for count, pair in zip(counts, reached)
    ]


def unsigned_of(itemsize: int) -> DType:
    """Returns the unsigned int dtype of `itemsize` bytes."""
    return {1: dtypes.uint8, 2: dtypes.uint16, 4: dtypes.uint32, 8: dtypes.uint64}[itemsize]


def _split_words(bits: LazyBuffer, itemsize: int) -> LazyBuffer:
    """Splits each word into several words of `itemsize` bytes, lowest first."""
    words_per_word = bits.dtype.itemsize // itemsize
    shape = (*bits.shape, words_per_word)
    step = LazyBuffer.const(itemsize * 8, bits.dtype, bits.device, (words_per_word,))
    shifts = LazyBuffer.iota(words_per_word, bits.dtype, bits.device).alu(Ops.MUL, step)
    shifts = shifts.reshape((*(1,) * len(bits.shape), words_per_word)).expand(shape)
    words = bits.reshape((*bits.shape, 1)).expand(shape).alu(Ops.SHR, shifts)
    return words.cast(unsigned_of(itemsize)).reshape((*bits.shape[:-1], bits.shape[-1] * words_per_word))


def _join_words(bits: LazyBuffer, itemsize: int) -> LazyBuffer:
    """Joins several words to one word of `itemsize` bytes; the first one is lowest."""
    words_per_word = itemsize // bits.dtype.itemsize
    wide_dtype = unsigned_of(itemsize)
    shape = (*bits.shape[:-1], bits.shape[-1] // words_per_word, words_per_word)
    step = LazyBuffer.const(bits.dtype.bits, wide_dtype, bits.device, (words_per_word,))
    shifts = LazyBuffer.iota(words_per_word, wide_dtype, bits.device).alu(Ops.MUL, step)
    shifts = shifts.reshape((*(1,) * (len(shape) - 1), words_per_word)).expand(shape)
    shifted = bits.cast(wide_dtype).reshape(shape).alu(Ops.SHL, shifts)
    return shifted.reduce(Ops.ADD, (len(shape) - 1,)).reshape(shape[:-1])


def wrap_value(value: ConstType | UOp, dtype: DType) -> ConstType | UOp:
    """Returns `value` as `dtype` represents it. Ints wrap around, as in arithmetic. Symbolic sizes wrap when they are
    cast."""
    if not dtypes.is_int(dtype) or isinstance(value, UOp):
        return value
    if isinstance(value, float) and (value != value or value in (float("inf"), -float("inf"))):
        raise ValueError(f"{value} has no {dtype.name} value; use a float dtype")
    number = int(value) & ((1 << dtype.bits) - 1)
    is_negative = not dtypes.is_unsigned(dtype) and number >> (dtype.bits - 1)
    return number - (1 << dtype.bits) if is_negative else number
