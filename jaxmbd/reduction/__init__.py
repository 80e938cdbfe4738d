"""Beams that deform by a few forms in a frame that floats with them."""

from .ritz_forms import Reduced as Reduced, ritz as ritz
