"""Fences of ACLs at real brokers: who is held and who isn't, and that only our own denials are lifted."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from cryptography import x509
from kafka import KafkaConsumer, KafkaProducer
from kafka.errors import GroupAuthorizationFailedError, TopicAuthorizationFailedError
from lab import Authority, KafkaCluster
from lab.listeners import plain
from tests.support import mirror_process as mp
from tests.support.fences import add_missing, denied, deny
from tests.support.secure_clusters import of_cluster, plain_settings
from tests.support.started import started

from sparkmirror.config import ClusterConfig, load_mm2_properties
from sparkmirror.errors import ClusterUnreachable
from sparkmirror.kafka.cluster.acl_changes import add, not_there, remove, shown_by_brokers
from sparkmirror.kafka.cluster.acls import (
    ALL,
    ALLOW,
    DENY,
    PREFIXED,
    READ,
    WRITE,
    Acl,
    AclResource,
    SecurityDisabled,
    read_acls,
)
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.cluster.missing_rights import principal
from sparkmirror.kafka.cluster.own_principals import GROUPS, own_among
from sparkmirror.kafka.cluster.write_fence import (
    Holders,
    read_denials,
    readers,
    write_denials,
    write_grants,
    writers,
)

MIRROR, SHOP, BATCH = "User:mirror", "User:shop", "User:batch"
USERS = {"mirror": "hunter2-mirror", "shop": "hunter2-shop", "batch": "hunter2-batch"}
GROUP = AclResource.GROUP


def acl(name: str, who: str, operation: int = WRITE, permission: int = ALLOW, host: str = "*", **more: object) -> Acl:
    values = {"name": name, "principal": who, "host": host, "operation": operation, "permission": permission}
    return Acl(**(values | more))  # type: ignore[arg-type]


# --- who may write, without brokers ------------------------------------------------------------------


def test_who_may_write() -> None:
    """By the name, by a prefix, by `*`; with ALL; from one host only. The mirror and `User:*` are named apart."""
    everybody = acl("o", "User:*", pattern=PREFIXED, host="10.0.0.1")
    mirror = acl("*", MIRROR, ALL)
    acls = [
        acl("orders", SHOP),
        acl("*", BATCH, ALL),
        acl("ord", "User:prefix", pattern=PREFIXED),
        acl("orders", "User:host", host="10.0.0.9"),
        acl("orders", "User:reader", READ),
        acl("orders", "User:denied", permission=DENY),
        acl("orders", "User:group", ALL, resource=GROUP),
        acl("ord", "User:other"),
        everybody,
        mirror,
    ]
    assert writers(acls, ["orders", "stock"], MIRROR) == Holders(
        principals={"orders": (BATCH, "User:host", "User:prefix", SHOP), "stock": (BATCH,)},
        everybody={"orders": (everybody,), "stock": ()},
        own={"orders": (mirror,), "stock": (mirror,)},
    )


def test_what_nobody_is_allowed_is_named() -> None:
    """Super users may, or everybody, as the brokers have it; which of them no request tells."""
    acls = [acl("orders", SHOP), acl("own", MIRROR), acl("all", "User:*"), acl("none", SHOP, READ)]
    assert writers(acls, ["orders", "own", "all", "none", "nothing"], MIRROR).open == ("none", "nothing")
    assert readers([acl("g", SHOP, READ, resource=GROUP)], ["g", "h"], MIRROR).open == ("h",)


@pytest.mark.parametrize(("who", "words"), [("User:*", "denies everybody"), (MIRROR, "denies its own principal")])
def test_the_mirror_is_never_held(who: str, words: str) -> None:
    for denials in (write_denials, read_denials):
        with pytest.raises(ClusterUnreachable, match=words):
            denials({"orders": [SHOP, who]}, MIRROR)
    assert write_denials({"orders": [SHOP]}, MIRROR) == (acl("orders", SHOP, permission=DENY),)


def test_what_writers_get_at_the_copies() -> None:
    acls = [
        acl("orders", SHOP),
        acl("ord", BATCH, ALL, host="10.0.0.9", pattern=PREFIXED),
        acl("orders", SHOP, READ),
        acl("orders", BATCH, permission=DENY),
    ]
    assert write_grants(acls, {"orders": "A.orders", "stock": "A.stock"}) == (
        acl("A.orders", BATCH, host="10.0.0.9"),
        acl("A.orders", SHOP),
    )


# --- real brokers ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaCluster]:
    """Two brokers that keep ACLs, for users with passwords; who comes in clear may do all."""
    two = KafkaCluster(
        tmp_path_factory.mktemp("fenced"),
        brokers=2,
        acls=True,
        listeners={"USERS": plain(USERS)},
        properties={"broker.session.timeout.ms": "60000", "offsets.topic.replication.factor": "1"},
    )
    with started(two):
        yield two


@pytest.fixture
def client(cluster: KafkaCluster) -> Iterator[ClusterClient]:
    config = ClusterConfig(alias="A", bootstrap_servers=tuple(cluster.bootstrap_servers.split(",")))
    with closing(ClusterClient(config, "test")) as client:
        yield client


@pytest.fixture
def topic(cluster: KafkaCluster, client: ClusterClient, topic_name: str) -> Iterator[str]:
    """A topic with a partition at each broker, to which the three users may write, each by an ACL of another kind."""
    mp.create_topic(cluster.bootstrap_servers, topic_name, 2)
    given = (
        acl(topic_name, MIRROR),
        acl(topic_name[:-1], SHOP, ALL, pattern=PREFIXED),
        acl(topic_name, BATCH, host="127.0.0.1"),
    )
    add(client, given)
    mp.wait_for(lambda: shown_by_brokers(client, given).everywhere, 30, "the ACLs count")
    yield topic_name
    remove(client, sorted(read_acls(client, AclResource.TOPIC)))


@contextmanager
def producer(cluster: KafkaCluster, user: str) -> Iterator[KafkaProducer]:
    made = KafkaProducer(
        bootstrap_servers=cluster.servers("USERS"),
        security_protocol="SASL_PLAINTEXT",
        sasl_mechanism="PLAIN",
        sasl_plain_username=user,
        sasl_plain_password=USERS[user],
        enable_idempotence=False,  # kafka-python's, unlike Java's, is dead after such a refusal
    )
    try:
        yield made
    finally:
        made.close(timeout=1)


def may_write(producer: KafkaProducer, topic: str) -> set[int]:
    """The partitions that took a record."""
    taken = set()
    for partition in (0, 1):
        try:
            producer.send(topic, b"x", partition=partition).get(30)
        except TopicAuthorizationFailedError:
            continue
        taken.add(partition)
    return taken


@pytest.mark.broker
def test_a_fence_holds_whom_it_names_and_is_lifted(cluster: KafkaCluster, client: ClusterClient, topic: str) -> None:
    """An ALLOW for one host is beaten, too; producers that run go on when the fence is gone."""
    found = writers(read_acls(client, AclResource.TOPIC), [topic], MIRROR)
    assert found.principals == {topic: (BATCH, SHOP)}
    with producer(cluster, "shop") as shop, producer(cluster, "batch") as batch, producer(cluster, "mirror") as mirror:
        assert may_write(shop, topic) == may_write(batch, topic) == may_write(mirror, topic) == {0, 1}
        assert not denied(client, found.principals, MIRROR).everywhere
        added = deny(client, found.principals, MIRROR)
        assert added == (acl(topic, BATCH, permission=DENY), acl(topic, SHOP, permission=DENY))
        mp.wait_for(lambda: denied(client, found.principals, MIRROR).everywhere, 30, "both brokers deny it")
        assert may_write(shop, topic) == may_write(batch, topic) == set()
        assert may_write(mirror, topic) == {0, 1}
        assert deny(client, found.principals, MIRROR) == ()
        remove(client, added)
        mp.wait_for(
            lambda: denied(client, found.principals, MIRROR).lacking == {1: added, 2: added}, 30, "both have lifted it"
        )
        assert may_write(shop, topic) == may_write(batch, topic) == {0, 1}
        remove(client, added)


@pytest.mark.broker
def test_an_operators_own_denial_stays(cluster: KafkaCluster, client: ClusterClient, topic: str) -> None:
    theirs = acl(topic, BATCH, permission=DENY)
    assert add_missing(client, [theirs]) == (theirs,)
    mp.wait_for(lambda: shown_by_brokers(client, [theirs]).everywhere, 30, "it counts")
    wanted = {topic: (BATCH, SHOP)}
    assert not_there(client, write_denials(wanted, MIRROR)) == (acl(topic, SHOP, permission=DENY),)
    added = deny(client, wanted, MIRROR)
    assert added == (acl(topic, SHOP, permission=DENY),)
    remove(client, added)
    mp.wait_for(lambda: denied(client, wanted, MIRROR).lacking == {1: added, 2: added}, 30, "ours is lifted")
    with producer(cluster, "batch") as batch:
        assert may_write(batch, topic) == set()
    remove(client, [theirs])


@pytest.mark.broker
def test_writers_are_let_in_at_the_copies_and_out_again(client: ClusterClient, topic: str) -> None:
    there = acl(f"A.{topic}", SHOP)
    add(client, [there])
    mp.wait_for(lambda: shown_by_brokers(client, [there]).everywhere, 30, "it counts")
    granted = add_missing(client, write_grants(read_acls(client, AclResource.TOPIC), {topic: f"A.{topic}"}))
    assert granted == (acl(f"A.{topic}", BATCH, host="127.0.0.1"), acl(f"A.{topic}", MIRROR))
    remove(client, granted)
    mp.wait_for(lambda: not_there(client, [*granted, there]) == granted, 30, "only the operator's is left")


@pytest.mark.broker
def test_an_empty_group_is_closed_to_its_readers(cluster: KafkaCluster, client: ClusterClient, topic: str) -> None:
    """A consumer that comes back is refused at its join; the mirror may still commit."""
    group = f"{topic}-readers"
    given = (
        acl(topic, SHOP, READ),
        *(acl(group, who, READ, resource=GROUP) for who in (SHOP, MIRROR)),
    )
    add(client, given)
    mp.wait_for(lambda: shown_by_brokers(client, given).everywhere, 30, "they may read")
    found = readers(read_acls(client, GROUP), [group], MIRROR)
    assert (found.principals, found.own) == ({group: (SHOP,)}, {group: (given[2],)})
    added = add_missing(client, read_denials(found.principals, MIRROR))
    assert added == (acl(group, SHOP, READ, DENY, resource=GROUP),)
    mp.wait_for(lambda: shown_by_brokers(client, added).everywhere, 30, "it is closed")

    def join() -> bool:
        """Whether the group lets the user in."""
        consumer = KafkaConsumer(
            topic,
            bootstrap_servers=cluster.servers("USERS"),
            group_id=group,
            security_protocol="SASL_PLAINTEXT",
            sasl_mechanism="PLAIN",
            sasl_plain_username="shop",
            sasl_plain_password=USERS["shop"],
            enable_auto_commit=False,
        )
        try:
            deadline = time.monotonic() + 60
            while not consumer.assignment():
                consumer.poll(timeout_ms=500)
                assert time.monotonic() < deadline
        except GroupAuthorizationFailedError:
            return False
        finally:
            consumer.close()
        return True

    assert not join()
    remove(client, added)
    mp.wait_for(lambda: not_there(client, added) == added, 30, "it is open")
    assert join()
    remove(client, given)


@pytest.mark.broker
def test_a_refused_acl_takes_the_others_back(client: ClusterClient, topic: str) -> None:
    fine, wrong = acl(f"{topic}-fine", SHOP), acl("", SHOP)
    with pytest.raises(ClusterUnreachable, match=r"cluster A: adding the ACL `ALLOW WRITE on topic  to User:shop"):
        add(client, [fine, wrong])
    mp.wait_for(lambda: not_there(client, [fine]) == (fine,), 30, "it is gone again")


@pytest.mark.broker
def test_a_cluster_without_acls(source_cluster: KafkaCluster) -> None:
    config = ClusterConfig(alias="A", bootstrap_servers=(source_cluster.bootstrap_servers,))
    with closing(ClusterClient(config, "test")) as client, pytest.raises(SecurityDisabled):
        deny(client, {"orders": [SHOP]}, MIRROR)


# --- who the mirror is -------------------------------------------------------------------------------


def user_config(cluster: KafkaCluster, tmp_path: Path, user: str) -> ClusterConfig:
    settings = of_cluster("A", plain_settings(user, USERS[user]))
    servers = cluster.servers("USERS")
    file = mp.write_properties(tmp_path / "mm2.properties", servers, servers, "t", settings)
    return load_mm2_properties(str(file)).flows[0].source


@pytest.mark.broker
def test_whose_acls_reach_the_mirror(cluster: KafkaCluster, client: ClusterClient, tmp_path: Path) -> None:
    """Proven by trial, whether or not it may describe all groups; nothing of the trial stays."""
    cluster_rights = (acl("kafka-cluster", MIRROR, ALL, resource=AclResource.CLUSTER),)
    all_groups = acl("*", MIRROR, READ, resource=GROUP)
    add(client, cluster_rights)
    mp.wait_for(lambda: shown_by_brokers(client, cluster_rights).everywhere, 30, "it may change ACLs")
    config = user_config(cluster, tmp_path, "mirror")
    assert principal(config) == MIRROR
    with closing(ClusterClient(config, "test")) as mirror:
        assert own_among(mirror, [SHOP, MIRROR, BATCH]) == {MIRROR}
        assert own_among(mirror, [SHOP, BATCH]) == frozenset()
        add(client, [all_groups])
        mp.wait_for(lambda: shown_by_brokers(client, [all_groups]).everywhere, 30, "it may read all groups")
        assert own_among(mirror, [SHOP, MIRROR, BATCH]) == {MIRROR}
    assert own_among(client, [SHOP, MIRROR, "User:ANONYMOUS"]) == frozenset()  # a super user is beyond all ACLs
    remove(client, [*cluster_rights, all_groups])
    mp.wait_for(
        lambda: not any(one.name.startswith(GROUPS) for one in read_acls(client, GROUP)), 30, "the trials are gone"
    )


@pytest.mark.broker
def test_the_name_in_a_certificate_is_found(guarded: KafkaCluster, authority: Authority, tmp_path: Path) -> None:
    """The brokers' rules map it; no setting of the client tells."""
    keys = authority.issue(tmp_path / "keys.pem", "mirror.example")
    certificate = x509.load_pem_x509_certificates(keys.read_bytes())[0]
    settings = authority.client_settings() | {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(keys)}
    servers = guarded.tls_bootstrap_servers
    file = mp.write_properties(tmp_path / "mm2.properties", servers, servers, "t", of_cluster("A", settings))
    config = load_mm2_properties(str(file)).flows[0].source
    assert principal(config) == ""
    plainly = ClusterConfig(alias="B", bootstrap_servers=(guarded.bootstrap_servers,))
    with closing(ClusterClient(plainly, "test")) as admin, closing(ClusterClient(config, "test")) as mirror:
        everything = [acl("kafka-cluster", "User:*", ALL, resource=AclResource.CLUSTER)]
        add(admin, everything)
        try:
            mp.wait_for(lambda: shown_by_brokers(admin, everything).everywhere, 30, "it may change ACLs")
            name = "User:" + certificate.subject.rfc4514_string().replace("#", r"\#")  # as Java has it
            assert own_among(mirror, [SHOP, "User:ANONYMOUS", name]) == {name}
        finally:
            remove(admin, everything)


# --- a broker that is away, at the end ---------------------------------------------------------------


@pytest.mark.broker
def test_a_broker_that_is_away_leaves_the_fence_open(cluster: KafkaCluster, client: ClusterClient) -> None:
    """It may come back with an older state, and nobody can tell what it would take."""
    wanted = {"orders": (SHOP,)}
    assert len(deny(client, wanted, MIRROR)) == 1
    mp.wait_for(lambda: denied(client, wanted, MIRROR).everywhere, 30, "both deny it")
    client.hang_up()
    cluster.brokers[1].kill()
    shown = denied(client, wanted, MIRROR)
    assert shown.lacking == {1: ()}
    assert list(shown.silent) == [2]
    assert not shown.everywhere
    with pytest.raises(ClusterUnreachable, match=r"broker 2 doesn't tell its ACLs .*; nothing was changed"):
        deny(client, {"stock": (SHOP,)}, MIRROR)
