"""Signing in where it can fail or end: changed passwords, ACLs taken back, sessions of seconds, token servers."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from kafka import KafkaAdminClient
from kafka.admin import ACL, ACLOperation, ACLPermissionType, ResourcePattern, ResourceType
from kafka.protocol.metadata import MetadataRequest
from lab import Authority, KafkaCluster
from lab.listeners import mutual_tls, scram, signed_tokens
from pyspark.sql import SparkSession
from test_offset_syncs_over_gaps import PumpedFlow
from tests.support import mirror_process as mp
from tests.support.loaded_flow import assert_copied, running
from tests.support.mirror_thread import reasons, run_mirror
from tests.support.secure_clusters import KAFKA, of_cluster, quoted, scram_settings, scram_user
from token_server import AUDIENCE, REFRESH, TokenServer

from sparkmirror.config import load_mm2_properties
from sparkmirror.config.strimzi_oauth import STRIMZI_HANDLER
from sparkmirror.demo.jvm import QUICK_START
from sparkmirror.errors import ClusterUnreachable
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.wire.channel import Channel
from sparkmirror.mirror.engine.mirror import Mirror
from sparkmirror.pump.pump import pump

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.full]

SESSION_MS = 3000
TOKEN_S = 15
"""A token's life. It is fetched again after four fifths; a session that begins just before then has three seconds."""
PARTITIONS = 4
ALLOWED = "-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls="


@pytest.fixture(scope="module")
def token_server() -> Iterator[TokenServer]:
    with TokenServer("mirror", "hunter2") as server:
        yield server


@pytest.fixture(scope="module")
def pair(
    tmp_path_factory: pytest.TempPathFactory, authority: Authority, token_server: TokenServer
) -> Iterator[tuple[KafkaCluster, KafkaCluster]]:
    """Both with sessions of three seconds, ACLs, and a listener for signed tokens; `mirror` needs ACLs."""

    def cluster(name: str) -> KafkaCluster:
        return KafkaCluster(
            tmp_path_factory.mktemp(name),
            tls=authority,
            acls=True,
            jvm_options=(*QUICK_START, ALLOWED + token_server.keys_url),
            listeners={
                "SCRAM": scram(reauth_ms=SESSION_MS),
                "OIDC": signed_tokens(token_server.keys_url, AUDIENCE),
                "MTLS": mutual_tls(),
            },
        )

    source, target = cluster("sign-in-source"), cluster("sign-in-target")
    with running(source), running(target):
        for one in (source, target):
            scram_user(one, "mirror", "hunter2")
            change_acls(one, everything(), create=True)
        yield source, target


def everything() -> list[ACL]:
    kinds = {ResourceType.TOPIC: "*", ResourceType.GROUP: "*", ResourceType.CLUSTER: "kafka-cluster"}
    return [
        ACL("User:mirror", "*", ACLOperation.ALL, ACLPermissionType.ALLOW, ResourcePattern(kind, name))
        for kind, name in kinds.items()
    ]


def denied(operation: ACLOperation, topic: str) -> ACL:
    pattern = ResourcePattern(ResourceType.TOPIC, topic)
    return ACL("User:mirror", "*", operation, ACLPermissionType.DENY, pattern)


def change_acls(cluster: KafkaCluster, acls: list[ACL], *, create: bool) -> None:
    admin = KafkaAdminClient(bootstrap_servers=cluster.bootstrap_servers)
    try:
        if create:
            admin.create_acls(acls)
        else:
            admin.delete_acls(acls)
    finally:
        admin.close()


def write(
    path: Path, pair: tuple[KafkaCluster, KafkaCluster], topic: str, settings: dict[str, str], listener: str = "SCRAM"
) -> Path:
    source, target = (cluster.servers(listener) for cluster in pair)
    both = {**of_cluster("A", settings), **of_cluster("B", settings)}
    return mp.write_properties(path / "mm2.properties", source, target, topic, both)


def copied(cluster: KafkaCluster, topic: str) -> int:
    return sum(mp.end_offsets(cluster.bootstrap_servers, f"A.{topic}", PARTITIONS))


def parked(mirror: Mirror) -> list[str]:
    """Why partitions are."""
    (driver,) = mirror.drivers
    receipts = [view.receipt for view in list(driver.view.partitions.values())]
    return [one.reason for one in receipts if one is not None and one.state == "parked"]


def signs_in(path: Path) -> bool:
    client = ClusterClient(load_mm2_properties(str(path)).flows[0].source, "test")
    try:
        client.metadata([])
    except ClusterUnreachable:
        return False
    finally:
        client.close()
    return True


