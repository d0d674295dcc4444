"""The state of models: the named tensors of an object, and files of tensors (safetensors, PyTorch, GGUF)."""

from tinyexplore.nn.state.file import FormatError
from tinyexplore.nn.state.gguf import gguf_load
from tinyexplore.nn.state.names import get_parameters, get_state_dict, load_state_dict
from tinyexplore.nn.state.safetensors import safe_load, safe_load_metadata, safe_save
from tinyexplore.nn.state.tar import tar_extract
from tinyexplore.nn.state.torch import torch_load

__all__ = [
    "FormatError",
    "get_parameters",
    "get_state_dict",
    "gguf_load",
    "load_state_dict",
    "safe_load",
    "safe_load_metadata",
    "safe_save",
    "tar_extract",
    "torch_load",
]
