"""Builds a Trace from the engine's events."""
