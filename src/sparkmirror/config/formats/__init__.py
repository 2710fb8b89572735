"""Readers and writers for all configuration formats.

The formats are MirrorMaker 2's properties, Kafka Connect's connectors and Strimzi's resources.
"""

from sparkmirror.config.formats.load import model_of, read
from sparkmirror.config.formats.reading import Note, Reading, Resource

__all__ = ["Note", "Reading", "Resource", "model_of", "read"]
