"""Offsets of the source as offsets of the target, and back, exactly.

`offset_map` answers for one partition, `map_keeper` keeps the maps of a flow up to date from claims. `sync` and
everything above import the package. Start with `run_table`.
"""
