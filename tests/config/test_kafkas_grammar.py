"""Values as Kafka's own classes read them; `test_as_kafka_reads_it` asks these classes."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from sparkmirror.config import MirrorConfig, load_mm2_properties
from sparkmirror.demo.jars import MIRROR_MAKER, class_path
from sparkmirror.demo.java import java
from sparkmirror.errors import ConfigError
from sparkmirror.values import Boolean, Endpoints, Flag, Integer

Load = Callable[..., MirrorConfig]

BROKERS = {
    "127.0.0.1:9092": "127.0.0.1:9092",
    "PLAINTEXT://127.0.0.1:9092": "127.0.0.1:9092",
    "SASL_SSL://127.0.0.1:9092": "127.0.0.1:9092",
    "my-listener.1://127.0.0.1:1": "127.0.0.1:1",
    "://127.0.0.1:1": "127.0.0.1:1",
    "http://127.0.0.1:80": "127.0.0.1:80",
    "[::1]:9092": "[::1]:9092",
    "::1:9092": "[::1]:9092",
    "PLAINTEXT://[::1]:9092": "[::1]:9092",
    "SSL://::1:9092": "[::1]:9092",
    "1:2:3:4:5:6:7:8:9092": "[1:2:3:4:5:6:7:8]:9092",
    "[127.0.0.1]:9": "127.0.0.1:9",
    "[::1:9092": "[::1]:9092",
    "::1]:9092": "[::1]:9092",
    "127.0.0.1:0009": "127.0.0.1:9",
    "localhost:1": "localhost:1",
    "127.0.0.1": None,
    "127.0.0.1:": None,
    "127.0.0.1:65536": None,
    "127.0.0.1:99999999999": None,
    "127.0.0.1:9092/": None,
    "127.0.0.1:+1": None,
    "127.0.0.1:1 127.0.0.1:2": None,
    "127.0.0.1:1;127.0.0.1:2": None,
    "PLAINTEXT:\\\\127.0.0.1:1": None,
    "SASL SSL://127.0.0.1:1": None,
    "a://b://127.0.0.1:1": None,
    "::9092": None,
    "\xfc:1": None,
}
"""What Kafka takes, as `host:port`; None: nothing. It takes no host for this machine, too, and port 0: we don't."""

BOOLEANS = ["true", "TRUE", "True ", " false", "false # x", "true # x", "yes", "no", "1", "0", "", "t", "\ttrue"]
NUMBERS = [
    "5",
    " 5 ",
    "+5",
    "-5",
    "1_000",
    "1,000",
    "1e3",
    "5L",
    "0x10",
    "010",
    "",
    "+",
    "- 5",
    "5.0",
    "5 ms",
    "5 # five",
]
NUMBERS += ["2147483647", "2147483648", "-2147483648", "9223372036854775807", "9223372036854775808", "0" * 30 + "7"]


def ours(kind: str, text: str) -> str:
    try:
        match kind:
            case "BOOLEAN":
                return str(Boolean().parse(text)).lower()
            case "flag":
                return str(Flag().parse(text)).lower()
            case "INT":
                return str(Integer(-(2**31), 2**31 - 1).parse(text))
            case "LONG":
                return str(Integer(-(2**63), 2**63 - 1).parse(text))
        host, _, port = Endpoints().parse(text)[0].rpartition(":")
        return f"{host.strip('[]')} {port}"
    except ValueError:
        return "error"


@pytest.mark.full
def test_as_kafka_reads_it() -> None:
    asked = [
        *(("broker", text) for text in BROKERS),
        *((kind, text) for kind in ("BOOLEAN", "flag") for text in BOOLEANS),
        *((kind, text) for kind in ("INT", "LONG") for text in NUMBERS),
    ]
    lines = "".join(f"{kind} {text.encode('latin-1').hex()}\n" for kind, text in asked)
    source = str(Path(__file__).with_name("GrammarOracle.java"))
    command = [java(), "-cp", class_path(MIRROR_MAKER), source]
    told = subprocess.run(command, input=lines, capture_output=True, text=True, timeout=120, check=True).stdout
    answers = [line.removeprefix("answer ") for line in told.splitlines() if line.startswith("answer ")]
    java_trims = {("flag", "True "): "true", ("flag", "\ttrue"): "true"}  # where the connector reads it, which copies
    expected = {one: java_trims.get(one, answer) for one, answer in zip(asked, answers, strict=True)}
    assert {one: ours(*one) for one in asked} == expected


