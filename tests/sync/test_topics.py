"""The topic duty, against invented clusters and against the two real ones."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

import pytest
from flow_rules import OneName, rules
from lab import KafkaCluster
from waiting import assert_soon

from sparkmirror.config.model import ClusterConfig
from sparkmirror.kafka.cluster.admin import ClusterAdmin
from sparkmirror.kafka.cluster.new_topics import NewTopicSpec
from sparkmirror.kafka.cluster.topic_configs import ConfigEntry
from sparkmirror.kafka.cluster.topic_descriptions import PartitionDescription, TopicDescription
from sparkmirror.kafka.wire.error_codes import ErrorCode
from sparkmirror.mirror.sync.topics import TopicDuty

CREATED = 0, ""


class InventedCluster(ClusterAdmin):
    """A cluster in memory that can be told to refuse."""

    def __init__(self, alias: str, topics: Mapping[str, int]) -> None:
        super().__init__(ClusterConfig(alias=alias, bootstrap_servers=("nowhere:1",)), "test", 1.0)
        self.counts = dict(topics)
        self.refusing: dict[str, str] = {}
        self.unreadable: set[str] = set()
        self.created: dict[str, NewTopicSpec] = {}
        self.properties = {"cleanup.policy": "compact"}
        """That somebody set for each topic."""
        self.known: set[str] | None = None
        """What its brokers know; None: everything."""
        self.listed: set[str] = set()
        """What of it they list of a topic; nothing if it may not be read."""
        self.not_taken: set[str] = set()
        """Values that they refuse."""

    def topics(self, names: Iterable[str] | None = None) -> dict[str, TopicDescription]:
        wanted = self.counts if names is None else set(names) & set(self.counts)
        return {
            name: TopicDescription(
                name,
                bytes(16),
                tuple(
                    PartitionDescription(partition=p, leader=1, leader_epoch=0, replicas=(1,), in_sync=(1,))
                    for p in range(self.counts[name])
                ),
            )
            for name in wanted
        }

    def topic_configs(self, names: Iterable[str]) -> dict[str, tuple[ConfigEntry, ...]]:
        kind = "DYNAMIC_TOPIC_CONFIG" if self.known is None else "DEFAULT_CONFIG"
        entries = tuple(
            ConfigEntry(name=name, value=value, source=kind, read_only=False, sensitive=False)
            for name, value in (self.properties if self.known is None else dict.fromkeys(self.listed)).items()
        )
        return {name: entries for name in names if name not in self.unreadable and entries}

    def creations(self, specs: Iterable[NewTopicSpec]) -> dict[str, tuple[int, str]]:
        outcomes = {}
        for spec in specs:
            outcomes[spec.name] = self._creation(spec)
            if outcomes[spec.name] == CREATED:
                self.counts[spec.name] = spec.partitions
                self.created[spec.name] = spec
        return outcomes

    def would_create(self, specs: Iterable[NewTopicSpec]) -> dict[str, tuple[int, str]]:
        return {spec.name: self._creation(spec) for spec in specs}

    def _creation(self, spec: NewTopicSpec) -> tuple[int, str]:
        """As Kafka does it: names first, and the first that is wrong is all that it tells."""
        if spec.name in self.refusing:
            return 7, self.refusing[spec.name]
        for name in spec.configs:
            if self.known is not None and name not in self.known:
                return ErrorCode.INVALID_CONFIG, f"Unknown topic config name: {name}"
        for name, value in spec.configs.items():
            if value in self.not_taken:
                return ErrorCode.INVALID_CONFIG, f"Invalid value {value} for configuration {name}: not here"
        return CREATED

    def create_partitions(self, counts: Mapping[str, int]) -> dict[str, tuple[int, str]]:
        self.counts |= {name: count for name, count in counts.items() if name not in self.refusing}
        return {name: (7, self.refusing[name]) if name in self.refusing else CREATED for name in counts}


def test_creates_missing_topics_with_count_factor_and_configs() -> None:
    source, target = InventedCluster("us", {"a": 3, "b": 1, "no": 1}), InventedCluster("eu", {"us.b": 1, "own": 2})
    result = TopicDuty(source, target, rules("no", replication_factor=-1)).sync_once()
    assert target.created == {"us.a": NewTopicSpec("us.a", 3, -1, {"cleanup.policy": "compact"})}
    assert [(m.source.name, m.remote.name, m.partitions) for m in result.mirrored] == [
        ("a", "us.a", (0, 1, 2)),
        ("b", "us.b", (0,)),
    ]
    assert (result.created, result.grown, result.refused) == (("us.a",), (), {})
    assert target.counts["own"] == 2


class LimitedCluster(InventedCluster):
    """Takes two creations or growths a turn, and asks to wait for the rest."""

    def creations(self, specs: Iterable[NewTopicSpec]) -> dict[str, tuple[int, str]]:
        wanted = list(specs)
        self.quota_wait_s = 4.0 if len(wanted) > 2 else 0.0
        return super().creations(wanted[:2]) | {spec.name: OVER_QUOTA for spec in wanted[2:]}

    def create_partitions(self, counts: Mapping[str, int]) -> dict[str, tuple[int, str]]:
        self.quota_wait_s = 4.0
        return dict.fromkeys(counts, OVER_QUOTA)


OVER_QUOTA = (int(ErrorCode.THROTTLING_QUOTA_EXCEEDED), "The throttling quota has been exceeded.")


def test_topics_that_a_quota_stops_wait_and_the_next_turn_continues(lines: Callable[[], list[str]]) -> None:
    """Told with progress, in one line, and without the advice to change anything."""
    source, target = InventedCluster("us", dict.fromkeys("abcde", 1)), LimitedCluster("eu", {})
    duty = TopicDuty(source, target, rules())
    first = duty.sync_once()
    assert (first.created, set(first.refused), first.wait_s) == (("us.a", "us.b"), set("cde"), 4.0)
    assert set(first.refused.values()) == {
        "waits to be created whole: cluster eu limits the creation of partitions (quota controller_mutation_rate): "
        "2 of 5 topics are there, the next try is in 4.0 s"
    }
    assert [line for line in lines() if "topic created" not in line] == [
        "topics wait: cluster eu limits the creation of partitions (quota controller_mutation_rate): 2 of 5 topics are "
        "there, the next try is in 4.0 s"
    ]
    assert "4 of 5 topics" in duty.sync_once().refused["e"]
    last = duty.sync_once()
    assert (last.created, last.refused, last.wait_s) == (("us.e",), {}, 0.0)


def test_growth_that_a_quota_stops_waits_too() -> None:
    source, target = InventedCluster("us", {"a": 3}), LimitedCluster("eu", {"us.a": 1})
    grown = TopicDuty(source, target, rules()).sync_once()
    assert (grown.grown, grown.wait_s) == ((), 4.0)
    assert "waits to be created whole" in grown.refused["a"]


def test_a_second_run_changes_nothing() -> None:
    source, target = InventedCluster("us", {"a": 3}), InventedCluster("eu", {})
    duty = TopicDuty(source, target, rules())
    first, second = duty.sync_once(), duty.sync_once()
    assert (second.created, second.grown, second.refused) == ((), (), {})
    assert second.mirrored == first.mirrored


def test_grows_and_never_shrinks() -> None:
    source, target = InventedCluster("us", {"a": 5, "b": 1}), InventedCluster("eu", {"us.a": 2, "us.b": 4})
    result = TopicDuty(source, target, rules()).sync_once()
    assert result.grown == ("us.a",)
    assert target.counts == {"us.a": 5, "us.b": 4}
    assert [m.partitions for m in result.mirrored] == [(0, 1, 2, 3, 4), (0,)]


def test_a_topic_that_can_not_grow_is_pumped_as_far_as_it_goes() -> None:
    source, target = InventedCluster("us", {"a": 5}), InventedCluster("eu", {"us.a": 2})
    target.refusing["us.a"] = "not now"
    result = TopicDuty(source, target, rules()).sync_once()
    assert [m.partitions for m in result.mirrored] == [(0, 1)]
    assert result.refused == {"a": "topic us.a can't be given more partitions on cluster eu: not now"}


def test_one_refused_topic_does_not_stop_the_others() -> None:
    source, target = InventedCluster("us", {"a": 1, "b": 1, "c": 1}), InventedCluster("eu", {})
    target.refusing["us.a"] = "the replication factor is too high"
    source.unreadable = {"b"}
    result = TopicDuty(source, target, rules()).sync_once()
    assert [m.source.name for m in result.mirrored] == ["c"]
    assert set(result.refused) == {"a", "b"}
    assert "replication factor" in result.refused["a"]
    assert "DESCRIBE_CONFIGS" in result.refused["b"]


def test_a_refused_topic_is_created_when_the_target_lets_us() -> None:
    source, target = InventedCluster("us", {"a": 2}), InventedCluster("eu", {})
    duty = TopicDuty(source, target, rules())
    target.refusing["us.a"] = "not now"
    assert [duty.sync_once().mirrored for _ in range(2)] == [(), ()]
    target.refusing.clear()
    result = duty.sync_once()
    assert (result.created, result.refused) == (("us.a",), {})
    assert [m.partitions for m in result.mirrored] == [(0, 1)]


def old_target(*, readable: bool = True) -> tuple[InventedCluster, InventedCluster]:
    """A source with two properties of a newer Kafka, and a target that doesn't know them."""
    source, target = InventedCluster("us", {"a": 1, "b": 1}), InventedCluster("eu", {"own": 1})
    source.properties = {"retention.ms": "1", "new.one": "2", "cleanup.policy": "compact", "new.two": "3"}
    target.known = {"retention.ms", "cleanup.policy"}
    target.listed = target.known if readable else set()
    return source, target


