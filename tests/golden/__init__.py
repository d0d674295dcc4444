"""Golden files: the compiler's output for fixed programs and fixed machines. `python -m tests.golden` compares."""
