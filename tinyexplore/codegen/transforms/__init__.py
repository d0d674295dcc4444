"""Functions of whole graphs, one module each; `codegen/pipeline.py` says when they run."""
