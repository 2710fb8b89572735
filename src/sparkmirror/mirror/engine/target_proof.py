"""Proof that a flow's target checks appends, before the first copy."""

from __future__ import annotations

import logging

from sparkmirror.config import FlowConfig
from sparkmirror.errors import SparkMirrorError, UnfitTarget
from sparkmirror.events import Event
from sparkmirror.exact.durable.append_proofs import ProofMemory
from sparkmirror.exact.durable.losses import losses_topic
from sparkmirror.kafka.cluster.append_proof import Software, proof, software
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.cluster.topic_log import TopicLog

log = logging.getLogger(__name__)


class TargetProof:
    """Prove a flow's target: `demand`, then `remember`.

    `demand` comes before anything is created, `remember` once the flow's own topics exist.
    """

    def __init__(self, flow: FlowConfig, client: ClusterClient) -> None:
        self._flow = flow
        self._client = client
        self._topic = losses_topic(flow.source.alias)
        self._memory = ProofMemory(TopicLog(client, self._topic))
        self._proven: Software | None = None
        """Software that was proven and is not written down yet."""

    def demand(self) -> None:
        """Raise `UnfitTarget` if the append check doesn't hold at the target.

        If the check can't be tried, that is a warning. A proof that the flow has written down, or that this process
        knows, is not repeated.
        """
        if not self._flow.copies:
            return
        try:
            runs = software(self._client)
            if self._known() == runs:
                return
            result = proof(self._client, runs)
        except (ConnectionError, SparkMirrorError) as error:
            self._not_proven(str(error))
            return
        target = self._flow.target.alias
        if result.untold:
            self._not_proven(result.untold)
        elif not result.holds:
            raise UnfitTarget(
                f"cluster {target} can't be a target: its brokers don't check appended batches as Apache Kafka does, so"
                f" records would be lost or there twice: {result.words}; mirror to another cluster"
            )
        else:
            self._proven = runs
            log.info(
                "flow %s: append check proven at cluster %s: %s",
                self._flow.name,
                target,
                result.words,
                extra=Event.APPEND_CHECK_PROVEN.extra,
            )

    def remember(self) -> None:
        """Write down the new proof; if that fails, the next start proves it once more."""
        if self._proven is not None:
            try:
                self._memory.learn(self._proven)
            except (ConnectionError, SparkMirrorError) as error:
                log.debug("flow %s: the proof of the append check was not written down: %s", self._flow.name, error)
            self._proven = None

    def _known(self) -> Software | None:
        if self._client.metadata([self._topic])[self._topic].error:  # the flow's first start
            return None
        try:
            return self._memory.read()
        except ConnectionError:
            return None

    def _not_proven(self, why: str) -> None:
        target = self._flow.target.alias
        log.warning(
            "flow %s: append check not proven at cluster %s: %s",
            self._flow.name,
            target,
            why,
            extra=Event.APPEND_CHECK_NOT_PROVEN.extra,
        )
