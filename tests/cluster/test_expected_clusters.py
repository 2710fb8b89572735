"""Names that lead to another cluster than the flow's: every new connection tells, before anything goes over it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pytest
from hostile_broker import Asked, HostileBroker, honest

from sparkmirror.config import ClusterConfig, FlowConfig
from sparkmirror.errors import AnotherCluster
from sparkmirror.kafka.cluster.admin import ClusterAdmin
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.cluster.expected_clusters import EXPECTED, AnotherClustersBroker


@pytest.fixture
def broker() -> Iterator[HostileBroker]:
    """Of the cluster `hostile`, as it says when it answers honestly."""
    made = HostileBroker()
    yield made
    made.close()


def flow_from(*brokers: HostileBroker, to: HostileBroker | None = None) -> FlowConfig:
    def cluster(alias: str, listed: Iterable[HostileBroker]) -> ClusterConfig:
        return ClusterConfig(alias=alias, bootstrap_servers=tuple(f"127.0.0.1:{each.port}" for each in listed))

    return FlowConfig(source=cluster("A", brokers), target=cluster("B", [to or brokers[0]]))


def is_of(cluster_id: str | None, asked: Asked) -> list[bytes] | None:
    """Metadata of another cluster at the same address."""
    return [honest(asked, cluster_id)] if asked.name == "Metadata" else None


def test_a_connection_to_the_expected_cluster_serves(broker: HostileBroker) -> None:
    flow = flow_from(broker)
    EXPECTED.expect(broker, flow, source="hostile", target="hostile")
    client = ClusterClient(flow.source, "test")
    client.metadata([])
    client.dial(1).close()
    assert EXPECTED.wrong(flow) == ""


@pytest.mark.parametrize("answers", ["another", "", None])
def test_nothing_is_asked_over_a_connection_to_another_cluster(broker: HostileBroker, answers: str | None) -> None:
    """As when a name is switched while the mirror runs: the addresses are known, and the connection is new."""
    flow = flow_from(broker)
    client = ClusterClient(flow.source, "test")
    client.metadata([])
    EXPECTED.expect(broker, flow, source="hostile")
    broker.answer = lambda asked: is_of(answers, asked)
    broker.asked.clear()
    with pytest.raises(AnotherClustersBroker, match="A leads to another cluster: flow A->B is with cluster hostile"):
        client.dial(1)
    assert broker.asked == ["Metadata"]
    with pytest.raises(AnotherCluster, match=rf"127.0.0.1:{broker.port} is of cluster {answers or 'without an id'};"):
        client.metadata([])
    with pytest.raises(AnotherCluster):
        ClusterAdmin.connect(flow.source, "test", 5.0)
    assert "A leads to another cluster" in EXPECTED.wrong(flow)
    broker.answer = lambda _: None
    client.metadata([])
    assert EXPECTED.wrong(flow) == "", "the name leads back"


def test_a_name_among_several_that_leads_elsewhere_is_passed_over(broker: HostileBroker) -> None:
    other = HostileBroker(lambda asked: is_of("another", asked))
    flow = flow_from(other, broker)
    EXPECTED.expect(broker, flow, source="hostile")
    client = ClusterClient(flow.source, "test")
    client.metadata([])
    assert client.cluster_id == "hostile"
    other.close()


def test_flows_that_disagree_about_an_address_are_not_served(broker: HostileBroker) -> None:
    first, second = flow_from(broker), flow_from(broker)
    second = second.model_copy(update={"target": second.target.model_copy(update={"alias": "C"})})
    parts = object(), object()
    EXPECTED.expect(parts[0], first, source="hostile")
    EXPECTED.expect(parts[1], second, source="another")
    with pytest.raises(AnotherCluster, match="flow A->C is with cluster another"):
        ClusterClient(first.source, "test").metadata([])
    EXPECTED.release(parts[1])
    ClusterClient(first.source, "test").metadata([])
    EXPECTED.release(parts[0])
    assert not EXPECTED.is_known(first.source)


def test_the_client_that_copies_has_settings_and_addresses_of_its_own(broker: HostileBroker) -> None:
    flow = flow_from(broker)
    copier = flow.source.model_copy(update={"bootstrap_servers": (f"localhost:{broker.port}",)})
    flow = flow.model_copy(update={"source": flow.source.model_copy(update={"copier": copier})})
    EXPECTED.expect(broker, flow, source="another")
    for side in (flow.source, flow.source.for_copying):
        with pytest.raises(AnotherCluster):
            ClusterClient(side, "test").metadata([])
