"""Editing a stage of a kernel as text: the text is compiled, run in its own process, and compared.

client.py: the notebook's side, which sends the text to the worker.
worker.py: the process that compiles, runs and times the text.
sandbox.py: starts a process for each edit.
guard_pages.py: memory between guard pages, on which the edited kernel runs.
faults.py: describes how a crashed kernel ended.
linear_text.py: linear programs as text.
stages.py: the stages that can be edited.
"""
