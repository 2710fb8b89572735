"""The proof of a target's append check: at real brokers, and at a played one with every fault there is a name for."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from kafka import KafkaAdminClient
from lab import KafkaCluster
from model_cluster import Fault, ModelCluster
from tests.support.in_process import sparkmirror
from typer.testing import CliRunner

from sparkmirror.cli.app import app
from sparkmirror.config import ClusterConfig, FlowConfig, load_mm2_properties
from sparkmirror.errors import UnfitTarget
from sparkmirror.kafka.cluster import append_proof, append_trial, scratch_topic
from sparkmirror.kafka.cluster.append_check import AppendCheck, AppendVerdict, check_appends
from sparkmirror.kafka.cluster.append_proof import Software, proof, software
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.cluster.scratch_topic import LEFT_S, PREFIX, SUFFIX
from sparkmirror.lint.cluster_rules import CLUSTER_RULES
from sparkmirror.lint.probe import FlowProbe, ProbedCluster
from sparkmirror.mirror.engine.flow_driver import FlowDriver
from sparkmirror.mirror.engine.target_proof import TargetProof

EXIT_CODE = 3

CAUGHT = {
    Fault.TAKES_GAPS: ({"gap"}, "a batch that leaves a gap is taken"),
    Fault.TAKES_OVERLAPS: ({"gap"}, "a batch that overlaps the one before is taken"),
    Fault.APPENDS_REPEATS: ({"repeat", "older repeats", "DescribeProducers"}, "answered with offset 10, its own is 8"),
    Fault.APPENDS_REPEATS_SILENTLY: ({"repeat", "older repeats", "wrap"}, "is in the log twice, at offsets 8 and 10"),
    Fault.WRONG_OFFSETS_FOR_REPEATS: ({"repeat", "older repeats"}, "answered with offset 9, its own is 8"),
    Fault.REMEMBERS_ONE_BATCH: ({"older repeats"}, "a repeat of the batch 2 back is not recognised: OUT_OF_ORDER"),
    Fault.TAKES_OLD_EPOCHS: ({"old epoch", "DescribeProducers"}, "a batch of an old epoch is taken"),
    Fault.IGNORES_EPOCHS: ({"old epoch"}, "a first batch of the next epoch, at sequence 0, is refused: OUT_OF_ORDER"),
    Fault.REFUSES_FIRST_BATCHES: ({"first batch", "wrap"}, "a first batch at sequence 1000 is refused: UNKNOWN_PRODUC"),
    Fault.ACKNOWLEDGES_WRONG_OFFSETS: ({"log"}, "a batch was acknowledged at offset 1, and is at 0 in the log"),
    Fault.DESCRIBES_NO_PRODUCERS: ({"DescribeProducers"}, "the brokers don't know DescribeProducers"),
    Fault.DESCRIBES_WRONGLY: ({"DescribeProducers"}, "of a producer whose last sequence is"),
    Fault.FORGETS_AT_ONCE: (
        {"repeat", "older repeats", "gap", "old epoch", "DescribeProducers"},
        "DescribeProducers tells nothing of a producer",
    ),
    Fault.KNOWS_NO_PRODUCER_IDS: ({"requests"}, "the broker speaks InitProducerId"),
    Fault.NO_TOPIC_IDS: ({"topic ids"}, "topics have no ids"),
    Fault.DOES_NOT_WRAP: ({"wrap"}, "the next batch after the wrap is refused"),
    Fault.ONE_STATE_FOR_ALL_PARTITIONS: ({"apart"}, "a producer's first batch in a second partition is refused"),
    Fault.APPENDS_WHAT_IT_REFUSES: ({"gap", "old epoch"}, "a batch that leaves a gap was refused, and is in the log"),
    Fault.LOSES_BATCHES: ({"log"}, "a batch that was acknowledged at offset 2 is not in the log"),
    Fault.ALTERS_BATCHES: ({"log"}, "the batch at offset 0 is not stored as it was sent"),
}
"""Which checks each fault makes fail, and what is said then."""

_GRANT = "grant sparkmirror's principal"

UNTOLD = {
    Fault.ALLOWS_NO_DELETION: f"can't be deleted: TOPIC_AUTHORIZATION_FAILED (29); {_GRANT} CREATE, DELETE",
    Fault.ALLOWS_NO_CREATION: f"can't be created: TOPIC_AUTHORIZATION_FAILED (29); {_GRANT} CREATE, DELETE",
    Fault.ALLOWS_NO_WRITING: f"at sequence 0 is refused: TOPIC_AUTHORIZATION_FAILED (29); {_GRANT} CREATE",
    Fault.GIVES_NO_PRODUCER_IDS: f"gives no producer id: CLUSTER_AUTHORIZATION_FAILED (31); {_GRANT}",
    Fault.DELETES_NO_TOPICS: "a topic of sparkmirror's own can't be had: the broker speaks DeleteTopics",
    Fault.HANGS_UP_AT_BATCHES: "it could not be tried to the end: the broker closed the connection",
}
"""What keeps it from being tried, and what is said then."""

NOTED = {
    Fault.TELLS_NO_REPEATS: "a repeat can't be told from an append by its answer",
    Fault.TELLS_NO_LIFETIME: "the brokers don't say how long they keep producer state",
}
"""What is otherwise than at Apache Kafka's brokers, and does not keep it from holding."""

