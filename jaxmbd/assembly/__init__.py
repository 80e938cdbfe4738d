"""Mechanisms from bodies, joints and loads, put together and stacked into a system."""
