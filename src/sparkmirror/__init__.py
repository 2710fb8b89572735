"""Exactly-once copies of Kafka clusters, on Spark.

The configuration is MirrorMaker 2's.
"""

__version__ = "0.2.0"
