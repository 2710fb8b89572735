"""A checkpoint's files as Spark writes them: Kafka's offsets change, all else stays, and nothing half-done is left."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace, TracebackType
from typing import Any, ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkmirror.config import load_mm2_properties
from sparkmirror.config.model import FlowConfig
from sparkmirror.errors import ClusterUnreachable, ConfigError, NotTranslated
from sparkmirror.frames import passed_over
from sparkmirror.frames import rewrite_checkpoint as rewriting
from sparkmirror.frames.checkpoint_lines import OffsetFile, kafka_line, kafka_positions, with_initial
from sparkmirror.frames.due import CountOrder
from sparkmirror.frames.rewrite_checkpoint import rewrite_checkpoint
from sparkmirror.frames.verify_task import Answer
from sparkmirror.kafka.cluster.range_reader import OffsetBounds
from sparkmirror.mirror.sync.application_translator import Stored, Translation

METADATA = '{"batchWatermarkMs":0,"batchTimestampMs":1796071440912,"conf":{"spark.sql.shuffle.partitions":"200"}}'


class ShiftedOffsets:
    """In the translator's place: copies begin 2 offsets earlier, and end before 1,000."""

    def __enter__(self) -> ShiftedOffsets:
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None: ...

    def translate_each(self, stored: Sequence[Stored]) -> list[Translation]:
        return [
            Translation(f"A.{topic}", partition, max(offset - 2, 0) if offset < 1_000 else None, "not copied yet")
            for topic, partition, offset in stored
        ]

    def passed_over(self, stored: Sequence[Stored]) -> list[OffsetBounds | None]:
        return [None] * len(stored)


@pytest.fixture
def flow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FlowConfig:
    monkeypatch.setattr(rewriting, "translator_of", lambda _: ShiftedOffsets())
    file = tmp_path / "mm2.properties"
    file.write_text(
        "clusters = A, B\nA.bootstrap.servers = a:1\nB.bootstrap.servers = b:1\nA->B.enabled = true\n"
        "A->B.topics = orders, stock\n"
    )
    return load_mm2_properties(str(file)).flows[0]


def put(directory: Path, files: dict[str, str | bytes]) -> Path:
    for name, text in files.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        path.with_name(f".{path.name}.crc").write_bytes(b"crc")
    return directory


def v1(*lines: str) -> str:
    return "\n".join(["v1", METADATA, *lines])


def checkpoint(directory: Path, **offsets: int) -> Path:
    files: dict[str, str | bytes] = {
        "metadata": '{"id":"088153d2"}',
        **{f"offsets/{n}": v1(json.dumps({"orders": {"0": 10 * n, "1": 7}}), "-", "55") for n in range(5)},
        **{f"commits/{n}": 'v1\n{"nextBatchWatermarkMs":0}' for n in range(4)},
        "sources/0/0": b'\0v1\n{"orders":{"0":3,"1":0}}',
        "sources/2/0": b"v1\n1796071437593",
        "state/0/0/1.delta": b"\0\1state",
    }
    put(directory, files)
    (directory / "commits/.4.8df3b579.tmp").write_bytes(b"half")
    return directory


def contents(directory: Path) -> dict[str, bytes]:
    return {str(path.relative_to(directory)): path.read_bytes() for path in directory.rglob("*") if path.is_file()}


