"""Each rule finds its mistake, at its place, and nothing where there is none."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from tools.lint_page import page
from typer.testing import CliRunner

from sparkmirror.cli.app import app
from sparkmirror.config.formats import read
from sparkmirror.lint import RULES, LintFinding, check
from sparkmirror.lint.format_rules import FORMAT_RULES

ROOT = Path(__file__).parents[2]
CLEAN = {
    "clusters": "us, eu",
    "us.bootstrap.servers": "us1:9092",
    "eu.bootstrap.servers": "eu1:9092",
    "us->eu.enabled": "true",
    "sync.group.offsets.enabled": "false",
    "tasks.max": "4",
}
IDENTITY = "org.apache.kafka.connect.mirror.IdentityReplicationPolicy"
AMAZONS = "com.amazonaws.kafka.samples.CustomMM2ReplicationPolicy"
KERBEROS = (
    'com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true keyTab="/nowhere" principal="a@B"'
    " serviceName=kafka;"
)
CONNECTOR = {
    "source.cluster.alias": "us",
    "target.cluster.alias": "eu",
    "source.cluster.bootstrap.servers": "us1:9092",
    "target.cluster.bootstrap.servers": "eu1:9092",
}
TARGET = {
    "alias": "eu",
    "bootstrapServers": "eu1:9092",
    "groupId": "g",
    "configStorageTopic": "c",
    "offsetStorageTopic": "o",
    "statusStorageTopic": "s",
}
BY_TLS = {"target.cluster.security.protocol": "SSL", "target.cluster.ssl.truststore.type": "PEM"}
TLS_WORKER = ("security.protocol=SSL", "producer.security.protocol=SSL")
WORKERS_KEYS = ("producer.ssl.keystore.location=/tmp/k.jks", "producer.ssl.truststore.location=/tmp/t.jks")
PASSWORD = (("eu.security.protocol", "SSL"), ("eu.ssl.key.password", "told"))
BEATS = (("eu->us.emit.heartbeats.enabled", "true"),)
"""Heartbeats of a pair that copies nothing."""
FAN_IN_LINES = (("asia.bootstrap.servers", "asia1:9092"), ("asia->eu.enabled", "true"))
FAN_IN = {"clusters": "us, eu, asia", "us->eu.topics": "orders"}


def properties(directory: Path, *more: tuple[str, str], **changed: str) -> list[LintFinding]:
    path = directory / "mm2.properties"
    lines = [*({**CLEAN, **changed}.items()), *more]
    path.write_text("".join(f"{key} = {value}\n" for key, value in lines))
    return check(read([str(path)]))


def connectors(directory: Path, **roles: dict[str, str] | None) -> list[LintFinding]:
    """Source and checkpoint connector, changed; None takes one out, and None as a value a key."""
    given: dict[str, dict[str, str]] = {
        "source": {"tasks.max": "4", "topics": ".*"},
        "checkpoint": {"sync.group.offsets.enabled": "false"},
    }
    paths = []
    for role, config in given.items():
        change = roles.get(role, {})
        if change is None:
            continue
        whole = {"connector.class": f"Mirror{role.title()}Connector", **CONNECTOR, **config, **change}
        path = directory / f"{role}.json"
        path.write_text(json.dumps({key: value for key, value in whole.items() if value != "-"}, indent=1))
        paths.append(str(path))
    return check(read(paths))


def worker(directory: Path, *lines: str, **roles: dict[str, str] | None) -> list[LintFinding]:
    """Connectors with their worker's file, at the target."""
    connectors(directory, **roles)
    head = ["bootstrap.servers=eu1:9092", "group.id=g", "config.storage.topic=c", "status.storage.topic=s"]
    (directory / "worker.properties").write_text("\n".join([*head, *lines]) + "\n")
    return check(read([str(directory)]))


