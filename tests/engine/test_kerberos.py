"""Whole flows with Kerberos: a real KDC, tickets of one minute, sessions of fifteen seconds, and what goes wrong.

Mirrors are processes of their own: the file that Kerberos is told about by, `KRB5_CONFIG`, stands in their environment.
"""

from __future__ import annotations

import contextlib
import subprocess
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
from kafka import KafkaConsumer, OffsetAndMetadata, TopicPartition
from lab import Authority, KafkaCluster
from lab.kdc import BROKER, REALM, Kdc, missing_programs
from lab.listeners import kerberos
from lab.spark_cluster import standalone_cluster
from tests.support import mirror_process as mp
from tests.support.loaded_flow import PARTITIONS, assert_copied, running
from tests.support.secure_clusters import of_cluster

from sparkmirror.demo.jvm import QUICK_START

pytest.importorskip("gssapi", reason="there is no gssapi here; type: pip install 'sparkmirror[kerberos]'")
pytestmark = [
    pytest.mark.broker,
    pytest.mark.spark,
    pytest.mark.full,
    pytest.mark.skipif(bool(missing_programs()), reason=missing_programs()),
]

TICKET_S = 60
SESSION_MS = 15_000
RUN_S = 300
"""What a run of a few seconds may take on a machine that does other things, too."""
MIRROR = f"mirror@{REALM}"
MODULE = "com.sun.security.auth.module.Krb5LoginModule required"


@dataclass(frozen=True, slots=True)
class Realm:
    """A KDC, two clusters that trust it, and the mirror's keytab."""

    kdc: Kdc
    source: KafkaCluster
    target: KafkaCluster
    authority: Authority
    keytab: Path

    def settings(self, jaas: str) -> dict[str, str]:
        """GSSAPI on both sides, the target's over TLS."""
        how = {"sasl.mechanism": "GSSAPI", "sasl.jaas.config": f"{MODULE} {jaas};"}
        return {
            **of_cluster("A", {"security.protocol": "SASL_PLAINTEXT", **how}),
            **of_cluster("B", {**self.authority.client_settings(), "security.protocol": "SASL_SSL", **how}),
        }

    def write(self, path: Path, topic: str, jaas: str, settings: Mapping[str, str] | None = None) -> Path:
        servers = self.source.servers("KERBEROS"), self.target.servers("KERBEROSTLS")
        both = {"sasl.kerberos.service.name": "kafka", **self.settings(jaas), **(settings or {})}
        return mp.write_properties(path / "mm2.properties", *servers, topic, both)

    def by_keytab(self, keytab: Path | None = None) -> str:
        return f'useKeyTab=true storeKey=true keyTab="{keytab or self.keytab}" principal="{MIRROR}" serviceName="kafka"'

    def first_tickets(self) -> int:
        """How often the KDC gave sparkmirror's principal tickets."""
        log = (self.kdc.directory / "kdc.log").read_text()
        return sum("AS_REQ" in line and "ISSUE" in line and MIRROR in line for line in log.splitlines())

    def copied(self, topic: str) -> int:
        return sum(mp.end_offsets(self.target.bootstrap_servers, f"A.{topic}", PARTITIONS))


@pytest.fixture(scope="module")
def realm(tmp_path_factory: pytest.TempPathFactory, authority: Authority) -> Iterator[Realm]:
    with Kdc(tmp_path_factory.mktemp("kdc"), life_s=TICKET_S) as kdc, pytest.MonkeyPatch.context() as patch:
        patch.setenv("KRB5_CONFIG", str(kdc.krb5_conf))
        patch.setenv("KRB5CCNAME", f"FILE:{kdc.directory}/of-the-user")
        keys = kdc.keytab(BROKER)

        def cluster(name: str) -> KafkaCluster:
            return KafkaCluster(
                tmp_path_factory.mktemp(name),
                tls=authority,
                jvm_options=(*QUICK_START, *kdc.jvm_options),
                listeners={
                    "KERBEROS": kerberos(BROKER, keys, reauth_ms=SESSION_MS),
                    "KERBEROSTLS": kerberos(BROKER, keys, "SASL_SSL", reauth_ms=SESSION_MS),
                },
            )

        source, target = cluster("kerberos-source"), cluster("kerberos-target")
        with running(source), running(target):
            yield Realm(kdc, source, target, authority, kdc.keytab(MIRROR))
        assert not (kdc.directory / "of-the-user").exists(), "the user's own cache is not ours"


