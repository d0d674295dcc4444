"""Lists the tensors of an object by their dotted names, and loads values into them."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

from tinyexplore.lazy import laid_out_as
from tinyexplore.tensor import Tensor
from tinyexplore.tensor.checks import shown


def get_state_dict(obj: Any, prefix: str = "", tensor_type: type = Tensor) -> dict[str, Tensor]:
    """Returns every tensor in `obj` (in attributes, lists, tuples, dicts, nested), by its dotted name."""
    return dict(_walk_named(obj, prefix.rstrip("."), tensor_type, ()))


def _walk_named(obj: Any, name: str, tensor_type: type, owners: tuple[int, ...]) -> Iterator[tuple[str, Tensor]]:
    """Yields the tensors below `obj` with their names. An object inside itself is visited once."""
    if isinstance(obj, tensor_type):
        yield name, obj  # type: ignore[misc]
        return
    if hasattr(obj, "_asdict"):
        members = obj._asdict()
    elif isinstance(obj, dict):
        members = obj
    elif isinstance(obj, (list, tuple)):
        members = dict(enumerate(obj))
    elif hasattr(obj, "__dict__") and not isinstance(obj, type):
        members = obj.__dict__
    else:
        return
    if id(obj) in owners:  # the object contains itself or its owner
        return
    for key, member in members.items():
        yield from _walk_named(member, f"{name}.{key}" if name else str(key), tensor_type, (*owners, id(obj)))


def get_parameters(obj: Any) -> list[Tensor]:
    """Returns every tensor in `obj`."""
    return list(get_state_dict(obj).values())


def load_state_dict(
    model: Any,
    state_dict: dict[str, Tensor],
    strict: bool = True,
    verbose: bool = True,
    consume: bool = False,
    realize: bool = True,
) -> list[Tensor]:
    """Replaces the values of the tensors of `model` by those of equal name, converted to their device and dtype.

    All entries are checked before the first tensor changes. The tensors are computed immediately, one after the other,
    unless `realize=False`. Entries that the model lacks are ignored, with a warning if `verbose`, which also shows
    progress.

    Args:
        strict: raise KeyError if the model has a tensor that the state lacks.
        consume: remove entries from `state_dict` as they are loaded, to free memory.

    Returns:
        The changed tensors.

    Raises:
        ValueError: a shape differs.
        TypeError: a value is not a Tensor.
    """
    from tqdm.auto import tqdm

    if not isinstance(state_dict, dict):
        raise TypeError(f"load_state_dict: the state is {shown(state_dict)}: need a dict of names and Tensors")
    model_state = get_state_dict(model)
    missing = [name for name in model_state if name not in state_dict]
    unknown = [name for name in state_dict if name not in model_state]
    if strict and missing:
        raise KeyError(f"load_state_dict: the state lacks {_join_names(missing)}, which the model has")
    if verbose and (missing or unknown):
        differences = [f"{_join_names(missing)} keep their values"] if missing else []
        differences += [f"{_join_names(unknown)} are not in the model"] if unknown else []
        warnings.warn(f"load_state_dict: {'; '.join(differences)}", stacklevel=2)
    for name, tensor in model_state.items():  # check all tensors before the first one changes
        if name in state_dict:
            _check_fit(name, tensor, state_dict[name])
    loaded = []
    for name, tensor in tqdm(model_state.items(), desc="loading", disable=not verbose, leave=False, delay=1):
        if name not in state_dict:
            continue
        tensor_value = state_dict.pop(name) if consume else state_dict[name]
        if tensor_value.shape != tensor.shape:
            tensor_value = tensor_value.reshape(tensor.shape)
        value = tensor_value.to(tensor.device).cast(tensor.dtype)
        loaded.append(tensor.replace(Tensor(laid_out_as(value.lazydata, tensor.lazydata))))
        if realize:
            tensor.realize()
    return loaded


def _check_fit(name: str, tensor: Tensor, value: Any) -> None:
    if not isinstance(value, Tensor):
        raise TypeError(f"load_state_dict: {name} is a {type(value).__name__} in the state; need a Tensor")
    if value.shape != tensor.shape and {value.shape, tensor.shape} != {(), (1,)}:  # a count may have either shape
        raise ValueError(f"load_state_dict: {name} has shape {tensor.shape} in the model, {value.shape} in the state")


def _join_names(names: list[str]) -> str:
    further = f" and {len(names) - 5} more" if len(names) > 5 else ""
    return ", ".join(names[:5]) + further