def resource(name: str = "ours", version: str = "v1", **config: Any) -> dict[str, Any]:
    mirror = {
        "source": {"alias": "us", "bootstrapServers": "us1:9092"},
        "sourceConnector": {"tasksMax": 4, "config": {"sync.topic.acls.enabled": "false", **config}},
        "checkpointConnector": {"config": {"sync.group.offsets.enabled": "false"}},
    }
    return {
        "apiVersion": f"kafka.strimzi.io/{version}",
        "kind": "KafkaMirrorMaker2",
        "metadata": {"name": name},
        "spec": {"replicas": 1, "target": TARGET, "mirrors": [mirror]},
    }


def old_layout(source: str, **config: str) -> dict[str, Any]:
    """A resource with its target among the clusters; `config` is the target's."""
    whole = resource(source, "v1beta2")
    target = {
        "alias": "eu",
        "bootstrapServers": "eu1:9092",
        "config": {k.replace("_", "."): v for k, v in config.items()},
    }
    mirror = {key: value for key, value in whole["spec"]["mirrors"][0].items() if key != "source"}
    whole["spec"] = {
        "replicas": 1,
        "connectCluster": "eu",
        "clusters": [{"alias": source, "bootstrapServers": f"{source}1:9092"}, target],
        "mirrors": [{"sourceCluster": source, "targetCluster": "eu", **mirror}],
    }
    return whole


def strimzi(directory: Path, *resources: dict[str, Any]) -> list[LintFinding]:
    path = directory / "mirror.yaml"
    path.write_text(yaml.safe_dump_all(resources, sort_keys=False))
    return check(read([str(path)]))


