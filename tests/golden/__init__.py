"""Golden files: what the compiler makes of fixed programs for fixed machines. `python -m tests.golden` compares."""
