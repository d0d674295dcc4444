"""A stage of a kernel as edited text: compiled, run in its own process, and compared.

`asking.py` is the notebook's side; `worker.py` the process that does it, each edit in a process of its own
(`apart.py`), on memory with `fences.py` around it; `faults.py` says how one ended. `linear.py` is the text form of
linear programs, `stages.py` says what can be edited.
"""
