"""Runs compiled kernels: plans, groups of native calls, memory, instances, threads."""