FINE = {
    Fault.ANSWERS_REPEATS_BY_46: "producer state kept for 1 day",
    Fault.IS_BEFORE_3_4: "producer state kept for 7 days",
    Fault.LOSES_AN_ANSWER: "producer state kept for 1 day",
}

_aliases = (f"t{number}" for number in itertools.count())


@contextmanager
def client_of(servers: str) -> Iterator[ClusterClient]:
    client = ClusterClient(ClusterConfig(alias="eu", bootstrap_servers=(servers,)), "test")
    try:
        yield client
    finally:
        client.close()


def checked(*faults: Fault) -> tuple[AppendCheck, ModelCluster]:
    with ModelCluster(*faults) as cluster, client_of(cluster.bootstrap_servers) as client:
        return check_appends(client), cluster


def flow_to(servers: str, alias: str = "us") -> FlowConfig:
    source = ClusterConfig(alias=alias, bootstrap_servers=("127.0.0.1:1",))
    return FlowConfig(source=source, target=ClusterConfig(alias="eu", bootstrap_servers=(servers,)))


def linted(result: AppendCheck) -> list[tuple[str, str, str]]:
    """What lint says of it: rule, severity and words."""
    flow = flow_to("127.0.0.1:1")
    looked = FlowProbe(
        flow=flow, source=ProbedCluster(cluster=flow.source), target=ProbedCluster(cluster=flow.target, appends=result)
    )
    findings = [finding for rule in CLUSTER_RULES for finding in rule.findings(looked)]
    said = [(finding.rule, finding.severity, finding.what) for finding in findings]
    return [words for words in said if words[0].startswith("append-check")]


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(append_trial, "LATE_S", 0.1)


def test_every_fault_is_looked_for() -> None:
    assert {*CAUGHT, *UNTOLD, *NOTED, *FINE} == set(Fault)


@pytest.mark.broker
def test_a_real_broker(target_cluster: KafkaCluster) -> None:
    with client_of(target_cluster.bootstrap_servers) as client:
        began = time.monotonic()
        result = check_appends(client)
        print(f"{time.monotonic() - began:.3f} s: {result.words}")
    assert result.holds
    assert {check.verdict for check in result.checks} == {AppendVerdict.HOLDS}
    assert result.words.endswith("topics have ids; producer state kept for 1 day")
    admin = KafkaAdminClient(bootstrap_servers=target_cluster.bootstrap_servers)
    assert not [name for name in admin.list_topics() if name.startswith(PREFIX)]
    admin.close()


@pytest.mark.parametrize("fault", CAUGHT)
def test_a_fault_is_found_and_named(fault: Fault) -> None:
    names, words = CAUGHT[fault]
    result, cluster = checked(fault)
    assert not result.holds
    assert not result.untold
    assert {check.name for check in result.failures} == names
    assert words in result.words
    said = linted(result)
    assert {(rule, severity) for rule, severity, _ in said} == {("append-check", "error")}
    assert len(said) == len(names)
    assert any(words in line for _, _, line in said)
    assert not cluster.topics


