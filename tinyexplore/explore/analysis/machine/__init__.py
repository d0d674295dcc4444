"""The ceilings of this machine.

`loops.py` has the benchmark loops, `probes.py` their rates, `table.py` the table of rates, and `roofs.py` the roof of
each kernel of a trace.
"""