@pytest.mark.parametrize("readable", [True, False])
def test_properties_that_the_target_does_not_know(readable: bool, lines: Callable[[], list[str]]) -> None:
    source, target = old_target(readable=readable)
    duty = TopicDuty(source, target, rules())
    result = duty.sync_once()
    assert result.refused == {}
    assert [m.remote.name for m in result.mirrored] == ["us.a", "us.b"]
    assert target.created["us.a"].configs == {"retention.ms": "1", "cleanup.policy": "compact"}
    assert result.unknown == dict.fromkeys(("us.a", "us.b"), ("new.one", "new.two"))
    (line,) = (line for line in lines() if "don't know" in line)
    assert line == (
        "created without properties that the brokers of cluster eu don't know: "
        "new.one (us.a, us.b), new.two (us.a, us.b)"
    )
    assert (duty.sync_once().unknown, lines()) == ({}, [])


@pytest.mark.parametrize("readable", [True, False])
@pytest.mark.parametrize("with_unknown", [True, False])
def test_a_value_that_the_target_does_not_take_is_refused(
    readable: bool, with_unknown: bool, lines: Callable[[], list[str]]
) -> None:
    source, target = old_target(readable=readable)
    if not with_unknown:
        source.properties = {"retention.ms": "1"}
    target.not_taken = {"1"}
    result = TopicDuty(source, target, rules()).sync_once()
    assert (result.mirrored, result.unknown, target.created) == ((), {}, {})
    assert result.refused["a"] == (
        "topic us.a can't be created on cluster eu: Invalid value 1 for configuration retention.ms: not here; "
        "the source's retention.ms is refused: write config.properties.exclude = +retention.ms"
    )
    assert not [line for line in lines() if "don't know" in line]


