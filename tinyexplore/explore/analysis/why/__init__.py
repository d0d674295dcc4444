"""Why, and why not: the rules that could fire, the kernels that are one or two, the opts that were chosen."""
