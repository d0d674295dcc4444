"""What a reader holds: `explore`, `capture`, the Explorer, rich displays, magics and the questions of views."""
