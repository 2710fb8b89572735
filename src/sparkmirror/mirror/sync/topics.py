"""The topic duty: each replicated source topic gets a remote topic.

The pumps write into the remote topics. Settings: `topics`, `topics.exclude`, `replication.policy.*`, the flow's
`replication.factor`.

A source topic is left out, in this order:

- unseen: sparkmirror's principal may not DESCRIBE it;
- unwanted (`TopicRules.wanted`): done, or a name that fails a `NameCheck`;
- refused, with a reason in `TopicSync.refused`: an illegal or equal remote name, another flow's copy (`other_flows`),
  an unreadable configuration, or no creation at the target;
- given up after the duty: another flow noted the copy at the same time (`first_notes`).

`flow_topics.FlowTopics.partitions` then leaves out single partitions. Flows that would clash are refused at the start,
before any topic (`echoes`, `fan_in`, `policy.cluster_ids`).

`TopicDuty.sync_once` creates missing topics and adds missing partitions, as MirrorMaker 2 does (`mm2.md` 3.2). The duty
never shrinks or deletes a topic, may run at any time, and a repeated run changes nothing.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from sparkmirror.events import Event
from sparkmirror.kafka.cluster.admin import ClusterAdmin
from sparkmirror.kafka.cluster.new_topics import NewTopicSpec
from sparkmirror.kafka.cluster.refusal_lines import creation_refusal, refusal
from sparkmirror.kafka.cluster.topic_descriptions import TopicDescription
from sparkmirror.kafka.wire.error_codes import ErrorCode
from sparkmirror.mirror.sync.other_flows import OtherFlows, refusal_of_second
from sparkmirror.mirror.sync.refused_properties import property_refusal, refused_properties
from sparkmirror.mirror.sync.topic_properties import creation_configs
from sparkmirror.mirror.sync.topic_rules import TopicRules, illegal
from sparkmirror.mirror.sync.unknown_properties import by_property, create_as_known, known_properties

logger = logging.getLogger(__name__)

LED_WITHIN_S = 10.0
"""Seconds from a topic's creation until the target must list it with its leaders."""
LED_PAUSE_S = 0.1
LEAST_WAIT_S = 1.0
"""Shortest time until another try of topics over the target's quota, in seconds."""