@pytest.mark.parametrize(
    ("properties", "not_taken", "named"),
    [
        ({"remote.storage.enable": "true", "cleanup.policy": "delete"}, {"true"}, ["remote.storage.enable"]),
        ({"remote.storage.enable": "true", "retention.ms": "9"}, {"true"}, ["remote.storage.enable"]),
        ({"compression.type": "zstd", "segment.ms": "3", "a": "b"}, {"zstd", "3"}, ["compression.type", "segment.ms"]),
        ({"message.timestamp.after.max.ms": "0", "segment.bytes": "5"}, {"0"}, ["message.timestamp.after"]),
        ({"cleanup.policy": "", "max.message.bytes": "1"}, {""}, ["cleanup.policy"]),
    ],
)
def test_each_property_whose_value_is_refused_is_named_and_can_be_left_out(
    properties: dict[str, str], not_taken: set[str], named: list[str]
) -> None:
    source, target = InventedCluster("us", {"tiered": 1}), InventedCluster("eu", {})
    source.properties, target.not_taken = properties, not_taken
    said = TopicDuty(source, target, rules()).sync_once().refused["tiered"]
    remedy = said.partition(": write config.properties.exclude = ")[2].split(", ")
    assert [one.startswith(f"+{name}") for one, name in zip(remedy, named, strict=True)] == [True] * len(named)
    for name in remedy:
        source.properties.pop(name.removeprefix("+"))
    result = TopicDuty(source, target, rules()).sync_once()
    assert (result.refused, result.created) == ({}, ("us.tiered",))


def test_a_refused_value_of_a_property_that_brokers_do_not_list() -> None:
    source, target = old_target()
    source.properties = {"internal.segment.bytes": "1"}
    target.known, target.not_taken = {"internal.segment.bytes"}, {"1"}
    result = TopicDuty(source, target, rules()).sync_once()
    assert "internal.segment.bytes" in result.refused["a"]
    assert target.created == {}


def test_a_property_that_brokers_take_but_do_not_list_is_kept() -> None:
    source, target = old_target()
    source.properties = {"internal.segment.bytes": "1"}
    target.known = {"internal.segment.bytes"}
    TopicDuty(source, target, rules()).sync_once()
    assert target.created["us.a"].configs == {"internal.segment.bytes": "1"}


