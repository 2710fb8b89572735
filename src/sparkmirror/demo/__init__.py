"""Real brokers on this machine, and a mirror between them, for showing."""

from sparkmirror.demo.brokers import DemoBroker, DemoCluster

__all__ = ["DemoBroker", "DemoCluster"]
