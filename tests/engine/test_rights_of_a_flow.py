"""A flow with exactly the rights that `docs/security.md` lists, and what is said where one of them is missing."""

from __future__ import annotations

import dataclasses
import json
import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from kafka import KafkaConsumer, OffsetAndMetadata, TopicPartition
from kafka.admin import ACLOperation
from kafka.protocol.metadata import MetadataRequest
from lab import KafkaCluster
from lab.listeners import plain
from page_commands import Reader, blocks
from tests.support import mirror_process as mp
from tests.support.started import started
from typer.testing import CliRunner

from sparkmirror.cli.app import app
from sparkmirror.config import ClusterConfig
from sparkmirror.exact.mm2.connect_offsets import STRIMZIS_TOPIC
from sparkmirror.kafka.cluster import append_proof
from sparkmirror.kafka.cluster.acls import (
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
from sparkmirror.kafka.cluster.scratch_topic import PREFIX
from sparkmirror.kafka.cluster.topic_configs import topic_configs

pytestmark = pytest.mark.broker

ME = "User:mirror"
DELETE = int(ACLOperation.DELETE)
PASSWORD = "hunter2-of-mirror"
JAAS = f'org.apache.kafka.common.security.plain.PlainLoginModule required username="mirror" password="{PASSWORD}";'


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[KafkaCluster, KafkaCluster]]:
    """Two clusters with ACLs: sparkmirror's principal has the page's rights, a client in clear may do all."""
    pair = [
        KafkaCluster(tmp_path_factory.mktemp(name), acls=True, listeners={"PLAIN": plain({"mirror": PASSWORD})})
        for name in ("rights-source", "rights-target")
    ]
    source, target = pair
    with started(*pair):
        mp.create_topic(source.bootstrap_servers, "orders", 2, {"retention.ms": "7000000"})
        mp.produce(source.bootstrap_servers, "orders", 2, 200)
        commit(source, {0: 30, 1: 40})
        addresses = {"localhost:19092": source.bootstrap_servers, "localhost:29092": target.bootstrap_servers}
        granting = [block.commands for block in blocks("security.md") if "kafka-acls.sh" in block.commands]
        with Reader(tmp_path_factory.mktemp("granting"), addresses) as reader:
            for commands in granting:
                reader.run(commands, 120, "security.md")
        yield source, target


def commit(cluster: KafkaCluster, offsets: dict[int, int]) -> None:
    consumer = KafkaConsumer(bootstrap_servers=cluster.bootstrap_servers, group_id="billing", enable_auto_commit=False)
    consumer.commit({TopicPartition("orders", index): OffsetAndMetadata(at, "", -1) for index, at in offsets.items()})
    consumer.close()


def client_of(cluster: KafkaCluster) -> ClusterClient:
    return ClusterClient(ClusterConfig(alias="x", bootstrap_servers=(cluster.bootstrap_servers,)), "test")


def granted(cluster: KafkaCluster) -> set[Acl]:
    client = client_of(cluster)
    try:
        return {acl for acl in read_acls(client, *AclResource) if acl.principal == ME}
    finally:
        client.close()


@pytest.fixture
def file(guarded: tuple[KafkaCluster, KafkaCluster], tmp_path: Path) -> Path:
    """The flow that the page speaks of."""
    source, target = guarded
    lines = {
        "clusters": "primary, backup",
        "primary.bootstrap.servers": source.servers("PLAIN"),
        "backup.bootstrap.servers": target.servers("PLAIN"),
        "primary->backup.enabled": "true",
        "backup->primary.emit.heartbeats.enabled": "false",
        "topics": "orders.*",
        "groups": "billing",
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.jaas.config": JAAS,
        "sync.group.offsets.enabled": "true",
        "emit.checkpoints.interval.seconds": "2",
        "sync.group.offsets.interval.seconds": "2",
        "sync.topic.acls.interval.seconds": "5",
        "sync.topic.configs.interval.seconds": "5",
        "sparkmirror.sync.acls.patterns.enabled": "true",
        "sparkmirror.sync.acls.removals.enabled": "true",
        "backup.session.timeout.ms": "6000",
        **mp.ONE_REPLICA,
    }
    path = tmp_path / "mm2.properties"
    path.write_text("".join(f"{key} = {value}\n" for key, value in lines.items()))
    return path


