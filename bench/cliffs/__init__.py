"""Ordinary programs beside PyTorch: `python -m bench.cliffs` finds the ones that fall off a cliff."""
