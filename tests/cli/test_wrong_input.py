"""Each verb with some 40 kinds of wrong input: an error of a line or a few, an exit code, and never a traceback."""

from __future__ import annotations

import random
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from test_verbs import VERBS, example

from sparkmirror.cli.app import main

GOOD = """\
clusters = A, B
A.bootstrap.servers = 127.0.0.1:1
B.bootstrap.servers = 127.0.0.1:1
A->B.enabled = true
"""

Make = Callable[[Path], Path]


def text(words: str, name: str = "mm2.properties") -> Make:
    def make(directory: Path) -> Path:
        file = directory / name
        file.write_text(words)
        return file

    return make


def content(some: bytes, name: str = "mm2.properties") -> Make:
    def make(directory: Path) -> Path:
        file = directory / name
        file.write_bytes(some)
        return file

    return make


def good_with(*lines: str) -> Make:
    return text(GOOD + "\n".join(lines) + "\n")


def nowhere(directory: Path) -> Path:
    return directory / "nowhere.properties"


def empty_directory(directory: Path) -> Path:
    (directory / "empty").mkdir()
    return directory / "empty"


def below_a_file(directory: Path) -> Path:
    (directory / "file").write_text("")
    return directory / "file" / "mm2.properties"


def loop_of_links(directory: Path) -> Path:
    (directory / "loop.properties").symlink_to(directory / "loop.properties")
    return directory / "loop.properties"


def link_to_nowhere(directory: Path) -> Path:
    (directory / "link.properties").symlink_to(directory / "gone.properties")
    return directory / "link.properties"


def long_name(directory: Path) -> Path:
    return directory / ("x" * 300 + ".properties")


def strange_name(directory: Path) -> Path:
    return directory / "a\nb\x1b[31m.properties"


RESOURCE = "apiVersion: kafka.strimzi.io/v1\nkind: KafkaMirrorMaker2\n"
LAUGHS = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{chr(98 + n)}: &{chr(98 + n)} [{', '.join(['*' + chr(97 + n)] * 9)}]\n" for n in range(9)
)

FILES: dict[str, Make] = {
    "no file": nowhere,
    "an empty directory": empty_directory,
    "a path below a file": below_a_file,
    "a loop of links": loop_of_links,
    "a link to nowhere": link_to_nowhere,
    "a name that is too long": long_name,
    "a name with control characters": strange_name,
    "an empty file": text(""),
    "comments only": text("# nothing\n! to see\n"),
    "random bytes": content(random.Random(7).randbytes(5_000)),
    "UTF-16": content(GOOD.encode("utf-16")),
    "Latin-1": content(b"clusters = \xe4\xf6\n"),
    "a NUL": content(b"clusters = A\0B\n"),
    "a cut-off escape": good_with("topics = \\u12"),
    "no clusters": text("A.bootstrap.servers = 127.0.0.1:1\nA->B.enabled = true\n"),
    "no bootstrap servers": text("clusters = A, B\nA->B.enabled = true\n"),
    "a server without a port": good_with("A.bootstrap.servers = here"),
    "a port that is none": good_with("A.bootstrap.servers = here:99999999"),
    "no number": good_with("tasks.max = many"),
    "a negative number": good_with("tasks.max = -1"),
    "a number beyond all bounds": good_with("tasks.max = " + "9" * 5_000),
    "no boolean": good_with("emit.heartbeats.enabled = perhaps"),
    "no pattern": good_with("topics = orders("),
    "a class that is not there": good_with("replication.policy.class = no.such:Policy"),
    "a class that is none": good_with("replication.policy.class = os:sep"),
    "no protocol": good_with("A.security.protocol = SSLL"),
    "no login": good_with(
        "A.security.protocol = SASL_PLAINTEXT", "A.sasl.mechanism = PLAIN", "A.sasl.jaas.config = it's me;"
    ),
    "a file of secrets that is not there": good_with(
        "config.providers = file",
        "A.security.protocol = SASL_PLAINTEXT",
        "A.sasl.mechanism = PLAIN",
        "config.providers.file.class = org.apache.kafka.common.config.provider.FileConfigProvider",
        "A.sasl.jaas.config = ${file:/no/such/file:password}",
    ),
    "a transformation": good_with("transforms = route"),
    "JSON cut off": text('{"name": "x", "config": {', "x.json"),
    "JSON that is a number": text("7", "x.json"),
    "JSON that is null": text("null", "x.json"),
    "JSON of wrong values": text('{"name": 7, "config": {"connector.class": []}}', "x.json"),
    "JSON nested without end": text("[" * 200_000, "x.json"),
    "JSON with a huge number": text('{"name": "x", "config": {"tasks.max": ' + "9" * 5_000 + "}}", "x.json"),
    "YAML that is none": text("a: [b\nc: }", "x.yaml"),
    "YAML of another kind": text("apiVersion: v1\nkind: Pod\n", "x.yaml"),
    "YAML that is a word": text("word", "x.yaml"),
    "YAML with tags": text("a: !!python/object/apply:os.getcwd []\n", "x.yaml"),
    "YAML that laughs": text(LAUGHS, "x.yaml"),
    # On lines of their own: PyYAML looks through a thousand characters of a line for the end of each bracket's key.
    "YAML nested without end": text("[\n" * 5_000, "x.yaml"),
    "a resource without a spec": text(RESOURCE, "x.yaml"),
    "a resource of wrong shapes": text(yaml.safe_dump({**yaml.safe_load(RESOURCE), "spec": [1, 2]}), "x.yaml"),
    "a resource that names itself": text(RESOURCE + "spec: &s\n  target: *s\n  mirrors: *s\n", "x.yaml"),
}