KNOWN = {"rights-unknown", "append-check-unproven", "limits-unknown", "clock-unknown"}
"""What is only good to know, and is about rights."""


def said(file: Path) -> dict[str, str]:
    """What `lint --connect` has to say of rights, and all that it warns of, by rule."""
    append_proof._known.clear()  # noqa: SLF001 - as a process that has just been started
    printed = CliRunner().invoke(app, ["lint", str(file), "--connect", "-o", "json"])
    lines: dict[str, str] = {}
    for finding in json.loads(printed.stdout):
        if finding["rule"] != "short-interval" and (finding["severity"] != "info" or finding["rule"] in KNOWN):
            for place in finding["places"]:
                lines[finding["rule"]] = f"{lines.get(finding['rule'], '')}{place['what']}; {finding['fix']}\n"
    return lines


WORDS = {AclResource.TOPIC: "topic", AclResource.GROUP: "group", AclResource.CLUSTER: "the cluster"}


LOOKED_AT = (STRIMZIS_TOPIC, "connect-offsets")
"""At a start only: a run names them."""


def unnamed(
    cluster: KafkaCluster, file: Path, wanted: Callable[[Acl], bool], logged: Callable[[], list[str]]
) -> Iterator[str]:
    """Rights of sparkmirror's principal whose loss `lint --connect` doesn't name by operation and resource."""
    client = client_of(cluster)
    asked = {acl for acl in granted(cluster) if wanted(acl) and acl.name not in LOOKED_AT}
    for acl in sorted(asked):
        assert delete_acls(client, [acl]) == {acl: None}
        try:
            wait_until_shown(client, acl, there=False)
            logged()
            text = "".join([*said(file).values(), *logged()])
            if not re.search(rf"\b{acl.operation_name}\b[^\n]* {WORDS[acl.resource]}", text):
                yield f"{acl}: {text}"
        finally:
            create_acls(client, [acl])
            wait_until_shown(client, acl, there=True)
    client.close()


def wait_until_shown(client: ClusterClient, acl: Acl, *, there: bool) -> None:
    mp.wait_for(lambda: (acl in read_acls(client, acl.resource)) == there, 10, f"{acl} is there: {there}")


def is_read_or_cluster(acl: Acl) -> bool:
    return acl.operation == READ or acl.resource is AclResource.CLUSTER


def test_some_rights_that_are_missing(
    guarded: tuple[KafkaCluster, KafkaCluster], file: Path, lines: Callable[[], list[str]]
) -> None:
    """Before the first start: the topics at the target are not there."""
    assert said(file) == {}
    assert not [line for cluster in guarded for line in unnamed(cluster, file, is_read_or_cluster, lines)]


def test_without_the_right_to_delete_it_no_topic_is_made(
    guarded: tuple[KafkaCluster, KafkaCluster], file: Path
) -> None:
    """With the rights to create, read and write it, a broker says of a missing topic only that it is missing."""
    target = guarded[1]
    client = client_of(target)
    deleting = Acl(name=PREFIX, principal=ME, host="*", operation=DELETE, permission=ALLOW, pattern=PREFIXED)
    assert delete_acls(client, [deleting]) == {deleting: None}
    try:
        wait_until_shown(client, deleting, there=False)
        assert "can't be deleted" in said(file)["append-check-unproven"]
        names = [topic.name for topic in client.ask_any(lambda: MetadataRequest(topics=None)).topics]
        assert [name for name in names if name.startswith(PREFIX)] == []
    finally:
        create_acls(client, [deleting])
        wait_until_shown(client, deleting, there=True)
        client.close()


def test_rights_for_quotas(guarded: tuple[KafkaCluster, KafkaCluster], file: Path) -> None:
    """They are not on the page: nobody has quotas copied who doesn't ask for it."""
    with file.open("a") as more:
        more.write("sparkmirror.sync.client.quotas.enabled = true\n")
    lines = said(file)
    assert "DESCRIBE_CONFIGS on the cluster, to read client quotas" in lines["forbidden-at-source"]
    assert "ALTER_CONFIGS on the cluster, to set client quotas" in lines["forbidden-at-target"]


@pytest.mark.full
def test_each_other_right_that_is_missing(
    guarded: tuple[KafkaCluster, KafkaCluster], file: Path, lines: Callable[[], list[str]]
) -> None:
    others = [
        line for cluster in guarded for line in unnamed(cluster, file, lambda acl: not is_read_or_cluster(acl), lines)
    ]
    assert not others, "\n".join(others)