@pytest.mark.parametrize(("text", "read"), BROKERS.items())
def test_brokers(load: Load, text: str, read: str | None) -> None:
    escaped = text.replace("\\", "\\\\")
    if read is not None:
        assert load(f"us.bootstrap.servers = {escaped}").flows[0].source.bootstrap_servers == (read,)
        return
    with pytest.raises(ConfigError, match="must be host:port"):
        load(f"us.bootstrap.servers = {escaped}")


def test_lists_of_brokers(load: Load) -> None:
    flow = load("eu.bootstrap.servers = a:1 , PLAINTEXT://b:2,\\\n  [::1]:3").flows[0]
    assert flow.target.bootstrap_servers == ("a:1", "b:2", "[::1]:3")
    for text in ("a:1 b:2", "a:1;b:2", "a:1, b:2 c:3"):
        with pytest.raises(ConfigError, match="several are separated by commas"):
            load(f"eu.bootstrap.servers = {text}")


def test_a_scheme_is_not_looked_at(load: Load) -> None:
    start = "clusters = us, eu\nus->eu.enabled = true\neu.bootstrap.servers = e:1\n"
    assert load("us.bootstrap.servers = PLAINTEXT://u:1", start=start).warnings == ()
    assert load("us.bootstrap.servers = ssl://u:1\nus.security.protocol = SSL", start=start).warnings == ()
    (warning,) = load("us.bootstrap.servers = SASL_SSL://u:1", start=start).warnings
    assert (
        "SASL_SSL:// is not looked at, nor by Kafka: PLAINTEXT is spoken; write us.security.protocol = SASL_" in warning
    )
    (warning,) = load("us.bootstrap.servers = kafka://u:1", start=start).warnings
    assert warning.endswith("kafka:// is not looked at, nor by Kafka: PLAINTEXT is spoken")


@pytest.mark.parametrize(
    "key",
    [
        "us->eu.source.cluster.bootstrap.servers",
        "us->eu.source.consumer.bootstrap.servers",
        "us->eu.source.bootstrap.servers",
        "us.consumer.bootstrap.servers",
        "us.admin.bootstrap.servers",
    ],
)
@pytest.mark.parametrize("again", ["us1:9092", "PLAINTEXT://us1:9092", "us1:09092"])
def test_the_same_brokers_again(load: Load, key: str, again: str) -> None:
    config = load(f"{key} = {again}")
    assert config.flows[0].source.bootstrap_servers == ("us1:9092",)
    assert [warning for warning in config.warnings if "no effect" in warning] == []


@pytest.mark.parametrize("name", ["source.cluster.", "target.cluster.", "consumer.", "admin.", "producer."])
def test_other_brokers_where_the_real_one_does_not_look(load: Load, name: str) -> None:
    (warning,) = load(f"us->eu.{name}bootstrap.servers = x:1").warnings
    assert "has no effect in this place, nor in MirrorMaker 2" in warning


def write(path: Path, *lines: bytes) -> str:
    path.write_bytes(b"\xef\xbb\xbf" + b"\r\n".join(lines))
    return str(path)


REST = (b"us.bootstrap.servers = u:1", b"eu.bootstrap.servers = e:1", b"us->eu.enabled = true")


@pytest.mark.parametrize("first", [[b"# a comment"], [b"! a comment"], [b""], [b"  # a comment"]])
def test_a_byte_order_mark_before_what_is_no_key(tmp_path: Path, first: list[bytes]) -> None:
    config = load_mm2_properties(write(tmp_path / "mm2.properties", *first, b"clusters = us, eu", *REST))
    assert [flow.name for flow in config.flows] == ["us->eu"]
    assert config.warnings == ()


def test_a_byte_order_mark_before_a_key(tmp_path: Path) -> None:
    path = write(tmp_path / "mm2.properties", b"clusters = us, eu", *REST)
    config = load_mm2_properties(path)
    assert [flow.name for flow in config.flows] == ["us->eu"]
    (warning,) = config.warnings
    assert warning.startswith(f"{path}: clusters: stands after a byte order mark, which MirrorMaker 2 takes")


