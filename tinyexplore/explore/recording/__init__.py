"""From what the engine tells, while it works, to a Trace."""
