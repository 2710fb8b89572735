"""Consumer group offset sync app: commits groups' checkpoints again and again.

For operators of MirrorMaker 2 without `sync.group.offsets.enabled`. Does the same as AWS's MM2GroupOffsetSync, tick by
tick, and logs the same words, without its faults: an error ends a tick and never the schedule, a partition where the
group has no offset is set, the log names as updated only the updated offsets, and several groups may be given.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from sparkmirror.client.mirror_client import MirrorClient
from sparkmirror.client.settings import ADMIN, cluster_config
from sparkmirror.client.translated_offsets import GroupOffsets, OffsetAndMetadata, TopicPartition
from sparkmirror.errors import SparkMirrorError
from sparkmirror.events import Event
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.cluster.error_names import error_name
from sparkmirror.kafka.cluster.groups import Committed, Groups, Offsets

TRANSLATE_S = 20.0
"""Longest time for reading the checkpoints once: as in AWS's app."""

IDLE = frozenset({"Empty", "Dead"})

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupTurn:
    """One tick's outcome for a group."""

    group: str
    state: str = ""
    """The group's state at the target, such as `Empty` or `Stable`.

    `Dead` for a missing group; empty if the target could not be asked.
    """
    updated: GroupOffsets = field(default_factory=dict)
    refused: Mapping[TopicPartition, str] = field(default_factory=dict)
    """The error's name for each partition whose offset the target refused."""
    error: str = ""
    """Reason why the tick failed; empty for success."""


