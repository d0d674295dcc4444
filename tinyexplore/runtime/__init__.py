"""The devices running: programs compiled and run by LLVM, by a C compiler, or by Python itself."""
