"""Tables of rules, one module for each or for a few that belong together; `codegen/pipeline.py` says when they run."""
