"""JAAS lines as Kafka reads them; next to Java, Kafka 4.3.1's own reader makes the same of them, and of random ones."""

from __future__ import annotations

import base64
import random
import subprocess
from pathlib import Path

import pytest

from sparkmirror.config.jaas import ELSEWHERE, JaasEntry, jaas_has_secrets, parse_jaas
from sparkmirror.demo.jars import BROKER, class_path
from sparkmirror.demo.java import java

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
        ('m required awsRoleArn="arn" awsRoleSecretAccessKey="s";', True),
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


# --- next to Java -------------------------------------------------------------------------------------------

PIECES = (
    *(
        "m",
        "required",
        "optional",
        " ",
        "\n",
        ";",
        "=",
        '"',
        "'",
        "\\",
        "a",
        "b1",
        "1",
        "-",
        "-a",
        ".",
        "/",
        "//",
        "/*",
        "*/",
    ),
    *("$x", "_", "é", "\u20ac", "#", "!", '\\"', "\\101", "\\n", 'x="y"', "x='y'", "x=y", " required ", ";", "\u00a0"),
)


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def ours(text: str) -> str:
    try:
        entry = parse_jaas(text)
    except ValueError:
        return "refused"
    pairs = [part for name, value in sorted(entry.options.items()) for part in (name, value)]
    return " ".join("=" + encoded(part) for part in (entry.module, *pairs))


@pytest.mark.full
def test_random_lines_mean_what_they_mean_to_java(tmp_path: Path) -> None:
    dice = random.Random(6)
    lines = [*GOOD, *BAD]
    lines += ["m required " + "".join(dice.choices(PIECES, k=dice.randrange(12))) + ";" for _ in range(20_000)]
    lines += ["".join(dice.choices(PIECES, k=dice.randrange(20))) for _ in range(20_000)]
    source = Path(__file__).with_name("JaasOracle.java")
    answer = subprocess.run(
        [java(), "-cp", class_path(BROKER), str(source)],
        input="".join(encoded(line) + "\n" for line in lines),
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    theirs = answer.stdout.splitlines()
    different = [(line, one, ours(line)) for line, one in zip(lines, theirs, strict=True) if one != ours(line)]
    assert different[:20] == []
    assert sum(one != "refused" for one in theirs) > 1000
