"""Real clusters with faults and distance, for tests, chaos and bench.

Nothing here belongs to the product: `sparkmirror.demo` has the plain clusters.
"""

from lab.authority import Authority
from lab.cluster import Broker, KafkaCluster
from lab.connect import RealConnectWorker, RealMirrorMaker

__all__ = ["Authority", "Broker", "KafkaCluster", "RealConnectWorker", "RealMirrorMaker"]
