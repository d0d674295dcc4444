"""What this machine can do at best: loops (`loops.py`), their rates (`probes.py`), the table of them (`table.py`) and
what it leaves each kernel of a trace (`roofs.py`)."""
