"""Translate source offsets into target offsets, and back, exactly.

`offset_map` translates, `partition_map` makes one partition's map of claims, `map_keeper` keeps a flow's maps up to
date. `sync` and everything above import the package. Start with `run_table`.
"""
