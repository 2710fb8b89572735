"""MirrorMaker 2's own records, topics and rules, byte for byte as its Java code has them.

Checkpoints, heartbeats, offset syncs, Connect's stored offsets. `sync`, `takeover` and everything above import it; the
package imports `cluster` and below. Start with `records`.
"""
