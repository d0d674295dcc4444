"""Verdicts on the speed of kernels: measured and modelled facts, ordered rules, and the resulting sentence."""
