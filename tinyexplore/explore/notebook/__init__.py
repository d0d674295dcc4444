"""The notebook interface: `explore`, `capture`, the Explorer, rich displays, magics and the requests of views."""
