"""Topics' ACLs (`mm2.md` 3.2, syncTopicAcls), against real brokers with an authorizer, and without."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

import pytest
from flow_rules import OneName, cluster_config, rules
from kafka.admin import ACLOperation
from lab import Authority, KafkaCluster
from waiting import assert_soon

from sparkmirror.config import ClusterConfig, FlowConfig
from sparkmirror.config.model import SslConfig, TopicSyncConfig
from sparkmirror.errors import ClusterUnreachable
from sparkmirror.exact.durable.losses import losses_topic
from sparkmirror.kafka.cluster.acls import (
    ALL,
    ALLOW,
    DENY,
    PREFIXED,
    READ,
    WRITE,
    Acl,
    AclResource,
    create_acls,
    delete_acls,
    read_acls,
)
from sparkmirror.kafka.cluster.admin import ClusterAdmin
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.cluster.new_topics import NewTopicSpec
from sparkmirror.mirror.sync import topic_acls
from sparkmirror.mirror.sync.topic_acls import TopicAclSync, remote_acl
from sparkmirror.mirror.sync.topic_config_duty import TopicConfigSync
from sparkmirror.mirror.sync.topic_rules import TopicRules
from sparkmirror.mirror.sync.topics import MirroredTopic, TopicSync
from sparkmirror.policy import IdentityReplicationPolicy, ReplicationPolicy, SameNameReplicationPolicy

DESCRIBE, ALTER, DELETE = int(ACLOperation.DESCRIBE), int(ACLOperation.ALTER), int(ACLOperation.DELETE)


def acl(topic: str, operation: int, permission: int = ALLOW, who: str = "User:reader", host: str = "*") -> Acl:
    return Acl(name=topic, principal=who, host=host, operation=operation, permission=permission)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (acl("t", READ), acl("us.t", READ)),
        (acl("t", ALL), acl("us.t", READ)),
        (acl("t", ALL, DENY), acl("us.t", ALL, DENY)),
        (acl("t", WRITE), None),
        (acl("t", WRITE, DENY), acl("us.t", WRITE, DENY)),
        (acl("t", DESCRIBE), acl("us.t", DESCRIBE)),
        (acl("t", ALTER), acl("us.t", ALTER)),
        (
            acl("t", DELETE, who="User:CN=a,O=b", host="10.0.0.1"),
            acl("us.t", DELETE, ALLOW, "User:CN=a,O=b", "10.0.0.1"),
        ),
        (acl("eu.t", READ), None),  # a cycle
        (acl("secret", READ), None),
        (acl("__consumer_offsets", READ), None),
        (acl("heartbeats", READ), acl("us.heartbeats", READ)),
        (acl("*", READ), acl("us.*", READ)),  # as the real one does it: a topic of that name
        (dataclasses.replace(acl("t", READ), pattern=PREFIXED), None),
    ],
)
def test_what_a_copy_gets(source: Acl, expected: Acl | None) -> None:
    assert remote_acl(source, rules("secret")) == expected


def test_names_that_stay() -> None:
    own = rules(policy=IdentityReplicationPolicy("us"))
    assert remote_acl(acl("t", ALL), own) == acl("t", READ)


KEEPING_NAMES = IdentityReplicationPolicy, SameNameReplicationPolicy


class PlayedAcls:
    """A duty of a flow us->eu between two clusters that are sets of ACLs."""

    def __init__(self, patch: pytest.MonkeyPatch, policy: ReplicationPolicy | None = None, **settings: bool) -> None:
        self.at: dict[str, set[Acl]] = {"us": set(), "eu": set()}
        self.released: set[str] = set()
        self.copies: dict[str, str] = {}
        patch.setattr(topic_acls, "read_acls", lambda client, *_: set(self.at[client.config.alias]))
        patch.setattr(topic_acls, "create_acls", self._create)
        patch.setattr(topic_acls, "delete_acls", self._delete)
        patch.setattr(topic_acls, "AccessMemory", lambda *_: self)
        patch.setattr(topic_acls, "MigrationWords", lambda _: self)
        self.fences: dict[str, tuple[Acl, ...]] = {}
        self.known: dict[str, frozenset[str]] = {}
        us, eu = (ClusterConfig(alias=alias, bootstrap_servers=("127.0.0.1:1",)) for alias in ("us", "eu"))
        flow = FlowConfig(source=us, target=eu, topic_sync=TopicSyncConfig.model_validate(settings))
        own = dataclasses.replace(rules(policy=policy), left_alone=lambda topic: topic in self.released)
        self.duty = TopicAclSync(
            flow,
            own,
            lambda: {k: v for k, v in self.copies.items() if k not in self.released},
            moved=lambda: {own.remote_name(topic) for topic in self.released},
        )

    def _create(self, _: ClusterClient, acls: Iterable[Acl]) -> dict[Acl, None]:
        self.at["eu"] |= set(acls)
        return dict.fromkeys(acls)

    def _delete(self, _: ClusterClient, acls: Iterable[Acl]) -> dict[Acl, None]:
        self.at["eu"] -= set(acls)
        return dict.fromkeys(acls)

    def denials(self) -> set[Acl]:
        """As a migration's words do."""
        return {acl for acls in self.fences.values() for acl in acls}

    def learn(self, added: Mapping[str, Iterable[str]]) -> None:
        """As the durable memory does."""
        self.known |= {name: frozenset(origins) for name, origins in added.items()}

    def forget(self, names: Iterable[str]) -> None:
        """As the durable memory does."""
        for name in set(names):
            self.known.pop(name, None)