def test_kafkas_offsets_change_and_all_else_stays(flow: FlowConfig, tmp_path: Path) -> None:
    before = contents(checkpoint(tmp_path / "ck"))
    done = rewrite_checkpoint(tmp_path / "ck", tmp_path / "new", flow)
    after = contents(tmp_path / "new")
    assert after.pop("offsets/3").decode() == v1('{"A.orders":{"0":28,"1":5}}', "-", "55")
    assert after.pop("offsets/4").decode() == v1('{"A.orders":{"0":38,"1":5}}', "-", "55")
    assert after.pop("sources/0/0") == b'\0v1\n{"A.orders":{"0":1,"1":0}}'
    assert after == {
        name: data
        for name, data in before.items()
        if name not in {"sources/0/.0.crc", "commits/.4.8df3b579.tmp", "sources/0/0"} and "offsets" not in name
    }
    assert contents(tmp_path / "ck") == before, "the checkpoint itself is as it was"
    assert done.planned == (4,), "its batch runs at the target"
    assert [(each.batch, *each.stored, each.translation.offset) for each in done.offsets] == [
        (3, "orders", 0, 30, 28),
        (3, "orders", 1, 7, 5),
        (4, "orders", 0, 40, 38),
        (4, "orders", 1, 7, 5),
    ]
    assert not list(tmp_path.glob("*.unfinished"))


def test_the_newer_format_has_sources_by_number_in_any_order(flow: FlowConfig, tmp_path: Path) -> None:
    text = "\n".join(["v2", METADATA, '1:{"stock":{"0":9}}', '0:{"elsewhere":{"0":4}}'])
    files = {"metadata": "{}", "offsets/0": text, "sources/0/0": 'v1\n{"elsewhere":{"0":0}}'}
    done = rewrite_checkpoint(put(tmp_path / "ck", {**files}), tmp_path / "new", flow)
    after = (tmp_path / "new/offsets/0").read_text()
    assert after == "\n".join(["v2", METADATA, '1:{"A.stock":{"0":7}}', '0:{"elsewhere":{"0":4}}'])
    assert (tmp_path / "new/sources/0/0").read_text() == files["sources/0/0"]
    assert done.left == ("source 0: elsewhere",)


@pytest.mark.parametrize(
    ("commits", "moved"),
    [
        ({}, '{"A.orders": {"0": 7}, "from A.orders": {"0": 3}}'),
        ({"commits/0": "v1\n{}"}, '{"A.orders":{"0":7}}'),
    ],
)
def test_the_first_offsets_of_a_stream_of_ours_move_while_its_batch_is_planned(
    commits: dict[str, str | bytes], moved: str, flow: FlowConfig, tmp_path: Path
) -> None:
    text = v1('{"orders": {"0": 9}, "from orders": {"0": 5}}')
    done = rewrite_checkpoint(
        put(tmp_path / "ck", {"metadata": "{}", "offsets/0": text, **commits}), tmp_path / "new", flow
    )
    assert (tmp_path / "new/offsets/0").read_text() == v1(moved)
    assert [(each.batch, *each.stored) for each in done.offsets] == [(0, "orders", 0, 9)]


def test_each_partition_without_an_exact_offset_is_named_and_nothing_is_written(
    flow: FlowConfig, tmp_path: Path
) -> None:
    late = v1(json.dumps({"orders": {"0": 5, "1": 1_000, "2": 2_000}}))
    directory = put(tmp_path / "ck", {"metadata": "{}", "offsets/0": late})
    with pytest.raises(NotTranslated) as error:
        rewrite_checkpoint(directory, tmp_path / "new", flow)
    assert str(error.value).splitlines() == [
        "batch 0: orders-1 at 1000: not copied yet",
        "batch 0: orders-2 at 2000: not copied yet",
    ]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["ck", "mm2.properties"]


def test_offsets_that_only_old_batches_have_need_no_translation(flow: FlowConfig, tmp_path: Path) -> None:
    lines = {f"offsets/{n}": v1(json.dumps({"orders": {"0": 5_000 if n == 0 else n}})) for n in range(3)}
    rewrite_checkpoint(put(tmp_path / "ck", {"metadata": "{}", **lines}), tmp_path / "new", flow)
    assert sorted(path.name for path in (tmp_path / "new/offsets").iterdir()) == ["1", "2"]


