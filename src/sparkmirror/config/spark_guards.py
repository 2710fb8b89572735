"""Refuse Spark settings with which copies would be inexact, or secrets told."""

from __future__ import annotations

import re
from collections.abc import Mapping

from sparkmirror.config.model import ClusterConfig, FlowConfig
from sparkmirror.errors import ConfigError

MASTER = "spark.master"
SPECULATION = "spark.speculation"
KILL_DELAY = "spark.python.task.killTimeout"
"""Setting for how long Spark gives a cancelled task's Python to end.

The quiet rule (R5) counts on it.
"""
KILLED_AFTER = "2s"
"""The only accepted value for `KILL_DELAY`."""
JAVA_OPTIONS = "spark.driver.extraJavaOptions"
DRIVER_MEMORY = "spark.driver.memory"
LEAST_MIB = 450
"""Memory in MiB that Spark wants to see.

That is 1.5 times the 300 MiB that Spark reserves (`UnifiedMemoryManager`).
"""
LEAST_SERIAL_MIB = 465
"""Memory in MiB of a JVM that tells Spark `LEAST_MIB`.

The JVM has the serial collector, as sparkmirror starts it, and leaves one of its two survivor spaces out.
"""
_UNITS = {"k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
_SIZE = re.compile(r"(\d+)([kmgt])b?")


def is_local(settings: Mapping[str, str]) -> bool:
    """True if the tasks run in this process' own JVM, so that we choose the slots."""
    return settings.get(MASTER, "local").startswith("local")


def keeps_secrets(settings: Mapping[str, str]) -> bool:
    """True if the driver's words to its tasks can't be read on the way.

    The rules are from Spark's security page.
    """
    if is_local(settings):
        return True
    on = {key for key, value in settings.items() if value.strip().lower() == "true"}
    return "spark.authenticate" in on and not on.isdisjoint({"spark.network.crypto.enabled", "spark.ssl.rpc.enabled"})


def guard_secrets(secret: FlowConfig | ClusterConfig, settings: Mapping[str, str], origin: str) -> None:
    """Refuse a flow or cluster whose passwords could be read on their way to tasks.

    The passwords travel inside the orders. Raises `ConfigError` with that `origin`.
    """
    if secret.has_secrets and not keeps_secrets(settings):
        name = f"flow {secret.name}" if isinstance(secret, FlowConfig) else f"cluster {secret.alias}"
        raise ConfigError(
            f"{name} has passwords, which its tasks on a Spark cluster would get in clear: set"
            " spark.authenticate and spark.network.crypto.enabled (or spark.ssl.rpc.enabled) to true",
            origin=origin,
        )


def refuse_two_pumps(settings: Mapping[str, str], origin: str) -> None:
    """Refuse settings that let a partition have two pumps at a time (R5, R7).

    Raises `ConfigError` with that `origin`.
    """
    if settings.get(SPECULATION, "").strip().lower() == "true":
        raise ConfigError(
            f"{SPECULATION} = true would give partitions two pumps at a time: take it out, or set it to false",
            origin=origin,
        )
    if settings.get(KILL_DELAY, KILLED_AFTER) != KILLED_AFTER:
        raise ConfigError(
            f"{KILL_DELAY} = {settings[KILL_DELAY]} would let a cancelled task copy on next to its successor: take it"
            f" out, or set it to {KILLED_AFTER}",
            origin=origin,
        )


def refuse_little_memory(settings: Mapping[str, str], origin: str) -> None:
    """Refuse memory with which Spark does not start.

    Raises `ConfigError` with that `origin`.
    """
    of_driver = LEAST_MIB if JAVA_OPTIONS in settings else LEAST_SERIAL_MIB
    for key, least in ((DRIVER_MEMORY, of_driver), ("spark.executor.memory", LEAST_MIB)):
        size = _SIZE.fullmatch(settings.get(key, "").strip().lower())
        if size is not None and int(size[1]) * _UNITS[size[2]] < least << 20:
            raise ConfigError(
                f"{settings[key]} is too little for Spark to start: write {least}m or more, or take it out",
                origin=origin,
                key=key,
            )
