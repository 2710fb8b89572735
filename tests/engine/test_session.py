"""Spark as a mirror wants it."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest
from pydantic import SecretStr
from pyspark import SparkContext
from pyspark.sql import SparkSession
from tests.support import stranger

from sparkmirror.config import ClusterConfig, FlowConfig, MirrorConfig
from sparkmirror.config.model import SslConfig
from sparkmirror.config.spark_guards import refuse_little_memory
from sparkmirror.demo.ports import free_ports
from sparkmirror.errors import ConfigError, SetupError
from sparkmirror.mirror.engine import session, spark_start
from sparkmirror.mirror.engine.mirror import Mirror
from sparkmirror.mirror.engine.session import DEFAULTS, settings_of, start_spark
from sparkmirror.mirror.engine.spark_start import SparkStart

SPARK_PAGE = Path(__file__).parents[2] / "docs" / "spark.md"


def test_the_page_has_the_settings_that_sparkmirror_chooses() -> None:
    told = dict(re.findall(r"^\| `(spark[\w.]+)` \| `([^`]+)` \|", SPARK_PAGE.read_text(), re.MULTILINE))
    assert told == DEFAULTS


TWO_PUMPS = {
    "spark.speculation = true would give partitions two pumps": ("spark.speculation", "true", " TRUE "),
    "spark.python.task.killTimeout = 1h would let a cancelled task copy on": ("spark.python.task.killTimeout", "1h"),
}


LITTLE = [
    ({"spark.driver.memory": "400m"}, "spark.driver.memory: 400m is too little for Spark to start: write 465m or more"),
    ({"spark.driver.memory": "464 M"}, ""),
    ({"spark.driver.memory": " 464MB "}, "write 465m or more"),
    ({"spark.driver.memory": "460m", "spark.driver.extraJavaOptions": "-XX:+UseG1GC"}, ""),
    ({"spark.driver.memory": "449m", "spark.driver.extraJavaOptions": "-XX:+UseG1GC"}, "write 450m or more"),
    ({"spark.driver.memory": "465m"}, ""),
    ({"spark.driver.memory": "1g", "spark.executor.memory": "460000k"}, "spark.executor.memory: 460000k is too little"),
    ({"spark.driver.memory": "400"}, ""),
]


@pytest.mark.parametrize(("settings", "says"), LITTLE)
def test_too_little_memory_is_refused_at_once(settings: dict[str, str], says: str) -> None:
    """Not after the takeover, and not with words about Java. What can't be read is Spark's to tell."""
    if says:
        with pytest.raises(ConfigError, match=re.escape(says)):
            Mirror(config(**settings)).run()
    else:
        refuse_little_memory(settings, "mm2.properties")


def test_what_spark_says_of_little_memory_gets_the_right_hint() -> None:
    words = "[INVALID_DRIVER_MEMORY] Insufficient driver memory: System memory 405471232 must be at least 471859200"
    for said, hint in ((words, "raise spark.driver.memory"), ("Java gateway process exited", "does JAVA_HOME")):
        with pytest.raises(SetupError, match=hint), session._start_refused():  # noqa: SLF001
            raise RuntimeError(said)


def config(**spark: str) -> MirrorConfig:
    """A flow between clusters that are not there."""
    source, target = (ClusterConfig(alias=alias, bootstrap_servers=("127.0.0.1:1",)) for alias in "ab")
    return MirrorConfig(path="mm2.properties", flows=(FlowConfig(source=source, target=target),), spark=spark)


def a_session(**settings: str) -> Any:
    """Only settings, and 5 slots."""
    settings = {"spark.master": "local[1]", **settings}
    jvm = SimpleNamespace(
        maxNumConcurrentTasks=lambda _: 5,
        resourceProfileManager=lambda: SimpleNamespace(defaultResourceProfile=lambda: None),
    )
    return SimpleNamespace(
        sparkContext=SimpleNamespace(
            getConf=lambda: SimpleNamespace(getAll=settings.items),
            _jsc=SimpleNamespace(sc=lambda: jvm),
        )
    )


@pytest.mark.parametrize(
    ("words", "key", "value"), [(words, key, value) for words, (key, *values) in TWO_PUMPS.items() for value in values]
)
def test_a_partition_can_not_get_two_pumps(words: str, key: str, value: str) -> None:
    """By the file or a session's settings, and before anything is asked of the clusters."""
    for origin, mirror in {
        r"mm2\.properties": Mirror(config(**{key: value})),
        "the session": Mirror(config(), spark=a_session(**{key: value})),
    }.items():
        with pytest.raises(ConfigError, match=rf"^{origin}: {words}"):
            mirror.run()


