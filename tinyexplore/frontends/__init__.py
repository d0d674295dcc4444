"""Front ends: programs of other frameworks, computed by Tensors. The only code that knows those frameworks.

A front end imports the engine; nothing below imports a front end. Each is loaded when it is used, and needs an extra:
`pip install 'tinyexplore[onnx]'`; for PyTorch, PyTorch itself.
"""
