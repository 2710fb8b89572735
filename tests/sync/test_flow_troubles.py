"""Mistakes that flows' settings show: found without a cluster, stopped at by run and config, reported by lint."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from sparkmirror.cli.app import app
from sparkmirror.config.formats import model_of, read
from sparkmirror.mirror.sync.flow_troubles import FATAL, FlowTrouble, TroubleKind, flow_troubles
from sparkmirror.policy.sample_names import named

APACHE = "org.apache.kafka.connect.mirror.IdentityReplicationPolicy"
STRIMZI = "io.strimzi.kafka.connect.mirror.IdentityReplicationPolicy"
AMAZON = "com.amazonaws.kafka.samples.CustomMM2ReplicationPolicy"
OWN_POLICY = """
from sparkmirror.policy import IdentityReplicationPolicy


class Keeps(IdentityReplicationPolicy):
    def __init__(self):
        super().__init__()
"""


def write(directory: Path, flows: str, *lines: str) -> Path:
    """A file with these flows, as `A->B B->A`; topics are `.*orders` unless a line says otherwise."""
    aliases = list(dict.fromkeys(alias for flow in flows.split() for alias in flow.split("->")))
    text = [
        f"clusters = {', '.join(aliases)}",
        "topics = .*orders",
        "tasks.max = 4",
        "sync.group.offsets.enabled = false",
    ]
    text += [f"{alias}.bootstrap.servers = 127.0.0.1:{9000 + number}" for number, alias in enumerate(aliases)]
    text += [f"{flow}.enabled = true" for flow in flows.split()]
    path = directory / "mm2.properties"
    path.write_text("\n".join([*text, *lines]) + "\n")
    return path


def troubles(path: Path) -> list[FlowTrouble]:
    return flow_troubles(model_of(read([str(path)]))[0].flows)


def kinds(directory: Path, flows: str, *lines: str) -> set[TroubleKind]:
    return {trouble.kind for trouble in troubles(write(directory, flows, *lines))}


POLICY = "replication.policy.class = {}".format
SEPARATOR = "replication.policy.separator = {}".format

ENDLESS = [
    ("DC-X->DC-Y DC-Y->DC-X", SEPARATOR("-")),
    ("us.east->us.west us.west->us.east",),
    ("a_1->b_1 b_1->a_1", SEPARATOR("_")),
    ("a__b->c__d c__d->a__b", SEPARATOR("__")),
    ("dc.x->dc.y dc.y->dc.z dc.z->dc.x",),
    ("dc-x->dc-y dc-y->dc-x", SEPARATOR("-"), "topics = orders"),  # heartbeats go round
    ("A->B B->A", POLICY(APACHE)),
    ("A->B B->A", POLICY(STRIMZI)),
    ("A->B B->A", POLICY(AMAZON)),
    ("A->B B->A", "A->B." + POLICY(APACHE), "B->A." + POLICY(STRIMZI)),
    ("A->B B->A", "A->B." + POLICY(AMAZON)),
    ("A->B B->C C->A", POLICY(APACHE)),
    ("A->B B->C C->A", "A->B." + POLICY(APACHE), "B->C." + POLICY(AMAZON)),
    ("A->B B->C C->D D->A", POLICY(STRIMZI)),
    ("A->B B->A", POLICY(APACHE), "topics = bills, orders"),
]


@pytest.mark.parametrize("given", ENDLESS, ids=" ".join)
def test_what_never_ends(tmp_path: Path, given: tuple[str, ...]) -> None:
    assert TroubleKind.ECHO_LOOP in kinds(tmp_path, *given)


def test_a_policy_of_ones_own_goes_round_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "keeping_names.py").write_text(OWN_POLICY)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    own = POLICY("keeping_names:Keeps")
    assert TroubleKind.ECHO_LOOP in kinds(tmp_path, "A->B B->A", *(f"{flow}.{own}" for flow in ("A->B", "B->A")))


@pytest.mark.parametrize(
    "given",
    [
        ("us.east->us us->us.east",),
        ("DC-X->B B->DC-X", SEPARATOR("-")),
        ("A->B B->A", "A->B." + POLICY(APACHE), "A->B.topics = orders", "B->A.topics = or.*"),
    ],
    ids=" ".join,
)
def test_what_comes_back_and_ends(tmp_path: Path, given: tuple[str, ...]) -> None:
    assert kinds(tmp_path, *given) == {TroubleKind.COMES_BACK}


@pytest.mark.parametrize(
    "given",
    [
        ("DC-X->DC-Y", SEPARATOR("-")),
        ("us.east->us us->eu",),
        ("DC-X->DC-Y DC-Y->DC-X",),
        ("us.east->us.west us.west->us.east", SEPARATOR("_")),
        ("A->B B->A",),
        ("DC-X->DC-Y DC-Y->DC-X", SEPARATOR("-"), "topics = orders", "heartbeats.replication.enabled = false"),
        ("A->B B->A", POLICY(APACHE), "A->B.topics = eu-.*", "B->A.topics = us-.*"),
        ("A->B", POLICY(APACHE)),
        ("A->B B->C", POLICY(AMAZON)),
    ],
    ids=" ".join,
)
def test_what_is_well(tmp_path: Path, given: tuple[str, ...]) -> None:
    assert kinds(tmp_path, *given) == set()


FAN_IN = [
    ("A->C B->C", POLICY(APACHE), "topics = orders"),
    ("A->C B->C", POLICY(AMAZON), "A->C.topics = bills, orders", "B->C.topics = orders|shipments"),
    ("A->D B->D C->D", POLICY(STRIMZI), "B->D.topics = x", "A->D.topics = (x|y)", "C->D.topics = z"),
    ("A->C B->C", "A->C." + POLICY(APACHE), "A->C.topics = B.orders", "B->C.topics = orders"),
    ("us->eu us-1->eu", SEPARATOR("-"), "us->eu.topics = 1-orders", "us-1->eu.topics = orders"),
]


@pytest.mark.parametrize("given", FAN_IN, ids=" ".join)
def test_two_flows_into_one_topic(tmp_path: Path, given: tuple[str, ...]) -> None:
    (trouble,) = troubles(write(tmp_path, *given))
    assert trouble.kind is TroubleKind.FAN_IN
    assert len(trouble.flows) == 2
    assert "delete" not in trouble.remedy


@pytest.mark.parametrize(
    ("given", "kind"),
    [
        (("A->C B->C", POLICY(APACHE)), TroubleKind.MAY_FAN_IN),
        (("A->C B->C", POLICY(APACHE), "A->C.topics = .*", "B->C.topics = orders"), TroubleKind.MAY_FAN_IN),
        (("us->eu us.1->eu", "topics = .*"), TroubleKind.MAY_FAN_IN),
        (("A->C B->C", POLICY(APACHE), "A->C.topics = a-.*", "B->C.topics = b-.*"), None),
        (("A->C B->C", "topics = orders"), None),
        (("A->C B->D", POLICY(APACHE), "topics = orders"), None),
        (("A->B A->C", POLICY(APACHE), "topics = orders"), None),
    ],
    ids=lambda one: " ".join(one) if isinstance(one, tuple) else "",
)
def test_what_only_clusters_tell(tmp_path: Path, given: tuple[str, ...], kind: TroubleKind | None) -> None:
    assert kinds(tmp_path, *given) == ({kind} if kind else set())


@pytest.mark.parametrize(
    ("topics", "more", "never"),
    [
        ("__my-connect-configs, .hidden, orders", "topics.exclude =", ["__my-connect-configs", ".hidden"]),
        ("__consumer_offsets, orders", "topics.exclude =", ["__consumer_offsets"]),
        ("mm2-offset-syncs.B.internal, A.checkpoints.internal, orders", "topics.exclude =", ["mm2-off", "A.check"]),
        ("B.orders, orders", "", ["B.orders"]),
        ("A.B.bills, orders", "", ["A.B.bills"]),
        ("orders.replica, orders", "", ["orders.replica"]),
        ("heartbeats, orders", "topics.exclude = heart.*\nheartbeats.replication.enabled = false", ["heartbeats"]),
        ("heartbeats, orders", POLICY(AMAZON), ["heartbeats"]),
        ("__.*, orders", "topics.exclude =", ["__.*"]),
        (r"mm2.*\\.internal, orders", "topics.exclude =", [r"mm2.*\.internal"]),
        (f"{'x' * 249}, orders", "", ["x" * 249]),
        ("mm2-status-B-internal, orders", "topics.exclude =\n" + SEPARATOR("-"), ["mm2-status-B-internal"]),
    ],
)
def test_topics_listed_in_vain(tmp_path: Path, topics: str, more: str, never: list[str]) -> None:
    told = troubles(write(tmp_path, "A->B", f"topics = {topics}", more))
    assert [trouble.kind for trouble in told] == [TroubleKind.NEVER_COPIED] * len(never)
    for trouble, name in zip(told, never, strict=True):
        assert trouble.detail.startswith(name)
        assert trouble.remedy


@pytest.mark.parametrize(
    "topics",
    ["orders", "my.internal, heartbeats", ".*", "_orders, x__y, a.c", r"(__)?orders.*", "mm2-orders", "x|__.*"],
)
def test_topics_that_can_be_copied(tmp_path: Path, topics: str) -> None:
    assert kinds(tmp_path, "A->B", f"topics = {topics}") == set()


@pytest.mark.parametrize("topics", ["__a, .b", "B.orders", "__.*", "orders.replica, mm2-x.internal"])
def test_nothing_that_is_listed_can_be_copied(tmp_path: Path, topics: str) -> None:
    assert kinds(tmp_path, "A->B", f"topics = {topics}") == {TroubleKind.NOTHING_LISTED}


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("orders", ["orders"]),
        ("a.b", ["a.b"]),
        (r"a\.b", ["a.b"]),
        ("a|b", ["a", "b"]),
        ("(?:a|b)-c", ["a-c", "b-c"]),
        ("^orders$", ["orders"]),
        ("orders.*", None),
        ("orders?", None),
        (r"a\d", None),
        ("[ab]", None),
        ("a{2}", None),
        ("(?i)orders", None),
    ],
)
def test_names_that_are_listed(pattern: str, names: list[str] | None) -> None:
    assert named(pattern) == names


@pytest.mark.parametrize("given", [ENDLESS[0], ENDLESS[6], FAN_IN[0], ("A->B", "topics = __a")], ids=" ".join)
@pytest.mark.parametrize("verb", ["run", "config"])
def test_it_stops_before_anything_is_created(tmp_path: Path, verb: str, given: tuple[str, ...]) -> None:
    """No cluster is there, and none is asked for."""
    path = write(tmp_path, *given)
    result = CliRunner().invoke(app, [verb, str(path)])
    (trouble, *_) = [one for one in troubles(path) if one.kind in FATAL]
    assert getattr(result.exception, "exit_code", None) == 2
    text = str(result.exception)
    assert text.startswith(f"{path}, line ")
    assert f": {trouble.key}: {trouble.line}" in text
    assert "\n" not in text


@pytest.mark.parametrize(("given", "flow", "topic"), [(FAN_IN[0], "A->C", "orders"), (FAN_IN[4], "us->eu", "1-orders")])
def test_start_lint_and_explain_say_the_same_of_two_flows_into_one_topic(
    tmp_path: Path, given: tuple[str, ...], flow: str, topic: str
) -> None:
    """No cluster answers: the file alone decides."""
    path = write(tmp_path, *given, "admin.timeout.ms = 1000")
    (finding,) = [one for one in said(["lint", str(path)]) if one["rule"] == "fan-in"]
    (explained,) = [one for one in said(["explain", str(path), topic, "--flow", flow]) if one["kind"] == "topic"]
    *passed, last = explained["checks"]
    assert {one["mark"] for one in passed} == {"yes"}
    assert (last["check"], last["mark"], last["reason"]) == ("fan-in", "no", "fan_in")
    refusal = str(CliRunner().invoke(app, ["run", str(path)]).exception)
    assert refusal.endswith(f": {last['words']}; {finding['fix']}")
    assert explained["changes"] == [finding["fix"]]
    what, _, detail = finding["what"].partition(": ")
    assert last["words"] == f"{what}: {detail}: {finding['effect']}"


def said(command: list[str]) -> list[dict[str, Any]]:
    printed: list[dict[str, Any]] = json.loads(CliRunner().invoke(app, [*command, "-o", "json"]).stdout)
    return printed


def test_other_processes_flows_count(tmp_path: Path) -> None:
    """Each data centre runs the flow into itself, from the same file."""
    path = write(tmp_path, "A->B B->A", POLICY(APACHE))
    result = CliRunner().invoke(app, ["config", str(path), "--clusters", "B"])
    assert getattr(result.exception, "exit_code", None) == 2
    path = write(tmp_path, "A->B B->A C->D", POLICY(APACHE))
    assert CliRunner().invoke(app, ["config", str(path), "--clusters", "D"]).exit_code == 0


def test_a_line_for_each_that_is_listed_in_vain(tmp_path: Path) -> None:
    path = write(tmp_path, "A->B", "topics = orders, __a", "topics.exclude =")
    result = CliRunner().invoke(app, ["config", str(path)])
    assert result.exit_code == 0
    assert f"warning: {path}, line 8: topics: a listed topic is never copied: __a of A" in result.output


def test_lint_says_the_same(tmp_path: Path) -> None:
    path = write(tmp_path, *ENDLESS[0])
    printed = json.loads(CliRunner().invoke(app, ["lint", str(path), "-o", "json"]).stdout)
    (finding,) = [one for one in printed if one["rule"] == "echo-loop"]
    (trouble,) = troubles(path)
    assert (finding["fix"], finding["line"], finding["key"]) == (trouble.remedy, 9, trouble.key)
    assert finding["what"].endswith(trouble.detail)


TURNS = ("A->B.sparkmirror.turn = first", "B->A.sparkmirror.turn = second")


@pytest.mark.parametrize("policy", [APACHE, STRIMZI, AMAZON])
def test_two_flows_that_take_turns_send_nothing_in_a_circle(tmp_path: Path, policy: str) -> None:
    kept = POLICY(policy)
    assert kinds(tmp_path, "A->B B->A", kept) >= {TroubleKind.ECHO_LOOP}
    assert kinds(tmp_path, "A->B B->A", kept, *TURNS) == set()
    assert kinds(tmp_path, "A->B", kept, TURNS[0]) == set(), "the opposite flow may be in another file"


def test_a_circle_over_a_third_cluster_stays_one(tmp_path: Path) -> None:
    assert kinds(tmp_path, "A->B B->A B->C C->A", POLICY(APACHE), *TURNS) >= {TroubleKind.ECHO_LOOP}


@pytest.mark.parametrize(
    ("lines", "detail", "remedy"),
    [
        ((*TURNS[:1], POLICY(APACHE)), "A->B: B->A has no sparkmirror.turn", "write B->A.sparkmirror.turn = second"),
        (
            ("sparkmirror.turn = second", POLICY(APACHE)),
            "A->B: B->A has sparkmirror.turn = second, too",
            "write B->A.sparkmirror.turn = first",
        ),
        (TURNS, "A->B: its replication policy changes names", "use IdentityReplicationPolicy in both flows"),
    ],
)
def test_flows_that_cant_take_turns(tmp_path: Path, lines: tuple[str, ...], detail: str, remedy: str) -> None:
    first = troubles(write(tmp_path, "A->B B->A", *lines))[0]
    assert (first.kind, first.detail, first.remedy) == (TroubleKind.TURNS, detail, remedy)
    assert first.kind in FATAL
