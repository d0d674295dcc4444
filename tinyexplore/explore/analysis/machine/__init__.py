"""The ceilings of this machine: benchmark loops (`loops.py`), their rates (`probes.py`), the table of rates
(`table.py`), and the roof of each kernel of a trace (`roofs.py`).
"""
