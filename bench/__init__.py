"""Benchmarks against other engines and against the limits of the machine: `python -m bench --help`.

They run from a source checkout.
"""
