#!/usr/bin/env python3
"""What the image runs, by its first argument; no shell is needed for it.

`master` and `worker` are Spark's standalone ones, `executor` and `driver` what Spark on Kubernetes starts its
containers with, `health` asks the process at work in the container, or else looks at the mirror that $SPARKMIRROR_FILE
says; everything else is a verb of sparkmirror.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from http.client import HTTPConnection, HTTPException

_JAVA_OPTION = "SPARK_JAVA_OPT_"
_EXECUTOR = "org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend"
_EXECUTOR_ARGUMENTS = {
    "--driver-url": "SPARK_DRIVER_URL",
    "--executor-id": "SPARK_EXECUTOR_ID",
    "--cores": "SPARK_EXECUTOR_CORES",
    "--app-id": "SPARK_APPLICATION_ID",
    "--hostname": "SPARK_EXECUTOR_POD_IP",
    "--resourceProfileId": "SPARK_RESOURCE_PROFILE_ID",
    "--podName": "SPARK_EXECUTOR_POD_NAME",
}
"""Of Spark's executor, by the variables that its driver sets in the pod."""
METRICS_PORT = 9404
_ANSWER_S = 5
_VERDICTS = {200: 0, 503: 1}
"""Exit codes by the status of `/health`; others, as those of listeners with users, say nothing of health."""


def command(arguments: Sequence[str], environment: Mapping[str, str]) -> list[str]:
    """The program and its arguments. Raises `KeyError` where a variable is missing that Spark's driver sets."""
    first, *others = arguments or ["--help"]
    match first:
        case "master" | "worker":
            return ["python3", "-m", "sparkmirror.mirror.engine.standalone", *arguments]
        case "executor":
            return _executor(environment)
        case "driver":
            return _driver(others, environment)
        case "health":
            return ["sparkmirror", "status", environment["SPARKMIRROR_FILE"], "--check", *others]
        case _:
            return ["sparkmirror", first, *others]


def _executor(environment: Mapping[str, str]) -> list[str]:
    home, memory = environment["SPARK_HOME"], environment["SPARK_EXECUTOR_MEMORY"]
    options = sorted((name for name in environment if name.startswith(_JAVA_OPTION)), key=_number)
    places = [
        environment.get("HADOOP_CONF_DIR", ""),
        environment.get("SPARK_CONF_DIR", ""),
        environment.get("SPARK_EXTRA_CLASSPATH", ""),
        f"{home}/jars/*",
        ".",
    ]
    told = [word for option, name in _EXECUTOR_ARGUMENTS.items() for word in (option, environment[name])]
    return [
        f"{environment['JAVA_HOME']}/bin/java",
        *(environment[name] for name in options),
        f"-Xms{memory}",
        f"-Xmx{memory}",
        "-cp",
        ":".join(filter(None, places)),
        _EXECUTOR,
        *told,
    ]


def _number(name: str) -> int:
    return int(name.removeprefix(_JAVA_OPTION))


def _driver(arguments: Sequence[str], environment: Mapping[str, str]) -> list[str]:
    address = environment["SPARK_DRIVER_BIND_ADDRESS"]
    settings = {"spark.driver.bindAddress": address, "spark.executorEnv.SPARK_DRIVER_POD_IP": address}
    told = [word for key, value in settings.items() for word in ("--conf", f"{key}={value}")]
    return [f"{environment['SPARK_HOME']}/bin/spark-submit", *told, "--deploy-mode", "client", *arguments]


def told_health(port: int = METRICS_PORT) -> int | None:
    """The exit code that the process at work means by `/health`; None if nothing there tells it without TLS."""
    connection = HTTPConnection("127.0.0.1", port, timeout=_ANSWER_S)
    try:
        connection.request("GET", "/health")
        answer = connection.getresponse()
        print(answer.read().decode("utf-8", "replace"))
        return _VERDICTS.get(answer.status)
    except (OSError, HTTPException):
        return None
    finally:
        connection.close()


def main() -> None:
    """Become the program."""
    if sys.argv[1:] == ["health"]:
        told = told_health()
        if told is not None:
            sys.exit(told)
    try:
        program = command(sys.argv[1:], os.environ)
    except KeyError as error:
        sys.exit(f"sparkmirror: {sys.argv[1]}: the variable {error.args[0]} is not set")
    os.execvp(program[0], program)  # noqa: S606


if __name__ == "__main__":
    main()
