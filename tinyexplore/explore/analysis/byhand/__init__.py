"""By hand: the debugger of kernels, and the model of the caches that they read through."""