@pytest.mark.full
@pytest.mark.spark
def test_the_rights_are_enough(guarded: tuple[KafkaCluster, KafkaCluster], file: Path, tmp_path: Path) -> None:
    source, target = guarded
    assert said(file) == {}
    theirs = Acl(name="orders", principal="User:reader", host="*", operation=READ, permission=ALLOW)
    here, there = client_of(source), client_of(target)
    prefix = Acl(name="ord", principal="User:other", host="*", operation=READ, permission=ALLOW, pattern=PREFIXED)
    assert create_acls(here, [theirs, prefix]) == {theirs: None, prefix: None}
    with mp.MirrorProcess(file, tmp_path / "log", "-o", "json") as mirror:
        mp.wait_for(
            lambda: sum(mp.end_offsets(target.bootstrap_servers, "primary.orders", 2)) == 200, 400, "all is copied"
        )
        copy = Acl(name="primary.orders", principal="User:reader", host="*", operation=READ, permission=ALLOW)
        mp.wait_for(lambda: copy in read_acls(there, AclResource.TOPIC), 200, "the copy's ACL")
        renamed = dataclasses.replace(prefix, name="primary.ord")
        mp.wait_for(lambda: renamed in read_acls(there, AclResource.TOPIC), 200, "the prefix' ACL")
        delete_acls(here, [prefix])
        mp.wait_for(lambda: renamed not in read_acls(there, AclResource.TOPIC), 200, "it is revoked")
        consumer = KafkaConsumer(bootstrap_servers=target.bootstrap_servers, group_id="billing")
        partition = TopicPartition("primary.orders", 1)
        mp.wait_for(lambda: consumer.committed(partition) == 40, 200, "the group's offset at the target")
        consumer.close()
        mp.alter_topic(source.bootstrap_servers, "orders", {"retention.ms": "8000000"})
        kept = {"primary.orders": {"retention.ms": "8000000"}}
        mp.wait_for(lambda: topic_configs(there, kept, ["retention.ms"]) == kept, 200, "the copy's retention")
        mp.wait_for(lambda: sum(mp.end_offsets(target.bootstrap_servers, "heartbeats", 1)) > 0, 200, "heartbeats")
        mp.wait_for(
            lambda: sum(mp.end_offsets(source.bootstrap_servers, "mm2-offset-syncs.backup.internal", 1)) > 0,
            60,
            "syncs",
        )
        assert mirror.terminate(200) == 0
        logged = [line for line in mirror.log.read_text().splitlines() if not line.startswith("{")]
    bad = [line for line in logged if re.search(r"WARNING|ERROR|warning|parked|can't be synced", line)]
    assert [line for line in bad if "has no effect" not in line] == []
    assert said(file) == {}
    for words in (["losses"], ["acls"], ["acls", "--missing"], ["pause"], ["resume"]):
        result = CliRunner().invoke(app, [words[0], str(file), *words[1:]])
        assert result.exit_code == 0, f"{words}: {result.output} {result.exception}"
    assert subprocess.run([mp.COMMAND, "verify", str(file)], capture_output=True, timeout=600).returncode == 0
    here.close()
    there.close()


@pytest.mark.full
def test_each_right_that_is_missing_when_topics_are_there(
    guarded: tuple[KafkaCluster, KafkaCluster], file: Path, lines: Callable[[], list[str]]
) -> None:
    """What creates topics, and what proves the append check, is needed no more."""

    def needed(acl: Acl) -> bool:
        copied = acl.name == "primary.orders"  # by the mirror, of those on orders: the prefix primary. has them anyway
        return acl.operation_name not in ("CREATE", "DELETE") and not copied

    later = [line for cluster in guarded for line in unnamed(cluster, file, needed, lines)]
    assert not later, "\n".join(later)


# --- a run ----------------------------------------------------------------------------------------------------

