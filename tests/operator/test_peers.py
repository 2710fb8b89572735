"""Resources that use one group, or one storage topic, at one target."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from tests.support.operated import (
    KEY,
    PATH,
    PROPERTIES,
    SETTINGS,
    SOURCE,
    MemoryApi,
    mirror,
    properties,
    resource,
    secret,
    turns,
)
from tests.support.served_api import ServedApi

from sparkmirror.operator.names import CLASS, MIRROR, Key
from sparkmirror.operator.peers import Peers, connect_names
from sparkmirror.operator.plan import make_plan
from sparkmirror.operator.references import Contents, ObjectReference
from sparkmirror.operator.rest import ConnectRest
from sparkmirror.operator.turn import Turns
from sparkmirror.operator.turn_settings import Condition, Memory

EARLY, LATE = "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"
OTHER = Key(KEY.namespace, "other")
OWN = {
    field: f"other-{field}" for field in ("groupId", "configStorageTopic", "offsetStorageTopic", "statusStorageTopic")
}


def created(at: str, name: str = KEY.name, change: Callable[[dict[str, Any]], object] | None = None) -> dict[str, Any]:
    tree = resource(change)
    tree["metadata"] |= {"name": name, "creationTimestamp": at}
    return tree


def other(at: str = LATE, namespace: str = KEY.namespace, source: str = "us", **target: str) -> dict[str, Any]:
    tree = created(at, OTHER.name, lambda spec: spec["target"].update(target))
    tree["spec"]["mirrors"][0]["source"]["alias"] = source
    tree["metadata"]["namespace"] = namespace
    return tree


def shared(first: dict[str, Any], second: dict[str, Any]) -> str:
    """What both use, without the servers."""
    names, others = connect_names(first, "sparkmirror"), connect_names(second, "sparkmirror")
    return names.shared_with(others).partition(" at ")[0] if names and others else "none"


def test_what_two_resources_share_is_named() -> None:
    ours = created(EARLY)
    every = shared(ours, other())
    assert every.startswith("groupId ours-groupId, configStorageTopic ours-configStorageTopic, ")
    assert shared(ours, other(**OWN, source="asia")) == ""
    assert shared(ours, other(**OWN)) == "group us-mm2"
    assert shared(ours, other(**OWN | {"groupId": "ours-groupId"})) == "groupId ours-groupId"
    crossed = other(**OWN | {"statusStorageTopic": "ours-offsetStorageTopic"}, source="asia")
    assert shared(ours, crossed) == "offsetStorageTopic ours-offsetStorageTopic"
    assert shared(ours, other(bootstrapServers="eu2:9092")) == ""
    assert shared(ours, other(bootstrapServers="away:9092, EU:9092")) == every


@pytest.mark.parametrize(
    ("server", "namespace", "same"),
    [
        ("eu:9092", "kafka", True),
        ("eu.kafka:9092", "shop", True),
        ("eu.kafka.svc:9092", "shop", True),
        ("eu.kafka.svc.cluster.local:9092", "shop", True),
        ("eu:9092", "shop", False),
        ("eu:9093", "kafka", False),
    ],
)
def test_a_service_is_the_same_however_it_is_written(server: str, namespace: str, same: bool) -> None:
    assert bool(shared(created(EARLY), other(namespace=namespace, bootstrapServers=server))) is same


def test_an_address_has_no_namespace() -> None:
    ours = created(EARLY, change=lambda spec: spec["target"].update(bootstrapServers="[fd00::1]:9092,localhost:1"))
    assert shared(ours, other(namespace="shop", bootstrapServers="[fd00::1]:9092"))


def test_resources_that_use_nothing_share_nothing() -> None:
    scaled = other()
    scaled["spec"]["replicas"] = 0
    foreign = other()
    foreign["metadata"]["annotations"] = {CLASS: "another"}
    without = other()
    without["spec"] = {"target": "eu", "clusters": ["eu"]}
    for tree in (scaled, foreign, without):
        assert shared(created(EARLY), tree) == "none"


def older(spec: dict[str, Any]) -> None:
    """v1beta2's layout, with defaults but for the group."""
    spec.clear()
    spec |= {
        "connectCluster": "eu",
        "clusters": [
            {"alias": "us", "bootstrapServers": "us:9092"},
            {"alias": "eu", "bootstrapServers": "eu:9092", "config": {"group.id": "theirs"}},
        ],
        "mirrors": [{"sourceCluster": "us", "targetCluster": "eu", "sourceConnector": {}, "topicsPattern": "orders"}],
    }