BAD: list[tuple[str, Any, str, int]] = [
    ("unusable", lambda d: properties(d, ("replication.factor", "many")), "replication.factor", 7),
    ("placeholder", lambda d: properties(d, **{"us.bootstrap.servers": "{SOURCE BROKERS}"}), "us.bootstrap.servers", 2),
    ("placeholder", lambda d: properties(d, ("x.sasl.jaas.config", 'a password="PASSWORD";')), "x.sasl.jaas.config", 7),
    (
        "misspelt-factor",
        lambda d: properties(d, ("heartbeat.topic.replication.factor", "1")),
        "heartbeat.topic.replication.factor",
        7,
    ),
    (
        "misspelt-factor",
        lambda d: connectors(d, source={"offset.syncs.topic.replication.factor": "1"}),
        "offset.syncs.topic.replication.factor",
        9,
    ),
    (
        "policy-mismatch",
        lambda d: connectors(d, source={"replication.policy.class": IDENTITY}),
        "replication.policy.class",
        9,
    ),
    (
        "misplaced",
        lambda d: connectors(d, source={"sync.group.offsets.enabled": "true"}),
        "sync.group.offsets.enabled",
        9,
    ),
    (
        "wrong-prefix",
        lambda d: connectors(d, source={"target.cluster.max.request.size": "1"}),
        "target.cluster.max.request.size",
        9,
    ),
    (
        "wrong-prefix",
        lambda d: connectors(d, source={"source.cluster.receive.buffer.bytes": "1"}),
        "source.cluster.receive.buffer.bytes",
        9,
    ),
    (
        "wrong-prefix",
        lambda d: properties(d, ("us->eu.producer.max.request.size", "1")),
        "us->eu.producer.max.request.size",
        7,
    ),
    (
        "wrong-prefix",
        lambda d: connectors(d, source={"producer.compression.zstd.level": "9"}),
        "producer.compression.zstd.level",
        9,
    ),
    (
        "recompresses",
        lambda d: connectors(d, source={"producer.override.compression.type": "gzip"}),
        "producer.override.compression.type",
        9,
    ),
    ("recompresses", lambda d: properties(d, ("eu.producer.compression.type", "zstd")), "compression.type", 7),
    (
        "broker-key",
        lambda d: connectors(d, source={"producer.override.message.max.bytes": "9"}),
        "producer.override.message.max.bytes",
        9,
    ),
    ("consumer-key", lambda d: properties(d, ("eu.producer.fetch.max.bytes", "9")), "eu.producer.fetch.max.bytes", 7),
    (
        "replicator-key",
        lambda d: connectors(d, source={"target.kafka.sasl.mechanism": "PLAIN"}),
        "target.kafka.sasl.mechanism",
        9,
    ),
    ("unprefixed-security", lambda d: connectors(d, source={"sasl.mechanism": "PLAIN"}), "sasl.mechanism", 9),
    ("worker-without-stores", lambda d: worker(d, *TLS_WORKER, *WORKERS_KEYS), "ssl.keystore.location", 5),
    (
        "worker-without-stores",
        lambda d: worker(d, *TLS_WORKER, WORKERS_KEYS[1], "ssl.keystore.location=/tmp/k.jks"),
        "ssl.truststore.location",
        5,
    ),
    (
        "worker-without-stores",
        lambda d: worker(d, "security.protocol=SASL_SSL", "admin.ssl.truststore.certificates=x"),
        "ssl.truststore.location",
        5,
    ),
    (
        "worker-without-stores",
        lambda d: worker(
            d,
            TLS_WORKER[0],
            source=BY_TLS | {"target.cluster.ssl.keystore.location": "/k.pem"},
            checkpoint=BY_TLS | {"target.cluster.ssl.keystore.location": "/k.pem"},
        ),
        "ssl.keystore.location",
        5,
    ),
    ("digit-lost", lambda d: properties(d, ("eu.producer.batch.size", "52428")), "eu.producer.batch.size", 7),
    (
        "short-interval",
        lambda d: properties(d, ("refresh.groups.interval.seconds", "19")),
        "refresh.groups.interval.seconds",
        7,
    ),
    (
        "short-interval",
        lambda d: properties(d, ("emit.checkpoints.interval.seconds", "19")),
        "emit.checkpoints.interval.seconds",
        7,
    ),
    (
        "short-interval",
        lambda d: properties(d, ("sync.group.offsets.interval.seconds", "1")),
        "sync.group.offsets.interval.seconds",
        7,
    ),
    (
        "no-target-alias",
        lambda d: connectors(d, source={"target.cluster.alias": "-"}, checkpoint=None),
        "target.cluster.alias",
        0,
    ),
    ("shared-workers", lambda d: strimzi(d, resource(), _of_asia()), "spec.target.groupId", 0),
    ("shared-workers", lambda d: strimzi(d, old_layout("us"), old_layout("asia")), "group.id", 0),
    ("said-otherwise", lambda d: properties(d, ("tasks.maxx", "1")), "tasks.maxx", 7),
    ("said-otherwise", lambda d: properties(d, ("batch.size", "1")), "batch.size", 7),
    ("no-checkpoint-connector", lambda d: connectors(d, checkpoint=None), "connector.class", 2),
    ("literal-secret", lambda d: properties(d, ("eu.ssl.key.password", "hush")), "eu.ssl.key.password", 7),
    ("old-api", lambda d: strimzi(d, resource(version="v1beta2")), "apiVersion", 1),
    ("no-effect", lambda d: properties(d, ("us->eu.key.converter.x", "1")), "us->eu.key.converter.x", 7),
    ("wrong-pattern", lambda d: properties(d, ("topic.filter.class", "nowhere:Filter")), "us->eu.enabled", 4),
    ("lost-backslash", lambda d: properties(d, ("topics.exclude", r"dc-east\..*")), "topics.exclude", 7),
    ("lost-backslash", lambda d: properties(d, ("us->eu.topics", r"a\\.b, c\d+")), "us->eu.topics", 7),
    ("lost-backslash", lambda d: properties(d, ("groups.blacklist", r"a\.b")), "groups.blacklist", 7),
    ("default-replaced", lambda d: properties(d, ("us->eu.groups.exclude", "tmp-.*")), "us->eu.groups.exclude", 7),
    ("default-replaced", lambda d: properties(d, ("config.properties.exclude", "x")), "config.properties.exclude", 7),
    ("wrong-pattern", lambda d: properties(d, *BEATS, ("eu->us.replication.policy.class", "nowhere:P")), "eu->us", 0),
    ("odd-pattern", lambda d: properties(d, ("topics", "orders payments")), "topics", 7),
    ("odd-pattern", lambda d: properties(d, ("us->eu.topics.exclude", "tmp-*")), "us->eu.topics.exclude", 7),
    ("odd-pattern", lambda d: properties(d, ("groups", '"billing"')), "groups", 7),
    ("odd-pattern", lambda d: properties(d, ("groups.exclude", "a;b")), "groups.exclude", 7),
    ("spark-refused", lambda d: properties(d, ("spark.speculation", "True")), "spark.speculation", 7),
    ("spark-refused", lambda d: properties(d, ("spark.driver.memory", "400m")), "spark.driver.memory", 7),
    (
        "spark-refused",
        lambda d: properties(d, ("spark.speculation", "true"), ("spark.python.task.killTimeout", "1h")),
        "spark.python.task.killTimeout",
        8,
    ),
    (
        "spark-refused",
        lambda d: properties(d, ("spark.master", "yarn"), ("spark.authenticate", "true"), *PASSWORD),
        "spark.master",
        7,
    ),
    (
        "kerberos-here",
        lambda d: properties(d, ("us.security.protocol", "SASL_SSL"), ("us.sasl.jaas.config", KERBEROS)),
        "us.sasl.jaas.config",
        8,
    ),
    (
        "echo-loop",
        lambda d: properties(d, ("eu->us.enabled", "true"), ("replication.policy.class", IDENTITY)),
        "replication.policy.class",
        8,
    ),
    ("turns", lambda d: properties(d, ("us->eu.sparkmirror.turn", "first")), "us->eu.sparkmirror.turn", 7),
    (
        "fan-in",
        lambda d: properties(
            d,
            ("asia.bootstrap.servers", "asia1:9092"),
            ("asia->eu.enabled", "true"),
            ("replication.policy.class", IDENTITY),
            ("topics", "orders"),
            clusters="us, eu, asia",
        ),
        "topics",
        10,
    ),
    (
        "may-fan-in",
        lambda d: properties(
            d,
            ("asia.bootstrap.servers", "asia1:9092"),
            ("asia->eu.enabled", "true"),
            ("replication.policy.class", IDENTITY),
            clusters="us, eu, asia",
        ),
        "asia->eu.enabled",
        8,
    ),
    (
        "comes-back",
        lambda d: properties(
            d,
            ("us.1.bootstrap.servers", "us11:9092"),
            ("us->us.1.enabled", "true"),
            ("us.1->us.enabled", "true"),
            clusters="us, eu, us.1",
        ),
        "us.1->us.enabled",
        9,
    ),
    ("never-copied", lambda d: properties(d, ("topics", "orders, __a")), "topics", 7),
    ("nothing-listed", lambda d: properties(d, ("topics", "__a")), "topics", 7),
    ("schemas-renamed", lambda d: properties(d, ("topics", "orders, _schemas")), "topics", 7),
    (
        "schemas-copied",
        lambda d: properties(d, ("us->eu.topics", "_schemas"), ("replication.policy.class", IDENTITY)),
        "topics",
        7,
    ),
    ("schemas-left-out", lambda d: properties(d, ("topics.exclude", "_.*")), "topics.exclude", 7),
    ("same-brokers", lambda d: properties(d, **{"eu.bootstrap.servers": "x:1, us1:9092"}), "eu.bootstrap.servers", 3),
    ("no-separator", lambda d: properties(d, ("replication.policy.separator", "")), "replication.policy.separator", 7),
    (
        "group-sync-unsaid",
        lambda d: connectors(d, checkpoint={"sync.group.offsets.enabled": "-"}),
        "sync.group.offsets.enabled",
        0,
    ),
    ("one-replica", lambda d: properties(d, ("replication.factor", "1")), "replication.factor", 7),
    ("one-task", lambda d: properties(d, **{"tasks.max": "1"}), "tasks.max", 6),
    ("amazons-policy", lambda d: properties(d, ("replication.policy.class", AMAZONS)), "replication.policy.class", 7),
    (
        "acls-and-operator",
        lambda d: strimzi(d, resource(**{"sync.topic.acls.enabled": "true"})),
        "sync.topic.acls.enabled",
        0,
    ),
    (
        "names-with-aliases",
        lambda d: properties(d, **{"sync.group.offsets.enabled": "true"}),
        "sync.group.offsets.enabled",
        5,
    ),
]
"""A rule, a file with its mistake, and where it is."""


