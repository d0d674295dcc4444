"""Tables of rewrite rules, one module for each table or a few related ones; `codegen/pipeline.py` has their order."""