def test_first_offsets_are_of_use_only_until_a_batch_is_committed(flow: FlowConfig, tmp_path: Path) -> None:
    """Later the query's offsets take the place of those that have none at the target."""
    first, end = '{"orders":{"0":3,"1":5000}}', '{"orders":{"0":9,"1":9}}'
    files = {"metadata": "{}", "offsets/0": v1(end, "5"), "sources/0/0": f"\0v1\n{first}"}
    directory = put(tmp_path / "ck", {**files})
    with pytest.raises(NotTranslated) as error:
        rewrite_checkpoint(directory, tmp_path / "new", flow)
    assert str(error.value) == "first offsets: orders-1 at 5000: not copied yet"
    put(directory, {"commits/0": "v1\n{}"})
    done = rewrite_checkpoint(directory, tmp_path / "new", flow)
    assert (tmp_path / "new/sources/0/0").read_bytes() == b'\0v1\n{"A.orders":{"0":7,"1":7}}'
    assert [(each.batch, *each.stored) for each in done.offsets] == [(0, "orders", 0, 9), (0, "orders", 1, 9)]
    put(directory, {"offsets/1": v1(end, "6")})
    rewrite_checkpoint(directory, tmp_path / "planned", flow)
    assert (tmp_path / "planned/sources/0/0").read_bytes() == b'\0v1\n{"A.orders":{"0":7,"1":7}}'
    put(directory, {"offsets/0": v1("-", "5"), "offsets/1": v1("-", "6")})
    with pytest.raises(NotTranslated, match="first offsets: orders-1 at 5000"):  # the source has not begun yet
        rewrite_checkpoint(directory, tmp_path / "waiting", flow)


def test_the_offsets_before_the_newest_committed_ones_need_no_translation(flow: FlowConfig, tmp_path: Path) -> None:
    lines = {f"offsets/{n}": v1(json.dumps({"orders": {"0": 5_000 if n == 1 else n}})) for n in range(3)}
    directory = put(tmp_path / "ck", {"metadata": "{}", **lines, "commits/1": "v1\n{}"})
    with pytest.raises(NotTranslated, match="batch 1: orders-0 at 5000"):  # the planned batch begins there
        rewrite_checkpoint(directory, tmp_path / "new", flow)
    done = rewrite_checkpoint(put(directory, {"commits/2": "v1\n{}"}), tmp_path / "new", flow)
    assert (tmp_path / "new/offsets/1").read_text() == v1('{"A.orders":{"0":0}}')
    assert [(each.batch, *each.stored) for each in done.offsets] == [(2, "orders", 0, 2)]


def test_a_planned_batch_that_reads_nothing_of_a_stream_of_ours_still_does(flow: FlowConfig, tmp_path: Path) -> None:
    """Another source has records for it; the stream repeats its newest end."""
    text = v1('{"orders": {"0": 9}, "from orders": {"0": 5}}')
    files = {"metadata": "{}", "offsets/0": text, "commits/0": "v1\n{}", "offsets/1": text}
    rewrite_checkpoint(put(tmp_path / "ck", {**files}), tmp_path / "new", flow)
    assert (tmp_path / "new/offsets/0").read_text() == (tmp_path / "new/offsets/1").read_text()


class CutCopy(ShiftedOffsets):
    """Copies below 500 are deleted."""

    def translate_each(self, stored: Sequence[Stored]) -> list[Translation]:
        return [Translation(f"A.{topic}", partition, max(offset, 500)) for topic, partition, offset in stored]

    def passed_over(self, stored: Sequence[Stored]) -> list[OffsetBounds | None]:
        return [OffsetBounds(offset, 500) if offset < 500 else None for _, _, offset in stored]


class Source:
    """The source's topics; or it is away."""

    topics_there: ClassVar[dict[str, object]] = {"orders": SimpleNamespace(topic_id=b"s" * 16)}
    away = ""

    @classmethod
    def connect(cls, *_: object) -> Source:
        if cls.away:
            raise ClusterUnreachable(cls.away)
        return cls()

    def __enter__(self) -> Source:
        return self

    def __exit__(self, *_: object) -> None: ...

    def topics(self, names: set[str]) -> dict[str, object]:
        return {name: topic for name, topic in self.topics_there.items() if name in names}


