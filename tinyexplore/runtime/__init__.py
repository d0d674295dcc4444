"""The runtimes of devices: they compile and run programs with LLVM, a C compiler, GPU drivers, wasmtime, or Python
itself."""
