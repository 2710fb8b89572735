"""Who has a pair: the connector that was there first, whatever compaction leaves of the topic that says so."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.connectors import aws_connectors, demo_connectors, specs, worker_file
from tests.support.in_memory_api import InMemoryApi, in_memory_api
from tests.support.rest_cases import connector

from sparkmirror.config import FlowConfig
from sparkmirror.config.formats.connect_files import ConnectorRole
from sparkmirror.connect import offsets as offsets_module
from sparkmirror.connect.config_log import PLACE, ConfigState, Record, connector_records, target_records
from sparkmirror.connect.connector_model import ConnectorSpec, Offset, TargetState
from sparkmirror.connect.flows import Flows, read_flows
from sparkmirror.connect.worker import ConnectWorker
from sparkmirror.mirror.engine.flow_driver import FlowDriver

STARTED, PAUSED, STOPPED = TargetState.STARTED, TargetState.PAUSED, TargetState.STOPPED
CASE = {
    name: {
        "connector.class": "org.apache.kafka.connect.mirror.MirrorSourceConnector",
        "source.cluster.alias": "source",
        "source.cluster.bootstrap.servers": servers,
        "target.cluster.bootstrap.servers": servers,
        "topics": topics,
        "key.converter": "org.apache.kafka.connect.converters.ByteArrayConverter",
        "value.converter": "org.apache.kafka.connect.converters.ByteArrayConverter",
    }
    for name, servers, topics in (("mirror2", "127.0.0.1:9092", "orders"), ("aaa", "nosuchhost.invalid:9092", "x"))
}


def queued(configs: dict[str, dict[str, str]], *order: str, **states: TargetState) -> dict[str, ConnectorSpec]:
    """The connectors, created in this order."""
    return {
        name: ConnectorSpec(
            name=name, config=configs[name], target_state=states.get(name.replace("-", "_"), STARTED), place=place
        )
        for place, name in enumerate(order)
    }


def at_work(flows: Flows) -> str:
    """The connector that copies; there may be one."""
    names = [flow.connect.connector for flow in flows.config.flows if flow.copies]
    assert len(names) <= 1
    return names[0] if names else ""


def test_a_newcomer_whose_name_sorts_earlier_takes_nothing() -> None:
    flows = read_flows(queued(CASE, "mirror2", "aaa"), worker_file())
    assert at_work(flows) == "mirror2"
    assert not flows.parts["mirror2"].failure
    assert flows.parts["aaa"].failure == (
        "source->target is copied by mirror2 already: put the topics of aaa into that one;"
        " when mirror2 is deleted or stopped, aaa takes over"
    )
    assert at_work(read_flows(queued(CASE, "aaa", "mirror2"), worker_file())) == "aaa", "it might come back"


def test_who_is_stopped_makes_room_and_who_is_paused_does_not() -> None:
    assert at_work(read_flows(queued(CASE, "mirror2", "aaa", mirror2=STOPPED), worker_file())) == "aaa"
    paused = read_flows(queued(CASE, "mirror2", "aaa", mirror2=PAUSED), worker_file())
    assert at_work(paused) == ""
    assert "by mirror2 already" in paused.parts["aaa"].failure
    assert at_work(read_flows(queued(CASE, "aaa"), worker_file())) == "aaa", "the other was deleted"


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("refresh.topics.interval.seconds", "often"),
        ("replication.policy.class", "this:Zen"),
        ("topics", "orders["),
        ("key.converter", "org.apache.kafka.connect.json.JsonConverter"),
        ("config.providers", "env"),
        ("source.cluster.alias", "a\nb"),
        ("target.cluster.alias", "a\x1b[2Jb"),
    ],
)
def test_who_can_not_run_has_nothing(key: str, value: str) -> None:
    broken = {**CASE, "mirror2": {**CASE["mirror2"], key: value}}
    flows = read_flows(queued(broken, "mirror2", "aaa"), worker_file())
    assert at_work(flows) == "aaa"
    assert flows.parts["mirror2"].failure.isprintable()
    assert key in flows.parts["mirror2"].failure
    assert not flows.parts["aaa"].failure


@pytest.mark.parametrize("kind", ["mm2-cpc", "mm2-hbc"])
def test_checkpoints_and_heartbeats_stay_where_they_are(kind: str) -> None:
    configs = {**aws_connectors(), "aaa": {**aws_connectors()[kind], "tasks.max": "1"}}
    order = [*aws_connectors(), "aaa"]
    flows = read_flows(queued(configs, *order), worker_file())
    assert flows.parts["aaa"].idle
    assert f"by {kind} already" in flows.parts["aaa"].note
    assert f"when {kind} is deleted or stopped, aaa takes over" in flows.parts["aaa"].note
    assert not flows.parts[kind].idle
    flows = read_flows(queued(configs, *order, **{kind.replace("-", "_"): STOPPED}), worker_file())
    assert not flows.parts["aaa"].idle
    configs[kind] |= {"emit.checkpoints.interval.seconds": "often", "emit.heartbeats.interval.seconds": "often"}
    flows = read_flows(queued(configs, *order), worker_file())
    assert not flows.parts["aaa"].idle
    assert flows.parts[kind].failure
    assert at_work(flows) == "mm2-msc"


def test_heartbeats_of_a_class_that_can_not_be_built_end_no_mirror() -> None:
    """The mirror builds what sends heartbeats between two rounds, and would end with all that it copies."""
    named = "no_such_module:Policy"
    configs = {**CASE, "beats": {**aws_connectors()["mm2-hbc"], "replication.policy.class": named}}
    flows = read_flows(queued(configs, "mirror2", "beats"), worker_file({"sparkmirror.classes": named}))
    assert flows.config.beats == ()
    assert flows.parts["beats"].unfit
    assert "there is no module no_such_module" in flows.parts["beats"].failure
    assert at_work(flows) == "mirror2"


def test_a_newcomer_that_can_not_run_stops_no_heartbeats() -> None:
    configs = aws_connectors()
    configs["mm2-msc"]["topics"] = "["
    flows = read_flows(queued(configs, "mm2-hbc", "mm2-cpc", "mm2-msc"), worker_file())
    assert {name for name, part in flows.parts.items() if part.failure} == {"mm2-msc"}
    (flow,) = flows.config.flows
    assert flow.group.emit_checkpoints_enabled
    assert flow.heartbeat.emit_heartbeats_enabled
    assert not flow.copies
    assert flows.parts["mm2-cpc"].note.endswith("mm2-msc can't be run")


@pytest.mark.parametrize("older", ["zzz", "aaa"])
def test_of_two_pairs_with_one_topic_of_offsets_the_older_stays(older: str) -> None:
    """Their flows' names sort by the target's alias; neither is asked for it."""
    younger = "aaa" if older == "zzz" else "zzz"
    configs = {name: {**demo_connectors()["mm2-src"], "target.cluster.alias": name} for name in ("aaa", "zzz")}
    flows = read_flows(queued(configs, older, younger), worker_file())
    assert at_work(flows) == older
    assert f"msk->{older} has the same source alias and the same target cluster" in flows.parts[younger].failure
    resting = {older: PAUSED}
    assert at_work(read_flows(queued(configs, older, younger, **resting), worker_file())) == ""
    assert at_work(read_flows(queued(configs, older, younger, **{older: STOPPED}), worker_file())) == younger


def test_who_could_not_run_and_now_can_takes_nothing() -> None:
    with in_memory_api() as api:
        good = connector("Source", "source:9092", "target:9092")
        for name in ("older", "younger"):
            assert api.ask("PUT", f"/connectors/{name}/config", good)[0] == 201
        assert order_of(state_of(list(enumerate(api.configs.records)))) == ["older", "younger"]
        api.worker.unfit = {"older"}
        assert api.ask("PUT", "/connectors/older/config", good)[0] == 200
        assert order_of(state_of(list(enumerate(api.configs.records)))) == ["younger", "older"]
    broken = {**CASE, "mirror2": {**CASE["mirror2"], "topics": "["}}
    parts = read_flows(queued(broken, "mirror2", "aaa"), worker_file()).parts
    assert [name for name, part in parts.items() if part.unfit] == ["mirror2"]
    parts = read_flows(queued(CASE, "mirror2", "aaa"), worker_file()).parts
    assert not [name for name, part in parts.items() if part.unfit], "to wait is no fault"


# --- what the worker tells of those without work ------------------------------------------------


class _Store:
    """Stored offsets, which name whose they are and at which brokers they were looked for."""

    def __init__(self, flow: FlowConfig, connector: str, role: ConnectorRole) -> None:
        self._offsets: list[Offset] = [
            ({"cluster": connector, "topic": role.value, "partition": 0}, {"offset": flow.target.bootstrap_servers[0]})
        ]

    def __enter__(self) -> _Store:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def read(self) -> list[Offset]:
        return self._offsets


def _running_worker(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A worker without threads, whose drivers and stores are the test's."""
    monkeypatch.setattr(offsets_module, "OffsetStore", _Store)
    worker: Any = ConnectWorker(worker_file(), "worker:8083")
    monkeypatch.setattr(worker._mirror, "change", lambda *_: None)  # noqa: SLF001 - a test's way in
    return worker


