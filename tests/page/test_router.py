"""The page's paths over a real socket: what is served, who may act, what is made for how many who watch."""

from __future__ import annotations

import dataclasses
import http.client
import json
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager

import pytest
from fastapi import APIRouter, FastAPI, Request
from tests.support.snapshot_samples import NOW_MS, flow, group, partition, snapshot, topic

from sparkmirror.errors import ClusterUnreachable, ConfigError
from sparkmirror.exact.durable.loss_kinds import LossOutcome
from sparkmirror.look.page.feed import MOST_VIEWERS
from sparkmirror.look.page.router import POLICY, page_router
from sparkmirror.look.page.sentences import Tone
from sparkmirror.snapshot.history import STEP_S, FlowHistory
from sparkmirror.snapshot.snapshot import Cause, FlowState, LossRow, PartitionState, Role, Snapshot
from sparkmirror.web.listener import Listener, listening, serving

OURS = {"x-sparkmirror-page": "1", "content-type": "application/json"}


@contextmanager
def served(router: APIRouter) -> Iterator[int]:
    app = FastAPI()
    app.include_router(router)
    with listening(Listener("http", "127.0.0.1", 0), "test") as bound, serving(app, bound, None):
        yield bound.getsockname()[1]


class Answer:
    """One request and its answer."""

    def __init__(self, port: int, method: str, path: str, body: object = None, **headers: str) -> None:
        with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=10)) as connection:
            named = {name.replace("_", "-"): value for name, value in headers.items()}
            connection.request(method, path, None if body is None else json.dumps(body), named)
            answer = connection.getresponse()
            self.status, self.headers, self.body = answer.status, answer.headers, answer.read()

    @property
    def said(self) -> object:
        return json.loads(self.body)


class Watching:
    """One browser's stream."""

    def __init__(self, port: int, query: str = "") -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=10)
        self._socket.sendall(f"GET /events?{query} HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\n\r\n".encode())
        self._file = self._socket.makefile("rb")

    def next(self, name: str) -> dict[str, object]:
        """The next event of that name."""
        for line in self._file:
            if line == f"event: {name}\n".encode():
                data = next(self._file)
                found: dict[str, object] = json.loads(data.removeprefix(b"data: "))
                return found
            if line == b"0\r\n":
                break
        raise AssertionError("the stream ended")

    def close(self) -> None:
        self._file.close()
        self._socket.close()


class Scripted:
    """Snapshots as the test wants them, counted."""

    def __init__(self, newest: Snapshot) -> None:
        self.newest = newest
        self.asked = 0

    def __call__(self) -> Snapshot:
        self.asked += 1
        at_ms = int(time.time() * 1000)
        flows = tuple(dataclasses.replace(one, at_ms=at_ms) for one in self.newest.flows)
        return dataclasses.replace(self.newest, at_ms=at_ms, flows=flows)


class Heard:
    """Controls that remember what they were told."""

    def __init__(self) -> None:
        self.told: list[tuple[object, ...]] = []

    def pause(self, flow: str, topics: Sequence[str]) -> str:
        if flow != "A->B":
            raise ConfigError("no such flow works here", origin="flow", key=flow)
        self.told.append(("pause", flow, *topics))
        return "paused"

    def resume(self, flow: str, topics: Sequence[str]) -> str:
        raise ClusterUnreachable("B can't be reached")

    def throttle(self, flow: str, bytes_per_s: float | None, backfill: float | None) -> str:
        self.told.append(("throttle", flow, bytes_per_s, backfill))
        return "throttled"


def test_the_page_and_its_files() -> None:
    with served(page_router(snapshot)) as port:
        page = Answer(port, "GET", "/")
        assert page.headers["content-type"] == "text/html; charset=utf-8"
        assert page.headers["content-security-policy"] == POLICY
        assert b"<script>" not in page.body
        assert b"style=" not in page.body
        assert b"http" not in page.body.replace(b"<!doctype html>", b"")
        for name, kind in (("page.css", "text/css"), ("page.js", "text/javascript"), ("icon.svg", "image/svg+xml")):
            asset = Answer(port, "GET", f"/assets/{name}")
            assert (asset.status, asset.headers["content-type"].partition(";")[0]) == (200, kind)
        for name in ("nothing.js", "..%2Frouter.py", "../router.py"):
            assert Answer(port, "GET", f"/assets/{name}").status == 404
        assert Snapshot.from_json(Answer(port, "GET", "/snapshot").body) == snapshot()
        assert Answer(port, "POST", "/actions/pause", {}, **OURS).status == 404, "nothing can be done without controls"


