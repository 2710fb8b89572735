"""Findings about a running mirror, by rules over the snapshot.

Each finding names a fault, its cause and the action to take.
"""
