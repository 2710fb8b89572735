"""A whole `run` whose source's or target's broker means harm: small all the time, and nothing is copied wrong."""

from __future__ import annotations

import random
import re
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import psutil
import pytest
from broker_between import BrokerBetween
from hostile_broker import Asked, endless, framed
from lab import KafkaCluster
from tests.support import mirror_process as mp
from tests.support.schema_answers import KINDS, Crowded, arrays, filled, schema_of

from sparkmirror.kafka.wire.answer_bounds import ALL_METADATA, BOUNDS, LISTING, MOST_ENTRIES, MOST_PARTITIONS

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.full]

MB = 1 << 20
ABOVE_HONEST_MB = 500
"""Of the driver and of each worker, whatever a broker answers."""
LEAST_S, MOST_S = 3.0, 8.0
"""So long each kind of answer is given; longer if nobody asks."""
HONEST_S = 12.0
"""In it all that a mirror asks again and again is asked."""
RECORDS = 600
LEFT_ALONE = {"Fetch", "Produce", "ApiVersions"}
"""Read by the pump's own code (`tests/pump/test_hostile_broker.py`), or bounded to 128 kB."""


def crowded(name: str, path: tuple[str, ...], text: bytes) -> Callable[[Asked], Iterable[bytes]]:
    """As many entries as the bound allows, or as a listing may have."""
    stated = BOUNDS.get(f"{name}Request")
    bound = ALL_METADATA if name == "Metadata" else stated.fixed if stated is not None else LISTING
    most = MOST_PARTITIONS if name == "Metadata" else MOST_ENTRIES

    def answer(asked: Asked) -> Iterable[bytes]:
        return [framed(asked, Crowded(asked.kind, asked.version, path, text, bound - 64, most - 9).data)]

    return answer


def absurd(seed: int) -> Callable[[Asked], Iterable[bytes]]:
    """Any value in each field: offsets, epochs, error codes, other brokers."""
    choose = random.Random(seed).randint

    def answer(asked: Asked) -> Iterable[bytes]:
        made = filled(asked.kind, asked.version, lambda most: choose(0, most))
        return [framed(asked, bytes(made.encode()))]

    return answer


def harmful(name: str) -> Iterator[tuple[str, Callable[[Asked], Iterable[bytes]]]]:
    """Each kind of harm, with what it is called."""
    for path in arrays(schema_of(KINDS[f"{name}Response"]), KINDS[f"{name}Response"].max_version):
        yield f"crowded {'.'.join(path)}", crowded(name, path, b"")
    yield "endless", lambda asked: endless(asked, LISTING, bytes(65_536))
    yield "announced as 2 GB", lambda asked: endless(asked, 2**31 - 1, bytes(65_536))
    for seed in range(4):
        yield f"absurd {seed}", absurd(seed)


def resident(process: psutil.Process, field: str) -> int:
    """MB, as the kernel says."""
    said = re.search(rf"{field}:\s+(\d+) kB", Path(f"/proc/{process.pid}/status").read_text())
    return int(said[1]) // 1024 if said else 0


def forget_peak(process: psutil.Process) -> None:
    Path(f"/proc/{process.pid}/clear_refs").write_text("5")


def pythons(mirror: mp.MirrorProcess) -> list[psutil.Process]:
    """The driver and what pumps."""
    return [psutil.Process(mirror.process.pid), *mirror.workers()]


@pytest.mark.parametrize("side", ["source", "target"])
def test_a_run_stays_small_whatever_its_brokers_answer(side: str, tmp_path: Path) -> None:
    source = KafkaCluster(tmp_path / "A", proxied=side == "source")
    target = KafkaCluster(tmp_path / "B", proxied=side == "target")
    with source, target:
        for topic in ("old", "new"):
            mp.create_topic(source.direct_servers, topic, 2)
        mp.produce(source.direct_servers, "old", 2, RECORDS)
        (broker,) = (source if side == "source" else target).brokers
        assert broker.proxy is not None
        port = broker.proxy.port
        broker.proxy.close()
        between = BrokerBetween(port, broker.port)
        properties = mp.write_properties(
            tmp_path / "mm2.properties",
            source.bootstrap_servers,
            target.bootstrap_servers,
            "old, new",
            {
                "refresh.groups.interval.seconds": "2",
                "sync.topic.configs.interval.seconds": "2",
                "sync.topic.acls.interval.seconds": "2",
                "sync.group.offsets.enabled": "true",
                "sync.group.offsets.interval.seconds": "2",
                "emit.checkpoints.interval.seconds": "2",
            },
        )
        with mp.MirrorProcess(properties, tmp_path / "mirror.log") as mirror:
            mp.wait_for(
                lambda: sum(mp.end_offsets(target.direct_servers, "A.old", 2)) == RECORDS, 120, "the first records"
            )
            between.asked.clear()
            time.sleep(HONEST_S)
            honest = {process.pid: resident(process, "VmRSS") for process in pythons(mirror)}
            print(f"{side}: honest {honest} MB; asks {dict(between.asked)}")
            for name in sorted(set(between.asked) & {name.removesuffix("Response") for name in KINDS} - LEFT_ALONE):
                for harm, answer in harmful(name):
                    for process in pythons(mirror):
                        forget_peak(process)
                    between.altered.clear()
                    between.answer = lambda asked, name=name, answer=answer: (
                        answer(asked) if asked.name == name else None
                    )  # type: ignore[misc]
                    began = time.monotonic()
                    while not time.monotonic() - began > LEAST_S or not between.altered:
                        if time.monotonic() - began > MOST_S:
                            break
                        time.sleep(0.1)
                    assert mirror.process.poll() is None, f"{name} {harm}"
                    peaks = [resident(process, "VmHWM") for process in pythons(mirror)]
                    print(f"  {name} {harm}: {between.altered[name]} answers, peaks {peaks} MB", flush=True)
                    assert max(peaks) < max(honest.values()) + ABOVE_HONEST_MB, (name, harm)
            between.answer = lambda _: None
            mp.produce(source.direct_servers, "new", 2, RECORDS)
            mp.wait_for(
                lambda: sum(mp.end_offsets(target.direct_servers, "A.new", 2)) == RECORDS, 300, "what came afterwards"
            )
            assert sum(mp.end_offsets(target.direct_servers, "A.old", 2)) == RECORDS
            assert mirror.terminate() == 0
        said = (tmp_path / "mirror.log").read_text()
        assert "Traceback" not in said
        between.close()
