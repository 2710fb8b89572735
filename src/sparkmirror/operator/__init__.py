"""Kubernetes operator for `Mirror`, and for Strimzi's `KafkaMirrorMaker2`.

Runs pods with `sparkmirror run` or `sparkmirror serve`, one Deployment for each resource. An event passes `watching`,
`controller`, `turn`, then `mirror_turn` or `connect_turn`: they apply `objects`, and write a status.
"""
