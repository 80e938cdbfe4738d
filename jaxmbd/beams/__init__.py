"""Geometrically exact beams: curves, sections, and the elements they are cut into."""