def run_once(path: Path, log: Path, *arguments: str) -> str:
    """`sparkmirror run --once` to its orderly end; returns what it said."""
    with mp.MirrorProcess(path, log, "--once", *arguments) as mirror:
        assert mirror.process.wait(RUN_S) == 0, log.read_text()[-3000:]
    return log.read_text()


def refusal(path: Path) -> str:
    """The one line that a run ends with at its start."""
    done = subprocess.run([mp.COMMAND, "run", str(path), "--once"], capture_output=True, text=True, timeout=RUN_S)
    assert done.returncode == 3, done.stderr
    lines = [line for line in done.stderr.splitlines() if "sign-in by GSSAPI" in line]
    assert len(lines) == 1, done.stderr
    return lines[0]


@contextlib.contextmanager
def under_load(realm: Realm, path: Path, topic: str) -> Iterator[mp.MirrorProcess]:
    """A mirror with a lease while the topic is written to; at the end nothing is lost, repeated or held up."""
    here = realm.source.bootstrap_servers
    mp.create_topic(here, topic, PARTITIONS)
    log = path.with_name("mirror.log")
    with mp.MirrorProcess(path, log, "-o", "json") as mirror:
        with mp.load(here, topic, PARTITIONS, per_s=500):
            mp.wait_for(lambda: realm.copied(topic) > 500, 120, "the first records")
            yield mirror
            before = realm.copied(topic)
            mp.wait_for(lambda: realm.copied(topic) > before + 500, 90, "fresh records")
        assert mirror.terminate(40) == 0, log.read_text()[-3000:]
    run_once(path, path.with_name("last.log"))
    assert_copied(realm.source, realm.target, {topic: f"A.{topic}"})


def connections(realm: Realm, mirror: mp.MirrorProcess) -> set[int]:
    """Our ends of what the pumps have open to both listeners."""
    ports = {realm.source.brokers[0].more_ports["KERBEROS"], realm.target.brokers[0].more_ports["KERBEROSTLS"]}
    open_ones = [one for worker in mirror.workers() for one in worker.net_connections("tcp")]
    return {one.laddr.port for one in open_ones if one.raddr and one.raddr.port in ports}


def test_a_whole_flow(realm: Realm, topic_name: str, tmp_path: Path) -> None:
    """Driver, lease, pumps, duties, a group, and `verify`."""
    here, there = realm.source.bootstrap_servers, realm.target.bootstrap_servers
    mp.create_topic(here, topic_name, PARTITIONS)
    mp.produce(here, topic_name, PARTITIONS, 4_000)
    first = TopicPartition(topic_name, 0)
    group = KafkaConsumer(bootstrap_servers=here, group_id=f"{topic_name}-group", enable_auto_commit=False)
    group.assign([first])
    group.commit({first: OffsetAndMetadata(432, "", -1)})
    group.close()
    groups = {"sync.group.offsets.enabled": "true", "groups": f"{topic_name}-group"}
    path = realm.write(tmp_path, topic_name, realm.by_keytab(), groups)
    run_once(path, tmp_path / "mirror.log")
    assert_copied(realm.source, realm.target, {topic_name: f"A.{topic_name}"}, 4_000)
    moved = KafkaConsumer(bootstrap_servers=there, group_id=f"{topic_name}-group")
    assert moved.committed(TopicPartition(f"A.{topic_name}", 0)) == 432
    moved.close()
    done = subprocess.run([mp.COMMAND, "verify", str(path)], capture_output=True, text=True, timeout=RUN_S)
    assert done.returncode == 0, done.stdout + done.stderr
    lint = subprocess.run([mp.COMMAND, "lint", str(path), "--connect"], capture_output=True, text=True, timeout=RUN_S)
    assert "unreachable" not in lint.stdout + lint.stderr


def test_tickets_of_a_minute_are_renewed_under_load(realm: Realm, topic_name: str, tmp_path: Path) -> None:
    """On the connections there are, for more than two minutes, and nobody is held up."""
    path = realm.write(tmp_path, topic_name, realm.by_keytab())
    with under_load(realm, path, topic_name) as mirror:
        time.sleep(10)  # for what is connected at the start only
        before, tickets = connections(realm, mirror), realm.first_tickets()
        time.sleep(2.2 * TICKET_S)
        kept, renewed = connections(realm, mirror) & before, realm.first_tickets() - tickets
        said = mirror.printed()
    print(f"of {len(before)} connections {len(kept)} were kept, first tickets got meanwhile: {renewed}")
    assert kept == before
    assert len(kept) >= 2, "what fetches and what produces"
    assert renewed >= 4, "the driver and a worker at least, each 48 s"
    assert {one["epoch"] for one in said if one.get("epoch")} in ({1}, set())


