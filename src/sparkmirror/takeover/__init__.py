"""The end of a copy that somebody made before this mirror: MirrorMaker 2, MirrorMaker 1, the operator, or ourselves.

`from_mm2` and `from_mm1` find it out, `start_claims` writes it down, and the pumps go on from there. `engine` and
everything above import it. Start with `from_mm2`.
"""