FOLLOWED: list[tuple[str, Any, str]] = [
    (
        "schemas-renamed",
        lambda d: properties(d, ("topics", "orders, _schemas"), ("replication.policy.class", IDENTITY)),
        "IdentityReplicationPolicy",
    ),
    ("schemas-renamed", lambda d: properties(d, ("topics", "orders")), "take _schemas out"),
    (
        "schemas-copied",
        lambda d: properties(d, ("us->eu.topics", "orders"), ("replication.policy.class", IDENTITY)),
        "take _schemas out",
    ),
    ("schemas-left-out", lambda d: properties(d, ("topics.exclude", "__.*")), "take the pattern that matches"),
    ("unusable", lambda d: properties(d, ("replication.factor", "3")), "as the reason says"),
    ("placeholder", lambda d: properties(d, **{"us.bootstrap.servers": "us1:9092"}), "write the real value"),
    ("misspelt-factor", lambda d: properties(d, ("heartbeats.topic.replication.factor", "1")), "spell the key"),
    (
        "policy-mismatch",
        lambda d: connectors(
            d,
            source={"replication.policy.class": IDENTITY},
            checkpoint={"replication.policy.class": IDENTITY},
        ),
        "write the same into both",
    ),
    ("misplaced", lambda d: connectors(d, checkpoint={"sync.group.offsets.enabled": "true"}), "move it into"),
    ("wrong-prefix", lambda d: connectors(d, source={"producer.override.max.request.size": "1"}), "producer.override."),
    ("wrong-prefix", lambda d: connectors(d, source={"consumer.receive.buffer.bytes": "1"}), "consumer."),
    (
        "wrong-prefix",
        lambda d: properties(d, ("us->eu.producer.override.max.request.size", "1")),
        "us->eu.producer.override.",
    ),
    ("wrong-prefix", lambda d: properties(d, ("eu.producer.max.request.size", "1")), "eu.producer."),
    ("broker-key", lambda d: connectors(d), "take it out"),
    ("consumer-key", lambda d: properties(d, ("us.consumer.fetch.max.bytes", "9")), "write us.consumer."),
    ("recompresses", lambda d: connectors(d), "take it out"),
    ("replicator-key", lambda d: connectors(d, source=BY_TLS, checkpoint=BY_TLS), "of security.protocol as well"),
    (
        "unprefixed-security",
        lambda d: connectors(d, source=BY_TLS, checkpoint=BY_TLS),
        "of security.protocol as well",
    ),
    (
        "worker-without-stores",
        lambda d: worker(
            d,
            *TLS_WORKER,
            *WORKERS_KEYS,
            "ssl.keystore.location=/tmp/k.jks",
            "ssl.truststore.location=/tmp/t.jks",
        ),
        "write ssl.keystore.location as well",
    ),
    ("digit-lost", lambda d: properties(d, ("eu.producer.batch.size", "524288")), "write the whole number"),
    ("short-interval", lambda d: properties(d, ("refresh.groups.interval.seconds", "20")), "write 20 or more"),
    ("no-target-alias", lambda d: connectors(d, checkpoint=None), "write target.cluster.alias"),
    (
        "shared-workers",
        lambda d: [
            *strimzi(d, old_layout("us")),
            *strimzi(
                d,
                old_layout(
                    "asia",
                    group_id="asias",
                    config_storage_topic="c",
                    offset_storage_topic="o",
                    status_storage_topic="s",
                ),
            ),
        ],
        "a group and topics of its own",
    ),
    ("said-otherwise", lambda d: properties(d, **{"tasks.max": "1"}), "as the reason says"),
    ("said-otherwise", lambda d: properties(d, ("us.consumer.receive.buffer.bytes", "1")), "as the reason says"),
    ("no-checkpoint-connector", lambda d: connectors(d), "add one with the same policy"),
    ("literal-secret", lambda d: properties(d, ("eu.ssl.key.password", "${file:/x:y}")), "write a reference"),
    ("old-api", lambda d: strimzi(d, resource()), "v1"),
    ("no-effect", lambda d: properties(d), "take it out"),
    ("wrong-pattern", lambda d: properties(d, ("topics", "a(b)")), "as the reason says"),
    ("odd-pattern", lambda d: properties(d, ("topics", r"orders.*, a\\.b, (x|y)*")), "as the reason says"),
    ("odd-pattern", lambda d: properties(d, ("groups", "my group")), "as the reason says"),
    ("lost-backslash", lambda d: properties(d, ("topics.exclude", r"dc-east\\..*")), "write two backslashes"),
    ("lost-backslash", lambda d: properties(d, ("topics", "g\\\n  h")), "write two backslashes"),
    (
        "default-replaced",
        lambda d: properties(d, ("groups.exclude", "tmp-.*, console-consumer-.*, connect-.*, __.*")),
        "add the items",
    ),
    ("default-replaced", lambda d: properties(d, ("config.properties.exclude", "+x, +y")), "takes a + before"),
    ("spark-refused", lambda d: properties(d, ("spark.speculation", "false")), "as the reason says"),
    ("spark-refused", lambda d: properties(d, ("spark.driver.memory", "465m")), "as the reason says"),
    ("spark-refused", lambda d: properties(d, ("spark.python.task.killTimeout", "2s")), "as the reason says"),
    ("spark-refused", lambda d: properties(d, ("spark.master", "yarn")), "as the reason says"),
    ("spark-refused", lambda d: properties(d, ("spark.master", "local[4]"), *PASSWORD), "as the reason says"),
    (
        "spark-refused",
        lambda d: properties(
            d,
            ("spark.master", "yarn"),
            ("spark.authenticate", "true"),
            ("spark.network.crypto.enabled", "true"),
            *PASSWORD,
        ),
        "as the reason says",
    ),
    ("kerberos-here", lambda d: properties(d), "as the reason says"),
    ("echo-loop", lambda d: properties(d, ("replication.policy.class", IDENTITY)), "take eu->us.enabled out"),
    ("echo-loop", lambda d: properties(d, ("eu->us.enabled", "true")), "use DefaultReplicationPolicy in all"),
    (
        "echo-loop",
        lambda d: properties(
            d,
            ("eu->us.enabled", "true"),
            ("replication.policy.class", IDENTITY),
            ("us->eu.topics", "us-.*"),
            ("eu->us.topics", "eu-.*"),
        ),
        "give each topics of its own",
    ),
    (
        "turns",
        lambda d: properties(d, ("replication.policy.class", IDENTITY)),
        "use IdentityReplicationPolicy in both flows",
    ),
    (
        "fan-in",
        lambda d: properties(
            d, *FAN_IN_LINES, ("replication.policy.class", IDENTITY), ("asia->eu.topics", "bills"), **FAN_IN
        ),
        "list each topic in one of",
    ),
    ("fan-in", lambda d: properties(d, *FAN_IN_LINES, ("topics", "orders"), clusters="us, eu, asia"), "in both"),
    ("may-fan-in", lambda d: properties(d, *FAN_IN_LINES, clusters="us, eu, asia"), "use DefaultReplicationPolicy in"),
    ("nothing-listed", lambda d: properties(d, ("topics", "orders")), "list topics that can be"),
    ("never-copied", lambda d: properties(d, ("topics", "orders")), "take __a out of topics"),
    (
        "comes-back",
        lambda d: properties(
            d,
            ("us.1.bootstrap.servers", "us11:9092"),
            ("us->us.1.enabled", "true"),
            ("us.1->us.enabled", "true"),
            ("replication.policy.separator", "_"),
            clusters="us, eu, us.1",
        ),
        "write replication.policy.separator = _",
    ),
    ("same-brokers", lambda d: properties(d), "correct the brokers"),
    ("no-separator", lambda d: properties(d, ("replication.policy.separator", "-")), "write a separator"),
    ("no-separator", lambda d: properties(d, ("replication.policy.class", IDENTITY)), "IdentityReplicationPolicy"),
    ("group-sync-unsaid", lambda d: connectors(d, checkpoint={"sync.group.offsets.enabled": "true"}), "= true"),
    ("group-sync-unsaid", lambda d: connectors(d), "or false"),
    ("one-replica", lambda d: properties(d, ("replication.factor", "-1")), "write -1"),
    ("one-task", lambda d: properties(d), "raise tasks.max"),
    ("amazons-policy", lambda d: properties(d, ("replication.policy.class", IDENTITY)), IDENTITY),
    ("acls-and-operator", lambda d: strimzi(d, resource()), "sync.topic.acls.enabled: false"),
    (
        "names-with-aliases",
        lambda d: properties(d, ("replication.policy.class", IDENTITY), **{"sync.group.offsets.enabled": "true"}),
        "use IdentityReplicationPolicy",
    ),
]
"""A rule, the file of `BAD` as it is when its remedy was followed to the letter, and what of the remedy that was."""


