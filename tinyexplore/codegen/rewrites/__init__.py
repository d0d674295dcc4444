"""Tables of rewrite rules, one module per table or group of related tables; `codegen/pipeline.py` has their order."""
