"""A stage of a kernel as edited text: compiled, run in its own process, and compared.

client.py: the notebook's side, which sends the text to the worker.
worker.py: the process that compiles, runs and times the text.
sandbox.py: a process of its own for each edit.
guard_pages.py: memory between guard pages, on which the edited kernel runs.
faults.py: how a crashed kernel ended, as text.
linear.py: linear programs as text.
stages.py: the stages that can be edited.
"""