def _of_asia() -> dict[str, Any]:
    other = resource("theirs")
    other["spec"]["mirrors"][0]["source"] = {"alias": "asia", "bootstrapServers": "asia1:9092"}
    return other


@pytest.mark.parametrize(("rule", "bad", "key", "line"), BAD, ids=[f"{one[0]}-{n}" for n, one in enumerate(BAD)])
def test_a_mistake_is_found(tmp_path: Path, rule: str, bad: Any, key: str, line: int) -> None:
    found = [finding for finding in bad(tmp_path) if finding.rule == rule]
    assert found, f"{rule} finds nothing"
    assert any(one.key.endswith(key) for one in found), found
    if line:
        assert line in {one.line for one in found}
    assert all(one.what and one.effect and one.fix and one.file for one in found)


def test_every_mistake_is_a_finding(tmp_path: Path) -> None:
    found = properties(tmp_path, ("replication.factor", "many"), **{"us.bootstrap.servers": "u", "tasks.max": "x"})
    unusable = [(one.key, one.line) for one in found if one.rule == "unusable"]
    assert unusable == [("us.bootstrap.servers", 2), ("tasks.max", 6), ("replication.factor", 7)]


@pytest.mark.parametrize(
    ("rule", "followed", "words"), FOLLOWED, ids=[f"{one[0]}-{n}" for n, one in enumerate(FOLLOWED)]
)
def test_a_remedy_works(tmp_path: Path, rule: str, followed: Any, words: str) -> None:
    """Nothing of the rule is left, and nothing that is worse comes instead."""
    fixes = [one.fix for bad in BAD if bad[0] == rule for one in bad[1](tmp_path) if one.rule == rule]
    assert any(words in fix for fix in fixes), fixes
    for path in tmp_path.iterdir():
        path.unlink()
    left = followed(tmp_path)
    assert rule not in {one.rule for one in left}
    assert not [one for one in left if one.severity == "error"]
    before = {one.rule for bad in BAD if bad[0] == rule for one in bad[1](tmp_path)}
    assert {one.rule for one in left if one.severity == "warning"} <= before