def test_nothing_is_said_of_a_topic_whose_writers_have_moved(
    monkeypatch: pytest.MonkeyPatch, lines: Callable[[], list[str]]
) -> None:
    """Neither when it is released nor when its ACLs at the source are cleaned up; of other topics all is said."""
    played = PlayedAcls(monkeypatch)
    played.at["us"] = {acl("orders", READ), acl("bills", READ)}
    played.duty.run()
    lines()
    played.released.add("orders")
    played.duty.run()
    played.at["us"] = set()
    for _ in range(2):
        played.duty.run()
    assert lines() == [
        f"ACL revoked on cluster us, and still there on cluster eu: {acl('us.bills', READ)}; "
        "remove it there if it is to go"
    ]


@pytest.mark.parametrize("policy", [policy("us") for policy in KEEPING_NAMES])
def test_a_migrations_denials_stay_where_it_put_them(
    monkeypatch: pytest.MonkeyPatch, policy: ReplicationPolicy
) -> None:
    """They would hold the producers and groups that the migration lets in at the target; an operator's go there."""
    played = PlayedAcls(monkeypatch, policy, sync_group_acls_enabled=True, acl_removals_enabled=True)
    ours = acl("orders", WRITE, DENY, who="User:shop")
    of_group = dataclasses.replace(acl("billing", READ, DENY), resource=AclResource.GROUP)
    theirs = acl("orders", WRITE, DENY, who="User:mallory")
    played.at["us"] = {ours, of_group, theirs}
    played.fences = {"fence:topic:orders": (ours,), "fence:group:billing": (of_group,)}
    played.duty.run()
    assert played.at["eu"] == {theirs}


def test_a_released_topic_that_continues_is_looked_after_again(
    monkeypatch: pytest.MonkeyPatch, lines: Callable[[], list[str]]
) -> None:
    played = PlayedAcls(monkeypatch)
    played.at["us"] = {acl("orders", READ)}
    played.duty.run()
    played.released.add("orders")
    played.duty.run()
    played.released.clear()
    played.duty.run()
    lines()
    played.at["us"].clear()
    played.duty.run()
    assert [line.split(" on ")[0] for line in lines()] == ["ACL revoked"]


def test_an_acl_of_a_prefix_is_not_revoked_while_the_prefix_is_there(
    monkeypatch: pytest.MonkeyPatch, lines: Callable[[], list[str]]
) -> None:
    """A copy's own ACL stands for it; the copy's topic was deleted."""
    played = PlayedAcls(monkeypatch, IdentityReplicationPolicy("us"), acl_patterns_enabled=True)
    prefix = dataclasses.replace(acl("or", READ), pattern=PREFIXED)
    played.at["us"], played.copies = {prefix}, {"orders": "orders"}
    played.duty.run()
    lines()
    played.copies = {}
    played.duty.run()
    assert lines() == []
    played.at["us"].clear()
    played.duty.run()
    assert [line.split(" on ")[0] for line in lines()] == ["ACL revoked"]