ON_TARGET = [
    (
        Acl(name="primary.", principal=ME, host="*", operation=WRITE, permission=ALLOW, pattern=PREFIXED),
        r"topic primary\.checkpoints\.internal.*grant sparkmirror's principal READ and WRITE",
    ),
    (
        Acl(
            name="primary-mm2",
            principal=ME,
            host="*",
            operation=READ,
            permission=ALLOW,
            pattern=LITERAL,
            resource=AclResource.GROUP,
        ),
        r"grant sparkmirror's principal READ on the group",
    ),
    (
        Acl(
            name="billing",
            principal=ME,
            host="*",
            operation=READ,
            permission=ALLOW,
            pattern=LITERAL,
            resource=AclResource.GROUP,
        ),
        r"billing: .*and READ where its offsets are set",
    ),
    (
        Acl(name="heartbeats", principal=ME, host="*", operation=WRITE, permission=ALLOW),
        r"topic heartbeats: grant it CREATE and WRITE",
    ),
    (
        Acl(name="mm2-sparkmirror-", principal=ME, host="*", operation=WRITE, permission=ALLOW, pattern=PREFIXED),
        r"topic mm2-sparkmirror-.*grant sparkmirror's principal READ and WRITE",
    ),
    (
        Acl(name=STRIMZIS_TOPIC, principal=ME, host="*", operation=READ, permission=ALLOW),
        r"grant sparkmirror's principal READ on it",
    ),
]


@pytest.mark.full
@pytest.mark.spark
@pytest.mark.parametrize(("acl", "words"), ON_TARGET, ids=lambda value: getattr(value, "name", None))
def test_a_run_names_what_is_missing(
    guarded: tuple[KafkaCluster, KafkaCluster], file: Path, acl: Acl, words: str, tmp_path: Path
) -> None:
    source, target = guarded
    client = client_of(target)
    assert acl in granted(target)
    delete_acls(client, [acl])
    wait_until_shown(client, acl, there=False)
    try:
        commit(source, {0: 90, 1: 90})
        mp.produce(source.bootstrap_servers, "orders", 2, 20)
        log = tmp_path / "log"
        with mp.MirrorProcess(file, log):
            mp.wait_for(lambda: re.search(words, log.read_text()) is not None, 400, f"it says {words}")
    finally:
        create_acls(client, [acl])
        wait_until_shown(client, acl, there=True)
        client.close()


DENIED = Acl(name="primary.orders", principal=ME, host="*", operation=WRITE, permission=DENY)


@pytest.mark.full
@pytest.mark.spark
@pytest.mark.parametrize("denied", [True, False])
def test_the_doctors_command_gives_the_right_back(
    guarded: tuple[KafkaCluster, KafkaCluster], file: Path, denied: bool, tmp_path: Path
) -> None:
    """Where an ACL denies it, that one is removed: one more that allows it would have no effect."""
    source, target = guarded
    client = client_of(target)
    allowing = {acl for acl in granted(target) if acl.operation == WRITE and acl.is_about("primary.orders")}
    assert create_acls(client, [DENIED]) if denied else delete_acls(client, sorted(allowing))
    before = mp.end_offsets(source.bootstrap_servers, "orders", 2)
    mp.produce(source.bootstrap_servers, "orders", 2, 20)
    try:
        with mp.MirrorProcess(file, tmp_path / "log"):
            findings: list[dict[str, str]] = []

            def parked() -> bool:
                words = [mp.COMMAND, "doctor", str(file), "--wait", "0", "-o", "json"]
                rows = json.loads(subprocess.run(words, capture_output=True).stdout or "[]")
                findings[:] = [row for row in rows if row["rule"] == "parked-not-authorized"]
                command = ("--remove" if denied else "--add") + " "  # an earlier run may have published another one
                return bool(findings) and command in findings[0]["action"]

            mp.wait_for(parked, 400, "a partition is parked, and the command is told")
            assert f"{ME} lacks WRITE on topic primary.orders of backup" in findings[0]["cause"]
            (command,) = re.findall(r"`(kafka-acls.sh [^`]+)`", findings[0]["action"])
            assert ("--remove --deny-principal User:mirror" in command) is denied
            at_target = f"--bootstrap-server {target.servers('PLAIN')} --command-config admin.properties"
            assert at_target in command
            command = command.replace(at_target, f"--bootstrap-server {target.bootstrap_servers}")
            with Reader(tmp_path, {}) as reader:
                reader.run(command + (" --force" if denied else ""), 120, "the doctor")
            copied = [end + 10 for end in before]
            mp.wait_for(
                lambda: mp.end_offsets(target.bootstrap_servers, "primary.orders", 2) == copied, 400, "it continues"
            )
    finally:
        delete_acls(client, [DENIED])
        create_acls(client, sorted(allowing))
        client.close()
