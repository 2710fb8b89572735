"""Prometheus metrics, under our names and those that MirrorMaker 2 dashboards ask for."""
