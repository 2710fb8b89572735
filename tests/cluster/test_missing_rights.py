"""What is said of missing rights: the right, the topic, the cluster, the principal, and the command that lasts."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import SecretStr

from sparkmirror.config import ClusterConfig
from sparkmirror.config.model import SaslConfig
from sparkmirror.kafka.cluster.acls import ALL, ALLOW, DENY, DESCRIBE, LITERAL, PREFIXED, READ, WRITE, Acl
from sparkmirror.kafka.cluster.missing_rights import AT_SOURCE, AT_TARGET, MissingRights, missing_rights

JAAS = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="mirror" password="hunter2";'
SIGNED_IN = ClusterConfig(
    alias="dc2",
    bootstrap_servers=("b1:9092", "b2:9092"),
    security_protocol="SASL_PLAINTEXT",
    sasl=SaslConfig(mechanism="PLAIN", jaas_config=SecretStr(JAAS)),
)
TOOL = "kafka-acls.sh --bootstrap-server b1:9092,b2:9092 --command-config admin.properties"
DESCRIBED = frozenset({"DESCRIBE"})


def acl(operation: int, permission: int = DENY, name: str = "dc1.clicks", **more: Any) -> Acl:
    return Acl(
        **{"name": name, "principal": "User:mirror", "host": "*", **more}, operation=operation, permission=permission
    )


def told(
    *acls: Acl, allowed: frozenset[str] | None = DESCRIBED, needed: frozenset[str] = AT_TARGET
) -> MissingRights | None:
    return missing_rights(SIGNED_IN, "dc1.clicks", needed, allowed, lambda: acls)


def test_what_no_acl_allows_is_to_be_added() -> None:
    lacking = told(acl(WRITE, ALLOW, "other"), acl(READ, DENY, "other"))
    assert str(lacking) == "User:mirror lacks READ, WRITE on topic dc1.clicks of dc2"
    assert lacking is not None
    assert lacking.commands == [
        f"{TOOL} --add --allow-principal User:mirror --operation Read --operation Write --topic dc1.clicks"
        " --resource-pattern-type literal"
    ]


@pytest.mark.parametrize(
    ("denial", "options"),
    [
        (
            acl(WRITE),
            "--deny-principal User:mirror --operation Write --topic dc1.clicks --resource-pattern-type literal",
        ),
        (
            acl(ALL, name="dc1.", pattern=PREFIXED, principal="User:*"),
            "--deny-principal 'User:*' --operation All --topic dc1. --resource-pattern-type prefixed",
        ),
        (
            acl(DESCRIBE, name="*", pattern=LITERAL, host="10.0.0.7"),
            "--deny-principal User:mirror --deny-host 10.0.0.7 --operation Describe --topic '*'"
            " --resource-pattern-type literal",
        ),
    ],
)
def test_an_acl_that_denies_it_is_to_be_removed(denial: Acl, options: str) -> None:
    """An ACL that allows it would have no effect next to it."""
    lacking = told(denial, acl(WRITE, ALLOW), allowed=frozenset({"READ", "DESCRIBE"}))
    assert str(lacking) == "User:mirror lacks WRITE on topic dc1.clicks of dc2, which an ACL denies"
    assert lacking is not None
    assert lacking.commands == [f"{TOOL} --remove {options}"]


def test_some_are_denied_and_some_are_not_allowed() -> None:
    lacking = told(acl(WRITE))
    assert lacking is not None
    assert [command.removeprefix(TOOL).split()[0] for command in lacking.commands] == ["--remove", "--add"]
    assert "--operation Read --topic" in lacking.commands[1]


def test_nothing_is_missing_or_known() -> None:
    assert told(allowed=None) is None
    assert told(allowed=frozenset({"READ"}), needed=AT_SOURCE) is None


def test_a_principal_that_only_the_brokers_know() -> None:
    """A certificate's name, or a token's: the reader fills it in."""
    encrypted = ClusterConfig(alias="dc2", bootstrap_servers=("b:9093",), security_protocol="SSL")
    lacking = missing_rights(encrypted, "t", AT_SOURCE, frozenset(), lambda: ())
    assert str(lacking) == "sparkmirror's principal lacks READ on topic t of dc2"
    assert lacking is not None
    assert "--allow-principal User:PRINCIPAL --operation Read" in lacking.commands[0]