@pytest.mark.parametrize("master", ["local[10,4]", "local[*]", "local[*, 4]", "local"])
def test_a_session_that_is_given_decides_over_slots(master: str) -> None:
    """A task without a slot would begin when another one ends, after a day.

    With spark.task.cpus = 2 ten threads are five slots.
    """
    mirror = Mirror(config(), spark=a_session(**{"spark.master": master}))
    assert mirror._planner.slots.count == 5  # noqa: SLF001 - a test's look inside


@pytest.mark.parametrize(("master", "slots"), [(None, 1), ("local[10]", 5)])
def test_a_mirrors_own_local_spark_has_a_slot_for_each_task(master: str | None, slots: int) -> None:
    settings = {"spark.task.cpus": "2"} | ({} if master is None else {"spark.master": master})
    mirror = Mirror(config(**settings))
    assert mirror._planner.slots.count == slots  # noqa: SLF001 - a test's look inside
    begun = session._chosen(settings, slots)  # noqa: SLF001 - Spark need not begin
    assert begun["spark.master"] == f"local[{slots * 2},4]"


@pytest.mark.parametrize("session_encrypts", [True, False])
def test_a_files_settings_do_not_hide_what_a_session_lets_be_read(session_encrypts: bool) -> None:
    """Its Spark was started without them: the passwords would travel in clear."""
    encrypted = {"spark.authenticate": "true", "spark.network.crypto.enabled": "true"}
    ours, theirs = ({}, encrypted) if session_encrypts else (encrypted, {})
    mine = config(**ours)
    ssl = SslConfig(key_password=SecretStr("told"))
    flow = mine.flows[0].model_copy(update={"source": mine.flows[0].source.model_copy(update={"ssl": ssl})})
    mirror = Mirror(
        mine.model_copy(update={"flows": (flow,)}),
        spark=a_session(**{"spark.master": "spark://elsewhere:7077", **theirs}),
    )
    check = mirror.registry._check  # noqa: SLF001 - a test's look inside
    if session_encrypts:
        check(flow)
    else:
        with pytest.raises(
            ConfigError, match=r"^the session: .* which its tasks on a Spark cluster would get in clear"
        ):
            check(flow)


