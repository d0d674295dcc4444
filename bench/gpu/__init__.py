"""One unattended run on a machine with a GPU: `python -m bench.gpu` writes one file with all results."""
