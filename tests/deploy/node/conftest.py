"""One node for all tests in this directory, with images and two Kafka clusters; it is gone after the last test."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from tests.deploy.container_images import KAFKA, kafka_image, relabelled
from tests.deploy.node.kube_node import KubeNode, kube_node
from tests.deploy.node.node_brokers import Brokers, brokers

CLUSTERS = "kafka"


@pytest.fixture(scope="package")
def node(tmp_path_factory: pytest.TempPathFactory, image: str) -> Iterator[KubeNode]:
    began = time.monotonic()
    with kube_node(tmp_path_factory.mktemp("node")) as running:
        print(f"node: ready {time.monotonic() - began:.1f} s after it was begun")
        began = time.monotonic()
        running.import_images(image, relabelled(image, "next"), kafka_image(image))
        print(f"node: images imported in {time.monotonic() - began:.1f} s")
        yield running


@pytest.fixture(scope="package")
def clusters(node: KubeNode) -> Iterator[Brokers]:
    node.create_namespace(CLUSTERS)
    with brokers(node, KAFKA, CLUSTERS) as made:
        yield made
