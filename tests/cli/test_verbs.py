"""Every verb that there is: in a panel, with an example that parses, documented exit codes, and `-o json`.

A new verb fails here until it has all of that, a row in `docs/cli.md`, and a case in `JSON_CASES`.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
import typer
from tests.support.snapshot_samples import flow
from typer.testing import CliRunner

from sparkmirror.cli import clusters, doctor, explain, groups, losses, offsets, schemas, status, telling, top, topics
from sparkmirror.cli.app import PANELS, app
from sparkmirror.exact.durable.acknowledgements import Acknowledgement, LedgerEntry
from sparkmirror.exact.durable.losses import Loss, LossKind
from sparkmirror.exact.durable.source_cluster import SourceCluster
from sparkmirror.frames.rewrite_checkpoint import MovedOffset, RewrittenCheckpoint
from sparkmirror.look.doctor.explanation import Explanation, Mark, Step
from sparkmirror.mirror.engine.accepted_source import AgreedSource, FlowClusters
from sparkmirror.mirror.sync.application_translator import Stored, Translation
from sparkmirror.mirror.sync.moved_writers import Moved
from sparkmirror.schemas import SchemaCheck
from sparkmirror.snapshot.status_topic import Status

DOCS = Path(__file__).parents[2] / "docs" / "cli.md"


def verbs(command: Any = None, path: tuple[str, ...] = ()) -> Iterator[tuple[str, Any]]:
    """Each verb with its words, as `offsets translate`."""
    command = command or typer.main.get_group(app)  # not the one that tests run: contexts leave something in it
    if not hasattr(command, "commands"):
        yield " ".join(path), command
        return
    for name, inner in command.commands.items():
        yield from verbs(inner, (*path, name))


VERBS = dict(verbs())
each_verb = pytest.mark.parametrize("verb", VERBS)


def help_of(verb: str) -> str:
    return " ".join((VERBS[verb].help or "").split())


def example(verb: str) -> list[str]:
    """Its words; what a shell does with the output is left out."""
    found = re.search(r"Example: (sparkmirror .*?)(?= Exit codes: |$)", help_of(verb))
    assert found, f"the help of {verb} has no `Example: sparkmirror {verb} ...`"
    words = shlex.split(found[1])
    ends = [words.index(mark) for mark in ("|", ">", "&&") if mark in words]
    return words[: min(ends, default=len(words))]


def codes(text: str) -> dict[int, str]:
    """Exit codes and what they mean, as `0 done, 1 not`."""
    return {int(code): words for code, words in re.findall(r"(?:^|[,;:] )(\d+) (.+?)(?=[,;] \d+ |\.? |$)", text)}


def documented() -> dict[str, set[int]]:
    """The table in the docs: verb, and the codes whose cells are not empty."""
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in DOCS.read_text().splitlines()]
    heads = next(row for row in rows if row[0] == "verb")
    numbers = [int(head) for head in heads[1:]]
    return {
        verb: {number for number, cell in zip(numbers, row[1:], strict=True) if cell}
        for row in rows
        if row[0].startswith("`") and len(row) == len(heads)
        for verb in re.findall(r"`([^`]+)`", row[0])
    }


def keys_told(verb: str) -> set[str]:
    """The names that the list of JSON has for a verb; its item may refer to that of `status`."""
    section = DOCS.read_text().partition("## For programs")[2].partition("\n## ")[0]
    items = re.findall(r"^- \*\*(.+?)\*\*: (.*\n(?: +.*\n)*)", section, re.MULTILINE)
    item = next(" ".join(text.split()) for verbs, text in items if verb in verbs.split(", "))
    names = set(re.findall(r"`(\w+)`", item))
    return names | keys_told("status") if "the fields of `status`" in item else names


# --- what each has -------------------------------------------------------------------------------------


@each_verb
def test_it_has_an_example_that_parses(verb: str) -> None:
    words = example(verb)
    path = ["sparkmirror", *verb.split()]
    assert words[: len(path)] == path
    with VERBS[verb].make_context(verb, words[len(path) :]) as context:
        assert context.command is VERBS[verb]


@each_verb
def test_its_exit_codes_are_documented(verb: str) -> None:
    told = re.search(r"Exit codes: (.*?)(?= Example: |$)", help_of(verb))
    assert told, f"the help of {verb} has no `Exit codes: 0 ..., 2 ...`"
    assert verb in documented(), f"{DOCS.name} has no row for {verb}"
    assert set(codes(told[1])) == documented()[verb]


@each_verb
def test_it_can_print_json(verb: str) -> None:
    words = example(verb)[1 + len(verb.split()) :]
    with VERBS[verb].make_context(verb, [*words, "-o", "json"]) as context:
        assert context.params["output"] == "json"
    assert verb in JSON_CASES, f"write a case for {verb} -o json"


@pytest.mark.parametrize("path", ["", "offsets", "losses", *VERBS])
def test_its_help_has_a_short_option(path: str) -> None:
    """`-h`, as MM2GroupOffsetSync has it."""
    short, long = (CliRunner().invoke(app, [*path.split(), option]) for option in ("-h", "--help"))
    assert short.exit_code == 0, short.output
    assert "Usage: " in short.stdout
    assert short.stdout == long.stdout


@each_verb
def test_it_finds_the_secrets_of_a_resource(verb: str) -> None:
    """Whatever takes a Strimzi resource takes the directory of its Secrets, too."""
    options = {one.name: one for one in VERBS[verb].params}
    takes = [name for name, one in options.items() if "KafkaMirrorMaker2" in (getattr(one, "help", None) or "")]
    assert ("secrets" in options) == bool(takes)
    assert not takes or options["secrets"].envvar == "SPARKMIRROR_SECRETS"


def test_the_help_groups_them_by_task() -> None:
    command: Any = typer.main.get_command(app)
    panels = {name: one.rich_help_panel for name, one in command.commands.items()}
    assert set(panels.values()) <= set(PANELS), panels
    shown = CliRunner().invoke(app, ["--help"], terminal_width=100).output
    at = [shown.index(f"─ {panel} ─") for panel in PANELS]
    assert at == sorted(at)


def test_no_row_is_for_a_verb_that_is_gone() -> None:
    assert set(documented()) <= set(VERBS)


# --- what they print -----------------------------------------------------------------------------------

FILE = """\
clusters = A, B
A.bootstrap.servers = 127.0.0.1:1
B.bootstrap.servers = 127.0.0.1:1
A->B.enabled = true
"""

Patch = pytest.MonkeyPatch


class Quiet:
    """In the place of a client, a log and what speaks through them: everything works, and nothing happens."""

    def __init__(self, *_: object, **__: object) -> None:
        pass

    def __getattr__(self, name: str) -> Callable[..., None]:
        return lambda *_, **__: None


def told(patch: Patch) -> None:
    for name in ("ClusterClient", "TopicLog", "Control"):
        patch.setattr(telling, name, Quiet)


def published(patch: pytest.MonkeyPatch) -> None:
    now = Status(flow(at_ms=int(time.time() * 1000)), 0)
    for module in (status, top, groups, topics):
        patch.setattr(module, "read_status", lambda _: now)


def explained(patch: Patch) -> None:
    step = Step(check="filter", mark=Mark.YES, words="orders of topics matches it")
    told = Explanation(flow="A->B", kind="topic", name="orders", steps=(step,))
    patch.setattr(explain, "explanations", lambda *_: [told])


def alone(patch: Patch) -> None:
    now = Status(flow(at_ms=int(time.time() * 1000), duties=(), groups=(), pumps=(), processes=1), 0)
    patch.setattr(doctor, "read_status", lambda _: now)


def asked(patch: Patch) -> None:
    look = FlowClusters(AgreedSource(SourceCluster(0, "id"), 3), "id", "other", source_tells_topics_apart=True)
    patch.setattr(clusters, "flow_clusters", lambda _: look)


def lost(patch: Patch) -> None:
    loss = Loss(
        kind=LossKind.EXPIRED,
        source_topic="orders",
        target_topic="A.orders",
        partition=0,
        first=3,
        end=7,
        downstream=3,
        target_topic_id="",
        action="continued",
        words="4 records expired",
    )
    word = Acknowledgement(acknowledged=loss.key, first=3, end=7, at_ms=1, by="ann@host", why="known")
    patch.setattr(losses, "ledger_entries", lambda _: [LedgerEntry(loss), LedgerEntry(loss, word)])
    patch.setattr(losses, "open_ledger", lambda _: nullcontext())
    for name in ("acknowledge", "retract"):
        patch.setattr(losses, name, Quiet)


def moved(patch: Patch) -> None:
    patch.setattr(topics, "say_moved", lambda *_: [Moved("orders", {0: 7}, 1, {})])
    patch.setattr(topics, "take_back", lambda *_: ["orders"])


def translated(patch: Patch) -> None:
    patch.setattr(offsets, "_translated", lambda _, stored, __: [Translation("A.orders", 0, 7) for _ in stored])


def rewritten(patch: Patch) -> None:
    moved = MovedOffset(4, "0", Stored("orders", 0, 9), Translation("A.orders", 0, 7))
    done = RewrittenCheckpoint((moved,), planned=(4,), left=("source 1: others",))
    patch.setattr("sparkmirror.frames.rewrite_checkpoint.rewrite_checkpoint", lambda *_: done)


def resolved(patch: Patch) -> None:
    patch.setattr(schemas, "check_flow", lambda *_, **__: SchemaCheck("A->B", 3, (), {}))


def nothing(_: Patch) -> None:
    """It needs no cluster."""


ELSEWHERE = {
    "run": "tests/engine/test_strimzi_examples.py",
    "legacy": "tests/engine/test_legacy_process.py",
    "serve": "tests/connect/test_served.py",
    "operator": "tests/deploy/test_operator.py",
    "sync-groups": "tests/client/test_group_sync.py",
    "verify": "tests/engine/test_verify.py: JSON lines, of a real Spark",
    "demo": "tests/demo/test_demo_command.py",
    "lint": "tests/lint",
    "acls": "tests/cli/test_acls.py",
    "migration schema": "tests/migrate/test_verbs_on_clusters.py: its fields are those of a schema",
    "migration check": "tests/migrate/test_checks_on_clusters.py",
    **{
        f"migration {verb}": "tests/migrate/test_verbs_on_clusters.py"
        for verb in ("new", "plan", "rehearse", "status", "switch", "reverse", "complete")
    },
}
REGISTRIES = ("--source-registry", "http://127.0.0.1:1", "--target-registry", "http://127.0.0.1:1")
JSON_CASES: dict[str, tuple[list[str], Callable[[Patch], None]]] = {
    "config": (["FILE"], nothing),
    "convert": (["FILE", "--to", "strimzi"], nothing),
    "version": ([], nothing),
    "size": (["--rate", "20M"], nothing),
    "pause": (["FILE"], told),
    "resume": (["FILE"], told),
    "retry": (["FILE", "orders", "stock:3"], told),
    "throttle": (["FILE", "20M"], told),
    "log-level": (["FILE", "sparkmirror", "debug"], told),
    "losses list": (["FILE"], lost),
    "losses ack": (["FILE", "known"], lost),
    "losses undo": (["FILE"], lost),
    "clusters": (["FILE"], asked),
    "status": (["FILE"], published),
    "top": (["FILE"], published),
    "doctor": (["FILE", "--wait", "0"], alone),
    "groups": (["FILE"], published),
    "topics list": (["FILE"], published),
    "explain": (["FILE", "orders"], explained),
    "schemas check": (["FILE", *REGISTRIES], resolved),
    "offsets translate": (["FILE", "--topic", "orders", "--offset", "3"], translated),
    "rewrite-checkpoint": (["FILE", "ck", "ck-at-b"], rewritten),
    "topics done": (["FILE", "--topics", "orders"], moved),
    "topics undo": (["FILE", "--topics", "orders"], moved),
    "pack": (["DIR/packed.tar.gz"], nothing),
    **{verb: ([], nothing) for verb in ELSEWHERE},
}
"""The arguments, FILE and DIR being put in, and what stands in for clusters."""


@pytest.mark.parametrize("verb", sorted(JSON_CASES.keys() - ELSEWHERE.keys()))
def test_what_it_prints_is_json(verb: str, tmp_path: Path, monkeypatch: Patch) -> None:
    arguments, prepare = JSON_CASES[verb]
    file = tmp_path / "mm2.properties"
    file.write_text(FILE)
    prepare(monkeypatch)
    monkeypatch.setattr("sparkmirror.mirror.engine.pack._files", lambda: iter([(file, "one")]))
    given = [word.replace("FILE", str(file)).replace("DIR", str(tmp_path)) for word in arguments]
    result = CliRunner().invoke(app, [*verb.split(), *given, "-o", "json"])
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert found
    rows = found if isinstance(found, list) else [found]
    assert {key for row in rows for key in row} <= keys_told(verb)
    plain = CliRunner().invoke(app, [*verb.split(), *given])
    assert plain.exit_code == 0
    assert plain.stdout != result.stdout


@pytest.mark.parametrize(
    "verb", [verb for verb, one in VERBS.items() if "secrets" in {each.name for each in one.params}]
)
def test_it_reads_the_secrets(verb: str, tmp_path: Path) -> None:
    """The state is wrong, so that nothing is started; it is looked at when the Secret was found."""
    password = {"secretName": "me", "password": "word"}
    sign_in = {"type": "plain", "username": "u", "passwordSecret": password}
    own = dict.fromkeys(("groupId", "configStorageTopic", "offsetStorageTopic", "statusStorageTopic"), "x")
    target = {**own, "alias": "B", "bootstrapServers": "127.0.0.1:1", "authentication": sign_in}
    source = {"alias": "A", "bootstrapServers": "127.0.0.1:1"}
    tree = {
        "apiVersion": "kafka.strimzi.io/v1",
        "kind": "KafkaMirrorMaker2",
        "metadata": {"name": "ours"},
        "spec": {"target": target, "mirrors": [{"source": source, "sourceConnector": {"state": "asleep"}}]},
    }
    file = tmp_path / "mirror.yaml"
    file.write_text(json.dumps(tree))
    if verb.startswith("migration ") and verb != "migration new":
        (tmp_path / "migration.yaml").write_text(
            json.dumps({"mirror": "mirror.yaml", "sets": [{"name": "shop", "topics": ["orders"]}]})
        )
        file = tmp_path / "migration.yaml"
    more = {
        "throttle": ["20M"],
        "explain": ["orders"],
        "log-level": ["sparkmirror", "debug"],
        "topics done": ["--topics", "orders"],
        "topics undo": ["--topics", "orders"],
        "losses ack": ["known"],
        "offsets translate": ["--topic", "orders", "--offset", "3"],
        "convert": ["--to", "properties"],
        "rewrite-checkpoint": ["ck", "ck-at-b"],
    }.get(verb, [])
    who = ["consumers"] if verb == "migration switch" else []
    words = [*verb.split(), *who, str(file), *more]
    refused = CliRunner().invoke(app, words)
    looks_only = verb in ("config", "convert", "lint")
    assert ("say with --secrets DIR" in str(refused.exception)) is not looks_only
    (tmp_path / "secrets" / "me").mkdir(parents=True)
    (tmp_path / "secrets" / "me" / "word").write_text("hush")
    found = CliRunner().invoke(app, [*words, "--secrets", str(tmp_path / "secrets")])
    assert "must be paused, stopped or running" in str(found.exception) + found.output


def test_no_word_of_a_format_that_is_none() -> None:
    assert CliRunner().invoke(app, ["version", "-o", "yaml"]).exit_code == 2


def test_a_shell_completes_verbs() -> None:
    """Typer's own completion; the script is what `--install-completion` writes."""
    command = str(Path(sys.executable).with_name("sparkmirror"))

    def said(**variables: str) -> str:
        environment = os.environ | variables
        return subprocess.run(
            [command], env=environment, capture_output=True, text=True, timeout=180, check=False
        ).stdout

    assert "complete" in said(_SPARKMIRROR_COMPLETE="source_bash")
    typed = {"COMP_WORDS": "sparkmirror th", "COMP_CWORD": "1"}
    assert said(_SPARKMIRROR_COMPLETE="complete_bash", **typed).split() == ["throttle"]
