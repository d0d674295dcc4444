"""Tensor cores: which lane of a warp holds which element, as data and as pictures."""
