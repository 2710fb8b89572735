"""Which ACLs count at the target, under which names, and how they are written down."""

from __future__ import annotations

import dataclasses
import shlex
from typing import Any

import pytest
import yaml
from flow_rules import rules
from kafka.admin import ACLOperation

from sparkmirror.config import ClusterConfig
from sparkmirror.kafka.cluster.acls import (
    ALL,
    ALLOW,
    DENY,
    DESCRIBE,
    LITERAL,
    PREFIXED,
    READ,
    WRITE,
    Acl,
    AclResource,
)
from sparkmirror.kafka.cluster.tool_commands import acl_lines
from sparkmirror.mirror.sync.acl_commands import kafka_users
from sparkmirror.mirror.sync.acl_rules import of_copies, of_groups, while_mirrored
from sparkmirror.policy import DefaultReplicationPolicy, IdentityReplicationPolicy

DELETE = int(ACLOperation.DELETE)
COPIES = {"orders": "us.orders", "orders-eu": "us.orders-eu", "bills": "us.bills"}
SAME = {name: name for name in COPIES}


def acl(name: str, operation: int = READ, pattern: int = LITERAL, **more: Any) -> Acl:
    return dataclasses.replace(
        Acl(name=name, principal="User:a", host="*", operation=operation, permission=ALLOW, pattern=pattern), **more
    )


def prefix(name: str, operation: int = READ, **more: Any) -> Acl:
    return acl(name, operation, PREFIXED, **more)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (acl("orders", WRITE), {acl("us.orders", WRITE)}),
        (acl("eu.orders"), set()),  # a cycle
        (prefix("or", WRITE), {prefix("us.or", WRITE)}),
        (prefix("zebra"), set()),  # no copy begins so
        (prefix("eu."), set()),
        (acl("*"), {prefix("us.")}),
        (acl("*", WRITE, permission=DENY), {prefix("us.", WRITE, permission=DENY)}),
        # Checkpoints begin with `us.`, too, and nobody but the mirror may write those.
        (acl("*", WRITE), {acl(name, WRITE) for name in COPIES.values()}),
        (prefix("o", DELETE), {prefix("us.o", DELETE)}),
    ],
)
def test_names_with_the_alias(source: Acl, expected: set[Acl]) -> None:
    assert set(of_copies(source, rules(), COPIES)) == expected


def test_a_prefix_that_checkpoints_have_too() -> None:
    copies = {"checks": "us.checks", "c": "us.c"}
    assert set(of_copies(prefix("c", ALL), rules(), copies)) == {acl("us.checks", ALL), acl("us.c", ALL)}
    assert set(of_copies(prefix("c"), rules(), copies)) == {prefix("us.c")}


class Suffixed(DefaultReplicationPolicy):
    """Somebody's own."""

    def format_remote_topic(self, source_alias: str, topic: str) -> str:
        return f"{topic}.{source_alias}"


@pytest.mark.parametrize("policy", [IdentityReplicationPolicy("us"), DefaultReplicationPolicy(""), Suffixed()])
def test_names_among_others(policy: DefaultReplicationPolicy) -> None:
    """A prefix would count for topics that are no copies: each copy gets it."""
    own = dataclasses.replace(
        rules(policy=policy), source_alias="" if type(policy) is DefaultReplicationPolicy else "us"
    )
    copies = {name: own.remote_name(name) for name in COPIES}
    remotes = {acl(copies["orders"]), acl(copies["orders-eu"])}
    assert set(of_copies(prefix("ord"), own, copies)) == remotes
    assert set(of_copies(acl("*"), own, copies)) == remotes | {acl(copies["bills"])}


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (acl("t", WRITE), None),
        (acl("t", ALL), acl("t", READ)),
        (prefix("t", WRITE), None),
        (acl("t", WRITE, permission=DENY), acl("t", WRITE, permission=DENY)),
        (acl("t", DELETE), acl("t", DELETE)),
    ],
)
def test_a_copy_has_one_writer(source: Acl, expected: Acl | None) -> None:
    assert while_mirrored(source) == expected


