"""Is a kernel fast, and if not, why? Facts (measured or modelled), rules in order, and the sentence."""