def test_who_was_taken_over_has_the_offsets_that_are_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    worker = _running_worker(monkeypatch)
    own = {**CASE, "aaa": {**CASE["aaa"], "target.cluster.bootstrap.servers": "elsewhere:9092"}}
    worker.apply(queued(own, "aaa", "mirror2", aaa=STOPPED))
    assert worker.status("aaa").state == "STOPPED"
    (offset,) = worker.offsets("aaa")
    assert offset == (
        {"cluster": "aaa", "topic": ConnectorRole.SOURCE.value, "partition": 0},
        {"offset": "elsewhere:9092"},
    )


@pytest.mark.parametrize(("key", "value"), [("topics", "orders["), ("connector.class", "FileStreamSource")])
def test_who_can_not_be_read_has_a_reason_and_no_empty_list(
    monkeypatch: pytest.MonkeyPatch, key: str, value: str
) -> None:
    worker = _running_worker(monkeypatch)
    worker.apply(queued({**CASE, "aaa": {**CASE["aaa"], key: value}}, "mirror2", "aaa"))
    with pytest.raises(ValueError, match=key):
        worker.offsets("aaa")


def _driver(flow: FlowConfig, *topics: str) -> FlowDriver:
    """At work, with records copied to these topics."""
    receipts = [SimpleNamespace(receipt=SimpleNamespace(target_topic=t, partition=0, downstream=9)) for t in topics]
    view = SimpleNamespace(partitions=dict(enumerate(receipts)))
    return cast("FlowDriver", SimpleNamespace(name=flow.name, flow=flow, view=view))


