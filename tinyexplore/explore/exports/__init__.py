"""Exports of a trace: HTML pages, tables, scripts, and the graph and timeline formats of other programs."""
