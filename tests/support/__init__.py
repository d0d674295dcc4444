"""Helpers for several test folders."""
