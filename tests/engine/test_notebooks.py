"""The notebooks of `examples/notebooks`, cell by cell on real clusters."""

from __future__ import annotations

import json
from pathlib import Path

import pyspark
import pytest
from kafka import KafkaProducer
from lab import KafkaCluster
from pyspark.sql import SparkSession
from tests.support import mirror_process as mp

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.full]

NOTEBOOKS = Path(__file__).parents[2] / "examples" / "notebooks"
COUNT = 200


@pytest.fixture
def clusters(tmp_path: Path) -> tuple[KafkaCluster, KafkaCluster]:
    """A pair of its own: the notebooks' topics have plain names."""
    return KafkaCluster(tmp_path / "source"), KafkaCluster(tmp_path / "target")


@pytest.mark.parametrize("notebook", sorted(NOTEBOOKS.glob("*.ipynb")), ids=lambda path: path.stem)
def test_its_cells_run(
    notebook: Path,
    clusters: tuple[KafkaCluster, KafkaCluster],
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if pyspark.__version__.startswith("3.") and 'format(\\"sparkmirror\\")' in notebook.read_text():
        pytest.skip("Spark 3.5 has no such sources")
    monkeypatch.chdir(tmp_path)
    cells = [cell for cell in json.loads(notebook.read_text())["cells"] if cell["cell_type"] == "code"]
    assert len(cells) > 2
    with clusters[0] as source, clusters[1] as target:
        places = {
            "localhost:9092": source.bootstrap_servers,
            "localhost:9093": target.bootstrap_servers,
            '"checkpoints/': f'"{tmp_path}/checkpoints/',  # the session's JVM has another directory
            '"rows"': f'"{tmp_path}/rows"',
        }
        mp.create_topic(source.bootstrap_servers, "orders", 3)
        for topic in ("orders-masked", "totals"):
            mp.create_topic(target.bootstrap_servers, topic, 3)
        producer = KafkaProducer(bootstrap_servers=source.bootstrap_servers)
        for number in range(COUNT):
            value = json.dumps({"number": number, "email": f"someone{number}@example.com"}).encode()
            producer.send("orders", value, key=b"%d" % number)
        producer.close()
        mp.write_properties(tmp_path / "mm2.properties", source.bootstrap_servers, target.bootstrap_servers, "orders")
        names = {"spark": spark}
        for cell in cells:
            code = "".join(cell["source"])
            for written, address in places.items():
                code = code.replace(written, address)
            exec(code, names)  # noqa: S102 - the notebook's own code
