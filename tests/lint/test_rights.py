"""What ACLs allow, as Kafka's authorizer reads them; and whose they are."""

from __future__ import annotations

from typing import Any

import pytest

from sparkmirror.config import ClusterConfig
from sparkmirror.config.model import SaslConfig
from sparkmirror.kafka.cluster import acls as codes
from sparkmirror.kafka.cluster.acls import ALLOW, DENY, LITERAL, PREFIXED, READ, WRITE, Acl
from sparkmirror.kafka.cluster.missing_rights import principal
from sparkmirror.lint.rights import EVERYTHING, allowed

ME = "User:mirror"
ALTER, DESCRIBE, ALTER_CONFIGS = 7, 8, 11


def acl(operation: int, topic: str = "A.t", who: str = ME, permission: int = ALLOW, **more: Any) -> Acl:
    return Acl(name=topic, principal=who, operation=operation, permission=permission, **({"host": "*"} | more))


@pytest.mark.parametrize(
    ("acls", "expected"),
    [
        ([], ""),
        ([acl(READ)], "READ DESCRIBE"),
        ([acl(ALTER)], "ALTER DESCRIBE"),
        ([acl(ALTER_CONFIGS)], "ALTER_CONFIGS DESCRIBE_CONFIGS"),
        ([acl(READ), acl(WRITE)], "READ WRITE DESCRIBE"),
        ([acl(WRITE, "A.", pattern=PREFIXED)], "WRITE DESCRIBE"),
        ([acl(WRITE, "A.", pattern=LITERAL)], ""),
        ([acl(WRITE, "B.", pattern=PREFIXED)], ""),
        ([acl(WRITE, "*")], "WRITE DESCRIBE"),
        ([acl(WRITE, "*", pattern=PREFIXED)], ""),
        ([acl(WRITE, who="User:*")], "WRITE DESCRIBE"),
        ([acl(WRITE, who="User:other")], ""),
        ([acl(WRITE, host="10.0.0.1")], ""),
        ([acl(READ), acl(WRITE), acl(WRITE, "*", permission=DENY)], "READ DESCRIBE"),
        ([acl(WRITE), acl(WRITE, who="User:*", permission=DENY)], "DESCRIBE"),
        ([acl(WRITE), acl(WRITE, host="10.0.0.1", permission=DENY)], "DESCRIBE"),
        ([acl(WRITE), acl(WRITE, who="User:other", permission=DENY)], "WRITE DESCRIBE"),
        ([acl(codes.ALL), acl(codes.ALL, "A.", permission=DENY, pattern=PREFIXED)], ""),
    ],
)
def test_what_they_allow(acls: list[Acl], expected: str) -> None:
    assert allowed(acls, ME, "A.t") == frozenset(expected.split())


def test_all_is_everything() -> None:
    assert allowed([acl(codes.ALL)], ME, "A.t") == EVERYTHING


def test_what_is_known_otherwise_may_be_denied() -> None:
    denied = [acl(WRITE, permission=DENY)]
    assert allowed(denied, ME, "A.t", EVERYTHING) == EVERYTHING - {"WRITE"}
    assert allowed(denied, ME, "A.u", EVERYTHING) == EVERYTHING


def test_where_nobody_knows_who_we_are() -> None:
    given = [acl(READ), acl(WRITE, who="User:*")]
    assert allowed(given, "", "A.t") == {"WRITE", "DESCRIBE"}
    assert allowed([*given, acl(WRITE, who="User:other", permission=DENY)], "", "A.t") == {"DESCRIBE"}


def login(module: str) -> str:
    return f'org.apache.kafka.common.security.{module} required username="mirror" password="x";'


@pytest.mark.parametrize(
    ("protocol", "mechanism", "module", "expected"),
    [
        ("PLAINTEXT", "", "", "User:ANONYMOUS"),
        ("SSL", "", "", ""),
        ("SASL_SSL", "SCRAM-SHA-512", "scram.ScramLoginModule", ME),
        ("SASL_PLAINTEXT", "PLAIN", "plain.PlainLoginModule", ME),
        ("SASL_PLAINTEXT", "OAUTHBEARER", "oauthbearer.OAuthBearerLoginModule", ""),
    ],
)
def test_who_we_are(protocol: str, mechanism: str, module: str, expected: str) -> None:
    """A certificate's name and a token's are mapped by the brokers."""
    cluster = ClusterConfig(alias="A", bootstrap_servers=("a:1",), security_protocol=protocol)
    if mechanism:
        sasl = SaslConfig.model_validate({"mechanism": mechanism, "jaas_config": login(module)})
        cluster = cluster.model_copy(update={"sasl": sasl})
    assert principal(cluster) == expected
