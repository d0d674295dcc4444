"""The runtimes of devices: they compile and run programs with LLVM, with a C compiler, or with Python itself."""
