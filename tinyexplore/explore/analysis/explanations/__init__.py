"""Explanations: which rules could fire, why LazyBuffers share a kernel or not, and why opts were chosen."""
