"""A real Connect worker and ours, asked the same: `python -m tests.connect.compare > docs/connect_rest.md`.

What stays different is listed in `STATED`, with the reason; anything else is an error of ours.
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

from kafka import KafkaProducer
from kafka.admin import KafkaAdminClient, NewTopic
from tests.connect.rest_cases import Case, rest_cases
from tests.connect.serving import serving, worker_settings
from tests.connect.side_by_side import Answer, answers

from sparkmirror.demo import KafkaCluster, RealConnectWorker
from sparkmirror.demo.jvm import QUICK_START
from sparkmirror.demo.ports import free_ports

_UNREADABLE = "refused in sparkmirror's words, not in Java's; a real worker fails with 500 for the client's mistake"
_REFUSED = "refused with the same words; a real worker fails with 500 for the client's mistake"
_NO_NAME = "same status; a real worker's server refuses the path before Connect sees it, and answers with a page"
_OVERRIDES = "settings of the producer, `producer.override.`, are not listed: only settings that have an effect are"
_HIDDEN = "secrets are shown as `[hidden]`; a request that sends this back keeps the stored secret"
STATED = {
    "all plug-ins": "only plug-ins that sparkmirror has: the three connectors, and the converter of bytes",
    "validate a transformation": "an error, because records are copied unchanged",
    "validate a producer's override": _OVERRIDES,
    "validate with a converter's version 4.3.1": "a converter's own settings are not listed: it has none here",
    "a configuration with a password": _HIDDEN,
    "change it, with a password": _HIDDEN,
    "pause none, with a body of no content type": "refused: every body needs a content type",
    "restart for another origin's page": "refused: no page of another origin changes anything here",
    **dict.fromkeys(
        ["validate a reference", "PUT a reference"],
        "the reference to a config provider is shown, not its value",
    ),
    "status of a name with a slash": "it is looked for; a real worker's server refuses every path with `%2F`",
    "patch another name": "refused, as a PUT of another name is: the connector keeps its own",
    **dict.fromkeys(
        [
            "validate no JSON",
            "create without a configuration",
            "create with an unknown field",
            "create with a list for a name",
            "create with an unknown initial state",
            "create from what is no JSON",
            "create from nothing",
            "PUT what is no JSON",
            "PUT a list",
            "alter with what is no JSON",
            "create from 200,000 brackets",
            "create from a nested configuration",
            "create from infinity",
        ],
        _UNREADABLE,
    ),
    **dict.fromkeys(
        [
            "validate with the connector's version [1.0",
            "validate without a class",
            "validate an unknown class",
            "alter without a partition's cluster",
            "alter with a topic that is a number",
            "alter a partition that is text",
            "alter a negative partition",
            "alter to a negative offset",
            "alter to text",
            "alter without an offset",
            "alter no partition",
            "alter a checkpoint's offset to another",
            "alter a checkpoint's offset without a group",
        ],
        _REFUSED,
    ),
    **dict.fromkeys(
        [
            "create a name with a line's end",
            "create a name with a line's end at its end",
            "create a name with a NUL",
            "create a name with an escape",
        ],
        _NO_NAME,
    ),
}
"""By case: what is different, and why it stays so."""

_PROVIDERS = {
    "config.providers": "env",
    "config.providers.env.class": "org.apache.kafka.common.config.provider.EnvVarConfigProvider",
}
_START_S = 120.0

_HEAD = """\
# Kafka Connect's REST interface, beside a real worker

This page is made by `python -m tests.connect.compare > docs/connect_rest.md`, which starts a real Connect 4.3.1
worker and sparkmirror's worker, and sends the same requests to both. sparkmirror's worker copies nothing, because this
page is about the interface ([connect.md](connect.md)). The comparison covers the status, the headers `Content-Type`,
`Location`, `Allow` and `WWW-Authenticate`, and the JSON. It leaves out the settings' documentation, commit and cluster
ids, and the order of lists, which has no meaning. If the answer depends on the state of the work, only the parts that
must be equal are compared.

Connect answers 500 to a request that can't be read or makes no sense. sparkmirror answers 400, so that a 5xx always
means a fault of the server or its cluster. These further differences of a worker that copies are not in the table:

- a status has a `trace` with the reason even if the state is not FAILED: settings of a flow's connectors that
  disagree, a connector that waits for another connector;
- PATCH of offsets is refused with 400 for an offset that the source does not have yet, and for a partition that is
  not at the target yet; Connect takes any number;
- a second connector of a pair is FAILED, or has nothing to do, until the first connector goes; Connect runs
  both ([connectors.md](connectors.md#conflicting-connectors));
- Python classes are loaded only if the worker's file lists them, and a connector may not declare config providers of
  its own; the same holds for token servers, and for files if the file lists some: all are answered with 400
  ([connect.md](connect.md#limits-for-those-who-put-connectors));
- what a browser sends for a page of another origin is answered with 403 ([connect.md](connect.md#browsers)); Connect
  restarts a connector for it;
- if two requests wait for the clusters of a connector, a third one for its offsets is answered with 503; while offsets
  are altered, changes of connectors are stored and answered at once, and have their effect at the end;
- only 100 names that no logger has can be given a level in a process: others are answered with 400;
- a body of more than 1,048,576 bytes is answered with 413.
"""


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


def page(compared: list[Compared]) -> str:
    """`docs/connect_rest.md`."""
    equal = sum(one.same for one in compared)
    lines = [
        _HEAD,
        f"{len(compared)} requests, sent to both in this order; {equal} answers are equal: status, headers and body.",
        "",
        "| what | request | status | answer |",
        "|---|---|---|---|",
    ]
    for one in compared:
        said = "same" if one.same else f"**differs**: {STATED.get(one.case.name, 'NOT STATED')}"
        path = one.case.path.replace("org.apache.kafka.connect.mirror.", "…").replace("|", "\\|")
        status = (
            str(one.ours.status) if one.ours.status == one.real.status else f"{one.ours.status}, not {one.real.status}"
        )
        lines.append(f"| {one.case.name} | `{one.case.method} {path}` | {status} | {said} |")
    return "\n".join(lines) + "\n"


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


def not_stated(compared: list[Compared], stated: Mapping[str, str] = STATED) -> list[Compared]:
    """What differs though it should not, and what no longer differs."""
    return [one for one in compared if one.same == (one.case.name in stated)]


def main() -> int:
    """Write the table; 1 if something differs that isn't stated."""
    with TemporaryDirectory() as directory:
        root = Path(directory)
        with KafkaCluster(root / "source") as source, KafkaCluster(root / "target") as target:
            compared = compare(source, target, root)
    print(page(compared))
    return 1 if not_stated(compared) else 0


if __name__ == "__main__":
    sys.exit(main())