@pytest.mark.parametrize(
    ("policy", "pattern"),
    [
        (None, False),  # copies share the ACL of a prefix
        *((policy("us"), pattern) for policy in KEEPING_NAMES for pattern in (False, True)),
    ],
)
def test_no_acl_of_a_released_copy_is_removed(
    monkeypatch: pytest.MonkeyPatch, policy: ReplicationPolicy | None, pattern: bool
) -> None:
    """By its own ACL, and where names stay by one of a prefix; what the mirror does not leave alone is removed."""
    played = PlayedAcls(monkeypatch, policy, acl_removals_enabled=True, acl_patterns_enabled=True)
    played.copies = {"orders": "orders", "ordinary": "ordinary"}
    named = {acl("orders", READ), acl("ordinary", READ)}
    played.at["us"] = {dataclasses.replace(acl("ord", READ), pattern=PREFIXED)} if pattern else named
    played.duty.run()
    before = set(played.at["eu"])
    (of_orders,) = (one for one in before if one.name.endswith("orders"))
    assert len(before) == 2
    played.released.add("orders")
    played.duty.run()
    assert played.at["eu"] == before
    played.at["us"].clear()
    played.duty.run()
    assert played.at["eu"] == {of_orders}
    assert played.known == {}, "from now on it is the operator's"


@pytest.mark.parametrize("moved", [{"orders"}, {"orders", "ordinary"}, {"bills"}, set[str]()])
def test_an_acl_of_a_prefix_stays_while_it_covers_a_released_copy(
    monkeypatch: pytest.MonkeyPatch, moved: set[str], lines: Callable[[], list[str]]
) -> None:
    """Consumers that have moved read by it."""
    played = PlayedAcls(monkeypatch, acl_removals_enabled=True, acl_patterns_enabled=True)
    played.copies = {topic: f"us.{topic}" for topic in ("orders", "ordinary", "bills")}
    played.at["us"] = {dataclasses.replace(acl("ord", READ), pattern=PREFIXED)}
    played.duty.run()
    (of_prefix,) = before = set(played.at["eu"])
    assert (of_prefix.name, of_prefix.pattern) == ("us.ord", PREFIXED)
    played.released |= moved
    played.duty.run()
    assert played.at["eu"] == before
    played.at["us"].clear()
    lines()
    for _ in range(2):
        played.duty.run()
    stays = "orders" in moved
    assert played.at["eu"] == (before if stays else set())
    assert [line.partition(": ")[0] for line in lines()] == [
        "ACL not removed on cluster eu" if stays else "ACL removed on cluster eu, as at the source"
    ]
    assert played.known == {}


# --- real brokers -----------------------------------------------------------------------------------


class Acls:
    """What a test does itself at one cluster."""

    def __init__(self, cluster: KafkaCluster) -> None:
        self._client = ClusterClient(cluster_config("test", cluster), "test")

    def of(self, topic: str) -> set[Acl]:
        return {one for one in read_acls(self._client, *AclResource) if one.name.endswith(topic)}

    def add(self, *added: Acl) -> None:
        assert create_acls(self._client, added) == dict.fromkeys(added)
        assert_soon(lambda: set(added) - read_acls(self._client, *AclResource), set())

    def remove(self, topic: str) -> None:
        removed = [one for one in self.of(topic) if one.name == topic]
        assert removed
        assert delete_acls(self._client, removed) == dict.fromkeys(removed)
        assert_soon(lambda: {one for one in self.of(topic) if one.name == topic}, set())

    def drop(self, one: Acl) -> None:
        assert delete_acls(self._client, [one]) == {one: None}
        assert_soon(lambda: one in read_acls(self._client, one.resource), False)

    def close(self) -> None:
        self._client.close()


@pytest.fixture
def here(guarded_pair: tuple[KafkaCluster, KafkaCluster]) -> Iterator[Acls]:
    acls = Acls(guarded_pair[0])
    yield acls
    acls.close()


@pytest.fixture
def there(guarded_pair: tuple[KafkaCluster, KafkaCluster]) -> Iterator[Acls]:
    acls = Acls(guarded_pair[1])
    yield acls
    acls.close()


StartDuty = Callable[..., TopicAclSync]


@pytest.fixture
def duty() -> Iterator[StartDuty]:
    """Make the duty of a flow us->eu."""
    made = []

    def between(source: KafkaCluster, target: KafkaCluster, own: TopicRules) -> TopicAclSync:
        made.append(
            TopicAclSync(FlowConfig(source=cluster_config("us", source), target=cluster_config("eu", target)), own)
        )
        return made[-1]

    yield between
    for one in made:
        one.close()


