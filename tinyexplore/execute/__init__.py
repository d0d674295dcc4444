"""Compiled kernels at work: plans, groups of native calls, memory, instances, threads."""
