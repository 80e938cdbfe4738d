"""Rotations, frames and rigid motions."""
