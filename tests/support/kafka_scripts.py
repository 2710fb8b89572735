"""Kafka's own command line tools as people have them: a directory of `kafka-*.sh` for the PATH."""

from __future__ import annotations

import shlex
from pathlib import Path

from bench.producing import TOOLS

from sparkmirror.demo.jars import class_path
from sparkmirror.demo.java import java

_CLASSES = {
    "kafka-acls.sh": "org.apache.kafka.tools.AclCommand",
    "kafka-topics.sh": "org.apache.kafka.tools.TopicCommand",
    "kafka-consumer-groups.sh": "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
    "kafka-console-producer.sh": "org.apache.kafka.tools.ConsoleProducer",
    "kafka-delete-records.sh": "org.apache.kafka.tools.DeleteRecordsCommand",
    "kafka-transactions.sh": "org.apache.kafka.tools.TransactionsCommand",
    "kafka-console-consumer.sh": "org.apache.kafka.tools.consumer.ConsoleConsumer",
    "kafka-dump-log.sh": "org.apache.kafka.tools.DumpLogSegments",
}
"""As the scripts in Kafka's `bin` start them."""
_CORE = {"kafka-configs.sh": "kafka.admin.ConfigCommand"}
"""Those of the brokers' own jars."""


def write_scripts(directory: Path) -> Path:
    """Write them all; returns the directory."""
    directory.mkdir(parents=True, exist_ok=True)
    for name, main_class in {**_CLASSES, **_CORE}.items():
        command = [
            java(),
            "-Xmx256m",
            "-XX:+UseSerialGC",
            "-XX:TieredStopAtLevel=1",
            "-cp",
            class_path() if name in _CORE else class_path(TOOLS),
            main_class,
        ]
        script = directory / name
        script.write_text(f'#!/bin/sh\nexec {shlex.join(command)} "$@"\n')
        script.chmod(0o755)
    return directory
