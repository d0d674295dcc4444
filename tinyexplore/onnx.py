"""ONNX models as functions of Tensors: `tinyexplore.onnx.load("model.onnx")`. See `tinyexplore.frontends.onnx`."""

from tinyexplore.frontends.onnx import Input, Model, OnnxError, UnsupportedOperator, load, supported_operators

__all__ = ["Input", "Model", "OnnxError", "UnsupportedOperator", "load", "supported_operators"]