def test_groups() -> None:
    def group(name: str, pattern: int = LITERAL) -> Acl:
        return acl(name, READ, pattern, resource=AclResource.GROUP)

    there = ["billing", "bill-2", "connect-x", "ship"]
    wanted = lambda name: not name.startswith("connect-")  # noqa: E731
    assert set(of_groups(group("gone"), there, wanted)) == {group("gone")}
    assert set(of_groups(group("connect-x"), there, wanted)) == set()
    assert set(of_groups(group("bill", PREFIXED), there, wanted)) == {group("billing"), group("bill-2")}
    assert set(of_groups(group("*"), there, wanted)) == {group("billing"), group("bill-2"), group("ship")}


@pytest.mark.parametrize(
    ("there", "asked", "expected"),
    [
        (acl("t"), acl("t"), True),
        (acl("t", ALL), acl("t", WRITE), True),
        (acl("t", WRITE), acl("t", DESCRIBE), True),
        (acl("t", WRITE, permission=DENY), acl("t", DESCRIBE, permission=DENY), False),
        (acl("t"), acl("t", WRITE), False),
        (acl("*"), acl("t"), True),
        (acl("*"), prefix("t"), True),
        (prefix("t"), acl("topic"), True),
        (prefix("t"), prefix("to"), True),
        (prefix("to"), prefix("t"), False),
        (prefix("t"), acl("*"), False),
        (acl("t"), prefix("t"), False),
        (acl("t", principal="User:*"), acl("t"), True),
        (acl("t"), acl("t", principal="User:*"), False),
        (acl("t", host="10.0.0.1"), acl("t"), False),
        (acl("t", permission=DENY), acl("t"), False),
        (acl("t", resource=AclResource.GROUP), acl("t"), False),
    ],
)
def test_what_is_covered(there: Acl, asked: Acl, expected: bool) -> None:
    assert there.covers(asked) == expected


# --- as they are written ------------------------------------------------------------------------------

PLAIN = ClusterConfig(alias="eu", bootstrap_servers=("kafka1:9092", "kafka2:9092"))


def test_commands() -> None:
    (line,) = acl_lines([acl("us.t", WRITE), acl("us.t", DESCRIBE)], PLAIN)
    assert line == (
        "kafka-acls.sh --bootstrap-server kafka1:9092,kafka2:9092 --add --allow-principal User:a --operation Write"
        " --operation Describe --topic us.t --resource-pattern-type literal"
    )
    odd = acl("*", int(ACLOperation.DESCRIBE_CONFIGS), principal="User:CN=x y,O=it's", host="10.0.0.1", permission=DENY)
    (line,) = acl_lines([odd], PLAIN.model_copy(update={"security_protocol": "SSL"}))
    words = shlex.split(line)
    assert words[3:5] == ["--command-config", "admin.properties"]
    assert words[6:12] == [
        "--deny-principal",
        "User:CN=x y,O=it's",
        "--deny-host",
        "10.0.0.1",
        "--operation",
        "DescribeConfigs",
    ]
    assert words[12:14] == ["--topic", "*"]


def test_kafka_users() -> None:
    missing = [acl("us.t", WRITE), prefix("us.", principal="User:CN=b"), acl("us.t", principal="User:*")]
    text, left_out = kafka_users(missing, [acl("us.t"), acl("us.t", principal="User:other")])
    assert left_out == ["User:*"]
    second, first = yaml.safe_load_all(text)
    assert first["metadata"]["name"] == "a"
    topic = {"type": "topic", "name": "us.t", "patternType": "literal"}
    assert first["spec"]["authorization"] == {
        "type": "simple",
        "acls": [{"type": "allow", "resource": topic, "operations": ["Read", "Write"], "host": "*"}],
    }
    assert second["metadata"]["name"] == "b"
    assert second["spec"]["authentication"] == {"type": "tls-external"}
    assert kafka_users([], [acl("us.t")]) == ("", [])