def test_a_new_connector_has_none_of_its_predecessors_topics(monkeypatch: pytest.MonkeyPatch) -> None:
    worker = _running_worker(monkeypatch)
    drivers: list[FlowDriver] = []
    monkeypatch.setattr(type(worker._mirror), "drivers", drivers)  # noqa: SLF001 - a test's way in
    monkeypatch.setattr(type(worker), "_status", lambda *_: SimpleNamespace(state="RUNNING"))

    def noted() -> object:
        worker._note_topics()  # noqa: SLF001
        return worker.topics("mirror2")

    def copying(topic: str) -> FlowDriver:
        (flow,) = worker._state.flows.config.flows  # noqa: SLF001
        return _driver(flow, topic)

    worker.apply(queued(CASE, "mirror2"))
    drivers[:] = [copying("source.orders")]
    assert noted() == {"source.orders"}
    worker.apply(queued(CASE, "mirror2", mirror2=PAUSED))
    assert noted() == {"source.orders"}
    worker.apply({})
    worker.apply(queued({"mirror2": {**CASE["mirror2"], "topics": "others"}}, "mirror2"))
    assert noted() == set(), "the driver of the deleted one continues until it is closed"
    drivers[:] = [copying("source.others")]
    assert noted() == {"source.others"}
    worker.reset_topics("mirror2")
    worker.stand_by()  # the lease is lost, and got again
    worker.apply(queued({"mirror2": {**CASE["mirror2"], "topics": "others"}}, "mirror2"))
    assert noted() == set(), "nothing was copied since the reset"
    drivers[:] = [copying("source.more")]
    assert noted() == {"source.more"}
    drivers.clear()
    worker.stand_by()
    worker.apply(queued({"mirror2": {**CASE["mirror2"], "topics": "others"}}, "mirror2"))
    assert noted() == set(), "another process may have reset it meanwhile"


