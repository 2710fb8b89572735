"""Flows that send topics in a circle are found; those that only look like it are not."""

from __future__ import annotations

import re
from itertools import permutations
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sparkmirror.config.formats import read
from sparkmirror.lint import check
from sparkmirror.policy.sample_names import MOST, names_like

ROOT = Path(__file__).parents[2]
IDENTITY = "org.apache.kafka.connect.mirror.IdentityReplicationPolicy"
KEEPS = f"replication.policy.class = {IDENTITY}"
BOTH_WAYS = ("A->B.enabled = true", "B->A.enabled = true")
RING = ("A->B.enabled = true", "B->C.enabled = true", "C->A.enabled = true")

EVERY_PAIR = tuple(f"{a}->{b}.enabled = true" for a, b in permutations("ABC", 2))


def loops(directory: Path, *lines: str) -> list[str]:
    """What is found about circles among the clusters A to C."""
    path = directory / "mm2.properties"
    head = ["clusters = A, B, C", *(f"{alias}.bootstrap.servers = {alias}1:9092" for alias in "ABC")]
    path.write_text("\n".join([*head, "topics = .*", *lines]) + "\n")
    return [one.what for one in check(read([str(path)])) if one.rule == "echo-loop"]


@pytest.mark.parametrize(
    ("lines", "says"),
    [
        ((*BOTH_WAYS, KEEPS), "A->B and B->A: orders goes A -> B -> A"),
        ((*RING, KEEPS), "A->B and B->C and C->A: orders goes A -> B -> C -> A"),
        ((*BOTH_WAYS, f"A->B.{KEEPS}"), "at A orders, B.orders, B.B.orders and so on are copies of one topic"),
        (
            (*RING, f"A->B.{KEEPS}", f"B->C.{KEEPS}"),
            "at A orders, C.orders, C.C.orders and so on are copies of one topic",
        ),
        ((*BOTH_WAYS, KEEPS, "topics = x|bills-\\\\d+", "B->A.topics = bills.*"), "bills-1 goes A -> B -> A"),
        ((*EVERY_PAIR, f"A->B.{KEEPS}"), "at A orders, B.orders, B.B.orders and so on are copies of one topic"),
    ],
)
def test_circles(tmp_path: Path, lines: tuple[str, ...], says: str) -> None:
    (found,) = loops(tmp_path, *lines)
    assert found.endswith(says)


@pytest.mark.parametrize(
    "lines",
    [
        BOTH_WAYS,
        RING,
        EVERY_PAIR,
        ("A->B.enabled = true", KEEPS),
        ("A->B.enabled = true", "B->C.enabled = true", KEEPS),
        (*RING[:2], "A->C.enabled = true", KEEPS),
        (*BOTH_WAYS, KEEPS, "A->B.topics = orders.*", "B->A.topics = bills.*"),
        (*BOTH_WAYS, KEEPS, "B->A.topics = bills.*", "A->B.topics.exclude = bills.*"),
        (*BOTH_WAYS, f"A->B.{KEEPS}", "A->B.topics = orders", "B->A.topics = bills"),
        (*BOTH_WAYS, KEEPS, "topics = a("),
    ],
)
def test_no_circles(tmp_path: Path, lines: tuple[str, ...]) -> None:
    assert loops(tmp_path, *lines) == []


@pytest.mark.full
def test_a_mesh_of_many_clusters(tmp_path: Path) -> None:
    """It is looked at for as long as anybody waits."""
    aliases = [f"c{number}" for number in range(9)]
    path = tmp_path / "mm2.properties"
    lines = [f"clusters = {', '.join(aliases)}", *(f"{alias}.bootstrap.servers = {alias}:9092" for alias in aliases)]
    lines += [f"{a}->{b}.enabled = true" for a, b in permutations(aliases, 2)]
    path.write_text("\n".join(lines))
    assert not [one for one in check(read([str(path)])) if one.rule == "echo-loop"]


@pytest.mark.parametrize(
    "path",
    [*sorted((ROOT / "examples").rglob("*.yaml")), ROOT / "tests" / "config" / "migration_example.properties"],
    ids=lambda path: path.stem,
)
def test_examples_have_none(path: Path, tmp_path: Path) -> None:
    for name in ("east-cluster-ca-cert", "west-cluster-ca-cert", "mirror-user", "east-mirror-user"):
        (tmp_path / name).mkdir()
        for key in ("ca.crt", "user.crt", "user.key", "password"):
            (tmp_path / name / key).write_text("x")
    assert not [one for one in check(read([str(path)], str(tmp_path))) if one.rule == "echo-loop"]


@pytest.mark.parametrize(
    "pattern",
    [
        "orders",
        "orders.*",
        r"a\.b",
        "(a|b)c.+",
        r"^x[\w]*$",
        r"[a-z]{3}-\d+",
        "(?!x)foo",
        "[^x]y",
        "(?:a|(b|c))d?",
        "[]]",
    ],
)
def test_names_match_what_they_were_made_of(pattern: str) -> None:
    names = names_like(pattern)
    assert names
    assert all(re.fullmatch(pattern, name) for name in names)


@given(pattern=st.text(st.sampled_from("a1-.*+?{}()[]|^$\\\\,:<!=dwQ"), max_size=12))
@example(pattern="a{999999}{999999}")
@example(pattern="[]")
@example(pattern="(((a|b)|(c|d))" * 20)
@example(pattern="(" * 9999)
def test_odd_patterns_give_few_names(pattern: str) -> None:
    names = names_like(pattern)
    assert len(names) <= MOST
    assert all(len(name) < 1000 for name in names)