@pytest.mark.broker
def test_acls_are_added_once(
    guarded_pair: tuple[KafkaCluster, KafkaCluster],
    duty: StartDuty,
    here: Acls,
    there: Acls,
    topic_name: str,
    lines: Callable[[], list[str]],
) -> None:
    remote = f"us.{topic_name}"
    here.add(
        acl(topic_name, READ),
        acl(topic_name, WRITE),
        acl(topic_name, ALL, ALLOW, "User:owner"),
        acl(topic_name, ALL, DENY, "User:nobody", "10.0.0.1"),
        acl(topic_name, DESCRIBE, ALLOW, "User:operator"),
        dataclasses.replace(acl(topic_name, READ, who="User:prefix"), pattern=PREFIXED),
        acl(f"x-{topic_name}", READ),
    )
    own_grant = acl(remote, WRITE, who="User:mirror")
    there.add(own_grant)
    syncing = duty(*guarded_pair, rules(topics=topic_name))
    syncing.run()
    expected = {
        acl(remote, READ),
        acl(remote, READ, ALLOW, "User:owner"),
        acl(remote, ALL, DENY, "User:nobody", "10.0.0.1"),
        acl(remote, DESCRIBE, ALLOW, "User:operator"),
    }
    assert_soon(lambda: there.of(topic_name), expected | {own_grant})
    assert sorted(lines()) == sorted(f"ACL added on cluster eu: {one}" for one in expected)
    assert f"ALLOW READ on topic {remote} to User:owner from *" in {str(one) for one in expected}
    syncing.run()
    assert lines() == []


@pytest.mark.broker
def test_what_is_revoked_stays_and_is_named_once(
    guarded_pair: tuple[KafkaCluster, KafkaCluster],
    duty: StartDuty,
    here: Acls,
    there: Acls,
    topic_name: str,
    lines: Callable[[], list[str]],
) -> None:
    granted, copy = acl(topic_name, READ), acl(f"us.{topic_name}", READ)
    syncing = duty(*guarded_pair, rules(topics=topic_name))

    def revoked() -> None:
        here.remove(topic_name)
        lines()
        syncing.run()
        assert lines() == [
            f"ACL revoked on cluster us, and still there on cluster eu: {copy}; remove it there if it is to go"
        ]
        syncing.run()
        assert lines() == []
        assert_soon(lambda: there.of(topic_name), {copy})

    here.add(granted)
    syncing.run()
    assert_soon(lambda: there.of(topic_name), {copy})
    revoked()
    here.add(granted)
    syncing.run()
    assert_soon(lambda: there.of(topic_name), {copy})
    revoked()
    there.remove(copy.name)
    syncing.run()
    assert lines() == []
    here.add(granted)
    syncing.run()
    assert_soon(lambda: there.of(topic_name), {copy})


@pytest.mark.broker
def test_both_ways(
    guarded_pair: tuple[KafkaCluster, KafkaCluster], duty: StartDuty, here: Acls, there: Acls, topic_name: str
) -> None:
    back = dataclasses.replace(rules(topics=f".*{topic_name}"), source_alias="eu", target_alias="us")
    here.add(acl(topic_name, DESCRIBE))
    there.add(acl(topic_name, DESCRIBE))
    for _ in range(2):
        duty(*guarded_pair, rules(topics=f".*{topic_name}")).run()
        duty(guarded_pair[1], guarded_pair[0], back).run()
        assert_soon(lambda: (len(here.of(topic_name)), len(there.of(topic_name))), (2, 2))
    assert_soon(lambda: here.of(topic_name), {acl(topic_name, DESCRIBE), acl(f"eu.{topic_name}", DESCRIBE)})
    assert_soon(lambda: there.of(topic_name), {acl(topic_name, DESCRIBE), acl(f"us.{topic_name}", DESCRIBE)})


@pytest.mark.broker
def test_a_refused_acl_is_named(
    guarded_pair: tuple[KafkaCluster, KafkaCluster],
    duty: StartDuty,
    here: Acls,
    topic_name: str,
    lines: Callable[[], list[str]],
) -> None:
    here.add(acl(topic_name, READ))
    duty(*guarded_pair, rules(topics=topic_name, policy=OneName(""))).run()
    (line,) = lines()
    assert line.startswith("ACL not synced to cluster eu: ALLOW READ on topic  to User:reader from *: ")


@pytest.mark.broker
@pytest.mark.parametrize("without", ["us", "eu"])
def test_a_cluster_without_an_authorizer_is_named_once(
    guarded_pair: tuple[KafkaCluster, KafkaCluster],
    source_cluster: KafkaCluster,
    duty: StartDuty,
    without: str,
    lines: Callable[[], list[str]],
) -> None:
    pair = (source_cluster, guarded_pair[1]) if without == "us" else (guarded_pair[0], source_cluster)
    syncing = duty(*pair, rules())
    syncing.run()
    assert lines() == [f"no ACLs are synced: cluster {without} has no authorizer"]
    syncing.run()
    assert lines() == []