# --- over the topic -----------------------------------------------------------------------------


def state_of(records: list[tuple[int, Record]]) -> ConfigState:
    state = ConfigState()
    for offset, (key, value) in records:
        state.take(key, value, offset)
    return state


def order_of(state: ConfigState) -> list[str]:
    return sorted(state.specs(), key=lambda name: state.specs()[name].place)


NAMES = st.sampled_from(["aaa", "zzz"])
VERBS = st.sampled_from(["put", "put", "put", "put", "delete", "stop", "pause", "resume"])
STEPS = st.lists(st.tuples(VERBS, NAMES), min_size=6, max_size=12)


def test_changes_keep_the_place_and_what_begins_again_does_not() -> None:
    with in_memory_api() as api:

        def order() -> list[str]:
            return order_of(state_of(list(enumerate(api.configs.records))))

        good = connector("Source", "source:9092", "target:9092")
        for name in ("zzz", "aaa"):
            api.ask("PUT", f"/connectors/{name}/config", good)
        api.ask("PUT", "/connectors/zzz/config", {**good, "tasks.max": "3"})
        api.ask("PATCH", "/connectors/zzz/config", {"tasks.max": "4"})
        api.ask("PUT", "/connectors/zzz/pause")
        api.ask("PUT", "/connectors/zzz/resume")
        api.ask("POST", "/connectors/zzz/restart")
        assert order() == ["zzz", "aaa"]
        api.ask("PUT", "/connectors/zzz/stop")
        assert order() == ["zzz", "aaa"]
        api.ask("PUT", "/connectors/zzz/resume")
        assert order() == ["aaa", "zzz"]
        api.ask("DELETE", "/connectors/aaa")
        api.ask("PUT", "/connectors/aaa/config", good)
        assert order() == ["zzz", "aaa"]


@settings(max_examples=30)
@given(steps=STEPS, data=st.data())
def test_the_order_is_that_of_creation_whatever_is_left_of_the_topic(
    steps: list[tuple[str, str]], data: st.DataObject
) -> None:
    expected: list[str] = []
    stopped: set[str] = set()
    with in_memory_api() as api:
        for verb, name in steps:
            if verb == "put":
                body = connector("Source", "source:9092", "target:9092", topics=f"t{len(api.configs.records)}")
                assert api.ask("PUT", f"/connectors/{name}/config", body)[0] == (200 if name in expected else 201)
                expected += [] if name in expected else [name]
            elif verb == "delete":
                api.ask("DELETE", f"/connectors/{name}")
                expected, stopped = [one for one in expected if one != name], stopped - {name}
            elif name in expected:
                api.ask("PUT", f"/connectors/{name}/{verb}")
                if verb == "stop":
                    stopped.add(name)
                elif name in stopped:
                    stopped.remove(name)
                    expected = [one for one in expected if one != name] + [name]
    records = list(enumerate(api.configs.records))
    assert order_of(state_of(records)) == expected
    # A cleaner takes any of the records that have a newer one; what was read before it came was the whole.
    last = {key: offset for offset, (key, _) in records}
    left = [one for one in records if last[one[1][0]] == one[0] or data.draw(st.booleans())]
    assert state_of(left).places == state_of(records).places


