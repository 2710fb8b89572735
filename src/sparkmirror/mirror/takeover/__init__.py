"""End an earlier copy, by MirrorMaker 2 or 1, the operator, or this mirror.

`from_mm2` and `from_mm1` find the end, `start_claims` writes the end down, and the pumps go on from there. `engine` and
everything above import the package. Start with `from_mm2`.
"""
