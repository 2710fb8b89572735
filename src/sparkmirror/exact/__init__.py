"""Exactly once: claims, positions and offset translation."""
