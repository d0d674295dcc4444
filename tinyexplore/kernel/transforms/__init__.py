"""Transformations of an ast: the building blocks of Opts, and the changes before the first Opt."""
