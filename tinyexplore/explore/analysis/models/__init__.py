"""Kernel analysis: the debugger, and the models of caches, ports and GPUs."""
