"""The module that Spark imports by its name: light, and harmless wherever something is missing."""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path

import pyspark
import pytest
from pyspark.sql.types import StructType

import pyspark_sparkmirror
from sparkmirror.errors import ConfigError
from sparkmirror.source.read_options import TABLES, ReadOptions
from sparkmirror.source.tables import declared

SRC = Path(pyspark_sparkmirror.__file__).parent
HEAVY = ("numpy", "pyarrow", "pandas", "kafka", "numba", "pydantic", "sparkmirror.source", "sparkmirror.config")


def run(code: str) -> str:
    """What a new Python prints that has this tree, and nothing imported."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=SRC)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.skipif(pyspark.__version__.startswith("3."), reason="Spark 3.5 has no such sources")
def test_nothing_heavy_is_imported() -> None:
    before = "import sys, pyspark.sql.datasource; before = set(sys.modules)"
    told = "print(*sorted(set(sys.modules) - before)); print(m.DefaultSource.name())"
    code = f"{before}; import pyspark_sparkmirror as m; {told}"
    modules, name = run(code).splitlines()
    assert name == "sparkmirror"
    assert [each for each in modules.split() if each.startswith(HEAVY)] == []


@pytest.mark.parametrize("missing", ["pyspark", "pyspark.sql.datasource", "pyspark.sql"])
def test_what_is_missing_does_no_harm(missing: str) -> None:
    """As on Spark 3.5, or without a Spark."""
    hidden = f"import sys; sys.modules[{missing!r}] = None"
    code = f"{hidden}; import pyspark_sparkmirror as m; print(hasattr(m, 'DefaultSource'))"
    assert run(code) == "False"


@pytest.mark.skipif(pyspark.__version__.startswith("3."), reason="Spark 3.5 has no such sources")
def test_it_travels_by_name() -> None:
    """Spark pickles the class, and its workers import it."""
    again = pickle.loads(pickle.dumps(pyspark_sparkmirror.DefaultSource))  # noqa: S301 - our own bytes
    assert again is pyspark_sparkmirror.DefaultSource


@pytest.mark.skipif(pyspark.__version__.startswith("3."), reason="Spark 3.5 has no such sources")
def test_readers_travel_without_connections() -> None:
    from sparkmirror.source.spark_readers import streaming_rows

    given = {"kafka.bootstrap.servers": "a:9092", "subscribe": "orders"}
    schema = StructType().add("key", "binary").add("offset", "long")
    reader = streaming_rows(given, schema)
    assert reader.plan is reader.plan
    again = pickle.loads(pickle.dumps(reader))  # noqa: S301 - our own bytes
    assert again.__dict__["_plan"] is None
    assert again.plan is not reader.plan
    for each in (reader, again):
        each.stop()


@pytest.mark.skipif(pyspark.__version__.startswith("3."), reason="Spark 3.5 has no such sources")
@pytest.mark.parametrize("table", TABLES)
def test_passwords_do_not_travel(table: str, tmp_path: Path) -> None:
    """Readers go to the tasks, perhaps in clear; references go as they are."""
    from sparkmirror.source.spark_readers import rows_reader, streaming_rows

    (tmp_path / "kept").write_text("password = hunter2\n")
    file = tmp_path / "mm2.properties"
    given = {
        "config": str(file),
        "table": table,
        **({"subscribe": "orders"} if table in ("records", "batches") else {}),
    }
    name, kind = declared(ReadOptions(table=table)).split(", ")[0].split()
    schema = StructType().add(name, kind)
    readers = [rows_reader, *([streaming_rows] if "subscribe" in given else [])]

    def write(password: str) -> None:
        file.write_text(
            "clusters = A, B\nA.bootstrap.servers = a:9092\nB.bootstrap.servers = b:9092\nA->B.enabled = true\n"
            "config.providers = file\n"
            "config.providers.file.class = org.apache.kafka.common.config.provider.FileConfigProvider\n"
            "A.security.protocol = SASL_SSL\nA.sasl.mechanism = PLAIN\n"
            "A.sasl.jaas.config = org.apache.kafka.common.security.plain.PlainLoginModule required"
            f' username="u" password="{password}";\n'
        )

    write(f"${{file:{tmp_path}/kept:password}}")
    assert not any(b"hunter2" in pickle.dumps(reader(given, schema)) for reader in readers)
    write("hunter2")
    for reader in readers:
        with pytest.raises(ConfigError, match=r"option: config: has passwords.* write "):
            reader(given, schema)


@pytest.mark.skipif(pyspark.__version__.startswith("3."), reason="Spark 3.5 has no such sources")
def test_a_plan_needs_no_compiled_loops() -> None:
    """Spark plans each query, and each micro-batch that is written, in a new process."""
    told = "print([name for name in ('numba', 'pandas', 'sparkmirror.mirror') if name in sys.modules])"
    assert run(f"import sys; import sparkmirror.source.spark_readers, sparkmirror.sink.columns; {told}") == "[]"
    write = "spark_writers.query_writer({'kafka.bootstrap.servers': 'a:9092', 'topic': 'a'}, schema, overwrite=False)"
    schema = "from pyspark.sql.types import StructType; schema = StructType().add('value', 'binary')"
    assert run(f"import sys; from sparkmirror.source import spark_writers; {schema}; {write}; {told}") == "[]"
