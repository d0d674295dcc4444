"""A saved trace: its tables, the file format, checks, questions and static pictures.

Nothing here imports the engine or the widgets, so a trace is opened, queried and drawn without them. Only
`tinyexplore.util` (its limits on untrusted files, its graph walks, its settings) is used from below.
"""
