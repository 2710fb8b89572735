"""A real Connect worker and ours, asked the same: `python -m tests.connect.compare`.

It rewrites `rest_answers.tsv`. `docs/connect.md` lists the reasons of the differences; anything else that differs is
an error of ours.
"""

from __future__ import annotations

import sys
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from kafka import KafkaProducer
from kafka.admin import KafkaAdminClient, NewTopic
from lab import KafkaCluster, RealConnectWorker
from tests.connect.serving import serving, worker_settings
from tests.connect.side_by_side import Answer, answers
from tests.support.rest_cases import Case, rest_cases

from sparkmirror.demo.jvm import QUICK_START
from sparkmirror.demo.ports import free_ports

RECORDED = Path(__file__).with_name("rest_answers.tsv")
"""Each case with both statuses, and the reason of a difference that stays; no reason: the answers are equal."""

_PROVIDERS = {
    "config.providers": "env",
    "config.providers.env.class": "org.apache.kafka.common.config.provider.EnvVarConfigProvider",
}
_START_S = 120.0


class Row(NamedTuple):
    """One line of `rest_answers.tsv`."""

    case: str
    request: str
    ours: str
    real: str
    reason: str


_NAMES = Row(case="case", request="request", ours="sparkmirror", real="Connect", reason="difference")


def recorded() -> list[Row]:
    """The rows as they were last written."""
    lines = RECORDED.read_text("utf-8").splitlines()[1:]
    return [Row(*line.split("\t")) for line in lines]


def reasons() -> dict[str, str]:
    """Why an answer stays different, by the case's name."""
    return {row.case: row.reason for row in recorded() if row.reason}


@dataclass(frozen=True)
class Compared:
    """One case, and what both answered."""

    case: Case
    real: Answer
    ours: Answer

    @property
    def same(self) -> bool:
        """Whether status, headers and body are."""
        return self.real == self.ours


def compare(source: KafkaCluster, target: KafkaCluster, directory: Path) -> list[Compared]:
    """Ask both, at the same time; `directory` keeps their files."""
    _prepare(source)
    cases = rest_cases(source.bootstrap_servers, target.bootstrap_servers)
    port = free_ports(1)[0]
    settings = worker_settings(
        target.bootstrap_servers, f"real-{port}", port, **{"rest.advertised.host.name": "127.0.0.1"}, **_PROVIDERS
    )
    real = RealConnectWorker(settings, directory / "real", jvm_options=QUICK_START)
    directory.joinpath("ours").mkdir(parents=True, exist_ok=True)
    with (
        real,
        serving(
            directory / "ours", target.bootstrap_servers, f"ours-{port}", secure=False, users=None, **_PROVIDERS
        ) as (url, _),
    ):
        urls = (f"http://127.0.0.1:{port}", url)
        for one in urls:
            _wait_until_it_works(one)
        with ThreadPoolExecutor(len(urls)) as pool:
            theirs, ours = pool.map(lambda one: answers(one, cases), urls)
    return [Compared(case, theirs[case.name], ours[case.name]) for case in cases]


def rows(compared: list[Compared]) -> list[Row]:
    """The table's rows; a difference keeps its reason, and a new one is `NOT STATED`."""
    known = reasons()
    return [
        Row(
            case=one.case.name,
            request=f"{one.case.method} {one.case.path}",
            ours=str(one.ours.status),
            real=str(one.real.status),
            reason="" if one.same else known.get(one.case.name, "NOT STATED"),
        )
        for one in compared
    ]


def _prepare(source: KafkaCluster) -> None:
    """A topic with records to copy."""
    admin = KafkaAdminClient(bootstrap_servers=source.bootstrap_servers)
    admin.create_topics([NewTopic("compared", num_partitions=2, replication_factor=1)])
    admin.close()
    producer = KafkaProducer(bootstrap_servers=source.bootstrap_servers)
    for number in range(20):
        producer.send("compared", b"%d" % number, partition=number % 2)
    producer.close()


def _wait_until_it_works(url: str) -> None:
    """A connector that isn't there is answered with 404 as soon as somebody leads."""
    deadline = time.monotonic() + _START_S
    while True:
        request = urllib.request.Request(url + "/connectors/none/offsets", method="DELETE")  # noqa: S310
        try:
            urllib.request.urlopen(request, timeout=_START_S)  # noqa: S310
        except urllib.error.HTTPError as error:
            if b"error_code" in error.read() and error.code == 404:
                return
        if time.monotonic() > deadline:
            raise TimeoutError(f"{url} has no leader after {_START_S:.0f} s")
        time.sleep(0.5)


def not_stated(compared: list[Compared], stated: Mapping[str, str]) -> list[Compared]:
    """What differs though it should not, and what no longer differs."""
    return [one for one in compared if one.same == (one.case.name in stated)]


def main() -> int:
    """Write the table; 1 if a difference has no reason yet."""
    with TemporaryDirectory() as directory:
        root = Path(directory)
        with KafkaCluster(root / "source") as source, KafkaCluster(root / "target") as target:
            compared = compare(source, target, root)
    wrong = not_stated(compared, reasons())
    RECORDED.write_text("".join("\t".join(row) + "\n" for row in (_NAMES, *rows(compared))), "utf-8")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
