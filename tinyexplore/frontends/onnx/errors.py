"""Errors of ONNX models and of their inputs."""

from __future__ import annotations


class OnnxError(ValueError):
    """Raised for a model that is malformed or unsafe to load, and for inputs that do not fit. The message says
    which."""


class UnsupportedOperator(OnnxError):
    """Raised if the model needs an operator, a dtype or a mode of an operator that this front end lacks.

    Attributes:
        operator: the operator's name, with its domain if that is not the standard one.
        node: the node as a line of the model's text.
    """

    def __init__(self, text: str, operator: str = "", node: str = "") -> None:
        super().__init__(text)
        self.operator = operator
        self.node = node
