"""Compiles ScheduleItems: chooses or searches opts, lowers the kernel, compiles it on several threads, and caches
it."""
