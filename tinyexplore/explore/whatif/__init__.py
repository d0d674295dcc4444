"""What if: a command is data; a session carries it out; the answer is a branch of the trace.

`commands/` has a file for each kind of command, `branches.py` the session's branches, `bench.py` compiles and times.
"""
