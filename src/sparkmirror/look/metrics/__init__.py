"""Prometheus metrics, under sparkmirror's own names and MirrorMaker 2's.

MirrorMaker 2's names are the names that its dashboards ask for.
"""
