"""Exact position of a partition's copy, from claims and the target's log.

`reader` asks the clusters, `resolving` weighs claims against the log, `decision` decides where the copy continues, and
`loss_detection` compares histories. `pump` and all packages above import this package. Start with `decision`.
"""
