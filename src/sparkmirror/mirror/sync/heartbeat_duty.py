"""Heartbeats: a sign of life a second, into a flow's target (`mm2.md` 3.8).

Flows from the target to further clusters copy the heartbeats along, so operators see from far away which clusters are
connected.
"""

from __future__ import annotations

from sparkmirror.clock import wall_ms
from sparkmirror.config import FlowConfig
from sparkmirror.exact.mm2.record_formats import Heartbeat
from sparkmirror.mirror.sync.internal_topic import InternalTopic
from sparkmirror.policy import ReplicationPolicy


class Heartbeats:
    """The heartbeat duty, each `emit.heartbeats.interval.seconds`.

    The duty also runs for a pair that copies no topics.
    """

    written = 1
    """Number of records that a good turn writes."""

    def __init__(self, flow: FlowConfig, policy: ReplicationPolicy) -> None:
        self._source, self._target = flow.mm2_source, flow.mm2_target
        self._topic = InternalTopic(
            flow.target,
            policy.heartbeats_topic(),
            f"{flow.name}|sparkmirror-heartbeats",
            replication_factor=flow.heartbeat.heartbeats_topic_replication_factor,
            factor_key="heartbeats.topic.replication.factor",
            timeout_s=flow.admin_timeout_ms / 1000,
        )

    def create(self) -> None:
        """Create the topic if need be; raises the same errors as `run`."""
        self._topic.create()

    def run(self) -> None:
        """Write one heartbeat, creating its topic if need be.

        Raises `ConnectionError` and `ClusterUnreachable`.
        """
        beat = Heartbeat(self._source, self._target, wall_ms())
        self._topic.append([(beat.key(), beat.value())], timestamp_ms=beat.timestamp_ms)

    def close(self) -> None:
        self._topic.close()