def finish(path: Path, spark: SparkSession, pair: tuple[KafkaCluster, KafkaCluster], topic: str) -> None:
    Mirror(load_mm2_properties(str(path)), once=True, use_lease=False, spark=spark).run()
    assert_copied(*pair, {topic: f"A.{topic}"})


def oidc_settings(authority: Authority, server: TokenServer, scope: str = "kafka") -> dict[str, str]:
    """SASL_SSL with tokens of a server; each scope has tokens of its own."""
    module = f"{KAFKA}oauthbearer.OAuthBearerLoginModule required"
    return {
        **authority.client_settings(),
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.login.callback.handler.class": f"{KAFKA}oauthbearer.OAuthBearerLoginCallbackHandler",
        "sasl.oauthbearer.token.endpoint.url": server.url,
        "sasl.jaas.config": f"{module} clientId=mirror clientSecret={quoted('hunter2')} scope={scope};",
    }


@contextlib.contextmanager
def under_load(
    path: Path, spark: SparkSession, pair: tuple[KafkaCluster, KafkaCluster], topic: str
) -> Iterator[Mirror]:
    """A mirror with a lease, while the topic is written to. At the end nothing is lost, repeated or held up."""
    source, target = pair
    mp.create_topic(source.bootstrap_servers, topic, PARTITIONS)
    mirror = Mirror(load_mm2_properties(str(path)), spark=spark)
    thread = threading.Thread(target=mirror.run, daemon=True)
    try:
        with mp.load(source.bootstrap_servers, topic, PARTITIONS, per_s=1000):
            thread.start()
            mp.wait_for(lambda: copied(target, topic) > 500, 120, "the first records")
            held_at = mirror.drivers[0].leadership.lease.term  # type: ignore[union-attr]
            rounds = mirror.rounds
            yield mirror
            before = copied(target, topic)
            mp.wait_for(lambda: copied(target, topic) > before + 500, 180, "fresh records")
        assert mirror.drivers[0].leadership.lease.term == held_at  # type: ignore[union-attr]
        assert mirror.rounds == rounds
    finally:
        mirror.stop()
        thread.join(40)
    assert not thread.is_alive()
    finish(path, spark, pair, topic)


def reasons_within(mirror: Mirror, seconds: float) -> set[str]:
    """Whatever its status line would say in that time."""
    seen: set[str] = set()
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        seen.update(reasons(mirror))
        time.sleep(0.2)
    return seen


def test_sessions_are_renewed_under_load(
    pair: tuple[KafkaCluster, KafkaCluster], authority: Authority, topic_name: str, tmp_path: Path, spark: SparkSession
) -> None:
    """Sessions end every three seconds for all clients, the lease's too: nothing is lost, repeated or held up."""
    path = write(tmp_path, pair, topic_name, scram_settings(authority, "mirror", "hunter2"))
    with under_load(path, spark, pair, topic_name) as mirror:
        seen = reasons_within(mirror, 7 * SESSION_MS / 1000)
    assert seen <= {""}, "a connection was lost"


