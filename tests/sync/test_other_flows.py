"""A second flow into one topic leaves it to the first, at a real target; the first continues; nothing is deleted."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, nullcontext

import pytest
from flow_rules import cluster_config
from kafka import KafkaAdminClient
from lab import KafkaCluster
from waiting import assert_soon

from sparkmirror.config import IDENTITY_POLICY, ClusterConfig, FlowConfig
from sparkmirror.exact.durable.known_topics import KnownTopic, TopicMemory
from sparkmirror.exact.durable.losses import losses_topic
from sparkmirror.kafka.cluster.admin import ClusterAdmin
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.cluster.new_topics import NewTopicSpec
from sparkmirror.kafka.cluster.topic_descriptions import TopicDescription
from sparkmirror.kafka.cluster.topic_log import LogUnavailable, TopicLog
from sparkmirror.kafka.wire.error_codes import ErrorCode
from sparkmirror.look.doctor.explain_facts import explanations
from sparkmirror.look.doctor.explanation import Mark, Step
from sparkmirror.mirror.sync.first_notes import FirstNotes
from sparkmirror.mirror.sync.other_flows import OtherFlows
from sparkmirror.mirror.sync.topic_rules import topic_rules
from sparkmirror.mirror.sync.topics import MirroredTopic, TopicDuty, TopicSync

pytestmark = pytest.mark.broker


class Clusters:
    """A source and a target, and flows between them under any alias of the source."""

    def __init__(self, source: KafkaCluster, target: KafkaCluster, client: ClusterClient) -> None:
        self.source, self.target, self.client = source, target, client

    def flow(self, alias: str, topic: str) -> FlowConfig:
        return FlowConfig(
            source=cluster_config(alias, self.source),
            target=cluster_config("C", self.target),
            topics=(topic,),
            replication_policy_class=IDENTITY_POLICY,
            replication_factor=1,
            heartbeats_replication_enabled=False,
        )

    def explained(self, alias: str, topic: str) -> Step:
        """The check that decides, or the last, of a flow's topic."""
        flow = self.flow(alias, topic)
        (told,) = [one for one in explanations(flow, [flow], topic, 60) if one.kind == "topic"]
        return told.last

    def sync(self, alias: str, topic: str) -> TopicSync:
        """One run of a flow's topic duty, which then notes what it writes to, as the driver has it."""
        with self.run(alias, topic) as looked:
            return looked()

    @contextmanager
    def run(self, alias: str, topic: str, *, looks: bool = True) -> Iterator[Callable[[], TopicSync]]:
        """A run in two parts: topics are there, and then, at the call, they are noted and looked at again."""
        flow = self.flow(alias, topic)
        source, target = flow.source, flow.target
        with ClusterAdmin.connect(source, "test", 20) as here, ClusterAdmin.connect(target, "test", 20) as there:
            there.create_compacted_topic(losses_topic(alias), 1, 1)
            others, memory = OtherFlows(self.client, flow), TopicMemory(TopicLog(self.client, losses_topic(alias)))
            first_notes = FirstNotes(flow.name, there, others, memory)
            result = TopicDuty(here, there, topic_rules(flow), others).sync_once()
            first_notes.expect(result.mirrored)

            def noted() -> TopicSync:
                memory.learn(note_of(one) for one in result.mirrored)
                return first_notes.give_way(result) if looks else result

            yield noted


def note_of(topic: MirroredTopic) -> KnownTopic:
    remote = topic.remote
    return KnownTopic(source_topic=topic.source.name, target_topic=remote.name, target_topic_id=remote.topic_id.hex())


@pytest.fixture
def clusters(source_cluster: KafkaCluster, target_cluster: KafkaCluster) -> Iterator[Clusters]:
    with closing(ClusterClient(cluster_config("C", target_cluster), "test")) as client:
        yield Clusters(source_cluster, target_cluster, client)


def make(cluster: KafkaCluster, topic: str, partitions: int) -> None:
    with ClusterAdmin.connect(cluster_config("x", cluster), "test", 20) as admin:
        assert admin.create_topics([NewTopicSpec(topic, partitions, 1)]) == {topic: None}
        assert_soon(lambda: topic in admin.topics(), True)


def test_the_second_leaves_it_to_the_first(clusters: Clusters, topic_name: str) -> None:
    make(clusters.source, topic_name, 2)
    first, second = f"first-{topic_name}", f"second-{topic_name}"
    assert clusters.sync(first, topic_name).created == (topic_name,)
    with ClusterAdmin.connect(cluster_config("x", clusters.source), "test", 20) as admin:
        admin.create_partitions({topic_name: 3})
    result = clusters.sync(second, topic_name)
    assert (result.mirrored, result.grown, result.created) == ((), (), ())
    reason = result.refused[topic_name]
    assert reason.startswith(f"topic {topic_name} at the target is a copy that flow {first}->C keeps")
    assert f"take the topic out of {second}->C.topics, or use DefaultReplicationPolicy in {second}->C;" in reason
    again = clusters.sync(first, topic_name)
    assert (again.refused, again.grown) == ({}, (topic_name,))
    assert clusters.sync(second, topic_name).refused == {topic_name: reason}
    told = clusters.explained(second, topic_name)
    assert (told.check, told.mark, f"{told.words}: {told.change}") == ("fan-in", Mark.NO, reason)
    assert clusters.explained(first, topic_name).check != "fan-in"


