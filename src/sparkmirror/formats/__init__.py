"""Files of all formats: MirrorMaker 2's properties, Kafka Connect's connectors, Strimzi's resources."""

from sparkmirror.formats.load import explain, read
from sparkmirror.formats.reading import Note, Reading, Resource

__all__ = ["Note", "Reading", "Resource", "explain", "read"]
