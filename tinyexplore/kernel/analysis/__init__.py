"""Plain questions about a kernel: how it walks memory, what is kept where, what it reduces. Nothing is changed."""
