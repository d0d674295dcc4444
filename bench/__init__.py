"""Benchmarks against other engines and against the machine itself: `python -m bench --help`, from a source checkout."""