class GroupSync:
    """Sync one cluster's groups with the checkpoints of the cluster `alias`.

    Close it, or use `run`. `settings` are `MirrorClient`'s settings; raises `ConfigError`. Connects at the first tick.
    """

    def __init__(self, settings: Mapping[str, str], alias: str, groups: Sequence[str]) -> None:
        self._alias = alias
        self._names = tuple(dict.fromkeys(groups))
        self._mirror_client = MirrorClient(settings)
        self._client = ClusterClient(cluster_config(settings, ADMIN), settings.get("client.id", "mm2OffsetSync"))
        self._groups = Groups(self._client)

    def run(
        self,
        interval_s: float,
        stop: threading.Event,
        run_for_s: float = 0.0,
        on_turn: Callable[[GroupTurn], None] = lambda _: None,
    ) -> None:
        """Tick at once and then at each interval, until `stop` is set.

        With `run_for_s` above 0, end after that time, too.
        """
        started = time.monotonic()
        log.info("Start Time: %d", time.time() * 1000)
        deadline = started + run_for_s if run_for_s > 0 else float("inf")
        due = started
        try:
            while not stop.wait(max(min(due, deadline) - time.monotonic(), 0)):
                if time.monotonic() >= deadline:
                    log.info("Reached specified run time of %g seconds. Shutting down.", run_for_s)
                    break
                self.tick(on_turn)
                due = max(due + interval_s, time.monotonic())
        finally:
            self.close()
            log.info("Shutdown called. Starting to exit.")
            log.info("End Timestamp: %d", time.time() * 1000)
            log.info("Execution time in milliseconds: %d", (time.monotonic() - started) * 1000)

    def tick(self, on_turn: Callable[[GroupTurn], None] = lambda _: None) -> None:
        """Sync each group once; log errors, so that the next tick tries again."""
        for group in self._names:
            on_turn(self._turn(group))

    def close(self) -> None:
        """Close all connections."""
        self._client.close()
        self._mirror_client.close()

    def _turn(self, group: str) -> GroupTurn:
        state = ""
        try:
            listed = self._groups.listed().get(group)
            state = listed.state if listed is not None else "Dead"
            log.info("ConsumerGroupDescriptions for consumer group %s - %s", group, listed or "it does not exist")
            return self._sync(group, state)
        except (ConnectionError, SparkMirrorError) as error:
            log.error("consumer group %s: %s", group, error, extra=Event.GROUP_SYNC_FAILED.extra)
            return GroupTurn(group=group, state=state, error=str(error))

    def _sync(self, group: str, state: str) -> GroupTurn:
        if state not in IDLE:
            log.info(
                "Consumer group %s is %s at the destination: its own members commit. Nothing to update.", group, state
            )
            return GroupTurn(group=group, state=state)
        error = ""
        try:
            translated = self._translated(group)
        except SparkMirrorError as failure:
            log.info("Error retrieving translated offsets. Returning empty map.")
            log.error("%s", failure, extra=Event.GROUP_SYNC_FAILED.extra)
            translated, error = {}, str(failure)
        if not translated:
            log.info("No translated offsets received for consumer group id %s. Nothing to update.", group)
            return GroupTurn(group=group, state=state, error=error)
        due = self._higher(group, translated)
        return self._commit(group, state, due) if due else GroupTurn(group=group, state=state)

    def _translated(self, group: str) -> GroupOffsets:
        translated = self._mirror_client.remote_consumer_offsets(group, self._alias, TRANSLATE_S)
        if not translated:
            log.info("Could not find or get translated offsets for consumer group id: %s", group)
        else:
            now_ms = int(time.time() * 1000)
            shown = in_javas_words(translated)
            log.info("%d - Translated offsets for consumer group from checkpoint %s - %s", now_ms, group, shown)
        return translated

    def _higher(self, group: str, translated: GroupOffsets) -> GroupOffsets:
        """Return the offsets ahead of the group's committed ones.

        Other offsets are left out, so that no committed offset is ever moved back.
        """
        fetched = self._groups.committed([group])
        if group in fetched.refused:
            log.info("Error retrieving Consumer Group offsets. Returning Empty Map.")
            raise ConnectionError(f"its committed offsets can't be read: {fetched.refused[group]}")
        committed = fetched.offsets[group]
        if not committed:
            log.info(
                "No Consumer Group offsets for specified consumer group id %s. Returning translated consumer offsets.",
                group,
            )
            return translated
        log.info("Consumer Group Offsets at destination for consumer group id %s - %s", group, _shown(committed))
        log.info("Checking to see if the translated offsets are higher than destination consumer offsets")
        due = {
            tp: offset
            for tp, offset in translated.items()
            if tp not in committed or offset.offset > committed[tp].offset
        }
        log.info("Filtered consumer offsets - %s", in_javas_words(due))
        if not due:
            log.info("Translated offsets for consumer group id %s either smaller or caught up", group)
        return due

    def _commit(self, group: str, state: str, due: GroupOffsets) -> GroupTurn:
        offsets: Offsets = {(*tp,): Committed(offset.offset, offset.metadata) for tp, offset in due.items()}
        outcome = self._groups.commit({group: offsets})[group]
        done = {tp: offset for tp, offset in due.items() if not outcome.get((*tp,), -1)}
        refused = {TopicPartition(*tp): error_name(code) for tp, code in outcome.items() if code}
        for tp, name in refused.items():
            log.error(
                "consumer group %s: the offset of %s-%d was refused: %s",
                group,
                *tp,
                name,
                extra=Event.GROUP_SYNC_FAILED.extra,
            )
        if done:
            log.info("Updated offsets for consumer group: %s with offsets %s", group, in_javas_words(done))
        return GroupTurn(group=group, state=state, updated=done, refused=refused)


def in_javas_words(offsets: GroupOffsets) -> str:
    """Print committed offsets as Java prints a map, for searches in logs."""
    entries = (
        f"{tp.topic}-{tp.partition}="
        f"OffsetAndMetadata{{offset={committed.offset}, leaderEpoch=null, metadata='{committed.metadata}'}}"
        for tp, committed in sorted(offsets.items())
    )
    return "{" + ", ".join(entries) + "}"


def _shown(committed: Offsets) -> str:
    return in_javas_words(
        {TopicPartition(*tp): OffsetAndMetadata(entry.offset, entry.metadata) for tp, entry in committed.items()}
    )
