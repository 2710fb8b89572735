"""Signing in to a real broker by a real KDC, whose tickets live for twelve seconds, and what each trouble is called."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from kafka.protocol.metadata import MetadataRequest
from lab import KafkaCluster
from lab.kdc import BROKER, REALM, Kdc, missing_programs
from lab.listeners import kerberos
from pydantic import SecretStr

from sparkmirror.config import ClusterConfig
from sparkmirror.config.kerberos_login import KERBEROS_MODULE
from sparkmirror.config.model import SaslConfig
from sparkmirror.demo.jvm import QUICK_START
from sparkmirror.errors import ClusterUnreachable
from sparkmirror.kafka.cluster.admin import ClusterAdmin
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.cluster.tickets import SIGN_IN_S, keeper

pytest.importorskip("gssapi", reason="there is no gssapi here; type: pip install 'sparkmirror[kerberos]'")
pytestmark = [pytest.mark.full, pytest.mark.skipif(bool(missing_programs()), reason=missing_programs())]

TICKET_S = 12
SESSION_MS = 2_000
MIRROR = f"mirror@{REALM}"


@dataclass(frozen=True, slots=True)
class Realm:
    """A KDC and a cluster that trusts it."""

    kdc: Kdc
    cluster: KafkaCluster

    def config(self, principal: str, keytab: Path) -> ClusterConfig:
        """What signs in as the principal; no two are told apart but by these."""
        jaas = f'{KERBEROS_MODULE} required useKeyTab=true keyTab="{keytab}" principal="{principal}";'
        return ClusterConfig(
            alias="A",
            bootstrap_servers=(self.cluster.servers("KERBEROS"),),
            security_protocol="SASL_PLAINTEXT",
            sasl=SaslConfig(mechanism="GSSAPI", kerberos_service_name="kafka", jaas_config=SecretStr(jaas)),
        )


@pytest.fixture(scope="module")
def realm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Realm]:
    with Kdc(tmp_path_factory.mktemp("kdc"), life_s=TICKET_S) as kdc, pytest.MonkeyPatch.context() as patch:
        patch.setenv("KRB5_CONFIG", str(kdc.krb5_conf))
        listener = kerberos(BROKER, kdc.keytab(BROKER), reauth_ms=SESSION_MS)
        cluster = KafkaCluster(
            tmp_path_factory.mktemp("kerberos"),
            jvm_options=(*QUICK_START, *kdc.jvm_options),
            listeners={"KERBEROS": listener},
        )
        cluster.start()
        try:
            yield Realm(kdc, cluster)
        finally:
            cluster.cleanup(keep_logs=True)


@pytest.fixture(autouse=True)
def new_tickets() -> None:
    keeper.cache_clear()


def refusal(config: ClusterConfig) -> str:
    with pytest.raises(ClusterUnreachable) as caught:
        ClusterClient(config, "test").metadata([])
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_connections_are_kept_over_many_tickets(realm: Realm) -> None:
    """Ours, and kafka-python's, which renews its sessions by itself."""
    config = realm.config(MIRROR, realm.kdc.keytab(MIRROR))
    client = ClusterClient(config, "test")
    client.metadata([])
    connection = client.broker(1)
    with ClusterAdmin.connect(config, "test", 20) as admin:
        until = time.monotonic() + 2.5 * TICKET_S
        while time.monotonic() < until:
            client.ask_any(lambda: MetadataRequest(topics=[]))
            assert admin.topics() == {}
            time.sleep(0.2)
    assert client.broker(1) is connection
    client.close()


def test_while_tickets_live_nobody_waits_for_a_kdc_that_hangs(realm: Realm) -> None:
    config = realm.config(MIRROR, realm.kdc.keytab(MIRROR))
    client = ClusterClient(config, "test")
    client.metadata([])
    began = time.monotonic()
    realm.kdc.pause()
    try:
        while time.monotonic() < began + TICKET_S - SIGN_IN_S - 0.2:
            asked = time.monotonic()
            client.hang_up()
            client.metadata([])
            assert time.monotonic() - asked < 2, "a new sign-in, with the tickets that there are"
            time.sleep(0.1)
    finally:
        realm.kdc.resume()
    client.hang_up()
    time.sleep(TICKET_S)
    client.metadata([])
    client.close()


def test_each_trouble_has_its_words(realm: Realm, tmp_path: Path) -> None:
    kdc = realm.kdc
    gone, locked, keys = kdc.keytab(f"gone@{REALM}"), kdc.keytab(f"locked@{REALM}"), kdc.keytab(MIRROR)
    kdc.administer(f"delprinc -force gone@{REALM}")
    kdc.administer(f"modprinc -allow_tix locked@{REALM}")
    assert f"the KDC knows no gone@{REALM}: correct principal" in refusal(realm.config(f"gone@{REALM}", gone))
    assert f"locked@{REALM}, which is locked" in refusal(realm.config(f"locked@{REALM}", locked))
    assert "has no key of other@ELSEWHERE" in refusal(realm.config("other@ELSEWHERE", keys))
    junk = tmp_path / "junk.keytab"
    junk.write_text("junk")
    assert f"the keytab {junk} has no key of {MIRROR}" in refusal(realm.config(MIRROR, junk))


def test_a_broker_that_has_other_keys_than_the_kdc(realm: Realm) -> None:
    """The last one here: the broker's keys are not mended."""
    config = realm.config(MIRROR, realm.kdc.keytab(MIRROR))
    realm.kdc.keytab(BROKER, name="not-the-brokers.keytab")
    assert f"sign-in by GSSAPI as {MIRROR} is refused: Authentication failed" in refusal(config)
