#!/usr/bin/env python3
"""Spark's `spark-class` and `spark-submit`, which are shell scripts, for an image that runs without a shell.

Spark's launcher prints the command, its words ended by NUL; what it has to say comes before, ended by NUL and newline.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

_SUBMIT = "org.apache.spark.deploy.SparkSubmit"
_LAUNCHER = "org.apache.spark.launcher.Main"


def main() -> None:
    """Become the JVM that the arguments ask for; where they are wrong, end with the launcher's exit code."""
    home = os.environ.setdefault("SPARK_HOME", str(Path(__file__).resolve().parents[1]))
    arguments = sys.argv[1:]
    if Path(sys.argv[0]).name == "spark-submit":
        os.environ["PYTHONHASHSEED"] = "0"
        arguments = [_SUBMIT, *arguments]
    (core,) = Path(home, "jars").glob("spark-core_*.jar")
    os.environ["SPARK_SCALA_VERSION"] = core.name.removeprefix("spark-core_").partition("-")[0]
    java = os.path.join(os.environ["JAVA_HOME"], "bin", "java")
    launcher = [java, "-Xmx128m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp", f"{home}/jars/*", _LAUNCHER]
    asked = subprocess.run([*launcher, *arguments], stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, check=False)
    words, ended, command = asked.stdout.partition(b"\0\n")
    sys.stderr.buffer.write(words)
    sys.stderr.flush()
    program = command.rstrip(b"\0").split(b"\0")
    if asked.returncode or not ended or not program[0]:
        sys.exit(asked.returncode or 1)
    os.execv(program[0], program)  # noqa: S606


if __name__ == "__main__":
    main()
