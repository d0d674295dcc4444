"""Compiled kernels running: plans, groups of native calls, memory, instances, threads."""
