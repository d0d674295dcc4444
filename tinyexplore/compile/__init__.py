"""Compiles a ScheduleItem: chooses or searches its opts, lowers it, compiles it on several threads, and caches it."""