def test_events_tell_the_sentence_the_problems_and_the_rows() -> None:
    parked = partition(state=PartitionState.PARKED, cause=Cause.TOO_LARGE)
    late = flow(state=FlowState.HELD_UP, lag=4, topics=(topic("a"), topic("b", parked)))
    with (
        served(page_router(Scripted(snapshot(late)))) as port,
        closing(Watching(port, "kind=topics&flow=A-%3EB")) as one,
    ):
        assert one.next("hello") == {"may_act": False, "can_act": False}
        now = one.next("now")
        said = now["flows"][0]  # type: ignore[index]
        assert said["what"].startswith(
            "1 partition is parked (b-0: a batch is larger than the target takes); 4 records"
        )
        assert said["then"].startswith("Held up since ")
        assert said["tone"] == "bad"
        assert "parked-too-large" in [one["rule"] for one in now["findings"]]  # type: ignore[attr-defined]
        rows = one.next("rows")
        assert rows["reset"]
        assert [row[1:3] for row in rows["rows"]] == [["caught up", "a"], ["parked", "b"]]  # type: ignore[attr-defined]


def test_a_standby_has_dashes_and_the_address_of_the_page_that_knows() -> None:
    standby = flow(
        state=FlowState.STANDING_BY, role=Role.STANDBY, lag=9_684, lag_s=158.0, eta_s=3.0, page="http://host-2:9404/"
    )
    with (
        served(page_router(Scripted(snapshot(standby)))) as port,
        closing(Watching(port, "kind=topics&flow=A-%3EB")) as one,
    ):
        said = one.next("now")["flows"][0]  # type: ignore[index]
        figures = ("lag", "lag_s", "eta_s", "records_per_s", "bytes_per_s")
        assert [said[figure] for figure in figures] == [None] * len(figures)
        assert (said["topics"], said["page"]) == (0, "http://host-2:9404/")
        assert one.next("rows")["rows"] == []


def test_the_past_outlives_the_browser() -> None:
    history = FlowHistory()
    begin_s = NOW_MS // 1000 // STEP_S * STEP_S
    for step, state in enumerate((FlowState.COPYING, FlowState.UNREACHABLE, FlowState.COPYING)):
        history.take([flow(at_ms=(begin_s + step * STEP_S) * 1000, state=state, lag=5, lag_s=300.0 * step)])
    with served(page_router(snapshot, history=history)) as port:
        known = [
            [begin_s, "good", "copying", 5, 0, 0],
            [begin_s + STEP_S, "bad", "unreachable", 5, 300, 0],
            [begin_s + 2 * STEP_S, "working", "copying", 5, 600, 0],
        ]
        assert Answer(port, "GET", "/history?flow=A-%3EB").said == {"step_s": STEP_S, "samples": known}
        newer = Answer(port, "GET", f"/history?flow=A-%3EB&since_s={begin_s + STEP_S}").said
        assert newer == {"step_s": STEP_S, "samples": known[1:]}
        assert Answer(port, "GET", "/history?flow=nothing").said == {"step_s": STEP_S, "samples": []}
        assert Answer(port, "GET", "/history").status == 422
    with served(page_router(snapshot)) as port:
        assert Answer(port, "GET", "/history?flow=A-%3EB").said == {"step_s": STEP_S, "samples": []}


def test_each_tone_has_an_icon() -> None:
    with served(page_router(snapshot)) as port:
        icons = {Answer(port, "GET", f"/assets/icon-{tone}.svg").body for tone in Tone}
    assert len(icons) == len(Tone)
    assert all(icon.rstrip().endswith(b"</g></svg>") for icon in icons)


def test_events_tell_the_entries_of_the_loss_ledger() -> None:
    row = LossRow(
        number="3f2a9c01",
        kind="foreign-writer",
        outcome=LossOutcome.FOREIGN,
        at_ms=7,
        topic="A.orders",
        partition=2,
        first=30,
        offsets=4,
        action="continued",
        words="a stranger wrote",
        acknowledged="by ann",
    )
    with (
        served(page_router(Scripted(snapshot(flow(loss_entries=(row,)))))) as port,
        closing(Watching(port, "kind=losses&flow=A-%3EB")) as one,
    ):
        rows = one.next("rows")["rows"]
        expected = ["foreign", 7, "foreign-writer", "A.orders-2", 30, 4, "a stranger wrote", "by ann", "3f2a9c01"]
        assert [row[1:] for row in rows] == [expected]  # type: ignore[attr-defined]


