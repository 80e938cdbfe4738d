"""Positions of rest, paths of them, and small vibrations about them."""