def test_of_two_that_start_together_only_one_copies(clusters: Clusters, topic_name: str) -> None:
    """Both find the topic unnoted, at first; whoever sees the other's note gives way, also if both do."""
    make(clusters.source, topic_name, 1)
    first, second = f"first-{topic_name}", f"second-{topic_name}"
    with clusters.run(first, topic_name) as one, clusters.run(second, topic_name) as other:
        early, late = one(), other()
    assert ([topic.remote.name for topic in early.mirrored], early.refused) == ([topic_name], {})
    assert (late.mirrored, late.created) == ((), ())
    assert late.refused[topic_name].startswith(f"flow {first}->C has noted topic {topic_name} at the target, as ")
    assert clusters.sync(first, topic_name).refused == {}
    assert "is a copy that flow" in clusters.sync(second, topic_name).refused[topic_name]


def test_a_look_that_was_missed_is_made_up_for_with_the_next_lease(clusters: Clusters, topic_name: str) -> None:
    """Both had noted the topic, and ended before they looked again; nothing was copied yet."""
    make(clusters.source, topic_name, 1)
    first, second = f"first-{topic_name}", f"second-{topic_name}"
    with clusters.run(first, topic_name, looks=False) as one, clusters.run(second, topic_name, looks=False) as other:
        one()
        other()
    assert topic_name in clusters.sync(second, topic_name).refused
    assert clusters.sync(first, topic_name).refused == {}
    assert topic_name in clusters.sync(second, topic_name).refused


def test_topics_wait_for_notes_that_cant_be_read_now_and_hold_up_no_others(
    clusters: Clusters, topic_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(clusters.source, topic_name, 1)

    def away(*_: object) -> None:
        raise LogUnavailable("notes", "it can't be read", ErrorCode.REQUEST_TIMED_OUT)

    with clusters.run(f"first-{topic_name}", topic_name) as looked:
        monkeypatch.setattr(OtherFlows, "noted", away)
        waiting = looked()
        assert (waiting.mirrored, waiting.created) == ((), ())
        assert "another flow copies into it, and it waits" in waiting.refused[topic_name]
        monkeypatch.undo()
        assert [topic.remote.name for topic in looked().mirrored] == [topic_name]


def test_two_that_note_a_topic_at_the_same_moment_both_try_again(clusters: Clusters, topic_name: str) -> None:
    make(clusters.source, topic_name, 1)
    first, second = f"first-{topic_name}", f"second-{topic_name}"
    with (
        clusters.run(first, topic_name) as one,
        ClusterAdmin.connect(cluster_config("C", clusters.target), "test", 20) as there,
    ):
        there.create_compacted_topic(losses_topic(second), 1, 1)
        memory = TopicMemory(TopicLog(clusters.client, losses_topic(second)))
        remote = there.topics([topic_name])[topic_name]
        note = KnownTopic(source_topic=topic_name, target_topic=topic_name, target_topic_id=remote.topic_id.hex())
        memory.learn([note])
        assert topic_name in one().refused
        memory.forget([note])
    assert clusters.sync(second, topic_name).refused == {}
    assert topic_name in clusters.sync(first, topic_name).refused


def test_a_topic_that_was_deleted_is_anybodys(clusters: Clusters, topic_name: str) -> None:
    """As the remedy says, where the first flow has ended for good."""
    make(clusters.source, topic_name, 1)
    first, second = f"first-{topic_name}", f"second-{topic_name}"
    clusters.sync(first, topic_name)
    with ClusterAdmin.connect(cluster_config("x", clusters.target), "test", 20) as admin:
        kafka = KafkaAdminClient(bootstrap_servers=clusters.target.bootstrap_servers)
        kafka.delete_topics([topic_name])
        kafka.close()
        assert_soon(lambda: topic_name in admin.topics(), False)
    assert clusters.sync(second, topic_name).created == (topic_name,)
    assert topic_name in clusters.sync(first, topic_name).refused


def test_names_of_ones_own_are_no_trouble(clusters: Clusters, topic_name: str) -> None:
    make(clusters.source, topic_name, 1)
    make(clusters.target, topic_name, 1)  # somebody else's, of whom nothing is noted
    assert clusters.sync(f"first-{topic_name}", topic_name).refused == {}


@pytest.mark.parametrize(
    ("code", "raises"),
    [(ErrorCode.REQUEST_TIMED_OUT, True), (0, True), (ErrorCode.TOPIC_AUTHORIZATION_FAILED, False)],
)
def test_notes_that_cant_be_read_now_are_waited_for_by_the_second_look(
    code: int, raises: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first look leaves them out; notes that this flow may not read would hold it up for ever."""

    def read(log: TopicLog, *_: object) -> None:
        raise LogUnavailable(log.topic, "it can't be read", code)

    monkeypatch.setattr(TopicLog, "read", read)
    near, far = (ClusterConfig(alias=alias, bootstrap_servers=("127.0.0.1:1",)) for alias in "AC")
    others = OtherFlows(ClusterClient(far, "test"), FlowConfig(source=near, target=far))
    copies, theirs = ({name: TopicDescription(name, b"i" * 16, ())} for name in ("t", losses_topic("B")))
    assert others.copiers(copies, copies | theirs) == {}
    with pytest.raises(LogUnavailable) if raises else nullcontext():
        assert others.noted(copies, copies | theirs) == {}
