"""Beams that deform by a few forms in a frame that floats with them."""
