"""Which Spark is taken, and what is said where there is none of the range: one line, by the verbs that need it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pyspark
import pytest
from packaging.requirements import Requirement

from sparkmirror.errors import SetupError
from sparkmirror.mirror.engine import installed_spark
from sparkmirror.mirror.engine.installed_spark import NEWEST, OLDEST, require_spark

ROOT = Path(__file__).parents[2]
HIDDEN = "import sys; sys.modules['pyspark'] = None"
"""As if it were not installed."""
EACH = f"""{HIDDEN}
import json
from typer.testing import CliRunner
from sparkmirror.cli.app import app
for words in json.loads(sys.stdin.read()):
    result = CliRunner().invoke(app, words)
    print(json.dumps([words[0], getattr(result.exception, "exit_code", result.exit_code), repr(result.exception)]))
"""
FILE = """\
clusters = A, B
A.bootstrap.servers = 127.0.0.1:1
B.bootstrap.servers = 127.0.0.1:1
A->B.enabled = true
"""
WORKER = """\
bootstrap.servers = 127.0.0.1:1
group.id = workers
config.storage.topic = configs
offset.storage.topic = offsets
status.storage.topic = statuses
"""


@pytest.fixture
def files(tmp_path: Path) -> dict[str, str]:
    """Paths of files that can be run, but for their clusters, which are away."""
    texts = {
        "mm2": FILE,
        "worker": WORKER,
        "consumer": "bootstrap.servers = 127.0.0.1:1\ngroup.id = old\n",
        "producer": "bootstrap.servers = 127.0.0.1:1\n",
    }
    for name, text in texts.items():
        (tmp_path / f"{name}.properties").write_text(text)
    return {name: str(tmp_path / f"{name}.properties") for name in texts}


def without_spark(commands: list[list[str]]) -> dict[str, tuple[int, str]]:
    """Exit code and exception of each verb in a Python that has no PySpark."""
    ran = subprocess.run([sys.executable, "-c", EACH], input=json.dumps(commands), capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    return {verb: (code, error) for verb, code, error in map(json.loads, ran.stdout.splitlines())}


def test_verbs_that_need_spark_say_so(files: dict[str, str]) -> None:
    legacy = ["--consumer.config", files["consumer"], "--producer.config", files["producer"], "--include", "a"]
    commands = [
        ["run", files["mm2"]],
        ["verify", files["mm2"]],
        ["serve", files["worker"]],
        ["legacy", *legacy],
        ["demo"],
    ]
    came = without_spark(commands)
    assert set(came) == {"run", "verify", "serve", "legacy", "demo"}
    for verb, (code, error) in came.items():
        assert code == 3
        assert "PySpark is needed and can't be imported" in error
        assert f"pip install 'sparkmirror[{'demo' if verb == 'demo' else 'spark'}]'" in error


def test_the_other_verbs_need_none(files: dict[str, str]) -> None:
    file = files["mm2"]
    commands = [
        ["config", file],
        ["lint", file],
        ["convert", file, "--to", "strimzi"],
        ["losses", file],
        ["pause", file],
        ["resume", file],
        ["throttle", file, "1M"],
        ["offsets", "translate", file, "--topic", "orders", "--partition", "0", "--offset", "1"],
        ["version"],
    ]
    came = without_spark(commands)
    assert len(came) == len(commands)
    for verb, (_, error) in came.items():
        assert "pyspark" not in error.lower(), verb
        assert "Import" not in error, verb
    assert came["config"][0] == 0
    assert came["convert"][0] == 0


def test_it_is_one_line_and_exit_code_3(files: dict[str, str]) -> None:
    command = f"{HIDDEN}; from sparkmirror.cli import main; main()"
    ran = subprocess.run([sys.executable, "-c", command, "run", files["mm2"]], capture_output=True, text=True)
    assert ran.returncode == 3
    assert len(ran.stderr.splitlines()) == 1, ran.stderr
    assert ran.stderr.startswith("sparkmirror: PySpark is needed")


def test_the_package_brings_no_spark_and_the_extra_one_of_the_range() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    base = {Requirement(line).name for line in project["dependencies"]}
    assert not base & {"pyspark", "py4j"}
    (asked,) = map(Requirement, project["optional-dependencies"]["spark"])
    for minor, taken in {
        OLDEST: True,
        NEWEST: True,
        (OLDEST[0], OLDEST[1] - 1): False,
        (NEWEST[0], NEWEST[1] + 1): False,
    }.items():
        assert asked.specifier.contains("{}.{}.0".format(*minor)) is taken, minor


def test_a_standalone_daemon_names_what_is_missing(tmp_path: Path) -> None:
    """Without a traceback, also where `SPARK_HOME` is to bring it."""
    code = f"{HIDDEN}; from sparkmirror.mirror.engine.standalone import main; sys.exit(main(['worker', 'spark://h:1']))"
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "SPARK_HOME": str(tmp_path)},
    )
    assert (done.returncode, done.stdout) == (3, "")
    assert re.fullmatch(r"sparkmirror: PySpark is needed and can't be imported .*\n", done.stderr), done.stderr


@pytest.mark.parametrize("version", ["3.5.0", "3.5.2-amzn-1", "3.5.4.7.3.1.0-197", "4.0.5", "4.3.0"])
def test_versions_that_are_taken(monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    monkeypatch.delenv("SPARK_HOME", raising=False)
    monkeypatch.setattr(pyspark, "__version__", version)
    require_spark()


@pytest.mark.parametrize(("version", "age"), [("3.4.4", "old"), ("2.4.8", "old"), ("4.4.0", "new"), ("5.0.0", "new")])
def test_versions_that_are_refused(monkeypatch: pytest.MonkeyPatch, version: str, age: str) -> None:
    monkeypatch.setattr(pyspark, "__version__", version)
    with pytest.raises(SetupError, match=f"PySpark {version} at .* is too {age}, sparkmirror runs on 3.5 to 4.3: pip"):
        require_spark()


def test_jars_of_another_spark(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """`SPARK_HOME` names the JVM's side, which only its own PySpark can drive."""
    (tmp_path / "jars").mkdir()
    (tmp_path / "jars" / "spark-core_2.12-3.5.2-amzn-1.jar").touch()
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    monkeypatch.setattr(pyspark, "__version__", "4.1.1")
    with pytest.raises(SetupError, match=r"can't drive the Spark 3\.5 that SPARK_HOME names"):
        require_spark()
    monkeypatch.setattr(pyspark, "__version__", "3.5.2")
    require_spark()


def test_the_pyspark_of_spark_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Where this Python has none of its own; `tests/versions/test_sparks.py` runs flows on it."""
    library = tmp_path / "python" / "lib"
    library.mkdir(parents=True)
    for name in ("pyspark.zip", "py4j-0.10.9.7-src.zip"):
        (library / name).touch()
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    monkeypatch.setattr(sys, "path", before := list(sys.path))
    require_spark()
    assert sys.path == before, "this Python's own comes first"
    monkeypatch.setattr(installed_spark, "find_spec", lambda name: None)
    monkeypatch.setattr(sys, "path", list(before))
    require_spark()
    assert sys.path == [*before, str(library / "py4j-0.10.9.7-src.zip"), str(library / "pyspark.zip")]