@pytest.mark.parametrize("fault", UNTOLD)
def test_what_can_not_be_tried_is_neither_proven_nor_held_against_anybody(
    fault: Fault, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(append_trial, "PATIENCE_S", 0.2)
    result, cluster = checked(fault)
    assert not result.holds
    assert not result.checks
    assert UNTOLD[fault] in result.untold
    ((rule, severity, line),) = linted(result)
    assert (rule, severity) == ("append-check-unproven", "info")
    assert line == f"append check not proven: {result.untold}"
    assert not cluster.topics
    assert cluster.created == (
        fault in (Fault.ALLOWS_NO_WRITING, Fault.GIVES_NO_PRODUCER_IDS, Fault.HANGS_UP_AT_BATCHES)
    )


@pytest.mark.parametrize("fault", [None, *NOTED, *FINE])
def test_what_holds_is_proven(fault: Fault | None) -> None:
    result, cluster = checked(*([fault] if fault else []))
    assert result.holds
    noted = [check.words for check in result.checks if check.verdict is AppendVerdict.NOTED]
    assert noted == [NOTED[fault]] if fault in NOTED else not noted
    ((rule, severity, line),) = linted(result)
    assert (rule, severity) == ("append-check-proven", "info")
    assert line.startswith("append check proven: a first batch is taken at any sequence, 1000 here; a repeat of")
    assert (NOTED | FINE).get(fault, "producer state kept for 1 day") in line  # type: ignore[arg-type]
    assert not cluster.topics
    assert cluster.created == 1


def test_what_a_killed_process_left_behind_goes_with_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    with ModelCluster() as cluster, client_of(cluster.bootstrap_servers) as client:
        now = time.time
        monkeypatch.setattr(scratch_topic, "_delete_surely", lambda *_: None)  # killed before it came to that
        monkeypatch.setattr(time, "time", lambda: now() - LEFT_S - 10)
        assert check_appends(client).holds
        monkeypatch.setattr(time, "time", now)
        assert check_appends(client).holds
        monkeypatch.undo()
        (young,) = cluster.topics  # it may be in use
        others = {f"{PREFIX}of-mine", f"{PREFIX}nonsense{SUFFIX}", "orders"}
        for name in others:
            cluster.topics[name] = cluster.topics[young]
        assert check_appends(client).holds
        assert cluster.topics.keys() == others | {young}


def test_it_is_deleted_whatever_happens(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> None:
        raise RuntimeError("a bug of ours")

    monkeypatch.setattr(append_trial.AppendTrial, "reported", fail)
    with ModelCluster() as cluster, client_of(cluster.bootstrap_servers) as client:
        with pytest.raises(RuntimeError):
            check_appends(client)
        assert cluster.created == 1
        assert not cluster.topics


# --- what is known of clusters ------------------------------------------------------------------


def test_a_process_tries_a_cluster_once(monkeypatch: pytest.MonkeyPatch) -> None:
    with ModelCluster() as cluster, client_of(cluster.bootstrap_servers) as client:
        assert proof(client, software(client)).holds
        assert proof(client, software(client)).holds
        assert cluster.created == 1
        other = Software(cluster.cluster_id, ("another version",))
        assert proof(client, other).holds
        assert cluster.created == 2
    with ModelCluster(Fault.TAKES_GAPS) as cluster, client_of(cluster.bootstrap_servers) as client:
        runs = software(client)
        assert not proof(client, runs).holds
        cluster.faults = ()
        assert not proof(client, runs).holds
        assert cluster.created == 1
        monkeypatch.setattr(append_proof, "AGAIN_S", 0.0)
        assert proof(client, runs).holds  # its brokers were mended
        assert cluster.created == 2
        assert proof(client, runs).holds
        assert cluster.created == 2


def test_what_could_not_be_told_is_tried_again() -> None:
    with ModelCluster(Fault.ALLOWS_NO_CREATION) as cluster, client_of(cluster.bootstrap_servers) as client:
        assert proof(client, software(client)).untold
        cluster.faults = ()
        assert proof(client, software(client)).holds


def test_software_is_told_by_what_brokers_speak() -> None:
    with ModelCluster() as cluster, client_of(cluster.bootstrap_servers) as client:
        before = software(client)
        assert before == software(client)
        assert before.cluster_id == cluster.cluster_id
        assert len(before.spoken) == 1
        cluster.faults = (Fault.NO_TOPIC_IDS,)
        client.hang_up()  # as brokers do that are replaced
        after = software(client)
    assert after.cluster_id == before.cluster_id
    assert after.spoken != before.spoken


# --- at a flow's start --------------------------------------------------------------------------


@pytest.mark.parametrize("fault", CAUGHT)
def test_a_flow_refuses_a_target_with_a_fault(fault: Fault) -> None:
    with ModelCluster(fault) as cluster, client_of(cluster.bootstrap_servers) as client:
        with pytest.raises(UnfitTarget) as caught:
            TargetProof(flow_to(cluster.bootstrap_servers), client).demand()
        assert not cluster.topics
    line = str(caught.value)
    assert line.startswith(
        "cluster eu can't be a target: its brokers don't check appended batches as Apache Kafka does"
    )
    assert CAUGHT[fault][1] in line
    assert "\n" not in line
    assert caught.value.exit_code == EXIT_CODE


def test_a_flow_that_can_not_try_it_says_so_and_continues(caplog: pytest.LogCaptureFixture) -> None:
    with ModelCluster(Fault.ALLOWS_NO_CREATION) as cluster, client_of(cluster.bootstrap_servers) as client:
        target = TargetProof(flow_to(cluster.bootstrap_servers), client)
        target.demand()
        target.remember()
    (record,) = [record for record in caplog.records if record.levelname == "WARNING"]
    assert record.getMessage().startswith(
        "flow us->eu: append check not proven at cluster eu: a topic of sparkmirror's own can't"
    )
    assert not cluster.topics


def test_a_flow_whose_target_is_away_leaves_that_to_others(caplog: pytest.LogCaptureFixture) -> None:
    with client_of("127.0.0.1:1") as client:
        TargetProof(flow_to("127.0.0.1:1"), client).demand()
    assert "append check not proven" in caplog.text


def test_a_flow_that_copies_nothing_asks_nothing() -> None:
    with ModelCluster() as cluster, client_of(cluster.bootstrap_servers) as client:
        flow = flow_to(cluster.bootstrap_servers).model_copy(update={"copies": False})
        TargetProof(flow, client).demand()
        assert cluster.created == 0
        assert not cluster.clients


def write_file(path: Path, source: str, target: str, alias: str, topics: str = "none") -> Path:
    lines = {
        "clusters": f"{alias}, eu",
        f"{alias}.bootstrap.servers": source,
        "eu.bootstrap.servers": target,
        f"{alias}->eu.enabled": "true",
        "topics": topics,
        "emit.heartbeats.enabled": "false",
        "heartbeats.replication.enabled": "false",
        "replication.factor": "1",
        "checkpoints.topic.replication.factor": "1",
        "offset-syncs.topic.replication.factor": "1",
        "offset.storage.replication.factor": "1",
    }
    path.write_text("".join(f"{key} = {value}\n" for key, value in lines.items()))
    return path


@pytest.mark.broker
def test_run_and_lint_refuse_it_in_the_same_words(source_cluster: KafkaCluster, tmp_path: Path) -> None:
    with ModelCluster(Fault.TAKES_GAPS) as cluster:
        path = write_file(
            tmp_path / "mm2.properties", source_cluster.bootstrap_servers, cluster.bootstrap_servers, "us"
        )
        run = sparkmirror("run", str(path))
        assert run.returncode == EXIT_CODE, run.stderr
        (line,) = [line for line in run.stderr.splitlines() if line.startswith("sparkmirror: ")]
        assert line.startswith("sparkmirror: cluster eu can't be a target")
        assert "a batch that leaves a gap is taken" in line
        assert "Traceback" not in run.stderr
        assert cluster.created == 1
        assert not cluster.topics, "nothing of ours was made before"
        append_proof._known.clear()  # noqa: SLF001 - as a process that has just been started
        lint = CliRunner().invoke(app, ["lint", str(path), "--connect"])
        assert lint.exit_code == 1
        assert "error [append-check] flow us->eu: eu: the target does not check" in lint.stdout
        assert "as Apache Kafka does: a batch that leaves a gap is taken" in lint.stdout
        assert not cluster.topics


@pytest.mark.broker
def test_a_flow_writes_down_what_was_proven(
    source_cluster: KafkaCluster, target_cluster: KafkaCluster, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A process that comes later tries nothing; where the software has changed it does."""
    path = write_file(
        tmp_path / "mm2.properties",
        source_cluster.bootstrap_servers,
        target_cluster.bootstrap_servers,
        next(_aliases),
    )
    tried: list[Software] = []

    def noted(client: ClusterClient, runs: Software) -> AppendCheck:
        tried.append(runs)
        return proof(client, runs)

    monkeypatch.setattr("sparkmirror.mirror.engine.target_proof.proof", noted)
    open_and_close(path)
    assert len(tried) == 1
    open_and_close(path)
    assert len(tried) == 1
    changed = Software(tried[0].cluster_id, ("another version",))
    with monkeypatch.context() as patch:
        patch.setattr("sparkmirror.mirror.engine.target_proof.software", lambda _: changed)
        open_and_close(path)
        assert tried[1:] == [changed]
        open_and_close(path)
        assert tried[1:] == [changed]
    open_and_close(path)
    assert tried[2:] == tried[:1]


def open_and_close(path: Path) -> None:
    driver = FlowDriver(load_mm2_properties(str(path)).flows[0], "one", use_lease=False, once=False)
    began = time.monotonic()
    try:
        driver.open()
        print(f"open: {time.monotonic() - began:.3f} s")
    finally:
        driver.close()
