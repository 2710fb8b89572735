"""Readers and writers of all configuration formats.

The formats are MirrorMaker 2's properties, Kafka Connect's connectors and Strimzi's resources.
"""

from sparkmirror.formats.load import explain, read
from sparkmirror.formats.reading import Note, Reading, Resource

__all__ = ["Note", "Reading", "Resource", "explain", "read"]