@pytest.mark.parametrize("text", ["false # passive", "no", "off", "0", "", "true # active", "enabled"])
def test_enabled_as_java_reads_it(load: Load, text: str) -> None:
    config = load(f"eu->us.enabled = {text}")
    assert [flow.name for flow in config.flows] == ["us->eu"]
    assert any(
        f"eu->us.enabled: {text!r} is read as false, as MirrorMaker 2 reads it" in one for one in config.warnings
    )


@pytest.mark.parametrize("text", ["TRUE", "true  ", "\\ttrue"])
def test_enabled(load: Load, text: str) -> None:
    config = load(f"eu->us.enabled = {text}")
    assert [flow.name for flow in config.flows] == ["us->eu", "eu->us"]
    assert config.warnings == ()


def test_the_only_flow_is_not_enabled_by_such_a_word(load: Load) -> None:
    with pytest.raises(ConfigError, match=r"'true # on' is read as false.*; so no flow is enabled") as caught:
        load("us->eu.enabled = true # on")
    assert caught.value.key == "us->eu.enabled"


@pytest.mark.parametrize(
    "key", ["sync.topic.acls.enabled", "refresh.topics.enabled", "us->eu.emit.checkpoints.enabled"]
)
def test_other_booleans_are_true_or_false(load: Load, key: str) -> None:
    with pytest.raises(ConfigError, match="'false # x' is not allowed, it must be true or false; a # after a value"):
        load(f"{key} = false # x")


@pytest.mark.parametrize("text", ["none", "by_duration:P1D", "by_duration:PT1H", "BY_DURATION:P3D", "by_duration:x"])
def test_where_a_partition_starts(load: Load, text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load(f"us->eu.consumer.auto.offset.reset = {text}")
    assert caught.value.key == "us->eu.consumer.auto.offset.reset"
    assert ("sparkmirror.on.expired = halt" if text == "none" else "PATCH /connectors/NAME/offsets") in str(
        caught.value
    )


EXCLUDES = {
    "topics": lambda flow: flow.topics_exclude,
    "groups": lambda flow: flow.group.groups_exclude,
    "config.properties": lambda flow: flow.topic_sync.config_properties_exclude,
}


@pytest.mark.parametrize("what", EXCLUDES)
@pytest.mark.parametrize("prefix", ["", "us->eu."])
def test_lists_under_their_old_names(load: Load, what: str, prefix: str) -> None:
    config = load(f"{prefix}{what}.blacklist = a.*, b")
    assert EXCLUDES[what](config.flows[0]) == ("a.*", "b")
    (warning,) = config.warnings
    assert f"mm2.properties: {prefix}{what}.blacklist: is read as {prefix}{what}.exclude" in warning
    assert warning.endswith(f"write {prefix}{what}.exclude")


@pytest.mark.parametrize("what", EXCLUDES)
@pytest.mark.parametrize("old_first", [True, False])
def test_both_names(load: Load, what: str, *, old_first: bool) -> None:
    lines = [f"{what}.exclude = a", f"{what}.blacklist = b"]
    config = load("\n".join(reversed(lines) if old_first else lines))
    assert set(EXCLUDES[what](config.flows[0])) == {"a", "b"}
    (warning,) = config.warnings
    assert f"names that either key excludes are left out; write all into {what}.exclude" in warning


def test_both_names_say_the_same(load: Load) -> None:
    config = load("topics.exclude = a\ntopics.blacklist = a")
    assert config.flows[0].topics_exclude == ("a",)
    with pytest.raises(ConfigError) as caught:
        load("topics.blacklist = a,,b")
    assert caught.value.key == "topics.blacklist"


def test_aliases_that_differ_in_case(load: Load) -> None:
    start = "clusters = a, A, b\na.bootstrap.servers = a:1\nA.bootstrap.servers = A:1\nb.bootstrap.servers = b:1\n"
    warnings = load("a->b.enabled = true", start=start).warnings
    assert [one for one in warnings if "A and a are clusters of their own, as their case counts" in one] != []
    assert [one for one in load("").warnings if "case counts" in one] == []


def test_a_key_in_another_case(load: Load) -> None:
    start = "clusters = US, eu\nus.bootstrap.servers = u:1\neu.bootstrap.servers = e:1\nus->eu.enabled = true\n"
    with pytest.raises(ConfigError, match=r"no flow is enabled.*\(us->eu.enabled is for another alias, as case counts"):
        load("", start=start)
    with pytest.raises(ConfigError, match=r"US\.bootstrap.*\(us.bootstrap.servers is for another alias, as case"):
        load("US->eu.enabled = true", start=start)
