"""Passes that transform a whole graph, one module each; `codegen/pipeline.py` has their order."""
