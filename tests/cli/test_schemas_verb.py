"""What `sparkmirror schemas check` prints, and what it refuses. The checks are made up; real ones: full."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from sparkmirror.cli import schemas
from sparkmirror.cli.app import app
from sparkmirror.schemas import CheckedId, CheckedPart, SchemaCheck, SchemaVerdict
from sparkmirror.schemas.compare import SchemaComparison
from sparkmirror.schemas.header import IdKind, SchemaId

FILE = "clusters = A, B\nA.bootstrap.servers = 127.0.0.1:1\nB.bootstrap.servers = 127.0.0.1:1\nA->B.enabled = true\n"
URLS = ("--source-registry", "http://127.0.0.1:1", "--target-registry", "http://127.0.0.1:1")


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    """Run the verb; what it finds out is given."""

    def running(*words: str, found: SchemaCheck | None = None) -> Result:
        (tmp_path / "mm2.properties").write_text(FILE)
        if found is not None:
            monkeypatch.setattr(schemas, "check_flow", lambda *_, **__: found)
        return CliRunner().invoke(app, ["schemas", "check", str(tmp_path / "mm2.properties"), *words])

    return running


def part(verdict: SchemaVerdict, doubt: str = "", kind: IdKind = IdKind.CONFLUENT) -> CheckedPart:
    comparison = SchemaComparison(
        verdict, "AVRO", ("orders-value version 1",), "a reason" if verdict != "equal" else ""
    )
    return CheckedPart(
        topic="orders",
        target_topic="A.orders",
        field="value",
        records=9,
        with_id=5,
        ids=(CheckedId(id=SchemaId(kind, "7"), records=5, partition=0, offset=3, comparison=comparison),),
        doubt=doubt,
    )


def test_a_row_for_each_id(run: Callable[..., Result]) -> None:
    well = run(*URLS, found=SchemaCheck("A->B", 2, (part(SchemaVerdict.EQUAL),), {}))
    assert well.exit_code == 0
    row = "A->B orders value 7 5 9 orders-value version 1 equal"
    assert " ".join(well.stdout.splitlines()[1].split()) == row
    assert "A->B: 1 ids lead to an equal schema; 1 of 2 topics have ids, 9 keys and values were" in well.stdout
    wrong = run(*URLS, found=SchemaCheck("A->B", 2, (part(SchemaVerdict.MISSING),), {}))
    assert wrong.exit_code == 1
    assert "missing" in wrong.stdout
    assert "a reason" in wrong.stdout
    assert "1 of 1 ids don't lead to an equal schema" in wrong.stdout
    glue = run(*URLS, found=SchemaCheck("A->B", 2, (part(SchemaVerdict.NOT_CHECKED, kind=IdKind.GLUE),), {}))
    assert glue.exit_code == 0
    assert "0 ids lead to an equal schema, 1 not checked" in glue.stdout


def test_what_may_be_none_is_said_to_be_unsure(run: Callable[..., Result]) -> None:
    found = SchemaCheck("A->B", 2, (part(SchemaVerdict.UNKNOWN, "5 of 9 begin so"), part(SchemaVerdict.EQUAL)), {})
    result = run(*URLS, found=found)
    assert result.exit_code == 0
    assert "unsure" in result.stdout
    assert "orders: these may be no schema ids: of its values 5 of 9 begin so" in result.stdout


def test_what_is_no_success_is_told(run: Callable[..., Result]) -> None:
    unread = run(*URLS, found=SchemaCheck("A->B", 2, (part(SchemaVerdict.EQUAL),), {"bills": "partition 1: damaged"}))
    assert unread.exit_code == 1
    assert "bills: partition 1: damaged" in unread.output
    strange = run(*URLS, found=SchemaCheck("A->B", 2, (part(SchemaVerdict.UNKNOWN, "few"),), {}))
    assert strange.exit_code == 1
    assert "knows none of the ids: is it the right one?" in strange.output


def test_nothing_has_ids(run: Callable[..., Result]) -> None:
    result = run(*URLS, found=SchemaCheck("A->B", 2, (), {}))
    assert result.exit_code == 0
    assert result.stdout.startswith("A->B: 0 ids lead to an equal schema; 0 of 2 topics have ids, 0 keys and")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ((), "sparkmirror.schemas.source.url: is missing: write sparkmirror.schemas.source.url = http://host:8081"),
        (URLS[:2], "sparkmirror.schemas.target.url: is missing"),
        ((*URLS[:3], "here"), "--target-registry: 'here' is not allowed"),
        ((*URLS, "--flow", "B->A"), "has no such flow"),
    ],
)
def test_what_is_refused(run: Callable[..., Result], words: tuple[str, ...], told: str) -> None:
    error = run(*words).exception
    assert getattr(error, "exit_code", None) == 2
    assert told in str(error)


def test_topics_that_match_nothing_are_no_success(run: Callable[..., Result]) -> None:
    nothing = SchemaCheck("A->B", 0, (), {})
    error = run(*URLS, "--topics", "ordrs", found=nothing).exception
    assert getattr(error, "exit_code", None) == 2
    assert str(error) == "--topics: ordrs: no topic that is copied matches"
    assert run(*URLS, found=nothing).exit_code == 0


def test_patterns_that_are_none(run: Callable[..., Result]) -> None:
    """Before anything is connected."""
    error = run(*URLS, "--topics", "orders(").exception
    assert getattr(error, "exit_code", None) == 2
    assert str(error).startswith("--topics: ")