def test_a_kdc_that_dies_and_comes_back(realm: Realm, topic_name: str, tmp_path: Path) -> None:
    """While tickets live nobody needs it; then the reason is said, and it continues by itself."""
    path = realm.write(tmp_path, topic_name, realm.by_keytab())
    with under_load(realm, path, topic_name) as mirror:
        realm.kdc.kill()
        try:
            before = realm.copied(topic_name)
            time.sleep(1.5 * SESSION_MS / 1000)
            assert realm.copied(topic_name) > before + 500, "sessions are renewed with the tickets that there are"
            mp.wait_for(lambda: "no KDC answers" in mirror.log.read_text(), 3 * TICKET_S, "the reason")
        finally:
            realm.kdc.start()
        before = realm.copied(topic_name)
        mp.wait_for(lambda: realm.copied(topic_name) > before + 500, 90, "fresh records")


def test_a_dead_kdc_at_the_start(realm: Realm, topic_name: str, tmp_path: Path) -> None:
    path = realm.write(tmp_path, topic_name, realm.by_keytab())
    realm.kdc.kill()
    try:
        said = refusal(path)
    finally:
        realm.kdc.start()
    assert f"no KDC answers (Cannot contact any KDC for realm '{REALM}'): see that it runs" in said


def test_a_wrong_keytab(realm: Realm, topic_name: str, tmp_path: Path) -> None:
    """Its keys are old ones; or it is another's; or not there."""
    other = realm.kdc.keytab(f"other@{REALM}")
    path = realm.write(tmp_path, topic_name, realm.by_keytab(other))
    assert f"as {MIRROR} failed: the keytab {other} has no key of {MIRROR}: klist -k lists its keys" in refusal(path)
    path = realm.write(tmp_path, topic_name, realm.by_keytab(tmp_path / "nowhere"))
    assert f"the keytab {tmp_path}/nowhere can't be read here: No such file" in refusal(path)
    old = tmp_path / "old.keytab"
    old.write_bytes(other.read_bytes())
    realm.kdc.keytab(f"other@{REALM}")
    path = realm.write(tmp_path, topic_name, realm.by_keytab(old).replace(MIRROR, f"other@{REALM}"))
    assert f"the KDC refuses the key of other@{REALM} in the keytab {old}: export it again" in refusal(path)


def test_a_service_that_is_not_there(realm: Realm, topic_name: str, tmp_path: Path) -> None:
    jaas = realm.by_keytab().replace('"kafka"', '"kafak"')
    path = realm.write(tmp_path, topic_name, jaas, {"sasl.kerberos.service.name": "kafak"})
    assert f"no such service (Server kafak/127.0.0.1@{REALM} not found in Kerberos database)" in refusal(path)


def test_tickets_that_somebody_else_gets(realm: Realm, topic_name: str, tmp_path: Path) -> None:
    """Out of a cache, as kinit fills it; until they expire."""
    cache = tmp_path / "tickets"
    path = realm.write(tmp_path, topic_name, f'useTicketCache=true ticketCache="{cache}"')
    assert f"the ticket cache {cache} has no tickets: type kinit" in refusal(path)
    realm.kdc.tickets(MIRROR, realm.keytab, cache)
    mp.create_topic(realm.source.bootstrap_servers, topic_name, PARTITIONS)
    mp.produce(realm.source.bootstrap_servers, topic_name, PARTITIONS, 1_000)
    run_once(path, tmp_path / "mirror.log")
    assert_copied(realm.source, realm.target, {topic_name: f"A.{topic_name}"}, 1_000)
    realm.kdc.tickets(MIRROR, realm.keytab, cache, life_s=1)
    time.sleep(2)
    assert f"the ticket cache {cache} has only expired tickets: type kinit" in refusal(path)


def test_on_a_spark_cluster(realm: Realm, topic_name: str, tmp_path: Path) -> None:
    """Executors of a bare Python: gssapi comes packed, the keytab is at the same path."""
    mp.create_topic(realm.source.bootstrap_servers, topic_name, PARTITIONS)
    mp.produce(realm.source.bootstrap_servers, topic_name, PARTITIONS, 1_000)
    with standalone_cluster(tmp_path) as spark:
        settings = {**spark, "spark.executorEnv.KRB5_CONFIG": str(realm.kdc.krb5_conf)}
        path = realm.write(tmp_path, topic_name, realm.by_keytab(), settings)
        run_once(path, tmp_path / "mirror.log")
    assert_copied(realm.source, realm.target, {topic_name: f"A.{topic_name}"}, 1_000)