@dataclass(frozen=True, slots=True)
class MirroredTopic:
    """A source topic and its remote topic, ready to be pumped into."""

    source: TopicDescription
    remote: TopicDescription

    @property
    def partitions(self) -> tuple[int, ...]:
        """Partitions that exist on both sides."""
        remote = {partition.partition for partition in self.remote.partitions}
        return tuple(p.partition for p in self.source.partitions if p.partition in remote)

    @property
    def only_at_target(self) -> tuple[int, ...]:
        """Partitions that the source topic lacks, or no longer has."""
        there = {partition.partition for partition in self.source.partitions}
        return tuple(p.partition for p in self.remote.partitions if p.partition not in there)


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicSync:
    """Findings and actions of one run."""

    mirrored: tuple[MirroredTopic, ...]
    """Topics that can be pumped now."""
    created: tuple[str, ...]
    """Created remote topics' names."""
    grown: tuple[str, ...]
    """Names of remote topics that got more partitions."""
    refused: Mapping[str, str]
    """Source topic to reason why the topic, or its newest partitions, can't be pumped.

    One line each; the next run tries again.
    """
    at_source: frozenset[str] = frozenset()
    """Every source topic, replicated or not."""
    unknown: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Remote topic to properties that the creation left out.

    The target's brokers don't know these properties.
    """
    wait_s: float = 0.0
    """Seconds until topics over the target's quota may be tried again.

    0: no such topics.
    """


class TopicDuty:
    """The duty that keeps one flow's remote topics in step with the source's topics."""

    def __init__(
        self, source: ClusterAdmin, target: ClusterAdmin, rules: TopicRules, others: OtherFlows | None = None
    ) -> None:
        """Prepare the duty.

        `others` are the flows whose copies are left alone; `None` if there are no other flows.
        """
        self._source = source
        self._target = target
        self._rules = rules
        self._others = others
        self._over_quota: set[str] = set()
        """Source topics with copies over the target's partition creation quota."""
        self._wait_s = 0.0

    def sync_once(self) -> TopicSync:
        """Compare both clusters and correct the target; raises `ClusterUnreachable`."""
        sources = self._source.topics()
        remotes = self._target.topics()
        refused: dict[str, str] = {}
        names = self._remote_names(sources, refused)
        self._leave_to_others(names, remotes, refused)
        missing = [name for name, remote in names.items() if remote not in remotes]
        small = [
            name
            for name, remote in names.items()
            if remote in remotes and len(remotes[remote].partitions) < len(sources[name].partitions)
        ]
        self._over_quota.clear()
        self._wait_s = 0.0
        created, unknown = self._create(missing, sources, names, refused, remotes)
        grown = self._grow(small, sources, names, refused)
        due = {names[name]: len(sources[name].partitions) for name in [*created, *grown]}
        remotes |= self._once_led(due)
        for name in created:
            if names[name] not in remotes:
                refused[name] = f"topic {names[name]} was created, but cluster {self._at} does not list it yet"
        self._tell_quota(len(names) - len(self._over_quota), len(names), refused)
        for name in sorted(refused.keys() - self._over_quota):
            logger.warning("topic not replicated: %s: %s", name, refused[name], extra=Event.TOPIC_NOT_REPLICATED.extra)
        return TopicSync(
            mirrored=tuple(
                MirroredTopic(sources[name], remotes[remote]) for name, remote in names.items() if remote in remotes
            ),
            created=tuple(names[name] for name in created),
            grown=tuple(names[name] for name in grown),
            refused=refused,
            at_source=frozenset(sources),
            unknown=unknown,
            wait_s=self._wait_s,
        )

    def _tell_quota(self, done: int, wanted: int, refused: dict[str, str]) -> None:
        """Tell how far the topics are that the target's quota has stopped, in one line."""
        if not self._over_quota:
            return
        progress = (
            f"cluster {self._at} limits the creation of partitions (quota controller_mutation_rate): {done:,} of "
            f"{wanted:,} topics are there, the next try is in {self._wait_s:,.1f} s"
        )
        logger.info("topics wait: %s", progress, extra=Event.TOPICS_WAIT.extra)
        refused |= dict.fromkeys(self._over_quota, f"waits to be created whole: {progress}")

    @property
    def _at(self) -> str:
        return self._target.config.alias

    def _remote_names(self, sources: Iterable[str], refused: dict[str, str]) -> dict[str, str]:
        """Map the topics to replicate to their remote names, if such names can exist."""
        names: dict[str, str] = {}
        owners: dict[str, str] = {}
        for name in sorted(filter(self._rules.wanted, sources)):
            remote = self._rules.remote_name(name)
            if why := illegal(remote):
                refused[name] = why
            elif remote in owners:
                refused[name] = f"topic {owners[remote]} has the same remote name, {remote}"
            else:
                names[name] = remote
                owners[remote] = name
        return names

    def _leave_to_others(
        self, names: dict[str, str], remotes: Mapping[str, TopicDescription], refused: dict[str, str]
    ) -> None:
        """Remove topics from `names` whose remote topics another flow copies into."""
        if self._others is None:
            return
        there = {remote: remotes[remote] for remote in names.values() if remote in remotes}
        others = self._others.copiers(there, remotes)
        flow = f"{self._rules.source_alias}->{self._rules.target_alias}"
        for name in [name for name, remote in names.items() if remote in others]:
            remote = names.pop(name)
            refused[name] = refusal_of_second(flow, others[remote], remote).line

    def _create(
        self,
        missing: Iterable[str],
        sources: Mapping[str, TopicDescription],
        names: Mapping[str, str],
        refused: dict[str, str],
        remotes: Iterable[str],
    ) -> tuple[list[str], dict[str, tuple[str, ...]]]:
        """Create missing topics; return the created topics and their left-out properties.

        `remotes` are the topics that exist already.
        """
        configs = self._source.topic_configs(missing)
        specs = {}
        for name in missing:
            if name in configs:
                specs[name] = NewTopicSpec(
                    names[name],
                    len(sources[name].partitions),
                    self._rules.replication_factor,
                    creation_configs(configs[name], self._rules),
                )
            else:
                refused[name] = (
                    f"its configuration can't be read on cluster {self._source.config.alias}: "
                    f"it is gone, or sparkmirror's principal needs DESCRIBE_CONFIGS on it"
                )
        answers, unknown = create_as_known(
            specs.values(), self._target.creations, lambda: self._known_properties(names, remotes)
        )
        if unknown:
            logger.warning(
                "created without properties that the brokers of cluster %s don't know: %s",
                self._at,
                by_property(unknown),
                extra=Event.TOPIC_CONFIG_NOT_SYNCED.extra,
            )
        self._note_quota(names, answers)
        outcomes = {remote: creation_refusal(code, words) for remote, (code, words) in answers.items()}
        outcomes |= self._refused_for_properties(specs.values(), answers, names, remotes)
        return self._successes(specs, names, outcomes, "created", refused), unknown

    def _refused_for_properties(
        self,
        specs: Iterable[NewTopicSpec],
        answers: Mapping[str, tuple[int, str]],
        names: Mapping[str, str],
        remotes: Iterable[str],
    ) -> dict[str, str]:
        """Return the reasons for topics refused for properties, by remote name.

        A reason names the properties and the setting to write.
        """

        def dry(trial: list[NewTopicSpec]) -> Mapping[str, tuple[int, str]]:
            known = self._known_properties
            return create_as_known(trial, self._target.would_create, lambda: known(names, remotes))[0]

        culprits = refused_properties(specs, answers, dry)
        return {remote: property_refusal(*answers[remote], properties) for remote, properties in culprits.items()}

    def _known_properties(self, names: Mapping[str, str], remotes: Iterable[str]) -> frozenset[str]:
        """Return the properties that the target's brokers know.

        Copies are asked first, because the principal surely may read their properties.
        """
        copies = set(names.values())
        return known_properties(self._target, sorted(remotes, key=lambda remote: (remote not in copies, remote)))

    def _grow(
        self,
        small: Iterable[str],
        sources: Mapping[str, TopicDescription],
        names: Mapping[str, str],
        refused: dict[str, str],
    ) -> list[str]:
        counts = {names[name]: len(sources[name].partitions) for name in small}
        answers = self._target.create_partitions(counts)
        self._note_quota(names, answers)
        outcomes = {remote: refusal(code, words) if code else None for remote, (code, words) in answers.items()}
        return self._successes(small, names, outcomes, "given more partitions", refused)

    def _note_quota(self, names: Mapping[str, str], answers: Mapping[str, tuple[int, str]]) -> None:
        code = ErrorCode.THROTTLING_QUOTA_EXCEEDED
        stopped = {name for name, remote in names.items() if answers.get(remote, (0, ""))[0] == code}
        if stopped:
            self._over_quota |= stopped
            self._wait_s = max(self._wait_s, self._target.quota_wait_s, LEAST_WAIT_S)

    def _successes(
        self,
        topics: Iterable[str],
        names: Mapping[str, str],
        outcomes: Mapping[str, str | None],
        what: str,
        refused: dict[str, str],
    ) -> list[str]:
        done = []
        for name in topics:
            reason = outcomes.get(names[name], "the broker said nothing about it")
            if reason is None:
                logger.info("topic %s: %s on cluster %s", what, names[name], self._at, extra=Event.TOPIC_CREATED.extra)
                done.append(name)
            else:
                refused[name] = f"topic {names[name]} can't be {what} on cluster {self._at}: {reason}"
        return done

    def _once_led(self, due: Mapping[str, int]) -> dict[str, TopicDescription]:
        """Describe changed topics, once all partitions have leaders or time is up."""
        deadline = time.monotonic() + LED_WITHIN_S
        while True:
            described = self._target.topics(due)
            ready = all(name in described and _led(described[name]) >= count for name, count in due.items())
            if ready or time.monotonic() > deadline:
                return described
            time.sleep(LED_PAUSE_S)


def _led(topic: TopicDescription) -> int:
    return sum(partition.leader >= 0 for partition in topic.partitions)