CUT = "A.orders lacks offsets {} to 499 of the source: the target has deleted them, or the flow began after them"


@pytest.fixture
def at_source(monkeypatch: pytest.MonkeyPatch) -> dict[int, Answer]:
    """Return what the source says to counts, by their first offset; it has no record elsewhere."""
    answers: dict[int, Answer] = {}

    def count(order_json: str) -> str:
        order = CountOrder.model_validate_json(order_json)
        assert (order.end, order.log.topic_id, order.target_topic) == (500, (b"s" * 16).hex(), "A.orders")
        return answers.get(order.first, Answer(records=0)).model_dump_json()

    monkeypatch.setattr(passed_over, "ClusterAdmin", Source)
    monkeypatch.setattr(passed_over, "count_records", count)
    monkeypatch.setattr(rewriting, "translator_of", lambda _: CutCopy())
    return answers


def test_records_that_the_copy_lacks_are_not_passed_over(
    flow: FlowConfig, at_source: dict[int, Answer], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = {f"offsets/{n}": v1(json.dumps({"orders": {"0": 100 * n, "1": 700}})) for n in (1, 2)}
    directory = put(tmp_path / "ck", {"metadata": "{}", **lines, "commits/1": "v1\n{}"})

    def refusal() -> list[str]:
        with pytest.raises(NotTranslated) as error:
            rewrite_checkpoint(directory, tmp_path / "new", flow)
        assert not (tmp_path / "new").exists()
        return str(error.value).splitlines()

    at_source[100] = Answer(records=3)
    assert refusal() == [f"batch 1: orders-0 at 100: {CUT.format(100)}"]
    unknown = "; whether the source has records there is not known: "
    at_source[200] = Answer(failed="no answer")
    assert refusal()[1:] == [f"batch 2: orders-0 at 200: {CUT.format(200)}{unknown}no answer"]
    monkeypatch.setattr(Source, "topics_there", {})
    assert refusal()[0] == f"batch 1: orders-0 at 100: {CUT.format(100)}{unknown}cluster A shows no such topic"
    monkeypatch.setattr(Source, "away", "cluster A can't be reached")
    assert refusal()[0] == f"batch 1: orders-0 at 100: {CUT.format(100)}{unknown}cluster A can't be reached"


def test_records_that_the_source_lacks_too_need_no_copy(
    flow: FlowConfig, at_source: dict[int, Answer], tmp_path: Path
) -> None:
    """Nor do those before the place where the query goes on."""
    at_source[100] = Answer(records=3)
    lines = {f"offsets/{n}": v1(json.dumps({"orders": {"0": 100 * n}})) for n in (1, 2)}
    commits = {"commits/1": "v1\n{}", "commits/2": "v1\n{}"}
    done = rewrite_checkpoint(put(tmp_path / "ck", {"metadata": "{}", **lines, **commits}), tmp_path / "new", flow)
    assert [each.translation.offset for each in done.offsets] == [500, 500]


@pytest.mark.parametrize(
    ("files", "told"),
    [
        ({"offsets/0": v1("{}")}, "it is no checkpoint of a streaming query: it has no 'metadata'"),
        ({"metadata": "{}"}, "it has no 'offsets'"),
        ({"metadata": "{}", "offsets/x": "v1"}, "the query has planned no batch yet: start it anywhere"),
        ({"metadata": "{}", "offsets/0": "v3\n{}\n5"}, "offsets/0: it can't be read: its version is 'v3'"),
        ({"metadata": "{}", "offsets/0": "v2\n{}\n5"}, "offsets/0: it can't be read: a line has no source's number"),
        ({"metadata": "{}", "offsets/0": v1("5")}, "no source of the query reads topics that flow A->B copies"),
        (
            {"metadata": "{}", "offsets/0": v1('{"others":{"0":5}}')},
            "no source of the query reads topics that flow A->B copies",
        ),
    ],
)
def test_what_is_no_checkpoint_of_the_flow_is_refused(
    files: dict[str, str | bytes], told: str, flow: FlowConfig, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError) as error:
        rewrite_checkpoint(put(tmp_path / "ck", files), tmp_path / "new", flow)
    assert told in str(error.value)
    assert not (tmp_path / "new").exists()


def test_a_place_that_is_taken_or_unknown_is_refused(flow: FlowConfig, tmp_path: Path) -> None:
    directory = checkpoint(tmp_path / "ck")
    with pytest.raises(ConfigError, match="it is there already: name a new directory"):
        rewrite_checkpoint(directory, tmp_path, flow)
    with pytest.raises(ConfigError, match="PyArrow can't open this address"):
        rewrite_checkpoint("nowhere://bucket/ck", tmp_path / "new", flow)


def test_what_a_file_system_refuses_is_one_line(flow: FlowConfig, tmp_path: Path) -> None:
    """A file stands where the directory would be."""
    place = tmp_path / "mm2.properties/new"
    with pytest.raises(ConfigError, match=f"ck to {place}: can't be copied: .*Not a directory") as error:
        rewrite_checkpoint(checkpoint(tmp_path / "ck"), place, flow)
    assert len(str(error.value).splitlines()) == 1


def test_what_an_attempt_that_died_has_left_is_replaced(flow: FlowConfig, tmp_path: Path) -> None:
    put(tmp_path / "new.unfinished", {"state/9/9/9.delta": b"old"})
    rewrite_checkpoint(checkpoint(tmp_path / "ck"), tmp_path / "new", flow)
    assert not list((tmp_path / "new").rglob("9.delta"))
    assert not (tmp_path / "new.unfinished").exists()


OTHERS = [
    "-",
    "5",
    "",
    "[]",
    "{}",
    '{"logOffset":3}',
    '{"sourceVersion":1,"reservoirId":"a","reservoirVersion":3,"index":-1,"isStartingVersion":false}',
    '{"stream":{"shardId-000000000000":{"iterator":"5"}}}',
    '{"topic":{"0":1.5}}',
    '{"topic":{"0":true}}',
]
"""Lines of other sources: rate, files, Delta, Kinesis, and none that is Kafka's."""


@pytest.mark.parametrize("line", OTHERS)
def test_lines_of_other_sources_are_none_of_kafkas(line: str) -> None:
    assert kafka_positions(line) is None


NAMES = st.text(st.characters(codec="utf-8", exclude_characters="\n"), min_size=1, max_size=9)
LINES = st.dictionaries(NAMES, st.dictionaries(st.integers(0, 99), st.integers(0, 2**63 - 1), min_size=1), min_size=1)


@given(LINES)
def test_a_line_is_read_as_it_is_written(topics: dict[str, dict[int, int]]) -> None:
    stored = [Stored(topic, *row) for topic, partitions in topics.items() for row in partitions.items()]
    line = kafka_line(stored)
    assert kafka_positions(line) == stored
    assert json.loads(line) == {t: {str(p): offset for p, offset in rows.items()} for t, rows in topics.items()}


@given(st.sampled_from(["v1", "v2"]), st.lists(NAMES, max_size=4))
def test_a_file_is_written_as_it_was_read(version: str, texts: list[str]) -> None:
    lines = [f"{number}:{text}" if version == "v2" else text for number, text in enumerate(texts)]
    text = "\n".join([version, METADATA, *lines])
    read: Any = OffsetFile.parsed(text)
    assert read.text() == text
    assert [line.text for line in read.lines] == texts
    assert with_initial(b"\0v1\nx", lambda _: "y") == b"\0v1\ny"
