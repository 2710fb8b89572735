"""Copy and move Kafka clusters exactly once, with MirrorMaker 2's configuration, on Spark."""

__version__ = "0.1.0"
