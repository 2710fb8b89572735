"""Kubernetes operator for Strimzi's `KafkaMirrorMaker2`.

Runs pods of `sparkmirror serve`, one Deployment for each resource.
"""