# --- what MirrorMaker 2 doesn't do, if asked for ------------------------------------------------------------


@pytest.fixture
def asked(guarded_pair: tuple[KafkaCluster, KafkaCluster]) -> Iterator[Callable[..., TopicAclSync]]:
    """Make the duty of a flow us->eu with settings of ours; a process that starts again is another one."""
    made = []

    def between(own: TopicRules, copies: dict[str, str], **settings: bool) -> TopicAclSync:
        source, target = cluster_config("us", guarded_pair[0]), cluster_config("eu", guarded_pair[1])
        flow = FlowConfig(source=source, target=target, topic_sync=TopicSyncConfig.model_validate(settings))
        made.append(TopicAclSync(flow, own, lambda: copies, lambda group: "secret" not in group))
        return made[-1]

    with ClusterAdmin.connect(cluster_config("eu", guarded_pair[1]), "test") as admin:
        admin.create_compacted_topic(losses_topic("us"), 1, 1, factor_key="")
    yield between
    for one in made:
        one.close()


@pytest.mark.broker
def test_prefixes_if_asked_for(asked: Callable[..., TopicAclSync], here: Acls, there: Acls, topic_name: str) -> None:
    prefix = dataclasses.replace(acl(topic_name[:-1], READ, who="User:prefix"), pattern=PREFIXED)
    writing = dataclasses.replace(prefix, operation=WRITE)
    here.add(prefix, writing)
    copies = {topic_name: f"us.{topic_name}"}
    asked(rules(topics=topic_name), copies).run()
    assert there.of(topic_name[:-1]) == set()
    asked(rules(topics=topic_name), copies, acl_patterns_enabled=True).run()
    expected = dataclasses.replace(prefix, name=f"us.{topic_name[:-1]}")
    assert_soon(lambda: there.of(topic_name[:-1]), {expected})
    own = rules(topics=topic_name, policy=IdentityReplicationPolicy("us"))
    asked(own, {topic_name: topic_name}, acl_patterns_enabled=True).run()
    # Nobody else's topic begins with a copy's whole name: each copy has its own ACL.
    assert_soon(lambda: there.of(topic_name), {dataclasses.replace(acl(topic_name, READ), principal="User:prefix")})


@pytest.mark.broker
def test_what_we_added_is_removed_if_asked_for(
    asked: Callable[..., TopicAclSync],
    here: Acls,
    there: Acls,
    topic_name: str,
    lines: Callable[[], list[str]],
) -> None:
    remote = f"us.{topic_name}"
    theirs = acl(remote, READ, who="User:admin")
    there.add(theirs)
    here.add(acl(topic_name, READ), acl(topic_name, DESCRIBE), acl(topic_name, READ, who="User:admin"))
    own = rules(topics=topic_name)

    def turn(rules_now: TopicRules = own) -> None:
        """By a process that knows nothing but what was written down."""
        asked(rules_now, {}, acl_removals_enabled=True).run()

    turn()
    all_of_them = {acl(remote, READ), acl(remote, DESCRIBE), theirs}
    assert_soon(lambda: there.of(topic_name), all_of_them)
    # A topic that is no longer asked for keeps what it has: nothing was revoked.
    turn(rules(topic_name, topics=topic_name))
    assert there.of(topic_name) == all_of_them
    here.remove(topic_name)
    lines()
    turn()
    # What was there before us stays, though the source had the same.
    assert_soon(lambda: there.of(topic_name), {theirs})
    assert sorted(lines()) == [
        f"ACL removed on cluster eu, as at the source: {one}" for one in (acl(remote, DESCRIBE), acl(remote, READ))
    ]
    turn()
    assert lines() == []
    # What an operator then adds is the operator's.
    there.add(acl(remote, READ))
    turn()
    assert_soon(lambda: there.of(topic_name), {theirs, acl(remote, READ)})


