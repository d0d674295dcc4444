"""Saved traces: the tables, the file format, validation, queries and static pictures.

No module here imports the engine or the widgets, so a trace can be opened, queried and drawn without them. The only
import from below is `tinyexplore.util` (limits for untrusted files, graph walks, settings).
"""
