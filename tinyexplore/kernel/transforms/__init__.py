"""Changes of an ast that Opts are made of, and those that come before any Opt."""
