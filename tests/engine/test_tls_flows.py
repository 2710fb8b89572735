"""Flows with TLS on both sides: the same exactness, and refusals that end a run with one line."""

from __future__ import annotations

import random
import signal
import time
from collections.abc import Mapping
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, pkcs12
from cryptography.x509 import load_pem_x509_certificate
from lab import Authority, KafkaCluster
from tests.support import mirror_process as mp
from tests.support.in_process import sparkmirror

from sparkmirror.config import load_mm2_properties
from sparkmirror.demo.proof import compare_topics
from sparkmirror.errors import ConfigError
from sparkmirror.kafka.cluster.admin import ClusterAdmin
from sparkmirror.mirror.engine.lease import Lease
from sparkmirror.mirror.engine.mirror import Mirror

PARTITIONS = 4
SECRET = "hunter2-of-the-truststore"
REFERENCE = {
    "config.providers": "env",
    "config.providers.env.class": "EnvVarConfigProvider",
    "A.ssl.truststore.password": "${env:PATH}",
}
"""A secret that does not travel, wherever it leads."""


def tls_on_both_sides(authority: Authority) -> dict[str, str]:
    return {f"{alias}.{key}": value for alias in ("A", "B") for key, value in authority.client_settings().items()}


def write(path: Path, source: str, target: str, topic: str, settings: Mapping[str, str]) -> Path:
    return mp.write_properties(path / "mm2.properties", source, target, topic, settings)


def assert_identical(source: KafkaCluster, target: KafkaCluster, topic: str, records: int) -> None:
    proofs = compare_topics(source.bootstrap_servers, target.bootstrap_servers, {topic: f"A.{topic}"})
    assert [proof.difference for proof in proofs] == [None] * PARTITIONS
    assert sum(proof.records for proof in proofs) >= records


@pytest.mark.full
@pytest.mark.broker
@pytest.mark.spark
def test_a_copy_is_identical_and_keeps_its_secrets(
    source_cluster: KafkaCluster, target_cluster: KafkaCluster, authority: Authority, topic_name: str, tmp_path: Path
) -> None:
    """Small and large batches; a password in the file, another one behind a reference, and a certificate of ours."""
    mp.create_topic(source_cluster.bootstrap_servers, topic_name, PARTITIONS)
    mp.produce(source_cluster.bootstrap_servers, topic_name, PARTITIONS, 8_000)
    mp.produce(source_cluster.bootstrap_servers, topic_name, PARTITIONS, 60, codec=None, size=400_000)
    root = load_pem_x509_certificate(authority.certificate.read_bytes())
    truststore = tmp_path / "trust.p12"
    encryption = BestAvailableEncryption(SECRET.encode())
    truststore.write_bytes(pkcs12.serialize_key_and_certificates(None, None, None, [root], encryption))
    secrets = tmp_path / "secrets.properties"
    secrets.write_text(f"truststore = {SECRET}\n")
    properties = write(
        tmp_path,
        source_cluster.tls_bootstrap_servers,
        target_cluster.tls_bootstrap_servers,
        topic_name,
        tls_on_both_sides(authority)
        | {
            "config.providers": "file",
            "config.providers.file.class": "org.apache.kafka.common.config.provider.FileConfigProvider",
            "A.ssl.truststore.type": "PKCS12",
            "A.ssl.truststore.location": str(truststore),
            "A.ssl.truststore.password": f"${{file:{secrets}:truststore}}",
            "B.ssl.truststore.type": "PKCS12",
            "B.ssl.truststore.location": str(truststore),
            "B.ssl.truststore.password": SECRET,
            "B.ssl.keystore.type": "PEM",
            "B.ssl.keystore.location": str(authority.issue(tmp_path / "keys.pem", "mirror")),
        },
    )
    log = tmp_path / "mirror.log"
    command_lines: set[str] = set()
    with mp.MirrorProcess(properties, log, "--once", "--verbose") as mirror:
        while mirror.process.poll() is None:
            command_lines.update(map(mp.command_line, mirror.family()))
            time.sleep(1.0)
        assert mirror.process.returncode == 0, log.read_text()[-3000:]
    assert_identical(source_cluster, target_cluster, topic_name, 8_060)
    assert len(command_lines) > 1
    assert SECRET not in log.read_text() + "\n".join(command_lines)


