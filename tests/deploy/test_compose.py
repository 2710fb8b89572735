"""compose.yaml by podman-compose, in a network of its own: records, the page, alerts and every panel's expression.

Images that others publish are played by stand-ins, of Debian's packages and of the demo's Kafka: no registry is asked.
"""

from __future__ import annotations

import json
import os
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from kafka import KafkaConsumer, TopicPartition
from kafka.structs import OffsetAndMetadata
from tests.deploy import container_images as images
from tests.deploy.namespace import Namespace, own_namespace
from tests.deploy.podman import environment, podman
from tests.deploy.programs import python_programs
from tests.support import mirror_process as mp
from tests.support.deployed import DASHBOARDS, panels

from sparkmirror.errors import SparkMirrorError

pytestmark = pytest.mark.full

FILE = images.DOCKER / "compose.yaml"
PRIMARY, BACKUP = "127.0.0.1:19092", "127.0.0.1:29092"
RECORDS = 900


@dataclass(frozen=True)
class Composed:
    """What compose.yaml has started."""

    namespace: Namespace

    def get(self, url: str) -> bytes:
        def asked() -> bytes:
            with urllib.request.urlopen(url, timeout=10) as answer:  # noqa: S310
                content: bytes = answer.read()
                return content

        return self.namespace.ask(asked)

    def answers(self, url: str) -> bool:
        try:
            return bool(self.get(url))
        except OSError:
            return False

    def query(self, expression: str) -> list[Any]:
        parameters = urllib.parse.urlencode({"query": expression})
        found: list[Any] = json.loads(self.get(f"http://127.0.0.1:9090/api/v1/query?{parameters}"))["data"]["result"]
        return found


@pytest.fixture(scope="module")
def composed() -> Iterator[Composed]:
    compose = python_programs("podman-compose==1.6.0") / "podman-compose"
    variables = {
        **environment(),
        "KAFKA_IMAGE": images.kafka_image(images.sparkmirror_image()),
        "SPARKMIRROR_IMAGE": images.sparkmirror_image(),
        "PROMETHEUS_IMAGE": images.prometheus_image(),
        "ALERTMANAGER_IMAGE": images.alertmanager_image(),
        "COMPOSE_PROJECT_NAME": f"sparkmirror-{os.getpid()}",
    }
    command = (compose, "--file", FILE)
    with own_namespace(f"smcompose{os.getpid() % 10000}") as namespace:
        try:
            namespace.run(*command, "up", "--detach", "--no-build", timeout=300, environment=variables)
            yield Composed(namespace)
        except BaseException:
            print(podman("ps", "--all").stdout)
            raise
        finally:
            print(namespace.run(*command, "logs", "--tail=30", timeout=60, environment=variables)[-8000:])
            namespace.run(*command, "down", "--volumes", "--timeout=5", timeout=120, environment=variables)


def test_records_arrive(composed: Composed) -> None:
    def written() -> None:
        mp.create_topic(PRIMARY, "orders", 3)
        mp.produce(PRIMARY, "orders", 3, RECORDS)
        consumer = KafkaConsumer(bootstrap_servers=PRIMARY, group_id="billing")
        consumer.assign([TopicPartition("orders", 0)])
        consumer.commit({TopicPartition("orders", 0): OffsetAndMetadata(5, "", -1)})
        consumer.close()

    mp.wait_for(lambda: composed.namespace.ask(_serves), 120, "the brokers serve")
    composed.namespace.ask(written)
    copied = lambda: sum(mp.end_offsets(BACKUP, "primary.orders", 3))  # noqa: E731
    mp.wait_for(lambda: composed.namespace.ask(copied) == RECORDS, 240, "all is copied")


def test_the_page_answers(composed: Composed) -> None:
    mp.wait_for(lambda: composed.answers("http://127.0.0.1:9404/health"), 60, "the mirror's health")
    page = composed.get("http://127.0.0.1:9404/").decode()
    assert "<title>" in page


def test_prometheus_finds_the_mirror_and_has_the_alerts(composed: Composed) -> None:
    mp.wait_for(lambda: bool(composed.query("sparkmirror_build_info")), 90, "it is scraped")
    found = json.loads(composed.get("http://127.0.0.1:9090/api/v1/rules"))["data"]["groups"]
    alerts = {rule["name"]: rule["state"] for group in found for rule in group["rules"] if rule["type"] == "alerting"}
    assert alerts["FlowNoProgress"] == "inactive"
    managers = json.loads(composed.get("http://127.0.0.1:9090/api/v1/alertmanagers"))["data"]["activeAlertmanagers"]
    assert [urllib.parse.urlparse(one["url"]).port for one in managers] == [9093]
    assert json.loads(composed.get("http://127.0.0.1:9093/api/v2/status"))["config"]["original"]


def test_every_panel_has_numbers(composed: Composed) -> None:
    empty = [(path.stem, *panel) for path in DASHBOARDS for panel in panels(path)]
    assert len(empty) > 50

    def filled() -> bool:
        nonlocal empty
        composed.namespace.ask(lambda: mp.produce(PRIMARY, "orders", 3, 90))
        empty = [one for one in empty if not any(s["value"][1] != "NaN" for s in composed.query(one[2]))]
        time.sleep(2)
        return not empty

    try:
        mp.wait_for(filled, 240, "every panel's expression has numbers")
    except AssertionError:
        pytest.fail(f"nothing for {empty}")


def test_its_files_are_where_it_says() -> None:
    for mounted in (
        "compose/mm2.properties",
        "compose/alertmanager.yml",
        "../grafana/provisioning",
        "../grafana/dashboards",
    ):
        assert f"{mounted}:" in FILE.read_text()
        assert Path(images.DOCKER, mounted).exists()


def _serves() -> bool:
    try:
        return all(sum(mp.end_offsets(servers, "__none", 1)) == 0 for servers in (PRIMARY, BACKUP))
    except (SparkMirrorError, AssertionError):
        return False
