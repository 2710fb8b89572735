"""Translate source offsets into target offsets, and back, exactly.

`offset_map` answers for one partition, `map_keeper` keeps a flow's maps up to date from claims. `sync` and everything
above import the package. Start with `run_table`.
"""
