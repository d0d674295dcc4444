"""ONNX models as functions of Tensors: `tinyexplore.onnx.load("model.onnx")`. See `tinyexplore.frontends.onnx`."""

from tinyexplore.frontends.onnx import Model, ModelInput, OnnxError, UnsupportedOperator, load, supported_operators

__all__ = ["ModelInput", "Model", "OnnxError", "UnsupportedOperator", "load", "supported_operators"]
