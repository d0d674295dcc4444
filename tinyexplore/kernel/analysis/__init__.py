"""Analyses of a kernel: strides, scratch memory, reductions. An analysis changes nothing."""
