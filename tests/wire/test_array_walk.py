"""The compiled walk next to the walk in Python: the same records, runs and errors, whatever the bytes."""

from __future__ import annotations

import fcntl
import os
import random
import struct
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest
from altered import NOW, Numbers, altered_batches, batch, record
from crc32c import crc32c
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.support.bombs import ZSTD, bomb
from tests.support.built import Content, contents, source_batches

from sparkmirror.kafka.wire import walk_loading
from sparkmirror.kafka.wire.batches import HEADER_SIZE, BatchHeader, batch_headers
from sparkmirror.kafka.wire.codecs import Codec
from sparkmirror.kafka.wire.joined import LoneRecords
from sparkmirror.kafka.wire.joining import joined_lone_records
from sparkmirror.kafka.wire.pieces import raw_parts
from sparkmirror.kafka.wire.records import NotAtOnce, Records, lone_head
from sparkmirror.kafka.wire.splice import RecordTooLarge, Spliced, splice
from sparkmirror.kafka.wire.varints import written, zigzag
from sparkmirror.kafka.wire.walk_loading import WALK, WalkLoading

pytest.importorskip("numba")

FUZZ = int(os.environ.get("SPARKMIRROR_FUZZ", "80"))
FEW, MANY = 4_000, 1_000_000
TINY = 4096
brief = settings(max_examples=FUZZ, suppress_health_check=[HealthCheck.too_slow], deadline=None)

Batches = Sequence[tuple[BatchHeader, memoryview]]


@pytest.fixture(scope="module", autouse=True)
def _loaded() -> Iterator[None]:
    """Compiled code goes over single records, too."""
    WALK.load()
    few, walk_loading.FEW_RECORDS = walk_loading.FEW_RECORDS, 0
    yield
    walk_loading.FEW_RECORDS, WALK.ready = few, False


@contextmanager
def walked_by(*, compiled: bool) -> Iterator[None]:
    WALK.ready = compiled
    try:
        yield
    finally:
        WALK.ready = True


def outcome(call: Callable[[], object]) -> object:
    """What it returns, or how it fails."""
    try:
        return call()
    except (ValueError, NotAtOnce, RecordTooLarge) as error:
        return type(error), str(error)


def read(batches: Batches) -> list[object]:
    """The records that Python finds, as comparable values."""
    found = Records()
    for header, view in batches:
        found.add(header, view)
    return [found.offsets, found.timestamps, found.attributes, found.bodies, found.unpacked]


def spliced(batches: Batches, from_offset: int, codec: Codec | None, max_records: int | None) -> list[object]:
    """New batches as comparable values: what they say of themselves, and the records in them."""
    made = splice(batches, from_offset=from_offset, codec=codec, max_records=max_records)
    with walked_by(compiled=False):
        return [_parts(one) for one in made]


def _parts(made: Spliced) -> object:
    data = memoryview(made.data)
    ((_, header),) = batch_headers(data)
    return (
        header._replace(length=0),
        read([(header, data)]),
        made.runs,
        made.count,
        made.base_timestamp,
        made.max_timestamp,
        made.next_upstream,
        made.leader_epoch,
        made.codec,
    )


def both(call: Callable[[], object]) -> object:
    """What comes of it, which must be the same either way."""
    with walked_by(compiled=False):
        expected = outcome(call)
    assert outcome(call) == expected
    return expected


@brief
@given(
    contents(), st.sampled_from((None, *map(Codec, range(5)), Codec(4, 1))), st.none() | st.integers(1, 20), st.data()
)
def test_batches_of_every_kind(
    source: list[Content], codec: Codec | None, most: int | None, data: st.DataObject
) -> None:
    batches = source_batches(source)
    first, end = batches[0][0].base_offset, source[-1].next_offset
    from_offset = data.draw(st.sampled_from((0, first)) | st.integers(max(first - 2, 0), end + 2))
    both(lambda: spliced(batches, from_offset, codec, most))
    for one in batches:
        both(lambda one=one: read([one]))  # type: ignore[misc]


def compare_altered(seed: int, most: int) -> float:
    """Let both walks loose on so many altered batches; return the share of the logs that were read."""
    source = random.Random(seed)
    logs = sound = count = 0
    while count < most:
        batches = altered_batches(source)
        if not batches:
            continue
        from_offset = source.choice((0, 0, batches[0][0].base_offset + source.randrange(5)))
        result = both(lambda: spliced(batches, from_offset, Codec(0), None))  # noqa: B023
        both(lambda: read(batches))  # noqa: B023
        log = memoryview(b"".join(bytes(view) for _, view in batches))
        both(lambda: lone_parts(joined_lone_records(log, from_offset, TINY)))  # noqa: B023
        sound += isinstance(result, list)
        logs += 1
        count += len(batches)
    return sound / logs


def test_altered_batches() -> None:
    assert 0.2 < compare_altered(0, FEW) < 0.8, "both sound ones and damaged ones"