@pytest.mark.broker
def test_an_acl_that_was_added_for_two(
    asked: Callable[..., TopicAclSync], here: Acls, there: Acls, topic_name: str
) -> None:
    """`ALL` and `READ` are both READ on the copy: it goes with the last of them."""
    remote = f"us.{topic_name}"
    here.add(acl(topic_name, READ), acl(topic_name, ALL))
    own = rules(topics=topic_name)
    asked(own, {}, acl_removals_enabled=True).run()
    assert_soon(lambda: there.of(topic_name), {acl(remote, READ)})
    here.drop(acl(topic_name, READ))
    asked(own, {}, acl_removals_enabled=True).run()
    assert there.of(topic_name) == {acl(remote, READ)}
    here.drop(acl(topic_name, ALL))
    asked(own, {}, acl_removals_enabled=True).run()
    assert_soon(lambda: there.of(topic_name), set())


@pytest.mark.broker
def test_groups_and_transactional_ids_if_asked_for(
    asked: Callable[..., TopicAclSync], here: Acls, there: Acls, topic_name: str
) -> None:
    group = dataclasses.replace(acl(f"g-{topic_name}", READ), resource=AclResource.GROUP)
    secret = dataclasses.replace(acl(f"secret-{topic_name}", READ), resource=AclResource.GROUP)
    ids = dataclasses.replace(acl(f"tx-{topic_name}", WRITE), resource=AclResource.TRANSACTIONAL_ID, pattern=PREFIXED)
    here.add(group, secret, ids)
    asked(rules(topics=topic_name), {}).run()
    assert there.of(topic_name) == set()
    asked(rules(topics=topic_name), {}, sync_group_acls_enabled=True, sync_transactional_id_acls_enabled=True).run()
    assert_soon(lambda: there.of(topic_name), {group, ids})


# --- somebody who may do nothing --------------------------------------------------------------------


@pytest.fixture
def stranger(guarded_pair: tuple[KafkaCluster, KafkaCluster], authority: Authority, tmp_path: Path) -> FlowConfig:
    """A flow whose certificate no ACL names."""

    def known_as(alias: str, cluster: KafkaCluster) -> ClusterConfig:
        ssl = SslConfig(
            truststore_type="PEM",
            truststore_location=str(authority.certificate),
            keystore_type="PEM",
            keystore_location=str(authority.issue(tmp_path / f"{alias}.pem", "stranger.example")),
        )
        servers = (cluster.tls_bootstrap_servers,)
        return ClusterConfig(alias=alias, bootstrap_servers=servers, security_protocol="SSL", ssl=ssl)

    return FlowConfig(source=known_as("us", guarded_pair[0]), target=known_as("eu", guarded_pair[1]))


@pytest.mark.broker
def test_acls_that_we_may_not_read(stranger: FlowConfig) -> None:
    syncing = TopicAclSync(stranger, rules())
    with pytest.raises(
        ClusterUnreachable, match=r"^cluster us: reading the ACLs failed: .*grant sparkmirror's principal DESCRIBE"
    ):
        syncing.run()
    syncing.close()


@pytest.mark.broker
def test_configurations_that_we_may_not_read_or_change(
    guarded_pair: tuple[KafkaCluster, KafkaCluster],
    stranger: FlowConfig,
    topic_name: str,
    lines: Callable[[], list[str]],
) -> None:
    servers = [cluster_config(alias, cluster) for alias, cluster in zip(("us", "eu"), guarded_pair, strict=True)]
    connect = ClusterAdmin.connect
    with connect(servers[0], "test") as source, connect(servers[1], "test") as target:
        source.create_topics([NewTopicSpec(topic_name, 1, 1, {"retention.ms": "1"})])
        target.create_topics([NewTopicSpec(f"us.{topic_name}", 1, 1)])
        assert_soon(lambda: set(source.topics([topic_name])), {topic_name})
        assert_soon(lambda: set(target.topics([f"us.{topic_name}"])), {f"us.{topic_name}"})
        here, there = source.topics([topic_name])[topic_name], target.topics([f"us.{topic_name}"])[f"us.{topic_name}"]
        found = TopicSync(mirrored=(MirroredTopic(here, there),), created=(), grown=(), refused={})
        changing = TopicConfigSync(stranger, rules(), source, target, lambda: found)
        changing.run()
        (line,) = lines()
        assert line.startswith(f"configuration not synced: topic us.{topic_name} on cluster eu: ")
        assert line.endswith("; grant sparkmirror's principal ALTER_CONFIGS on it")
        changing.close()
        with connect(stranger.source, "test") as unknown:
            reading = TopicConfigSync(stranger, rules(), unknown, target, lambda: found)
            reading.run()
            reading.close()
        (line,) = lines()
        assert line.startswith(f"configuration not synced: topic {topic_name} on cluster us: ")
        assert line.endswith("sparkmirror's principal needs DESCRIBE_CONFIGS on it")
