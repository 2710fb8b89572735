"""MirrorMaker 2's records, topics and rules, byte for byte as in its Java code.

The records are checkpoints, heartbeats, offset syncs and Connect's stored offsets. `sync`, `takeover` and everything
above import the package; the package imports `cluster` and below. Start with `record_formats`.
"""
