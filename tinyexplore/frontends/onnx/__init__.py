"""ONNX models as functions of Tensors: `model = tinyexplore.onnx.load("model.onnx"); model(x)`.

`reader` converts untrusted bytes to a checked graph. `listing` writes it as text. `evaluation` computes it on Tensors
with one function per operator (`operators/`). `model` combines these. Needs the `onnx` package.
"""

from tinyexplore.frontends.onnx.errors import OnnxError, UnsupportedOperator
from tinyexplore.frontends.onnx.model import Model, ModelInput, load
from tinyexplore.frontends.onnx.supported import supported_operators

__all__ = ["ModelInput", "Model", "OnnxError", "UnsupportedOperator", "load", "supported_operators"]
