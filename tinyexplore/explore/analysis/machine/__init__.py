"""The ceilings of this machine.

`benchmark_loops.py` has the benchmark loops, `probes.py` their rates, `ceiling_table.py` the table of rates,
and `roofs.py` the roof of each kernel of a trace.
"""