@pytest.mark.parametrize("change", [None, older], ids=["v1", "v1beta2"])
def test_names_are_those_of_the_workers_file(change: Callable[[dict[str, Any]], object] | None) -> None:
    tree = created(EARLY, change=change)
    if change is not None:
        tree["apiVersion"] = "kafka.strimzi.io/v1beta2"
    reference = ObjectReference("Secret", "mirror-user")
    worker: Mapping[str, str] = make_plan(tree, KEY, {reference: {"password": b"x"}}).worker
    names = connect_names(tree, "sparkmirror")
    assert names is not None
    (use,) = names.uses
    assert use.group == ("groupId", worker["group.id"])
    kinds = ("config", "offset", "status")
    assert use.topics == {f"{kind}StorageTopic": worker[f"{kind}.storage.topic"] for kind in kinds}
    assert use.servers == {f"{server.replace(':', '.kafka:')}" for server in worker["bootstrap.servers"].split(",")}


def test_the_later_one_is_held_and_both_are_named() -> None:
    peers = Peers("sparkmirror")
    ours, theirs = created(EARLY), other(LATE)
    assert peers.see(KEY, ours) == set()
    assert peers.see(OTHER, theirs) == {KEY}, "the first one is told"
    assert "kafka/other uses the same groupId ours-groupId" in peers.sharing(KEY, ours).later[0]
    assert peers.sharing(KEY, ours).earlier == ""
    assert "kafka/ours uses the same" in peers.sharing(OTHER, theirs).earlier
    assert peers.see(OTHER, other(LATE, **OWN, source="asia")) == {KEY}, (
        "the first one is told that nothing is shared any more"
    )
    assert peers.sharing(KEY, ours).later == ()
    peers.see(OTHER, theirs)
    assert peers.see(KEY, None) == {OTHER}, "the other may continue when the first one is gone"
    assert peers.sharing(OTHER, theirs).earlier == ""


def test_a_resource_that_went_unseen_holds_no_other(served: ServedApi) -> None:
    api, peers, memory = MemoryApi(secret()), Peers("sparkmirror"), Memory(condition=Condition("Ready", ""))
    ours, theirs = created(EARLY), other(LATE)
    peers.see(KEY, ours)
    peers.see(OTHER, theirs)
    turn = Turns(api, lambda _: ConnectRest(served.url), SETTINGS, peers)
    assert turn.take(KEY, memory)
    assert peers.sharing(OTHER, theirs).earlier == ""
    assert memory.condition is None
    api.objects[PATH] = ours
    turn.take(KEY, memory)
    assert peers.sharing(OTHER, theirs).earlier, "it is there again"


def test_of_two_created_at_once_the_first_by_name_runs() -> None:
    peers = Peers("sparkmirror")
    ours, theirs = created(EARLY, "ours"), other(EARLY)
    peers.see(KEY, ours)
    peers.see(OTHER, theirs)
    assert peers.sharing(KEY, ours).earlier
    assert not peers.sharing(OTHER, theirs).earlier


def test_a_held_resource_changes_nothing(served: ServedApi) -> None:
    api = MemoryApi(
        created(LATE, change=lambda spec: spec["mirrors"][0]["source"].update(bootstrapServers="no:1")), secret()
    )
    turn = turns(api, ConnectRest(served.url), other(EARLY))
    assert turn(), "only a change of a resource ends it"
    assert api.conditions() == [("NotReady", "GroupShared")]
    message = api.status["conditions"][0]["message"]
    assert message.startswith("KafkaMirrorMaker2 kafka/other uses the same groupId ours-groupId, ")
    assert "this resource is held" in message
    assert served.api.worker.connectors == {}
    assert api.changes == 1, "its status"


