"""Front ends: run programs of other frameworks on Tensors. Only this package knows those frameworks.

A front end imports the engine; no lower package imports a front end. Each is loaded when it is used, and needs an
extra: `pip install 'tinyexplore[onnx]'`; for PyTorch, PyTorch itself.
"""