def test_changes_come_and_one_snapshot_is_made_for_all() -> None:
    source = Scripted(snapshot())
    with served(page_router(source, period_s=0.2)) as port:
        time.sleep(0.5)
        assert source.asked == 0, "nobody watches"
        some = [Watching(port, "kind=partitions&flow=A-%3EB") for _ in range(8)]
        for one in some:
            assert len(one.next("rows")["rows"]) == 1  # type: ignore[arg-type]
        before, began = source.asked, time.monotonic()
        source.newest = snapshot(flow(topics=(topic("orders", partition(lag=7), partition(1)),)))
        for one in some:
            while not (rows := one.next("rows"))["rows"]:
                pass
            assert not rows["reset"]
            assert sorted(row[6] for row in rows["rows"]) == [0, 7]  # type: ignore[attr-defined]
        time.sleep(1)
        made = source.asked - before
        assert made <= (time.monotonic() - began) / 0.2 + 2
        for one in some:
            one.close()
        time.sleep(0.8)
        after = source.asked
        time.sleep(0.8)
        assert source.asked == after, "nobody watches any more"


def test_who_comes_later_is_told_at_once() -> None:
    with served(page_router(Scripted(snapshot()), period_s=300.0)) as port, closing(Watching(port)) as first:
        first.next("now")
        began = time.monotonic()
        with closing(Watching(port, "kind=groups&flow=A-%3EB")) as second:
            assert second.next("rows")["rows"][0][2] == "shop"  # type: ignore[index]
        with closing(Watching(port, "kind=positions&flow=A-%3EB&of=shop")) as third:
            assert third.next("rows")["rows"][0][2:4] == ["orders", 0]  # type: ignore[index]
        assert time.monotonic() - began < 60


def test_rows_that_are_seen() -> None:
    with served(page_router(Scripted(snapshot()))) as port, closing(Watching(port, "kind=topics&flow=A-%3EB")) as one:
        number = one.next("rows")["rows"][0][0]  # type: ignore[index]
        path = "/rows?kind=topics&flow=A-%3EB&numbers="
        assert Answer(port, "GET", f"{path}{number}").said[0][2] == "orders"  # type: ignore[index]
        assert Answer(port, "GET", f"{path}99").said == []
        assert Answer(port, "GET", "/rows?kind=groups&flow=A-%3EB&numbers=0").said == [], "nobody watches that table"


@pytest.mark.full
def test_a_viewer_that_does_not_read_is_skipped_and_told_all_later() -> None:
    """The others are told in time, and what it missed does not pile up."""
    groups = tuple(group(f"group-{number:05}") for number in range(20_000))
    source = Scripted(snapshot(flow(groups=groups)))
    with (
        served(page_router(source, period_s=0.2)) as port,
        closing(Watching(port)) as quick,
        closing(Watching(port, "kind=groups&flow=A-%3EB")) as slow,
    ):
        slow.next("hello")
        for turn in range(6):
            some = tuple(group(f"group-{number:05}", synced_ms=NOW_MS - 1000 * turn) for number in range(20_000))
            source.newest = snapshot(flow(groups=some))
            began = time.monotonic()
            quick.next("now")
            assert time.monotonic() - began < 60


def test_too_many_watch() -> None:
    with served(page_router(Scripted(snapshot()))) as port:
        some = [Watching(port) for _ in range(MOST_VIEWERS)]
        for one in some:
            one.next("now")
        answer = Answer(port, "GET", "/events")
        assert (answer.status, "close one" in str(answer.said)) == (503, True)
        assert Answer(port, "GET", "/snapshot").status == 200
        for one in some:
            one.close()


def test_a_server_that_ends_ends_its_streams(caplog: pytest.LogCaptureFixture) -> None:
    """Within a period, not after five seconds; the browser gets the stream's end, and the log no trace."""
    with served(page_router(snapshot, period_s=0.05)) as port:
        watching = Watching(port)
        watching.next("now")
        began = time.monotonic()
    assert time.monotonic() - began < 4
    with closing(watching), pytest.raises(AssertionError, match="the stream ended"):
        watching.next("no such event")
    assert [record.getMessage() for record in caplog.records] == []


