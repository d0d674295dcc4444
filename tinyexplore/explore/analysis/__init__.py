"""Pure functions from a trace or a kernel to a result: caches, throughput, GPUs, shapes, reasons, comparisons."""
