"""Compares captures and machines: the differences, and whether times differ by more than noise."""