def test_every_rule_has_a_remedy() -> None:
    elsewhere = {rule.name for rule in FORMAT_RULES}
    assert {rule.name for rule in RULES} - elsewhere == {one[0] for one in FOLLOWED}


def test_every_rule_has_a_mistake() -> None:
    elsewhere = {rule.name for rule in FORMAT_RULES}
    assert {rule.name for rule in RULES} - elsewhere == {one[0] for one in BAD}


def test_nothing_is_found_where_nothing_is(tmp_path: Path) -> None:
    assert properties(tmp_path) == []
    assert connectors(tmp_path) == []
    assert strimzi(tmp_path, resource()) == []


def test_each_refusal_of_a_run_is_told_in_its_words(tmp_path: Path) -> None:
    """Once for all flows, except that each flow with passwords is named."""
    lines = (("spark.master", "yarn"), ("spark.speculation", "true"), ("spark.python.task.killTimeout", "1h"))
    found = properties(tmp_path, ("eu->us.enabled", "true"), *lines, *PASSWORD)
    told = [one.what.partition(": ")[2] for one in found if one.rule == "spark-refused"]
    begins = ("flow eu->us has passwords", "flow us->eu has passwords", "spark.speculation = true", "spark.python.task")
    assert [next(begin for begin in begins if one.startswith(begin)) for one in told] == [
        "flow us->eu has passwords",
        "flow eu->us has passwords",
        "spark.speculation = true",
        "spark.python.task",
    ]