def test_the_first_one_runs_and_is_warned(served: ServedApi) -> None:
    api = MemoryApi(created(EARLY), secret())
    assert turns(api, ConnectRest(served.url), other(LATE))()
    assert api.conditions() == [("Ready", ""), ("Warning", "GroupShared")]
    assert "KafkaMirrorMaker2 kafka/other" in api.status["conditions"][1]["message"]
    assert SOURCE in served.api.worker.connectors
    assert PATH in api.objects


def of_flow(text: str, at: str = LATE, name: str = OTHER.name) -> dict[str, Any]:
    tree = mirror(name, properties=text)
    tree["metadata"]["creationTimestamp"] = at
    return tree


def test_mirrors_of_one_flow_share_it() -> None:
    ours = of_flow(PROPERTIES, name="ours")
    assert shared(ours, of_flow(PROPERTIES)) == "group us-mm2, offsets topic mm2-offsets.us.internal"
    assert shared(ours, of_flow(properties("asia"))) == ""
    assert shared(ours, of_flow(properties(servers="eu2:9092"))) == ""
    assert shared(ours, of_flow("clusters = no\n")) == "none"
    short = mirror(
        "short",
        clusters=[{"alias": "us", "bootstrapServers": "us:9092"}, {"alias": "eu", "bootstrapServers": "eu.kafka:9092"}],
        mirrors=[{"source": "us", "target": "eu"}],
    )
    assert shared(ours, short) == "group us-mm2, offsets topic mm2-offsets.us.internal"
    assert shared(mirror(replicas=0, properties=PROPERTIES), ours) == "none"


def test_a_mirror_and_a_strimzi_resource_share_a_flow_or_a_topic() -> None:
    theirs = created(EARLY)
    assert shared(of_flow(PROPERTIES), theirs) == shared(theirs, of_flow(PROPERTIES)) == "group us-mm2"
    elsewhere = of_flow(properties("asia"))
    assert shared(elsewhere, theirs) == ""
    of_topic = created(EARLY, change=lambda spec: spec["target"].update(offsetStorageTopic="mm2-offsets.asia.internal"))
    assert shared(elsewhere, of_topic) == "offsets topic mm2-offsets.asia.internal"
    assert shared(of_topic, elsewhere) == "offsetStorageTopic mm2-offsets.asia.internal"
    of_group = created(EARLY, change=lambda spec: spec["target"].update(groupId="asia-mm2"))
    assert shared(elsewhere, of_group) == "group asia-mm2"


def test_a_mirrors_file_elsewhere_counts_and_its_change() -> None:
    files = {"file": properties("asia")}

    def contents_of(_: str, reference: ObjectReference) -> Contents:
        return {reference: {"mm2.properties": files[reference.name].encode()}}

    peers = Peers("sparkmirror", contents_of)
    ours = of_flow(PROPERTIES, EARLY, "ours")
    theirs = mirror(OTHER.name, propertiesFrom={"configMapKeyRef": {"name": "file"}})
    theirs["metadata"]["creationTimestamp"] = LATE
    key, other_key = Key(KEY.namespace, "ours", MIRROR), Key(KEY.namespace, OTHER.name, MIRROR)
    peers.see(key, ours)
    assert peers.see(other_key, theirs) == set()
    assert peers.sharing(other_key, theirs).earlier == ""
    files["file"] = PROPERTIES
    assert peers.sharing(other_key, theirs).earlier.startswith("Mirror kafka/ours uses the same group us-mm2")
    assert peers.sharing(key, ours).later
    peers.see(other_key, None)
    peers.sharing(other_key, theirs)
    assert not peers.sharing(key, ours).later, "a turn that was under way brings no deleted resource back"