def test_tokens_of_seconds_are_renewed_under_load(
    pair: tuple[KafkaCluster, KafkaCluster],
    authority: Authority,
    token_server: TokenServer,
    topic_name: str,
    tmp_path: Path,
    spark: SparkSession,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A session ends with its token. The driver and the pumps fetch theirs again and again; nothing is lost."""
    monkeypatch.setattr(token_server, "lifetime_s", TOKEN_S)
    path = write(tmp_path, pair, topic_name, oidc_settings(authority, token_server, "short"), "OIDC")
    refused = token_server.refused
    with under_load(path, spark, pair, topic_name) as mirror:
        before = token_server.given
        seen = reasons_within(mirror, 3 * TOKEN_S)
        renewed = token_server.given - before
    assert renewed >= 4, "in two processes at least, after every twelve to fifteen seconds"
    assert token_server.refused == refused
    assert token_server.forms[-1]["scope"] == ["short"]
    assert seen <= {""}, "a connection was lost"


def test_a_pump_renews_its_sessions_between_requests(
    pair: tuple[KafkaCluster, KafkaCluster],
    authority: Authority,
    topic_name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """In this process, so that it can be counted: renewed on the connections it has, none of them lost."""
    source, target = pair
    flow = PumpedFlow(source, target, topic_name, (topic_name,))
    mp.create_topic(source.bootstrap_servers, topic_name, 1)
    mp.create_topic(target.bootstrap_servers, flow.remote(topic_name), 1)
    path = write(tmp_path, pair, topic_name, scram_settings(authority, "mirror", "hunter2"))
    secured = load_mm2_properties(str(path)).flows[0]
    flow.config = flow.config.model_copy(
        update={
            "source": secured.source.model_copy(update={"alias": flow.config.source.alias}),
            "target": secured.target.model_copy(update={"alias": flow.config.target.alias}),
        }
    )
    renewed: list[Channel] = []
    renew = Channel.renew

    def counted(channel: Channel) -> None:
        renewed.append(channel)
        renew(channel)

    monkeypatch.setattr(Channel, "renew", counted)
    order = flow.order().model_copy(update={"seconds": 2.5 * SESSION_MS / 1000})
    flow.say("running")
    with mp.load(source.bootstrap_servers, topic_name, 1, per_s=500):
        ((receipt,),) = (end.receipts for end in pump(order))
    assert (receipt.state, receipt.reason) == ("running", "")
    assert receipt.records > 0
    assert len(set(renewed)) == 2, "one connection that fetches and one that produces"
    assert len(renewed) >= 4
    last = order.model_copy(update={"epoch": 2, "seconds": 3.0})
    pump(last)
    flow.close()
    assert_copied(source, target, {topic_name: flow.remote(topic_name)})


def test_a_connection_is_kept_over_many_sessions(
    pair: tuple[KafkaCluster, KafkaCluster], authority: Authority, topic_name: str, tmp_path: Path
) -> None:
    path = write(tmp_path, pair, topic_name, scram_settings(authority, "mirror", "hunter2"))
    client = ClusterClient(load_mm2_properties(str(path)).flows[0].target, "test")
    client.metadata([])
    connection = client.broker(1)
    due = [connection.renew_at]
    until = time.monotonic() + 3 * SESSION_MS / 1000
    while time.monotonic() < until:
        client.ask_any(lambda: MetadataRequest(topics=[]))
        due += [connection.renew_at] if connection.renew_at != due[-1] else []
        time.sleep(0.1)
    assert client.broker(1) is connection
    assert len(due) >= 3
    time.sleep(2 * SESSION_MS / 1000)  # longer than the session: late is early enough
    client.metadata([])
    assert client.broker(1) is connection
    client.close()


def test_a_wrong_password_ends_the_start_with_one_line(
    pair: tuple[KafkaCluster, KafkaCluster], authority: Authority, topic_name: str, tmp_path: Path, spark: SparkSession
) -> None:
    path = write(tmp_path, pair, topic_name, scram_settings(authority, "mirror", "hunter3"))
    with pytest.raises(ClusterUnreachable, match="sign-in by SCRAM-SHA-512 as mirror is refused") as caught:
        Mirror(load_mm2_properties(str(path)), once=True, spark=spark).run()
    assert "hunter3" not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_password_that_is_changed_at_the_broker_and_changed_back(
    pair: tuple[KafkaCluster, KafkaCluster], authority: Authority, topic_name: str, tmp_path: Path, spark: SparkSession
) -> None:
    """Said as the reason within seconds, few attempts meanwhile, and it continues by itself."""
    source, target = pair
    mp.create_topic(source.bootstrap_servers, topic_name, PARTITIONS)
    path = write(tmp_path, pair, topic_name, scram_settings(authority, "mirror", "hunter2"))
    log = source.brokers[0].log
    with mp.load(source.bootstrap_servers, topic_name, PARTITIONS, per_s=200), run_mirror(path, spark) as mirror:
        mp.wait_for(lambda: copied(target, topic_name) > 100, 120, "the first records")
        scram_user(source, "mirror", "another")
        try:
            mp.wait_for(lambda: any("sign-in by SCRAM" in one for one in reasons(mirror)), 180, "the reason")
            failures = log.read_text().count("Failed authentication with")
            time.sleep(20)
            attempts = log.read_text().count("Failed authentication with") - failures
        finally:
            scram_user(source, "mirror", "hunter2")
        before = copied(target, topic_name)
        mp.wait_for(lambda: copied(target, topic_name) > before + 100, 90, "fresh records after the mend")
    print("attempts in 20 s:", attempts)
    assert attempts < 100
    mp.wait_for(lambda: signs_in(path), 180, "this process asks the brokers again, too")
    finish(path, spark, pair, topic_name)


@pytest.mark.parametrize(
    ("side", "operation", "name"),
    [(0, ACLOperation.READ, "{}"), (1, ACLOperation.WRITE, "A.{}")],
    ids=["source", "target"],
)
def test_an_acl_that_is_taken_away_and_given_back(
    pair: tuple[KafkaCluster, KafkaCluster],
    authority: Authority,
    topic_name: str,
    tmp_path: Path,
    spark: SparkSession,
    side: int,
    operation: ACLOperation,
    name: str,
) -> None:
    """While it is gone the partitions are parked, and say why; then they continue by themselves."""
    source, target = pair
    mp.create_topic(source.bootstrap_servers, topic_name, PARTITIONS)
    path = write(tmp_path, pair, topic_name, scram_settings(authority, "mirror", "hunter2"))
    taken = [denied(operation, name.format(topic_name))]
    with mp.load(source.bootstrap_servers, topic_name, PARTITIONS, per_s=200), run_mirror(path, spark) as mirror:
        mp.wait_for(lambda: copied(target, topic_name) > 100, 120, "the first records")
        change_acls(pair[side], taken, create=True)
        try:
            mp.wait_for(
                lambda: any("not authorized for the topic" in one for one in parked(mirror)), 180, "parked, and why"
            )
        finally:
            change_acls(pair[side], taken, create=False)
        before = copied(target, topic_name)
        mp.wait_for(lambda: copied(target, topic_name) > before + 100, 90, "fresh records after the mend")
        mp.wait_for(lambda: not parked(mirror), 90, "no partition is parked any more")
    finish(path, spark, pair, topic_name)


def test_tokens_of_an_oidc_server(
    pair: tuple[KafkaCluster, KafkaCluster],
    authority: Authority,
    token_server: TokenServer,
    topic_name: str,
    tmp_path: Path,
    spark: SparkSession,
) -> None:
    """A whole flow by client credentials; then by a token in a file, and with a wrong secret."""
    source, _ = pair
    mp.create_topic(source.bootstrap_servers, topic_name, PARTITIONS)
    mp.produce(source.bootstrap_servers, topic_name, PARTITIONS, 1000)
    module = f"{KAFKA}oauthbearer.OAuthBearerLoginModule required"
    settings = oidc_settings(authority, token_server)
    given = token_server.given
    path = write(tmp_path, pair, topic_name, settings, "OIDC")
    Mirror(load_mm2_properties(str(path)), once=True, spark=spark).run()
    assert_copied(*pair, {topic_name: f"A.{topic_name}"}, 1000)
    assert token_server.forms[-1]["scope"] == ["kafka"]
    assert token_server.given - given < 12, "a token is fetched once a process and cluster"

    mp.produce(source.bootstrap_servers, topic_name, PARTITIONS, 1000)
    file = tmp_path / "token"
    file.write_text(token_server.token())
    by_file = settings | {
        "sasl.oauthbearer.token.endpoint.url": file.as_uri(),
        "sasl.jaas.config": f"{module};",
    }
    path = write(tmp_path, pair, topic_name, by_file, "OIDC")
    Mirror(load_mm2_properties(str(path)), once=True, spark=spark).run()
    assert_copied(*pair, {topic_name: f"A.{topic_name}"}, 2000)

    wrong = settings | {"sasl.jaas.config": f"{module} clientId=mirror clientSecret=hunter3;"}
    path = write(tmp_path, pair, topic_name, wrong, "OIDC")
    with pytest.raises(ClusterUnreachable, match=r"answers 401 Unauthorized \(invalid_client\)") as caught:
        Mirror(load_mm2_properties(str(path)), once=True, spark=spark).run()
    assert "hunter3" not in str(caught.value)


def test_strimzis_login_handler(
    pair: tuple[KafkaCluster, KafkaCluster],
    authority: Authority,
    token_server: TokenServer,
    topic_name: str,
    tmp_path: Path,
    spark: SparkSession,
) -> None:
    """`oauth.` options as Strimzi's users write them: an assertion in a file, then a refresh token."""
    source, _ = pair
    mp.create_topic(source.bootstrap_servers, topic_name, PARTITIONS)
    assertion = tmp_path / "assertion"
    assertion.write_text(token_server.secret)
    begins = (
        f'{KAFKA}oauthbearer.OAuthBearerLoginModule required oauth.token.endpoint.uri="{token_server.url}"'
        ' oauth.client.id="mirror" oauth.audience="brokers"'
    )
    ways = {
        "client_credentials": f'oauth.client.assertion.location="{assertion}"',
        "refresh_token": f'oauth.refresh.token="{REFRESH}" oauth.client.secret="{token_server.secret}"',
    }
    for count, (grant, options) in enumerate(ways.items(), 1):
        mp.produce(source.bootstrap_servers, topic_name, PARTITIONS, 1000)
        settings = {
            **authority.client_settings(),
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "OAUTHBEARER",
            "sasl.login.callback.handler.class": STRIMZI_HANDLER,
            "sasl.jaas.config": f"{begins} {options};",
        }
        path = write(tmp_path, pair, topic_name, settings, "OIDC")
        Mirror(load_mm2_properties(str(path)), once=True, spark=spark).run()
        assert_copied(*pair, {topic_name: f"A.{topic_name}"}, 1000 * count)
        asked = token_server.forms[-1]
        assert (asked["grant_type"], asked["audience"]) == ([grant], ["brokers"])