def test_heartbeats_alone_need_no_spark(tmp_path: Path) -> None:
    found = properties(tmp_path, *BEATS, ("spark.speculation", "true"), **{"us->eu.enabled": "false"})
    assert [one for one in found if one.severity == "error"] == []


def test_only_what_workers_do_share_is_found(tmp_path: Path) -> None:
    own = old_layout("asia", group_id="asias", config_storage_topic="asias-configs")
    found = [one for one in strimzi(tmp_path, old_layout("us"), own) if one.rule == "shared-workers"]
    assert [(one.key, one.what.rpartition(": ")[2]) for one in found] == [
        ("offset.storage.topic", "mirrormaker2-cluster-offsets of asia and of us"),
        ("status.storage.topic", "mirrormaker2-cluster-status of asia and of us"),
    ]
    own["spec"]["clusters"][1]["config"]["status.storage.topic"] = "asias-status"
    found = [one for one in strimzi(tmp_path, old_layout("us"), own) if one.rule == "shared-workers"]
    assert [one.key for one in found] == ["offset.storage.topic"]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("offset-syncs.topic.replication.factor", "1"),
        ("eu.offset.storage.replication.factor", "1"),
        ("eu.producer.batch.size", "524288"),
        ("eu.producer.max.request.size", "5242880"),
        ("refresh.topics.interval.seconds", "20"),
        ("sync.group.offsets.interval.seconds", "20"),
        ("eu.ssl.key.password", "${file:/x:y}"),
        ("us->eu.producer.override.compression.type", "zstd"),
        ("us.consumer.max.partition.fetch.bytes", "9999"),
    ],
)
def test_what_is_right_is_left_alone(tmp_path: Path, key: str, value: str) -> None:
    named = {"misspelt-factor", "digit-lost", "short-interval", "literal-secret", "wrong-prefix"}
    assert not [one for one in properties(tmp_path, (key, value)) if one.rule in named | {"consumer-key"}]


