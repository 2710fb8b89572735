"""The policy and the filter of `docs/topics.md`, written in Python, at work in a mirror."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from kafka import KafkaAdminClient
from lab import KafkaCluster
from pyspark.sql import SparkSession
from tests.support import mirror_process as mp

from sparkmirror.config import load_mm2_properties
from sparkmirror.demo.proof import compare_topics
from sparkmirror.mirror.engine.mirror import Mirror

pytestmark = [pytest.mark.broker, pytest.mark.spark]

PAGE = Path(__file__).parents[2] / "docs" / "topics.md"


def test_the_example_of_the_docs(
    spark: SparkSession,
    source_cluster: KafkaCluster,
    target_cluster: KafkaCluster,
    topic_name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    page = PAGE.read_text()
    (code,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    classes = dict(re.findall(r"^us->eu\.(\S+) = (company:\w+)$", page, re.MULTILINE))
    (tmp_path / "company.py").write_text(code)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))

    source, target = source_cluster.bootstrap_servers, target_cluster.bootstrap_servers
    for topic in (topic_name, f"{topic_name}-private"):
        mp.create_topic(source, topic, 2)
        mp.produce(source, topic, 2, 100)
    path = mp.write_properties(tmp_path / "mm2.properties", source, target, f"{topic_name}.*")
    config = load_mm2_properties(str(path))
    own = {
        "replication_policy_class": classes["replication.policy.class"],
        "topic_filter_class": classes["topic.filter.class"],
    }
    config = config.model_copy(update={"flows": tuple(flow.model_copy(update=own) for flow in config.flows)})
    Mirror(config, once=True, use_lease=False, spark=spark).run()

    remote = f"{topic_name}.from-A"
    proofs = compare_topics(source, target, {topic_name: remote})
    assert [proof.difference for proof in proofs] == [None, None]
    assert sum(proof.records for proof in proofs) == 100
    admin = KafkaAdminClient(bootstrap_servers=target)
    assert {topic for topic in admin.list_topics() if topic_name in topic} == {remote}
    admin.close()
