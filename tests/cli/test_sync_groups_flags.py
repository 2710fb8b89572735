"""The flags of the consumer group offset sync app: each by both of its names, and where it ends up."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from sparkmirror.cli import sync_groups as verb
from sparkmirror.cli.app import app
from sparkmirror.client.group_sync import GroupSync, GroupTurn
from sparkmirror.config import DEFAULT_POLICY

AMAZONS = "com.amazonaws.kafka.samples.CustomMM2ReplicationPolicy"
FLAGS = {
    "-cgi": "--consumerGroupID",
    "-src": "--sourceCluster",
    "-pfp": "--propertiesFilePath",
    "-mtls": "--mTLSEnable",
    "-ssl": "--sslEnable",
    "-rpc": "--replicationPolicyClass",
    "-rps": "--replicationPolicySeparator",
    "-int": "--interval",
    "-rf": "--runFor",
}
both_names = pytest.mark.parametrize("long", [False, True], ids=["short", "long"])


@dataclass
class Asked:
    """What the verb asked for. By default as the app's documents have it; the file is not there."""

    path: str = "/tmp/kafka/consumer.properties"
    tls: bool = False
    mtls: bool = False
    policy: str = DEFAULT_POLICY
    separator: str = "."
    alias: str = "msksource"
    groups: tuple[str, ...] = ("mm2TestConsumer1",)
    interval_s: float = 20
    run_for_s: float = 0


@dataclass
class Recorder:
    """In the place of the file's reader, of `GroupSync` and of `signal.signal`."""

    asked: Asked = field(default_factory=lambda: Asked(path=""))
    settings: dict[str, str] = field(default_factory=dict)
    handlers: dict[int, Callable[..., object]] = field(default_factory=dict)
    stop: threading.Event | None = None

    def read(self, path: str, *, tls: bool, mtls: bool) -> dict[str, str]:
        self.asked.path, self.asked.tls, self.asked.mtls = path, tls, mtls
        return {"bootstrap.servers": "read:1"}

    def __call__(self, settings: Mapping[str, str], alias: str, groups: Sequence[str]) -> Recorder:
        self.settings = dict(settings)
        assert settings["source.cluster.alias"] == alias
        self.asked.policy = settings["replication.policy.class"]
        self.asked.separator = settings["replication.policy.separator"]
        self.asked.alias, self.asked.groups = alias, tuple(groups)
        return self

    def run(
        self, interval_s: float, stop: threading.Event, run_for_s: float, on_turn: Callable[[GroupTurn], None]
    ) -> None:
        self.asked.interval_s, self.asked.run_for_s, self.stop = interval_s, run_for_s, stop
        on_turn(GroupTurn(group="g", state="Empty"))

    def handle(self, number: int, handler: Callable[..., object]) -> None:
        self.handlers[number] = handler


@pytest.fixture
def recorder(monkeypatch: pytest.MonkeyPatch) -> Iterator[Recorder]:
    found = Recorder()
    monkeypatch.setattr(verb, "GroupSync", found)
    with monkeypatch.context() as patched:
        patched.setattr(signal, "signal", found.handle)
        yield found


def invoke(*words: str, long: bool = False) -> Result:
    given = [FLAGS.get(word, word) if long else word for word in words]
    result = CliRunner().invoke(app, ["sync-groups", *given])
    assert result.exit_code == 0, result.output
    return result


CASES: list[tuple[list[str], dict[str, object]]] = [
    ([], {}),
    (["-cgi", "billing"], {"groups": ("billing",)}),
    (["-cgi", "billing", "-cgi", "orders"], {"groups": ("billing", "orders")}),
    (["-src", "us"], {"alias": "us"}),
    (["-pfp", "/etc/sync.properties"], {"path": "/etc/sync.properties"}),
    (["-mtls"], {"mtls": True}),
    (["-ssl"], {"tls": True}),
    (["-rpc", AMAZONS], {"policy": AMAZONS}),
    (["-rps", "_"], {"separator": "_"}),
    (["-int", "7"], {"interval_s": 7}),
    (["-rf", "90"], {"run_for_s": 90}),
    (
        ["-cgi", "g", "-src", "us", "-pfp", "f", "-mtls", "-rpc", AMAZONS, "-rps", "-", "-int", "3", "-rf", "5"],
        {
            "groups": ("g",),
            "alias": "us",
            "path": "f",
            "mtls": True,
            "policy": AMAZONS,
            "separator": "-",
            "interval_s": 3,
            "run_for_s": 5,
        },
    ),
]


