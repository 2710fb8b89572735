"""Real brokers and the real MirrorMaker 2 on this machine.

For showing, for testing and for measuring against.
"""

from sparkmirror.demo.authority import Authority
from sparkmirror.demo.brokers import Broker, KafkaCluster
from sparkmirror.demo.connect import RealConnectWorker, RealMirrorMaker

__all__ = ["Authority", "Broker", "KafkaCluster", "RealConnectWorker", "RealMirrorMaker"]