@pytest.mark.full
@pytest.mark.broker
@pytest.mark.spark
def test_workers_killed_under_load(
    source_cluster: KafkaCluster, target_cluster: KafkaCluster, authority: Authority, topic_name: str, tmp_path: Path
) -> None:
    mp.create_topic(source_cluster.bootstrap_servers, topic_name, PARTITIONS)
    properties = write(
        tmp_path,
        source_cluster.tls_bootstrap_servers,
        target_cluster.tls_bootstrap_servers,
        topic_name,
        tls_on_both_sides(authority),
    )
    log = tmp_path / "mirror.log"
    with mp.load(source_cluster.bootstrap_servers, topic_name, PARTITIONS), mp.MirrorProcess(properties, log) as mirror:
        for kill in range(1, 5):
            enough = 3000 * kill
            mp.wait_for(lambda enough=enough: copied(target_cluster, topic_name) > enough, 120, "fresh records")  # type: ignore[misc]
            mp.wait_for(lambda: bool(mirror.workers()), 180, "a worker runs")
            random.choice(mirror.workers()).send_signal(signal.SIGKILL)
        mp.wait_for(lambda: copied(target_cluster, topic_name) > 15_000, 180, "fresh records after the last kill")
        assert mirror.terminate() == 0
    with mp.MirrorProcess(properties, log, "--once") as last:
        assert last.process.wait(90) == 0, log.read_text()[-3000:]
    assert_identical(source_cluster, target_cluster, topic_name, 15_000)


def copied(target: KafkaCluster, topic: str) -> int:
    return sum(mp.end_offsets(target.bootstrap_servers, f"A.{topic}", PARTITIONS))


@pytest.mark.broker
def test_the_lease_is_held_over_tls(
    target_cluster: KafkaCluster, authority: Authority, topic_name: str, tmp_path: Path
) -> None:
    servers = target_cluster.tls_bootstrap_servers
    path = write(tmp_path, servers, servers, topic_name, tls_on_both_sides(authority))
    config = load_mm2_properties(str(path)).flows[0].target
    with ClusterAdmin.connect(config, "test", 20) as admin:
        admin.create_compacted_topic(topic_name, 1, 1)
    lease = Lease(config, f"{topic_name}-mm2", topic_name, 6000)
    lease.start()
    try:
        mp.wait_for(lease.held, 180, f"the lease: {lease.refused}")
    finally:
        lease.release()


@pytest.mark.broker
@pytest.mark.parametrize("trouble", ["stranger", "other host", "plaintext port", "no file"])
def test_a_run_that_can_not_begin_ends_with_one_line(
    source_cluster: KafkaCluster, target_cluster: KafkaCluster, authority: Authority, tmp_path: Path, trouble: str
) -> None:
    source, target = source_cluster.tls_bootstrap_servers, target_cluster.tls_bootstrap_servers
    settings = tls_on_both_sides(authority)
    code = 3
    match trouble:
        case "stranger":
            settings["B.ssl.truststore.location"] = str(Authority(tmp_path / "stranger").certificate)
            says = f"cluster B can't be reached at {target}: its certificate is not trusted"
        case "other host":
            target = target.replace("127.0.0.1", "localhost")
            says = f"cluster B can't be reached at {target}: its certificate is not for this host"
        case "plaintext port":
            source = source_cluster.bootstrap_servers
            says = f"cluster A can't be reached at {source}: it hung up during the TLS handshake"
        case _:
            settings["A.ssl.truststore.location"] = "/no/such/file"
            code, says = 2, "cluster A: ssl.truststore.location: /no/such/file can't be read: No such file"
    properties = write(tmp_path, source, target, "anything", settings)
    began = time.monotonic()
    run = sparkmirror("run", str(properties), "--once")
    lines = [line for line in run.stderr.splitlines() if line.startswith("sparkmirror: ")]
    assert (run.returncode, len(lines)) == (code, 1), run.stderr
    assert says in lines[0]
    assert "Traceback" not in run.stderr
    assert time.monotonic() - began < 120


@pytest.mark.parametrize(
    ("spark", "fine"),
    [
        ({}, True),
        ({"spark.master": "local[2]"}, True),
        ({"spark.master": "spark://x:7077"}, False),
        ({"spark.master": "yarn", "spark.authenticate": "true"}, False),
        ({"spark.master": "yarn", "spark.network.crypto.enabled": "true"}, False),
        ({"spark.master": "yarn", "spark.authenticate": "true", "spark.network.crypto.enabled": "true"}, True),
        ({"spark.master": "yarn", "spark.authenticate": "true", "spark.ssl.rpc.enabled": "true"}, True),
    ],
)
@pytest.mark.parametrize("secret", [True, False])
def test_secrets_do_not_travel_in_clear(tmp_path: Path, spark: Mapping[str, str], fine: bool, secret: bool) -> None:
    settings = {"security.protocol": "SSL", "ssl.truststore.location": "/no/such/file", **spark}
    settings |= REFERENCE
    if secret:
        settings["B.ssl.truststore.password"] = SECRET
    properties = write(tmp_path, "127.0.0.1:1", "127.0.0.1:1", "anything", settings)
    expected = "can't be read" if fine or not secret else "set spark.authenticate and spark.network.crypto.enabled"
    with pytest.raises(ConfigError, match=expected) as caught:
        Mirror(load_mm2_properties(str(properties)), once=True).run()
    assert SECRET not in str(caught.value)
