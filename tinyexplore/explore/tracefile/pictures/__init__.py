"""Static pictures of a trace: SVG, the layout of graphs, and colored listings."""