@pytest.mark.full
@pytest.mark.parametrize("seed", range(1, 5))
def test_a_million_altered_batches(seed: int) -> None:
    assert 0.2 < compare_altered(seed, MANY // 4) < 0.8


def lone_parts(lone: LoneRecords | None) -> object:
    """Joined lone records as comparable values."""
    if lone is None:
        return None
    return b"".join(map(bytes, lone.joined.parts)), lone._replace(joined=lone.joined._replace(parts=()))


def lone(offset: int, body: bytes, stamp: int = NOW, **others: int) -> bytes:
    return batch(offset, record(Numbers(0, 0, 0, body)), 1, 0, base_timestamp=stamp, max_timestamp=stamp, **others)


@pytest.mark.parametrize("seed", range(20))
def test_runs_of_lone_records(seed: int) -> None:
    """Each is changed at some place, or none is; and what follows is left."""
    source = random.Random(seed)
    for _ in range(40):
        offset, log = 7, []
        for _ in range(source.randrange(1, 30)):
            offset += 1 + source.choice((0, 0, 0, 5))
            stamp = source.choice((NOW, NOW, NOW + source.randrange(1 << 40), source.randrange(-(1 << 63), 1 << 63)))
            if source.random() < 0.9:
                stamp = NOW
            log.append(bytearray(lone(offset, source.randbytes(source.choice((0, 3, 56, 57, 58, 200, 4000))), stamp)))
        if source.random() < 0.7:
            changed = log[source.randrange(len(log))]
            changed[source.randrange(len(changed))] ^= 1 << source.randrange(8)
            if source.random() < 0.8:
                struct.pack_into(">I", changed, 17, crc32c(changed[21:]))
        data = bytearray(b"".join(log))
        del data[len(data) - source.choice((0, 0, 1, 60, 70)) :]
        for upstream in (0, 8, 9):
            both(lambda upstream=upstream: lone_parts(joined_lone_records(memoryview(data), upstream, TINY)))  # type: ignore[misc]  # noqa: B023


def test_a_lone_record_of_a_length_that_no_record_has() -> None:
    """A length of 63 takes one byte, and one of 64 takes two: no record fills 65 bytes."""
    for size in (65, 3 + 8192):
        assert not (bytes(size) + b"\0").startswith(lone_head(size)[: size + 1]) or len(lone_head(size)) > size
        data = batch(5, bytes(size), 1, 0)
        assert both(lambda data=data: lone_parts(joined_lone_records(memoryview(data), 0, 1 << 20))) is None  # type: ignore[misc]
        ((_, header),) = batch_headers(memoryview(data))
        assert isinstance(both(lambda header=header, data=data: read([(header, memoryview(data))])), tuple)  # type: ignore[misc]


NINE_BYTES = b"\xff" * 8 + b"\x7f"
STRANGE = {
    "a length of ten bytes": b"\xff" * 9 + b"\x01" + b"\0" * 20,
    "a length of eleven bytes": b"\xff" * 10 + b"\x01" + b"\0" * 20,
    "a length of nine bytes": NINE_BYTES + b"\0" * 20,
    "an odd length": b"\x0d\0\0\0\x01\x01\0",
    "a length of 0": b"\0\0\0\0\x01\x01\0",
    "a record that ends in its timestamp": b"\x04\0\x80\x80\0\0\0\0",
    "a record that ends in its offset": b"\x06\0\0\x80\0\0\0\0",
    "a timestamp of nine bytes": b"\x1c\0" + NINE_BYTES + b"\0\x01\x01\0",
    "an offset of nine bytes": b"\x1c\0\0" + NINE_BYTES + b"\x01\x01\0",
    "an odd offset": b"\x0c\0\0\x01\x01\x01\0",
    "more bytes than it has": b"\x7e\0\0\0\x01\x01\0",
    "a number in more bytes than needed": b"\x8e\0\0\0\0\x01\x01\0",
    "nothing": b"",
    "records without a body": b"\x06\0\0\x14" * 11,
}


@pytest.mark.parametrize("what", STRANGE)
def test_strange_numbers(what: str) -> None:
    for before in (b"", record(Numbers(0, 0, 0, b"\x01\x01\0")) * 9):
        data = memoryview(batch(3, before + STRANGE[what], 1 + bool(before) * 9, 20))
        ((_, header),) = batch_headers(data)
        both(lambda header=header, data=data: read([(header, data)]))  # type: ignore[misc]
        both(lambda header=header, data=data: spliced([(header, data)], 0, Codec(0), None))  # type: ignore[misc]


def test_records_without_a_body_with_gaps() -> None:
    """The smallest records that there can be, a run each: what room there is for them is enough."""
    section = b"".join(record(Numbers(0, 0, 2 * at, b"")) for at in range(300))
    data = memoryview(batch(0, section, 300, 600))
    ((_, header),) = batch_headers(data)
    assert isinstance(both(lambda: spliced([(header, data)], 0, Codec(0), None)), list)
    assert isinstance(both(lambda: read([(header, data)])), list)


def test_a_batch_that_goes_back_below_the_start() -> None:
    """Its record is not wanted, but its place is wrong all the same."""
    first = batch(50, record(Numbers(0, 0, 0, b"\x01\x01\0")) + record(Numbers(0, 0, 1, b"\x01\x01\0")), 2, 1)
    log = memoryview(first + batch(50, record(Numbers(0, 0, 0, b"\x01\x01\0")), 1, 3))
    batches = [(header, log[position : position + header.size]) for position, header in batch_headers(log)]
    refused = both(lambda: spliced(batches, 51, Codec(0), None))
    assert refused == (ValueError, "the batch at offset 50 can't be read: offset 50 follows 51")


def test_a_batch_of_several_pieces() -> None:
    section = b"".join(record(Numbers(0, at % 100, at, b"\x01\x01\0")) for at in range(70_000))
    data = memoryview(batch(0, section, 70_000, 69_999))
    ((_, header),) = batch_headers(data)
    found = both(lambda: list(raw_parts(header, data)))
    assert isinstance(found, list)
    assert [offset for offset, _, _ in found] == list(range(70_000))


def test_single_records_are_left_to_python(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(walk_loading, "FEW_RECORDS", 8)
    assert [WALK.serves(records) for records in (0, 7, 8, 1000)] == [False, False, True, True]


def test_loading_begins_after_so_many_records_and_only_once() -> None:
    begun, go_on = threading.Event(), threading.Event()
    loads: list[None] = []

    def load() -> None:
        begun.set()
        go_on.wait(10)
        loads.append(None)

    walk = WalkLoading(load, 100)
    walk.walked(60)
    walk.walked(39)
    assert not walk.serves(1000)
    assert not begun.is_set(), "what is only asked for does not count"
    walk.walked(1)
    assert begun.wait(10)
    assert not walk.serves(1000), "Python continues meanwhile"
    go_on.set()
    for thread in threading.enumerate():
        if thread.name == "load the compiled walk":
            thread.join(10)
    assert walk.serves(1000)
    assert loads == [None]


def test_processes_load_one_after_another(tmp_path: Path) -> None:
    """The lock is the kernel's and belongs to an open file, so two opens of one process stand for two processes."""
    file, loads = tmp_path / "kernels.py", threading.Event()
    file.touch()
    walk = WalkLoading(loads.set, 1, file)
    with file.open("rb") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        walk.walked(1)
        assert not loads.wait(0.3), "another process compiles"
    assert loads.wait(10)


def test_loading_does_not_wait_for_a_process_that_hangs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(walk_loading, "TURN_S", 0.2)
    file, loads = tmp_path / "kernels.py", threading.Event()
    file.touch()
    with file.open("rb") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        WalkLoading(loads.set, 1, file).walked(1)
        assert loads.wait(10)


def test_loading_continues_where_the_file_is_packed(tmp_path: Path) -> None:
    loads = threading.Event()
    WalkLoading(loads.set, 1, tmp_path / "packed.zip" / "kernels.py").walked(1)
    assert loads.wait(10)


def test_what_can_not_be_loaded_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    def load() -> None:
        raise OSError("no such instruction")

    walk = WalkLoading(load, 1)
    walk.walked(5)
    for thread in threading.enumerate():
        if thread.name == "load the compiled walk":
            thread.join(10)
    assert not walk.serves(1000)
    assert not walk.ready
    assert ["walked in Python: no such instruction" in line for line in caplog.messages] == [True]


def test_records_that_are_only_announced_do_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch that unpacks to hundreds of megabytes is met again with each piece."""
    counted: list[int] = []
    monkeypatch.setattr(WALK, "walked", counted.append)
    with walked_by(compiled=False):
        for sizes, walked in ([1 << 20] * 40, 0), ([100] * 40, 40):
            view = memoryview(bomb(ZSTD, sizes))
            batches = [(header, view) for _, header in batch_headers(view)]
            assert outcome(partial(splice, batches, from_offset=1, codec=Codec(1)))
            assert sum(counted) == walked


PROGRAM = """
import sys
from sparkmirror.kafka.wire.walk_loading import WALK
sys.modules["numba"] = None if sys.argv[1] == "missing" else sys.modules.get("numba")
assert "numpy" not in sys.modules or sys.argv[1] == "read-only"
if sys.argv[1] == "missing":
    try:
        WALK.load()
    except ImportError:
        print("missing")
else:
    del sys.modules["numba"]
    WALK.load()
    print(WALK.ready)
"""


@pytest.mark.parametrize(("what", "said"), [("missing", "missing"), ("read-only", "True")])
def test_without_numba_and_without_a_place_for_its_cache(what: str, said: str, tmp_path: Path) -> None:
    """Where no directory can be written to, each process compiles for itself."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": "/proc/none", "HOME": "/proc/none"}
    environment.pop("XDG_CACHE_HOME", None)
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, what], capture_output=True, text=True, check=False, env=environment, timeout=300
    )
    assert (done.stdout.strip(), done.returncode) == (said, 0), done.stderr


def test_numbers_beyond_63_bits_are_not_read_as_others() -> None:
    assert len(written(zigzag(-(1 << 63)))) == 10
    assert HEADER_SIZE == 61
