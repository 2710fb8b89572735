"""JAAS lines as Kafka reads them; the expectations are those of Java's own reader (`test_jaas_oracle.py`)."""

from __future__ import annotations

import pytest

from sparkmirror.config.jaas import ELSEWHERE, JaasEntry, jaas_has_secrets, parse_jaas

SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"

GOOD = {
    f'{SCRAM} required username="a" password="b";': {"username": "a", "password": "b"},
    f'  {SCRAM}  required\n username="a"\n\t password="b" ; ': {"username": "a", "password": "b"},
    f"{SCRAM} REQUIRED username=USERNAME password=PASSWORD;": {"username": "USERNAME", "password": "PASSWORD"},
    f'{SCRAM} required username=\'it is "a"\' password="it\'s";': {"username": 'it is "a"', "password": "it's"},
    f'{SCRAM} required password="a\\"b\\\\c;d=e";': {"password": 'a"b\\c;d=e'},
    f'{SCRAM} required password="\\t\\101\\8\\q";': {"password": "\tA8q"},
    f'{SCRAM} required a="" b=c.d-e_f$g;': {"a": "", "b": "c.d-e_f$g"},
    f"{SCRAM} optional;": {},
    f'{SCRAM} required /* why */ a="b" // because\n c="/*d*/";': {"a": "b", "c": "/*d*/"},
    f'{SCRAM} required a="ä€" b=é;': {"a": "ä€", "b": "é"},
    f'"{SCRAM}" required "a"="b";': {"a": "b"},
    f'{SCRAM} required a="b" a="c";': {"a": "c"},
}

BAD = [
    "",
    "   ",
    SCRAM,
    f"{SCRAM} perhaps a=b;",
    f"{SCRAM} required a=b",
    f"{SCRAM} required a=",
    f"{SCRAM} required a=;",
    f"{SCRAM} required a;",
    f"{SCRAM} required a=1b;",
    f"{SCRAM} required a=b!c;",
    f'{SCRAM} required a="b\nc";',
    f"{SCRAM} required a=b; {SCRAM} required a=b;",
    f'{SCRAM} required a="b',
]


@pytest.mark.parametrize("text", GOOD)
def test_a_line(text: str) -> None:
    entry = parse_jaas(text)
    assert entry == JaasEntry(SCRAM, GOOD[text])


@pytest.mark.parametrize("text", BAD)
def test_no_line(text: str) -> None:
    with pytest.raises(ValueError, match=r"holds|begin|followed|option|semicolon"):
        parse_jaas(text)


@pytest.mark.parametrize("text", BAD)
def test_what_can_not_be_read_shows_no_password(text: str) -> None:
    for broken in (text.replace("a=", "a=hunter2!hunter2 hunter2="), f"{text} hunter2", f'{text}" hunter2'):
        with pytest.raises(ValueError, match="o") as caught:
            parse_jaas(broken)
        assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("", False),
        ('m required username="a" password="b";', True),
        (f'm required username="a" password="{ELSEWHERE}";', False),
        (f'm required username="a" password="x{ELSEWHERE}";', True),
        (f"m required username=a password={ELSEWHERE};", False),
        (f'm required clientId="a" clientSecret="{ELSEWHERE}" scope="s";', False),
        ('m required clientId="a" clientSecret="b";', True),
        ('m required awsProfileName="a" awsRoleArn="arn";', False),
        ('m required unsecuredLoginStringClaim_sub="a" extension_x="y";', False),
        ('m required ssl.truststore.location="/x" ssl.truststore.type="PEM";', False),
        ('m required ssl.truststore.password="x";', True),
        ('m required ssl.keystore.key="x";', True),
        ('m required somethingNew="x";', True),
        ("what is this", True),
        (ELSEWHERE, False),
    ],
)
def test_secrets_in_a_line(text: str, secret: bool) -> None:
    assert jaas_has_secrets(text) is secret
