"""Ordinary programs, compared with PyTorch: `python -m bench.cliffs` finds programs that are much slower here."""