def test_what_others_have_written_is_in_the_order_that_is_there() -> None:
    """An earlier release's records, and a real worker's, say no place: the newest record of each is its place."""
    old = [*connector_records("zzz", {"a": "1"}), *connector_records("aaa", {"a": "1"})]
    assert order_of(state_of(list(enumerate(old)))) == ["zzz", "aaa"]
    changed = [*old, *connector_records("zzz", {"a": "2"})]
    for records in (list(enumerate(changed)), list(enumerate(changed))[1:]):
        assert order_of(state_of(records)) == ["aaa", "zzz"]


@pytest.mark.parametrize("place", ["1", None, True, 1.5, [], {}])
def test_a_place_that_is_no_number_is_none(place: object) -> None:
    value = json.dumps({"properties": {"a": "1"}, PLACE: place}).encode()
    assert state_of([(7, (b"connector-a", value))]).places == {"a": 7}


def test_real_workers_find_what_they_know() -> None:
    """Beside `properties` is what they don't look at; a new connector's record is as they write it."""
    [(_, new)], [(_, changed)] = connector_records("a", {"x": "y"}), connector_records("a", {"x": "y"}, place=3)
    assert json.loads(new or b"") == {"properties": {"x": "y"}}
    assert json.loads(changed or b"") == {"properties": {"x": "y"}, PLACE: 3}
    assert list(target_records("a", STARTED)[0][1] or b"") == list(b'{"state":"STARTED","state.v2":"STARTED"}')


def test_a_refused_request_leaves_nothing() -> None:
    with in_memory_api() as api:
        good = connector("Source", "source:9092", "target:9092")
        assert api.ask("PUT", "/connectors/shop/config", good)[0] == 201
        written = list(api.configs.records)
        assert _refusals(api, good) == {400, 404, 409}
        assert [one for one in api.configs.records if one not in written and not one[0].startswith(b"task-")] == []
        assert api.ask("GET", "/connectors") == (200, ["shop"])
        assert api.ask("GET", "/connectors/shop/config") == (200, {**good, "name": "shop"})


def _refusals(api: InMemoryApi, good: dict[str, str]) -> set[int]:
    """Ask for what must be refused; the answers' statuses."""
    wrong: list[tuple[str, str, object]] = [
        ("PUT", "/connectors/shop/config", {**good, "tasks.max": "many"}),
        ("PUT", "/connectors/shop/config", {**good, "replication.policy.class": "this:Zen"}),
        ("PUT", "/connectors/other/config", {**good, "name": "third"}),
        ("PUT", "/connectors/a%0D%0Ab/config", good),
        ("PUT", "/connectors/%20/config", good),
        ("POST", "/connectors", {"name": "shop", "config": good}),
        ("POST", "/connectors", {"name": "new", "config": {**good, "topics": None}}),
        ("POST", "/connectors", {"name": "new", "config": good, "initial_state": "ASLEEP"}),
        ("PATCH", "/connectors/shop/config", {"tasks.max": "many"}),
        ("PATCH", "/connectors/none/config", {"tasks.max": "2"}),
        ("PUT", "/connectors/none/stop", None),
        ("DELETE", "/connectors/none", None),
        ("PUT", "/connectors/shop/config", b"[" * 200_000),
    ]
    return {api.ask(method, path, body)[0] for method, path, body in wrong}


def test_specs_without_places_are_in_the_order_of_their_names() -> None:
    configs = {"b": CASE["mirror2"], "a": CASE["aaa"]}
    assert at_work(read_flows(specs(configs), worker_file())) == "a"
