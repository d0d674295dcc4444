"""Machine code of other architectures, run by QEMU's user mode on this machine and compared with NumPy's results."""