@pytest.mark.parametrize("given", [True, False])
def test_a_spark_whose_rounds_can_not_be_cancelled_is_refused(given: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """A session's, or one that would continue with the JVM of another one, which has ended."""
    monkeypatch.setattr(SparkContext, "_gateway", SimpleNamespace())
    start = SparkStart({}, a_session() if given else None)
    start.begin(1)
    with pytest.raises(SetupError, match="could not be cancelled: start the process without PYSPARK_PIN_THREAD=false"):
        start.wait(lambda: False)


def test_a_session_of_spark_connect_is_refused_in_a_line() -> None:
    class Remote:
        @property
        def sparkContext(self) -> SparkContext:  # noqa: N802 - PySpark's name
            raise NotImplementedError("[JVM_ATTRIBUTE_NOT_SUPPORTED] no sparkContext")

    with pytest.raises(
        SetupError, match=r"^sparkmirror needs a session with a SparkContext, and this is none: "
    ) as info:
        settings_of(Remote())  # type: ignore[arg-type]
    assert "\n" not in str(info.value)


@pytest.mark.spark
def test_a_spark_of_somebody_elses_is_neither_used_nor_stopped(spark: SparkSession) -> None:
    with pytest.raises(SetupError, match="this process has a Spark already"):
        start_spark({}, tasks=1)
    mirror = SparkStart({}, None)
    mirror.begin(1)
    with pytest.raises(SetupError, match="this process has a Spark already"):
        mirror.wait(lambda: False)
    mirror.close()
    assert spark.sparkContext.parallelize([1, 2]).sum() == 3


def test_a_spark_that_is_up_too_late_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    goes_on, stopped = threading.Event(), threading.Event()

    def start(*_: object) -> Any:
        assert goes_on.wait(10)
        return SimpleNamespace(stop=stopped.set)

    monkeypatch.setattr(spark_start, "start_spark", start)
    spark = SparkStart({}, None)
    spark.begin(1)
    spark.close()
    assert not stopped.is_set()
    goes_on.set()
    assert stopped.wait(10)


def test_a_rounds_tag_and_its_job_are_on_one_thread_of_the_jvm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYSPARK_PIN_THREAD", "false")
    session._chosen({}, 1)  # noqa: SLF001 - a test's look inside
    assert os.environ["PYSPARK_PIN_THREAD"] == "true"


@pytest.mark.parametrize("other", ["no", "a task", "a cluster"])
def test_a_spark_whose_tasks_never_begin_is_given_up(other: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process may do better; where a task has begun in one of the rounds the mirror tries again.

    Clusters out of reach say nothing about Spark.
    """
    started: set[int] = set()
    mirror: Any = Mirror(config())
    runner = SimpleNamespace(number=1, take_results=lambda *_: [], restart_ended_early=lambda _: False)
    monkeypatch.setattr(mirror, "_runner", runner)
    monkeypatch.setattr(mirror, "_pause", lambda: None)
    conclude, fail_or_wait = mirror._conclude, mirror._fail_or_wait  # noqa: SLF001 - a test's look inside
    driver = SimpleNamespace(reports=SimpleNamespace(started_tasks=lambda _: started))
    job = SimpleNamespace(ends=None, failure="no room", spark_lives=lambda: True)
    for _ in range(8):
        conclude(job, [driver])
    match other:
        case "a task":
            started.add(0)
            conclude(job, [driver])
            started.clear()
            for _ in range(8):
                conclude(job, [driver])
        case "a cluster":
            fail_or_wait(ConnectionError("away"))
    conclude(job, [driver])
    with pytest.raises(SetupError, match=r"^Spark ran no task of 10 rounds in a row \(no room\); start sparkmirror"):
        conclude(job, [driver])


@pytest.mark.parametrize("by_file", [True, False])
def test_a_mistake_ends_the_run_unless_the_configuration_can_change(by_file: bool) -> None:
    """A worker's other connectors continue, and its REST interface takes the mended one."""
    mirror: Any = Mirror(config() if by_file else config().model_copy(update={"flows": ()}))
    mirror.stop()
    mistake = ConfigError("is no certificate", origin="truststore.pem")
    if by_file:
        with pytest.raises(ConfigError, match="is no certificate"):
            mirror._fail_or_wait(mistake)  # noqa: SLF001 - a test's look inside
    else:
        mirror._fail_or_wait(mistake)  # noqa: SLF001 - a test's look inside


def test_pauses_have_a_bound_however_often_it_failed() -> None:
    """A cluster that is away for a day is tried some 3,000 times."""
    mirror: Any = Mirror(config())
    mirror.stop()
    for _ in range(5000):
        mirror._fail_or_wait(ConnectionError("away"))  # noqa: SLF001 - a test's look inside


@pytest.mark.spark
def test_no_task_runs_twice_at_a_time_by_plan(spark: SparkSession) -> None:
    assert spark.conf.get("spark.speculation") == "false", "two pumps for a partition (R7)"


OWN_SPARK = """
import sys, threading, time
from sparkmirror.mirror.engine.session import start_spark
secret, *settings = sys.argv[1:]
context = start_spark(dict(setting.split("=", 1) for setting in settings), 1)
task = context.parallelize([0], 1).map(lambda _: (secret, time.sleep(100)))
threading.Thread(target=task.count, daemon=True).start()
tracker = context.statusTracker()
while not any(tracker.getStageInfo(stage).numActiveTasks for stage in tracker.getActiveStageIds()):
    time.sleep(0.1)
print("ready", flush=True)
sys.stdin.read()
"""
SECRET = "hunter2-in-an-order"
BLOCK = "broadcast_0_piece0"


@contextlib.contextmanager
def listening(*settings: str, **environment: str) -> Iterator[set[tuple[str, int]]]:
    """A local Spark in a process of its own, with a task that has got the secret; gives where its JVM listens."""
    outside = {key: value for key, value in os.environ.items() if key not in {"SPARK_LOCAL_IP", "PYSPARK_PYTHON"}}
    with subprocess.Popen(
        [sys.executable, "-c", OWN_SPARK, SECRET, "spark.broadcast.compress=false", *settings],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**outside, **environment},
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        (jvm,) = (one for one in psutil.Process(process.pid).children() if "java" in one.name())
        yield {
            (one.laddr.ip.removeprefix("::ffff:"), one.laddr.port)
            for one in jvm.net_connections("tcp")
            if one.status == psutil.CONN_LISTEN
        }
        process.stdin.close()  # type: ignore[union-attr]


@pytest.mark.full
@pytest.mark.spark
@pytest.mark.parametrize("guarded", [True, False])
def test_ports_of_a_local_spark_serve_nobody_else(guarded: bool) -> None:
    """Any user of the machine can connect. Without what sparkmirror chooses orders, passwords too, could be read."""
    with listening(*() if guarded else ("spark.authenticate=false",)) as places:
        assert {address for address, _ in places} == {"127.0.0.1"}
        ports = [port for _, port in places]
        blocks = b"".join(stranger.fetched(port, BLOCK) for port in ports)
        words = "".join(stranger.deserialized(port) for port in ports)
    assert (SECRET.encode() in blocks) is not guarded
    assert bool(blocks) is not guarded
    assert ("EOFException" in words) is not guarded, words


@pytest.mark.full
@pytest.mark.spark
@pytest.mark.parametrize("kills", [False, True])
def test_sparks_page_is_this_machines_and_kills_nothing(kills: bool) -> None:
    """Unless the user says so."""
    (port,) = free_ports(1)
    told = ("spark.ui.killEnabled=true",) if kills else ()
    with listening("spark.ui.enabled=true", f"spark.ui.port={port}", *told) as places:
        assert ("127.0.0.1", port) in places
        assert {address for address, _ in places} == {"127.0.0.1"}
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/jobs/", timeout=20) as page:
            jobs = page.read().decode()
        assert "Active Jobs (1)" in jobs
        assert ("(kill)" in jobs) is kills


@pytest.mark.parametrize(
    ("told", "variable", "address"),
    [
        ({}, None, "127.0.0.1"),
        ({"spark.driver.bindAddress": "10.0.0.2"}, None, "10.0.0.2"),
        ({}, "10.0.0.1", "10.0.0.1"),
    ],
)
def test_where_sparks_page_is(
    told: dict[str, str], variable: str | None, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where Spark's other ports are, unless the variable says something else; on a cluster where Spark will."""
    monkeypatch.setenv("SPARK_LOCAL_IP", variable or "")
    if variable is None:
        monkeypatch.delenv("SPARK_LOCAL_IP")
    session._chosen({**told, "spark.master": "yarn"}, 1)  # noqa: SLF001 - Spark need not begin
    assert os.environ.get("SPARK_LOCAL_IP") == variable
    session._chosen(told, 1)  # noqa: SLF001 - Spark need not begin
    assert os.environ["SPARK_LOCAL_IP"] == address


@pytest.mark.parametrize(
    ("told", "secret"),
    [
        ({"spark.master": "spark://m:7077"}, "hunter2"),
        ({"spark.master": "spark://m:7077", "spark.authenticate.secret": "other"}, "other"),
        ({}, None),
    ],
)
def test_a_driver_takes_the_secret_as_masters_and_workers_do(
    told: dict[str, str], secret: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("_SPARK_AUTH_SECRET", "hunter2")
    assert session._chosen(told, 1).get("spark.authenticate.secret") == secret  # noqa: SLF001 - Spark need not begin
