"""A trace for other places: pages, graphs and timelines of other programs, tables, scripts."""