NEEDED_BY_SOME = {"a class that is not there", "a class that is none"}
"""Others read the file without it: what they reach next is the cluster, which isn't there."""

WITHOUT_FILE = {"size", "version", "demo", "pack", "operator", "migration schema"}
READS_ANYTHING = {"sync-groups": {"no file", "a link to nowhere"}}
"""As the original, it continues without its file."""


def run(patch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], arguments: list[str]) -> tuple[int, str]:
    """The exit code, and what was said on standard error. Whatever else is raised fails the test."""
    patch.setattr("sys.argv", ["sparkmirror", *arguments])
    try:
        main()
    except SystemExit as end:
        return int(end.code or 0), capsys.readouterr().err
    return 0, capsys.readouterr().err


@pytest.mark.parametrize("verb", sorted(VERBS.keys() - WITHOUT_FILE - READS_ANYTHING.keys()))
def test_a_wrong_file(
    verb: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [word for word in example(verb)[1:] if word != "--connect"]
    wrong: list[str] = []
    for number, (kind, make) in enumerate(FILES.items()):
        directory = tmp_path / str(number)
        directory.mkdir()
        file = make(directory)
        given = [str(file) if word.endswith(".properties") else word for word in words]
        try:
            code, said = run(monkeypatch, capsys, given)
        except Exception as error:
            wrong.append(f"{kind}: {type(error).__name__}: {str(error)[:300]}")
            continue
        allowed = {2} | ({1} if verb == "lint" else set()) | ({0, 3} if kind in NEEDED_BY_SOME else set())
        if code not in allowed or "Traceback" in said:
            wrong.append(f"{kind}: exit code {code}: {said[:300]}")
        elif code > 1 and not (said.startswith("sparkmirror: ") and len(said) < 3_000):
            wrong.append(f"{kind}: says {said[:300]!r}")
        elif any(ord(one) < 32 and one != "\n" for one in said):
            wrong.append(f"{kind}: control characters: {said[:300]!r}")
    assert not wrong, "\n".join(wrong)


COMMANDS = """\
run
run a b
run FILE --nonsense
run FILE --flow A->B
run FILE --clusters
run FILE --clusters Z
run FILE --spark
run FILE --spark x=1
run FILE --output xml
run FILE --status-file
run FILE --status-file /no/such/dir/status.yaml
verify FILE --sample 2
verify FILE --sample x
verify FILE --from-offset -1
verify FILE --from-offset 5 --from-time 2026-01-01
verify FILE --from-time yesterday
verify FILE --from-offset 5 --to-offset 5
verify FILE --from-time 2026-01-02 --to-time 2026-01-01
verify FILE --topics (
verify FILE --allow-behind -1
verify FILE --limit many
pause FILE --topics (
pause FILE --topics (?P<python>orders)
pause FILE --topics ,
pause FILE --flow B->A
retry FILE orders:x
retry FILE orders.*
retry FILE orders --flow B->A
throttle FILE
throttle FILE fast
throttle FILE -5M
throttle FILE 20M --backfill never
losses FILE --flow none
convert FILE
convert FILE --to xml
convert FILE --to strimzi --write /dev/null/dir
rewrite-checkpoint FILE
rewrite-checkpoint FILE /no/such/checkpoint /tmp/new
rewrite-checkpoint FILE nowhere://checkpoint /tmp/new
rewrite-checkpoint FILE /no/such/checkpoint /tmp/new --flow none
offsets translate FILE
offsets translate FILE --topic t
offsets translate FILE --topic t --offset -3
offsets translate FILE --csv /no/such/file.csv
topics done FILE
topics done FILE --topics (
topics done FILE --topics ,
topics undo FILE --flow none --topics x
lint
lint /no/such/file
config FILE more
legacy
legacy --consumer.config FILE
legacy --consumer.config FILE --producer.config FILE --include (
serve
serve FILE
serve FILE more
sync-groups --nonsense
sync-groups -rf never
pack
pack /no/such/dir/x.tar.gz
pack .
pack /proc/packed.tar.gz
demo --records many
demo --records -1
version --nonsense
acls FILE --flow none --missing
nonsense
"""


@pytest.mark.parametrize("line", COMMANDS.splitlines())
def test_a_wrong_command_line(
    line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "mm2.properties"
    file.write_text(GOOD)
    monkeypatch.chdir(tmp_path)
    code, said = run(monkeypatch, capsys, [word.replace("FILE", str(file)) for word in shlex.split(line)])
    assert code == 2, said
    assert said
    assert "Traceback" not in said