@both_names
@pytest.mark.parametrize(("words", "changed"), CASES, ids=[" ".join(words[:3]) or "none" for words, _ in CASES])
def test_each_flag_ends_in_its_place(
    recorder: Recorder, monkeypatch: pytest.MonkeyPatch, words: list[str], changed: dict[str, object], long: bool
) -> None:
    monkeypatch.setattr(verb, "read_group_sync_file", recorder.read)
    invoke(*words, long=long)
    expected = Asked()
    for name, value in changed.items():
        setattr(expected, name, value)
    assert recorder.asked == expected
    assert recorder.settings["bootstrap.servers"] == "read:1"


def test_each_flag_has_a_case() -> None:
    assert {word for words, _ in CASES for word in words if word.startswith("-")} - {"-"} == FLAGS.keys()


@both_names
@pytest.mark.parametrize("flag", [None, "-ssl", "-mtls"])
def test_what_tls_takes_from_the_file(recorder: Recorder, tmp_path: Path, flag: str | None, long: bool) -> None:
    """`-ssl` encrypts, and shows no certificate; `-mtls` does both."""
    file = tmp_path / "consumer.properties"
    file.write_text(
        "BOOTSTRAP_SERVERS_CONFIG=b-1:9094\nSSL_TRUSTSTORE_LOCATION_CONFIG=/t.jks\n"
        "SSL_KEYSTORE_LOCATION_CONFIG=/k.jks\nSSL_KEYSTORE_PASSWORD_CONFIG=one\nSSL_KEY_PASSWORD_CONFIG=two\n"
    )
    invoke("-pfp", str(file), *([flag] if flag else []), long=long)
    encrypted = {"security.protocol": "SSL", "ssl.truststore.location": "/t.jks"}
    shown = {"ssl.keystore.location": "/k.jks", "ssl.keystore.password": "one", "ssl.key.password": "two"}
    found = {key: value for key, value in recorder.settings.items() if key.startswith(("security.", "ssl."))}
    assert found == {None: {}, "-ssl": encrypted, "-mtls": encrypted | shown}[flag]
    assert recorder.settings["bootstrap.servers"] == "b-1:9094"


@pytest.mark.parametrize(
    ("policy", "separator", "topic"),
    [
        (DEFAULT_POLICY, ".", "us.checkpoints.internal"),
        (DEFAULT_POLICY, "_", "us_checkpoints_internal"),
        (AMAZONS, ".", "us.checkpoints.internal"),
    ],
)
def test_which_topic_is_read(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, policy: str, separator: str, topic: str
) -> None:
    """The app's own class, up to where it would connect: policy and separator name the checkpoints."""
    read: list[str] = []

    def run(sync: GroupSync, *_: object) -> None:
        client = sync._mirror_client  # noqa: SLF001
        read.append(client.replication_policy.checkpoints_topic("us"))

    monkeypatch.setattr(GroupSync, "run", run)
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    invoke("-src", "us", "-pfp", str(tmp_path / "none"), "-rpc", policy, "-rps", separator)
    assert read == [topic]


def test_signals_end_it(recorder: Recorder) -> None:
    invoke("-pfp", "/nowhere/sync.properties")
    assert recorder.handlers.keys() == {signal.SIGTERM, signal.SIGINT}
    for handler in recorder.handlers.values():
        assert recorder.stop is not None
        recorder.stop.clear()
        handler(signal.SIGTERM, None)
        assert recorder.stop.is_set()


def test_turns_are_printed_for_programs_only(recorder: Recorder) -> None:
    assert invoke("-pfp", "/nowhere/sync.properties").stdout == ""
    assert '"group": "g"' in invoke("-pfp", "/nowhere/sync.properties", "-o", "json").stdout


@pytest.mark.parametrize("flag", ["-t", "--topic"])
def test_the_topic_is_taken_and_not_used(recorder: Recorder, flag: str) -> None:
    """The app has this flag, and does nothing with it."""
    assert "--topic has no effect" in invoke("-pfp", "/nowhere/sync.properties", flag, "ExampleTopic").stderr
    assert "ExampleTopic" not in str(recorder.settings)


@pytest.mark.parametrize("words", [("-int", "0"), ("-int", "x"), ("-rf", "-1"), ("--interval", "1.5"), ("-cgi",)])
def test_flags_that_are_wrong(recorder: Recorder, words: tuple[str, ...]) -> None:
    result = CliRunner().invoke(app, ["sync-groups", *words])
    assert (result.exit_code, recorder.stop) == (2, None)


def test_the_help_names_every_flag() -> None:
    shown = CliRunner().invoke(app, ["sync-groups", "-h"], env={"COLUMNS": "200"}).output
    assert [name for pair in FLAGS.items() for name in pair if name not in shown] == []