def test_unknown_properties_of_one_topic_leave_the_others_alone(lines: Callable[[], list[str]]) -> None:
    """Some of many topics are named, and what can't be created for another reason is not among them."""
    source, target = old_target()
    source.counts = {f"t{n}": 1 for n in range(6)}
    target.refusing["us.t0"] = "not now"
    result = TopicDuty(source, target, rules()).sync_once()
    assert set(result.refused) == {"t0"}
    (line,) = (line for line in lines() if "don't know" in line)
    assert line.endswith(": new.one (us.t1, us.t2, us.t3 and 2 more), new.two (us.t1, us.t2, us.t3 and 2 more)")


def test_a_topic_that_is_at_the_target_first() -> None:
    source, target = InventedCluster("us", {}), InventedCluster("eu", {"us.a": 1})
    duty = TopicDuty(source, target, rules())
    assert duty.sync_once().mirrored == ()
    source.counts["a"] = 1
    result = duty.sync_once()
    assert (result.created, result.grown, target.created) == ((), (), {})
    assert [(m.source.name, m.remote.name, m.partitions) for m in result.mirrored] == [("a", "us.a", (0,))]


@pytest.mark.parametrize(
    ("remote", "reason"), [("x" * 250, "250 characters"), ("a b", "not be legal"), ("..", "not be legal")]
)
def test_names_that_kafka_does_not_allow(remote: str, reason: str) -> None:
    source, target = InventedCluster("us", {"a": 1}), InventedCluster("eu", {})
    result = TopicDuty(source, target, rules(policy=OneName(remote))).sync_once()
    assert reason in result.refused["a"]
    assert result.mirrored == ()
    assert target.created == {}


def test_two_topics_with_one_remote_name() -> None:
    source, target = InventedCluster("us", {"a": 1, "b": 1}), InventedCluster("eu", {})
    result = TopicDuty(source, target, rules(policy=OneName("same"))).sync_once()
    assert [m.source.name for m in result.mirrored] == ["a"]
    assert result.refused == {"b": "topic a has the same remote name, same"}


@pytest.fixture
def admins(source_cluster: KafkaCluster, target_cluster: KafkaCluster) -> Iterator[tuple[ClusterAdmin, ClusterAdmin]]:
    def connect(alias: str, cluster: KafkaCluster) -> ClusterAdmin:
        servers = tuple(cluster.bootstrap_servers.split(","))
        return ClusterAdmin.connect(ClusterConfig(alias=alias, bootstrap_servers=servers), "test", 20)

    with connect("us", source_cluster) as source, connect("eu", target_cluster) as target:
        yield source, target


def led(cluster: ClusterAdmin, topic: str) -> int:
    """How many partitions of a topic have a leader."""
    found = cluster.topics([topic])
    return sum(partition.leader >= 0 for partition in found[topic].partitions) if topic in found else 0


@pytest.mark.broker
def test_real_clusters(admins: tuple[ClusterAdmin, ClusterAdmin], topic_name: str) -> None:
    source, target = admins
    configs = {
        "cleanup.policy": "compact",
        "compression.type": "zstd",
        "max.message.bytes": "123456",
        "message.timestamp.type": "LogAppendTime",
    }
    assert source.create_topics([NewTopicSpec(topic_name, 3, 1, configs)]) == {topic_name: None}
    assert_soon(lambda: led(source, topic_name), 3)
    duty = TopicDuty(source, target, rules(topics=topic_name, heartbeats=False))

    result = duty.sync_once()
    remote = f"us.{topic_name}"
    assert (result.created, result.refused) == ((remote,), {})
    assert [m.partitions for m in result.mirrored] == [(0, 1, 2)]
    assert all(partition.leader >= 0 for partition in result.mirrored[0].remote.partitions)
    entries = target.topic_configs([remote])[remote]
    dynamic = {entry.name: entry.value for entry in entries if entry.source == "DYNAMIC_TOPIC_CONFIG"}
    assert dynamic == {name: value for name, value in configs.items() if name != "message.timestamp.type"}

    assert source.create_partitions({topic_name: 5}) == {topic_name: (0, "")}
    assert_soon(lambda: led(source, topic_name), 5)
    result = duty.sync_once()
    assert result.grown == (remote,)
    assert [m.partitions for m in result.mirrored] == [(0, 1, 2, 3, 4)]
    assert duty.sync_once().grown == ()


@pytest.mark.broker
def test_a_replication_factor_that_the_target_can_not_have(
    admins: tuple[ClusterAdmin, ClusterAdmin], topic_name: str
) -> None:
    source, target = admins
    source.create_topics([NewTopicSpec(topic_name, 1, 1)])
    assert_soon(lambda: led(source, topic_name), 1)
    result = TopicDuty(source, target, rules(topics=topic_name, replication_factor=2, heartbeats=False)).sync_once()
    assert result.mirrored == ()
    reason = result.refused[topic_name]
    assert "replication factor of 2" in reason
    assert "\n" not in reason
