"""What-if commands: a command is data, a session executes it, and the result is a branch of the trace.

`commands/` has one file per kind of command, `branches.py` the session's branches. `kernel_compiler.py` compiles
kernels and times them.
"""
