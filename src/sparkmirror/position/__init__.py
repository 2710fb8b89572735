"""The exact position of a partition's copy, found out from claims and from the target's log.

`reader` asks the clusters, `settling` weighs claims against the log, `decision` says where the copy goes on;
`loss_detection` compares histories. `pump` and everything above import it. Start with `decision`.
"""
