"""The real MirrorMaker 2 as its dedicated process, and the real Connect worker.

Tests take their behaviour as the oracle, benchmarks take their speed as the measure.

    with RealMirrorMaker({"clusters": "a, b", "a->b.enabled": "true", ...}, Path("mm2")) as mirror:
        print(mirror.log)

Each process dies with this Python process, in whatever way it ends.
"""

from __future__ import annotations

import signal
from functools import partial
from typing import TYPE_CHECKING, ClassVar, Self

from javaproperties import dumps

from sparkmirror.demo.jars import KAFKA_VERSION, class_path, mirror_maker_jars
from sparkmirror.demo.jvm import Jvm

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

START_TIMEOUT_S = 90.0
STOP_TIMEOUT_S = 30.0


class _ConnectProcess:
    """One Java process, run from a properties file with the keys in `properties`.

    The process's settings and log are in `directory`, and stay. `jvm_options` is empty by default, since benchmarks
    measure against this process; `QUICK_START` of `sparkmirror.demo.jvm` halves the start-up time. `version` is
    Kafka's.
    """

    _name: ClassVar[str]
    _main_class: ClassVar[str]
    _file: ClassVar[str]
    _started_words: ClassVar[str]

    def __init__(
        self,
        properties: Mapping[str, str],
        directory: Path,
        *,
        heap_mb: int = 512,
        jvm_options: Sequence[str] = (),
        version: str = KAFKA_VERSION,
    ) -> None:
        self.directory = directory.absolute()
        self._properties = dict(properties)
        self._heap_mb = heap_mb
        self._jvm_options = jvm_options
        self._jars = mirror_maker_jars(version)
        self._jvm: Jvm | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def pid(self) -> int:
        """Process id of the last start; RuntimeError if the process never started."""
        return self._started().pid

    @property
    def running(self) -> bool:
        """True if the process exists."""
        return self._jvm is not None and self._jvm.running

    @property
    def log(self) -> Path:
        """Process's log file; RuntimeError before the first start."""
        return self._started().log

    def start(self, timeout_s: float = START_TIMEOUT_S) -> None:
        """Start the process, and wait until its log says that it has started.

        The connectors follow within seconds. Raises SetupError, with the log's end, if the process dies or takes longer
        than `timeout_s`, and if there is no Java or the jars can't be had.
        """
        self.directory.mkdir(parents=True, exist_ok=True)
        settings = self.directory / self._file
        settings.write_text(dumps(self._properties))
        self._jvm = Jvm(
            self.directory,
            main_class=self._main_class,
            arguments=[str(settings)],
            class_path=class_path(self._jars),
            heap_mb=self._heap_mb,
            options=self._jvm_options,
        )
        logged_before = self._jvm.log.stat().st_size if self._jvm.log.exists() else 0
        self._jvm.start()
        try:
            self._jvm.wait_until(
                partial(_says, self._jvm.log, self._started_words, logged_before),
                timeout_s,
                program=self._name,
                late="did not start within",
            )
        except BaseException:
            self.kill()
            raise

    def stop(self, timeout_s: float = STOP_TIMEOUT_S) -> None:
        """Stop the process in order (SIGTERM), by force after `timeout_s`.

        Nothing happens if the process does not run.
        """
        if self.running:
            self._started().terminate(timeout_s)

    def kill(self) -> None:
        """Kill the process (SIGKILL); return when it has ended."""
        self._started().kill()

    def pause(self) -> None:
        """Freeze the process (SIGSTOP): connections stay open, nothing answers."""
        self._started().stop()

    def resume(self) -> None:
        """Let a paused process continue (SIGCONT)."""
        self._started().send(signal.SIGCONT)

    def _started(self) -> Jvm:
        if self._jvm is None:
            raise RuntimeError(f"{self._name} was never started")
        return self._jvm


class RealMirrorMaker(_ConnectProcess):
    """One MirrorMaker 2 node, run from the keys in an mm2.properties file."""

    _name = "MirrorMaker 2"
    _main_class = "org.apache.kafka.connect.mirror.MirrorMaker"
    _file = "mm2.properties"
    _started_words = "Kafka MirrorMaker started"


class RealConnectWorker(_ConnectProcess):
    """One distributed Connect worker that has MirrorMaker 2's connectors.

    The worker runs from the keys in a connect-distributed.properties file.
    """

    _name = "Kafka Connect"
    _main_class = "org.apache.kafka.connect.cli.ConnectDistributed"
    _file = "connect-distributed.properties"
    _started_words = "Finished starting connectors and tasks"


def _says(log: Path, words: str, offset: int) -> bool:
    """True if `log` contains `words` after its first `offset` bytes."""
    if not log.exists():
        return False
    with log.open("rb") as file:
        file.seek(offset)
        return words.encode() in file.read()
