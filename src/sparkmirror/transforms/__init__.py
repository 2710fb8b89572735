"""Kafka Connect's own single message transforms, run by Java names.

`docs/transforms.md` lists classes, options and differences from Java. No JVM runs; records stay bytes except while a
transform reads a key or a value.
"""

from sparkmirror.transforms.chain import Chain
from sparkmirror.transforms.chained_rows import apply_to_batches
from sparkmirror.transforms.parsing import parse_chain
from sparkmirror.transforms.record import Record

__all__ = ["Chain", "Record", "apply_to_batches", "parse_chain"]
