"""`sparkmirror acls` at real brokers; what it prints is run by Kafka's own tool."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from kafka import KafkaAdminClient
from kafka.admin import ScramMechanism, UserScramCredentialUpsertion
from lab import KafkaCluster
from tests.support import mirror_process as mp
from tests.support.kafka_scripts import write_scripts
from typer.testing import CliRunner, Result

from sparkmirror.cli.app import app
from sparkmirror.config import ClusterConfig
from sparkmirror.kafka.cluster.acls import (
    ALL,
    ALLOW,
    DENY,
    LITERAL,
    PREFIXED,
    READ,
    WRITE,
    Acl,
    AclResource,
    create_acls,
    delete_acls,
    read_acls,
)
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.cluster.topic_log import TopicLog
from sparkmirror.mirror.sync.migration_words import MigrationWords
from sparkmirror.pump.messages.control import control_topic

pytestmark = pytest.mark.broker

GROUP, ID = AclResource.GROUP, AclResource.TRANSACTIONAL_ID


def client_of(cluster: KafkaCluster) -> ClusterClient:
    return ClusterClient(ClusterConfig(alias="x", bootstrap_servers=(cluster.bootstrap_servers,)), "test")


def asked(*words: str) -> Result:
    result = CliRunner().invoke(app, ["acls", *words])
    assert result.exit_code == 0, result.output
    return result


def listed(*words: str) -> list[dict[str, Any]]:
    (flow,) = json.loads(asked(*words, "-o", "json").stdout)
    return list(flow["acls"])


@pytest.fixture
def pair(guarded_pair: tuple[KafkaCluster, KafkaCluster]) -> Iterator[tuple[KafkaCluster, KafkaCluster]]:
    """Clusters whose ACLs are those of before when the test ends: others count for all topics."""
    clients = [client_of(cluster) for cluster in guarded_pair]
    before = [read_acls(client, *AclResource) for client in clients]
    yield guarded_pair
    for client, acls in zip(clients, before, strict=True):
        more = [*(read_acls(client, *AclResource) - acls)]
        assert delete_acls(client, more) == dict.fromkeys(more)
        client.close()


def test_what_is_missing_is_added_by_kafkas_tool(pair: tuple[KafkaCluster, KafkaCluster], tmp_path: Path) -> None:
    source, target = pair
    mp.create_topic(source.bootstrap_servers, "orders", 1)
    mp.create_topic(source.bootstrap_servers, "secret", 1)
    here = [
        Acl(name="orders", principal="User:alice", host="*", operation=READ, permission=ALLOW),
        Acl(name="orders", principal="User:alice", host="*", operation=WRITE, permission=ALLOW),
        Acl(name="orders", principal="User:CN=bob,O=it's us", host="10.0.0.1", operation=ALL, permission=ALLOW),
        Acl(name="orders", principal="User:mallory", host="*", operation=WRITE, permission=DENY),
        Acl(name="or", principal="User:carol", host="*", operation=WRITE, permission=ALLOW, pattern=PREFIXED),
        Acl(name="*", principal="User:dave", host="*", operation=READ, permission=ALLOW),
        Acl(name="*", principal="User:dave", host="*", operation=WRITE, permission=ALLOW),
        Acl(name="secret", principal="User:alice", host="*", operation=WRITE, permission=ALLOW),
        Acl(
            name="billing",
            principal="User:alice",
            host="*",
            operation=READ,
            permission=ALLOW,
            pattern=LITERAL,
            resource=GROUP,
        ),
        Acl(
            name="tx-",
            principal="User:alice",
            host="*",
            operation=WRITE,
            permission=ALLOW,
            pattern=PREFIXED,
            resource=ID,
        ),
    ]
    with_source, with_target = client_of(source), client_of(target)
    of_other_tests = read_acls(with_target, *AclResource)
    assert create_acls(with_source, here) == dict.fromkeys(here)
    # As a migration denies it: at the target it would hold whom the migration lets in.
    fence = Acl(name="orders", principal="User:alice", host="*", operation=WRITE, permission=DENY)
    mp.create_topic(target.bootstrap_servers, control_topic("A"), 1)
    MigrationWords(TopicLog(with_target, control_topic("A"))).write(fence.resource, fence.name, [fence])
    assert create_acls(with_source, [fence]) == {fence: None}
    # As a mirror has synced it.
    synced = Acl(name="A.orders", principal="User:alice", host="*", operation=READ, permission=ALLOW)
    assert create_acls(with_target, [synced]) == {synced: None}
    admin = KafkaAdminClient(bootstrap_servers=source.bootstrap_servers)
    admin.alter_user_scram_credentials([UserScramCredentialUpsertion("alice", ScramMechanism.SCRAM_SHA_512, "x")])
    admin.close()
    file = mp.write_properties(
        tmp_path / "mm2.properties", source.bootstrap_servers, target.bootstrap_servers, "orders.*"
    )
    path = str(file)
    mp.wait_for(lambda: len(listed(path)) == 9, 30, "the brokers show all ACLs")
    assert [acl["name"] for acl in listed(path) if not acl["missing"]] == ["A.orders"]
    printed = asked(path, "--missing").stdout
    assert "A.secret" not in printed
    assert "# SCRAM user alice (SCRAM-SHA-512) is not on cluster B" in printed
    (tmp_path / "add.sh").write_text(printed)
    scripts = write_scripts(tmp_path / "bin")
    environment = os.environ | {"PATH": f"{scripts}:{os.environ['PATH']}"}
    added = subprocess.run(
        ["/bin/sh", "-e", str(tmp_path / "add.sh")], env=environment, capture_output=True, text=True, timeout=300
    )
    assert added.returncode == 0, added.stdout + added.stderr
    mp.wait_for(lambda: not listed(path, "--missing"), 30, "nothing is missing")
    lines = asked(path, "--missing").stdout.splitlines()
    assert [line for line in lines if not line.startswith("#")] == []
    assert read_acls(with_target, *AclResource) - of_other_tests == {
        synced,
        Acl(name="A.orders", principal="User:alice", host="*", operation=WRITE, permission=ALLOW),
        Acl(name="A.orders", principal="User:CN=bob,O=it's us", host="10.0.0.1", operation=ALL, permission=ALLOW),
        Acl(name="A.orders", principal="User:mallory", host="*", operation=WRITE, permission=DENY),
        Acl(name="A.or", principal="User:carol", host="*", operation=WRITE, permission=ALLOW, pattern=PREFIXED),
        Acl(name="A.", principal="User:dave", host="*", operation=READ, permission=ALLOW, pattern=PREFIXED),
        Acl(name="A.orders", principal="User:dave", host="*", operation=WRITE, permission=ALLOW),
        Acl(
            name="billing",
            principal="User:alice",
            host="*",
            operation=READ,
            permission=ALLOW,
            pattern=LITERAL,
            resource=GROUP,
        ),
        Acl(
            name="tx-",
            principal="User:alice",
            host="*",
            operation=WRITE,
            permission=ALLOW,
            pattern=PREFIXED,
            resource=ID,
        ),
    }
    # Somebody new, for whom Strimzi's resource has what is there, too.
    more = Acl(name="orders", principal="User:alice", host="*", operation=7, permission=ALLOW)
    create_acls(with_source, [more])
    mp.wait_for(lambda: bool(listed(path, "--missing")), 30, "one more is missing")
    result = asked(path, "--missing", "--to", "strimzi")
    (user,) = yaml.safe_load_all(result.stdout)
    assert user["kind"] == "KafkaUser"
    about_orders = [rule for rule in user["spec"]["authorization"]["acls"] if rule["resource"]["name"] == "A.orders"]
    assert [rule["operations"] for rule in about_orders] == [["Read", "Write", "Alter"]]
    assert "The User Operator removes" in result.stderr
    table = asked(path).stdout
    assert "A->B" in table
    assert "missing" in table
    with_source.close()
    with_target.close()


@pytest.mark.full
def test_clusters_without_an_authorizer(
    source_cluster: KafkaCluster, target_cluster: KafkaCluster, tmp_path: Path
) -> None:
    servers = source_cluster.bootstrap_servers, target_cluster.bootstrap_servers
    file = mp.write_properties(tmp_path / "mm2.properties", *servers, "orders.*")
    result = CliRunner().invoke(app, ["acls", str(file)])
    assert str(result.exception) == "cluster A has no authorizer, so it keeps no ACLs"


def test_a_form_that_is_none(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["acls", str(tmp_path / "none"), "--missing", "--to", "yaml"])
    assert "must be kafka-acls or strimzi" in str(result.exception)
