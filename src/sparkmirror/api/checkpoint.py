"""A streaming query's checkpoint, rewritten for the other cluster."""

from __future__ import annotations

from types import MappingProxyType

from sparkmirror.api.configured import File, Properties, Route, configured, only
from sparkmirror.frames.rewrite_checkpoint import Place, RewrittenCheckpoint
from sparkmirror.frames.rewrite_checkpoint import rewrite_checkpoint as rewrite


def rewrite_checkpoint(
    checkpoint: Place,
    to: Place,
    config: File | Properties,
    *,
    flow: str | None = None,
    properties: Properties = MappingProxyType({}),
) -> RewrittenCheckpoint:
    """Copy a stopped query's checkpoint so that the query continues at the target.

    The query then reads each record once, whichever cluster it came from. `checkpoint` and `to` are directories, or
    addresses that PyArrow knows, such as `s3://bucket/path`; nobody may have written `to` before. In the query itself
    `kafka.bootstrap.servers` and `subscribe` change. Raises `ConfigError`, `ClusterUnreachable`, and `NotTranslated`
    with a line for each partition without an exact offset.
    """
    return rewrite(checkpoint, to, only(configured(config, Route(), properties), flow))