@pytest.mark.parametrize(
    "lines",
    [
        (),
        TLS_WORKER,
        ("security.protocol=PLAINTEXT", *WORKERS_KEYS),
        (*TLS_WORKER, *WORKERS_KEYS, "ssl.keystore.key=x", "ssl.truststore.certificates=x"),
    ],
)
def test_workers_with_what_they_need(tmp_path: Path, lines: tuple[str, ...]) -> None:
    assert "worker-without-stores" not in {one.rule for one in worker(tmp_path, *lines)}


def test_the_verb(tmp_path: Path) -> None:
    properties(tmp_path, ("tasks.max", "1"))
    path = str(tmp_path / "mm2.properties")
    assert CliRunner().invoke(app, ["lint", path]).exit_code == 1  # twice is a warning
    properties(tmp_path, ("replication.factor", "1"))
    informed = CliRunner().invoke(app, ["lint", path])
    assert informed.exit_code == 0
    assert "info [one-replica]" in informed.stdout
    printed = CliRunner().invoke(app, ["lint", path, "-o", "json"])
    (finding,) = json.loads(printed.stdout)
    assert (finding["rule"], finding["line"], finding["file"]) == ("one-replica", 7, path)


def test_what_can_not_be_read(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["lint", str(tmp_path / "none.properties")])
    assert getattr(result.exception, "exit_code", None) == 2


def test_the_page_is_as_the_code_is() -> None:
    assert (ROOT / "docs" / "lint.md").read_text() == page(), "python -m tools.lint_page > docs/lint.md"
