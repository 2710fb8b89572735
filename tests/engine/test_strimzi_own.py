"""Strimzi's own example files with real brokers, unchanged but for addresses.

They are not ours to keep here: `STRIMZI_EXAMPLES=<checkout of strimzi-kafka-operator>/packaging/examples` says where
they are, and without it there is nothing to run. Our own ones of the same kinds are in `test_strimzi_examples.py`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from lab import Authority, KafkaCluster
from lab.listeners import mutual_tls, scram
from tests.support import mirror_process as mp
from tests.support.loaded_flow import running
from tests.support.secure_clusters import scram_user

from sparkmirror.demo.proof import compare_topics

_ROOT = Path(os.environ.get("STRIMZI_EXAMPLES", "/nowhere"))
_FOLDERS = "mirror-maker", "security", "metrics"
FILES = sorted(
    path
    for folder in _FOLDERS
    for path in (_ROOT / folder).rglob("*.yaml")
    if "\nkind: KafkaMirrorMaker2\n" in path.read_text()
)

pytestmark = [
    pytest.mark.broker,
    pytest.mark.spark,
    pytest.mark.full,
    pytest.mark.skipif(not FILES, reason="STRIMZI_EXAMPLES says where Strimzi's own files are"),
]

PARTITIONS = 2
RECORDS = 400
PASSWORD = "hunter2"


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory, authority: Authority) -> Iterator[tuple[KafkaCluster, KafkaCluster]]:
    """`cluster-a` and `cluster-b`, of their own: the examples copy everything."""

    def cluster(name: str) -> KafkaCluster:
        listeners = {"MTLS": mutual_tls(), "SCRAM": scram()}
        return KafkaCluster(tmp_path_factory.mktemp(name), tls=authority, listeners=listeners)

    source, target = cluster("cluster-a"), cluster("cluster-b")
    with running(source), running(target):
        yield source, target


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(_ROOT)))
def test_it_copies(
    path: Path, pair: tuple[KafkaCluster, KafkaCluster], authority: Authority, topic_name: str, tmp_path: Path
) -> None:
    source, target = pair
    mp.create_topic(source.bootstrap_servers, topic_name, PARTITIONS)
    mp.produce(source.bootstrap_servers, topic_name, PARTITIONS, RECORDS)
    (mirror,) = (one for one in yaml.safe_load_all(path.read_text()) if one and one["kind"] == "KafkaMirrorMaker2")
    text = path.read_text()
    for name, cluster in (("cluster-a", source), ("cluster-b", target)):
        prepare(name, cluster, mirror, authority, tmp_path / "secrets")
        for port in (9092, 9093):
            text = text.replace(f"{name}-kafka-bootstrap:{port}", servers_for(mirror, cluster))
    addressed = tmp_path / "mirror.yaml"
    addressed.write_text(text)
    log = tmp_path / "log"
    with mp.MirrorProcess(addressed, log, "--once", "--secrets", str(tmp_path / "secrets")) as process:
        assert process.process.wait(240) == 0, log.read_text()
    copy = topic_name if "IdentityReplicationPolicy" in text else f"cluster-a.{topic_name}"
    if "sourceConnector" not in mirror["spec"]["mirrors"][0]:
        assert "nothing is copied, and groups are translated" in log.read_text()
        assert mp.end_offsets(target.bootstrap_servers, copy, PARTITIONS) == [0] * PARTITIONS
        return
    proofs = compare_topics(source.bootstrap_servers, target.bootstrap_servers, {topic_name: copy})
    assert [proof.difference for proof in proofs] == [None] * PARTITIONS
    assert sum(proof.records for proof in proofs) == RECORDS


def servers_for(mirror: dict[str, Any], cluster: KafkaCluster) -> str:
    """The listener that speaks as the file says."""
    side = mirror["spec"]["target"]
    kind = side.get("authentication", {}).get("type")
    if kind is not None:
        return cluster.servers({"tls": "MTLS", "scram-sha-512": "SCRAM"}[kind])
    return cluster.tls_bootstrap_servers if "tls" in side else cluster.bootstrap_servers


def prepare(name: str, cluster: KafkaCluster, mirror: dict[str, Any], authority: Authority, secrets: Path) -> None:
    """What Strimzi's cluster and user operators would have made: the CA's Secret, and the user with its own."""
    certificates, user = secrets / f"{name}-cluster-ca-cert", secrets / f"{name}-user"
    for directory in (certificates, user):
        directory.mkdir(parents=True)
    (certificates / "ca.crt").write_text(authority.certificate.read_text())
    own = authority.issue(secrets / f"{name}.pem", f"{name}-user").read_text()
    key, chain = own.split("-----BEGIN CERTIFICATE-----", 1)
    (user / "user.key").write_text(key)
    (user / "user.crt").write_text("-----BEGIN CERTIFICATE-----" + chain)
    (user / "password").write_text(PASSWORD)
    if mirror["spec"]["target"].get("authentication", {}).get("type") == "scram-sha-512":
        scram_user(cluster, f"{name}-user", PASSWORD)
