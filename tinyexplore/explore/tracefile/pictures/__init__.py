"""Static pictures of a trace: SVG, its layout, and listings in colors."""