def test_a_failing_snapshot_ends_the_streams_and_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    broken = threading.Event()
    good = Scripted(snapshot())

    def snapshots() -> Snapshot:
        if broken.is_set():
            raise RuntimeError("on purpose")
        return good()

    with served(page_router(snapshots, period_s=0.1)) as port, closing(Watching(port)) as one:
        one.next("now")
        broken.set()
        with pytest.raises(AssertionError, match="ended"):
            one.next("nothing of this name")
        broken.clear()
        with closing(Watching(port)) as again:
            again.next("now")
    assert "on purpose" in caplog.text


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"origin": "SELF", "sec_fetch_site": "same-origin"}, 200),
        ({"x-sparkmirror-page": ""}, 403),
        ({"origin": "http://evil.example"}, 403),
        ({"sec_fetch_site": "cross-site"}, 403),
        ({"sec_fetch_site": "same-site"}, 403),
        ({"host": "evil.example", "origin": "http://evil.example", "sec_fetch_site": "same-origin"}, 403),
        ({"x_forwarded_for": "10.0.0.1"}, 403),
    ],
)
def test_who_may_act_on_loopback(headers: dict[str, str], status: int) -> None:
    heard = Heard()
    with served(page_router(snapshot, heard)) as port:
        given = {name: value.replace("SELF", f"http://127.0.0.1:{port}") for name, value in headers.items()}
        answer = Answer(port, "POST", "/actions/pause", {"flow": "A->B", "topics": ["a"]}, **{**OURS, **given})
        assert answer.status == status
    assert heard.told == ([("pause", "A->B", "a")] if status == 200 else [])


def test_who_may_act_is_the_callers_word() -> None:
    def signed_in(request: Request) -> bool:
        return request.headers.get("authorization") == "ok"

    with served(page_router(snapshot, Heard(), signed_in)) as port:
        body = {"flow": "A->B", "bytes_per_s": 500.0, "backfill": None}
        assert Answer(port, "POST", "/actions/throttle", body, **OURS).status == 403
        assert Answer(port, "POST", "/actions/throttle", body, **OURS, authorization="ok").said == {"said": "throttled"}
        assert Answer(port, "POST", "/actions/throttle", body, authorization="ok").status == 403


@pytest.mark.parametrize(
    ("action", "body", "status", "words"),
    [
        ("pause", {"flow": "X->Y", "topics": ["a"]}, 400, "flow: X->Y: no such flow"),
        ("pause", {"topics": ["a"]}, 400, "flow: Field required"),
        ("pause", {"flow": "A->B", "topics": "a"}, 400, "topics: "),
        ("pause", {"flow": "A->B", "topics": ["a"] * 101}, 400, "topics: "),
        ("pause", [], 400, "body: "),
        ("pause", {"flow": "A->B", "topics": ["a" * 70_000]}, 413, "more than"),
        ("resume", {"flow": "A->B"}, 503, "B can't be reached"),
        ("throttle", {"flow": "A->B", "bytes_per_s": -1}, 400, "bytes_per_s: "),
        ("throttle", {"flow": "A->B", "bytes_per_s": 1, "backfil": 1}, 400, "backfil: "),
        ("throttle", {"flow": "A->B"}, 400, "bytes_per_s: Field required"),
    ],
)
def test_wrong_actions_are_told_in_one_line(action: str, body: object, status: int, words: str) -> None:
    with served(page_router(snapshot, Heard())) as port:
        answer = Answer(port, "POST", f"/actions/{action}", body, **OURS)
        detail = answer.said["detail"]  # type: ignore[index]
        assert (answer.status, words in detail, "\n" in detail) == (status, True, False)


def test_what_a_second_costs_with_10_000_partitions() -> None:
    """Idle partitions send nothing; where all move, a message is bounded."""
    sizes: list[int] = []

    def many(lag: int) -> Snapshot:
        topics = tuple(
            topic(f"topic-{name:04}", *(partition(number, lag=lag, records_per_s=lag) for number in range(10)))
            for name in range(1000)
        )
        return snapshot(flow(topics=topics, groups=()))

    source = Scripted(many(1))
    watched = "kind=partitions&flow=A-%3EB"
    with served(page_router(source, period_s=0.3)) as port, closing(Watching(port, watched)) as one:
        assert len(one.next("rows")["rows"]) == 10_000  # type: ignore[arg-type]
        assert one.next("rows")["rows"] == []
        for lag in range(2, 5):
            source.newest = many(lag)
            now = one.next("now")
            rows = one.next("rows")
            sizes.append(len(json.dumps(now)) + len(json.dumps(rows)))
    assert max(sizes) < 200_000
