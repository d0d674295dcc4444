"""Verdicts on the speed of kernels: measured and modeled facts, ordered rules, and the resulting sentence."""
