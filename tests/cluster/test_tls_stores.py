"""What a cluster's ssl settings make of files and text, and what real brokers make of that."""

from __future__ import annotations

import shutil
import ssl
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import pytest
import trustme
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.serialization import pkcs12
from cryptography.x509 import load_pem_x509_certificate
from lab import Authority, KafkaCluster

from sparkmirror.config.model import ClusterConfig, SslConfig
from sparkmirror.demo.java import java_home
from sparkmirror.errors import ClusterUnreachable, ConfigError
from sparkmirror.kafka.cluster.admin import ClusterAdmin
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.cluster.tls_contexts import ssl_context

AUTHORITY = trustme.CA()
ROOT = load_pem_x509_certificate(AUTHORITY.cert_pem.bytes())
SERVER = AUTHORITY.issue_cert("127.0.0.1")
OURS = AUTHORITY.issue_cert("us")
KEY: Any = serialization.load_pem_private_key(OURS.private_key_pem.bytes(), None)
CHAIN = [load_pem_x509_certificate(pem.bytes()) for pem in OURS.cert_chain_pems]
CHAIN_PEM = b"".join(pem.bytes() for pem in OURS.cert_chain_pems).decode()
SECRET = "hunter2"


def key_pem(password: str = "") -> str:
    how = serialization.BestAvailableEncryption(password.encode()) if password else serialization.NoEncryption()
    pem: bytes = KEY.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, how)
    return pem.decode()


def config(*servers: str, **settings: Any) -> ClusterConfig:
    return ClusterConfig(
        alias="us",
        bootstrap_servers=servers or ("127.0.0.1:1",),
        security_protocol="SSL",
        ssl=SslConfig.model_validate(settings),
    )


def shake(settings: dict[str, Any], *, ask: bool = False, server: Any = SERVER, name: str = "127.0.0.1") -> Any:
    """A handshake in memory; what our side shows of itself, if it is asked for that."""
    context = ssl_context(config(**settings))
    assert context is not None
    theirs = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.configure_cert(theirs)
    if ask:
        theirs.verify_mode = ssl.CERT_REQUIRED
        AUTHORITY.configure_trust(theirs)
    up, down = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = context.wrap_bio(down, up, server_hostname=name)
    broker = theirs.wrap_bio(up, down, server_side=True)
    for _ in range(3):
        for side in (client, broker):
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                continue
    broker.write(b"hello")
    assert client.read(5) == b"hello"
    return broker.getpeercert()


def common_name(shown: Any) -> list[str]:
    return [value for kind, value in shown["subjectAltName"] if kind == "DNS"]


@pytest.fixture
def ca_pem(tmp_path: Path) -> str:
    path = tmp_path / "ca.pem"
    AUTHORITY.cert_pem.write_to_path(path)
    return str(path)


# --- whom we trust ------------------------------------------------------------------------------------


def test_no_context_without_tls() -> None:
    assert ssl_context(ClusterConfig(alias="us", bootstrap_servers=("x:1",))) is None


def test_a_pem_truststore(ca_pem: str) -> None:
    shake({"truststore_type": "PEM", "truststore_location": ca_pem})


@pytest.mark.parametrize("between", ["\n", " ", "\r\n", "   "])
def test_certificates_in_the_file_itself(between: str) -> None:
    text = between.join(AUTHORITY.cert_pem.bytes().decode().split("\n"))
    shake({"truststore_type": "PEM", "truststore_certificates": text})


def test_several_certificates() -> None:
    text = trustme.CA().cert_pem.bytes().decode() + "a comment\n" + AUTHORITY.cert_pem.bytes().decode()
    shake({"truststore_type": "PEM", "truststore_certificates": text})


@pytest.mark.parametrize("type_", ["JKS", "PKCS12"])
@pytest.mark.parametrize("password", [SECRET, ""])
def test_a_pkcs12_truststore_whatever_it_is_called(tmp_path: Path, type_: str, password: str) -> None:
    how = serialization.BestAvailableEncryption(password.encode()) if password else serialization.NoEncryption()
    path = tmp_path / "trust.jks"
    path.write_bytes(pkcs12.serialize_key_and_certificates(None, None, None, [ROOT], how))
    shake({"truststore_type": type_, "truststore_location": str(path), "truststore_password": password})


def keytool(*arguments: str) -> None:
    tool = shutil.which("keytool", path=f"{java_home()}/bin")
    assert tool is not None, "this Java has no keytool"
    quick = ("-J-XX:TieredStopAtLevel=1", "-J-XX:+UseSerialGC")
    subprocess.run([tool, *quick, *arguments], check=True, capture_output=True, timeout=60)


def test_a_truststore_that_keytool_made(tmp_path: Path, ca_pem: str) -> None:
    path = str(tmp_path / "trust.jks")
    keytool("-importcert", "-noprompt", "-alias", "ca", "-file", ca_pem, "-keystore", path, "-storepass", SECRET)
    shake({"truststore_location": path, "truststore_password": SECRET})


@pytest.fixture(scope="module")
def jks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Real JKS files by `keytool`: `trust.jks`, and `keys.jks` whose key has a password of its own."""
    directory = tmp_path_factory.mktemp("jks")
    ca, keys = directory / "ca.pem", directory / "keys.p12"
    AUTHORITY.cert_pem.write_to_path(ca)
    how = serialization.BestAvailableEncryption(SECRET.encode())
    keys.write_bytes(pkcs12.serialize_key_and_certificates(b"us", KEY, CHAIN[0], [ROOT], how))
    for name in ("ca", "again"):  # two entries
        keytool(
            *("-importcert", "-noprompt", "-alias", name, "-file", str(ca), "-storetype", "JKS"),
            *("-keystore", str(directory / "trust.jks"), "-storepass", SECRET),
        )
    for name, password in (("keys", "sesame-\u20ac"), ("same", SECRET)):
        keytool(
            *("-importkeystore", "-noprompt", "-srcalias", "us", "-srckeystore", str(keys), "-srcstorepass", SECRET),
            *("-destkeystore", str(directory / f"{name}.jks"), "-deststoretype", "JKS", "-deststorepass", SECRET),
            *("-destkeypass", password),
        )
    return directory


@pytest.mark.parametrize("type_", ["JKS", "PKCS12"])
@pytest.mark.parametrize("password", [SECRET, ""])
def test_a_jks_truststore(jks: Path, type_: str, password: str) -> None:
    settings = {"truststore_location": str(jks / "trust.jks"), "truststore_password": password}
    shake(settings | {"truststore_type": type_})


@pytest.mark.parametrize("name", ["keys", "same"])
def test_a_jks_keystore(jks: Path, name: str) -> None:
    settings = {
        "truststore_location": str(jks / "trust.jks"),
        "keystore_location": str(jks / f"{name}.jks"),
        "keystore_password": SECRET,
        "key_password": "sesame-\u20ac" if name == "keys" else "",
    }
    assert common_name(shake(settings, ask=True)) == ["us"]


def test_jks_files_that_can_not_be_used(jks: Path, tmp_path: Path) -> None:
    trust, keys = str(jks / "trust.jks"), str(jks / "keys.jks")
    assert "its password is wrong; check ssl.truststore.password" in wrong(
        truststore_location=trust, truststore_password="other"
    )
    assert f"{keys} holds no certificate" in wrong(truststore_location=keys, truststore_password=SECRET)
    assert f"{trust} holds no key with" in wrong(keystore_location=trust, keystore_password=SECRET)
    assert "check ssl.key.password" in wrong(keystore_location=keys, keystore_password=SECRET)
    whole = Path(keys).read_bytes()
    for size in (4, 11, 12, 40, len(whole) // 2, len(whole) - 30):
        cut = tmp_path / "cut.jks"
        cut.write_bytes(whole[:size])
        assert "damaged" in wrong(keystore_location=str(cut))
        assert "damaged" in wrong(keystore_location=str(cut), keystore_password=SECRET)


def test_a_brokers_own_certificate_may_be_what_is_trusted() -> None:
    text = SERVER.cert_chain_pems[0].bytes().decode()
    shake({"truststore_type": "PEM", "truststore_certificates": text})


def test_an_issuer_that_is_no_root_may_be_what_is_trusted() -> None:
    between = AUTHORITY.create_child_ca()
    text = between.cert_pem.bytes().decode()
    shake({"truststore_type": "PEM", "truststore_certificates": text}, server=between.issue_cert("127.0.0.1"))


def test_without_a_truststore_the_system_decides() -> None:
    with pytest.raises(ssl.SSLCertVerificationError):
        shake({})


def test_another_host(ca_pem: str) -> None:
    settings = {"truststore_type": "PEM", "truststore_location": ca_pem}
    with pytest.raises(ssl.SSLCertVerificationError):
        shake(settings, name="localhost")
    shake(settings | {"endpoint_identification_algorithm": ""}, name="localhost")


@pytest.mark.parametrize(
    ("enabled", "protocol", "lowest", "highest"),
    [
        (("TLSv1.2", "TLSv1.3"), "TLSv1.3", "TLSv1_2", "TLSv1_3"),
        (("TLSv1.3",), "TLSv1.3", "TLSv1_3", "TLSv1_3"),
        (("TLSv1.2",), "TLSv1.3", "TLSv1_2", "TLSv1_2"),
        (("TLSv1.2", "TLSv1.3"), "TLSv1.2", "TLSv1_2", "TLSv1_2"),
        (("TLSv1.2", "TLSv1.3"), "TLS", "TLSv1_2", "TLSv1_3"),
    ],
)
def test_versions(enabled: tuple[str, ...], protocol: str, lowest: str, highest: str) -> None:
    context = ssl_context(config(enabled_protocols=enabled, protocol=protocol))
    assert context is not None
    assert (context.minimum_version.name, context.maximum_version.name) == (lowest, highest)


def test_the_same_content_gives_the_same_context_and_a_renewed_file_another(ca_pem: str) -> None:
    settings = config(truststore_type="PEM", truststore_location=ca_pem)
    first = ssl_context(settings)
    assert ssl_context(settings) is first
    trustme.CA().cert_pem.write_to_path(ca_pem)
    assert ssl_context(settings) is not first


# --- who we are ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("password", ["", SECRET])
@pytest.mark.parametrize("place", ["PEM text", "PEM file", "PKCS12"])
def test_our_own_certificate(tmp_path: Path, place: str, password: str, monkeypatch: pytest.MonkeyPatch) -> None:
    settings: dict[str, Any] = {
        "truststore_type": "PEM",
        "truststore_certificates": AUTHORITY.cert_pem.bytes().decode(),
    }
    path = tmp_path / "keys"
    if place == "PKCS12":
        how = serialization.BestAvailableEncryption(password.encode()) if password else serialization.NoEncryption()
        path.write_bytes(pkcs12.serialize_key_and_certificates(b"us", KEY, CHAIN[0], [ROOT], how))
        settings |= {"keystore_location": str(path), "keystore_password": password}
    elif place == "PEM file":
        path.write_text(key_pem(password) + CHAIN_PEM)
        settings |= {"keystore_type": "PEM", "keystore_location": str(path), "key_password": password}
    else:
        settings |= {
            "keystore_type": "PEM",
            "keystore_key": key_pem(password).replace("\n", " "),
            "keystore_certificate_chain": CHAIN_PEM.replace("\n", " "),
            "key_password": password,
        }
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    assert common_name(shake(settings, ask=True)) == ["us"]
    assert list(temporary.iterdir()) == []


def wrong(**settings: Any) -> str:
    with pytest.raises(ConfigError) as caught:
        ssl_context(config(**settings))
    line = str(caught.value)
    assert line.startswith("cluster us: ssl.")
    assert "\n" not in line
    assert SECRET not in line
    return line


def test_files_that_can_not_be_used(tmp_path: Path, ca_pem: str) -> None:
    nothing = tmp_path / "nothing"
    nothing.write_bytes(b"")
    locked = tmp_path / "locked.p12"
    how = serialization.BestAvailableEncryption(SECRET.encode())
    locked.write_bytes(pkcs12.serialize_key_and_certificates(None, KEY, CHAIN[0], None, how))
    assert "ssl.truststore.location: /no/such can't be read: No such file" in wrong(truststore_location="/no/such")
    assert "write us.ssl.truststore.type = PEM" in wrong(truststore_location=ca_pem)
    assert "no PKCS12 file, or ssl.truststore.password is wrong" in wrong(truststore_location=str(nothing))
    assert "no certificate in PEM" in wrong(truststore_type="PEM", truststore_location=str(nothing))
    assert "no private key in PEM" in wrong(keystore_type="PEM", keystore_location=ca_pem)
    assert "ssl.keystore.password is wrong" in wrong(keystore_location=str(locked), keystore_password="other")
    assert "can't be read" in wrong(
        truststore_type="PEM", truststore_certificates="-----BEGIN CERTIFICATE----- AAAA -----END CERTIFICATE-----"
    )


def test_text_that_can_not_be_used() -> None:
    pem = AUTHORITY.cert_pem.bytes().decode()
    assert "needs us.ssl.truststore.type = PEM" in wrong(truststore_certificates=pem)
    assert "needs us.ssl.keystore.type = PEM" in wrong(keystore_key=key_pem())
    good = {"keystore_type": "PEM", "keystore_certificate_chain": CHAIN_PEM}
    assert "check ssl.key.password" in wrong(**good, keystore_key=key_pem(SECRET), key_password="other")
    assert "check ssl.key.password" in wrong(**good, keystore_key=key_pem(SECRET))
    assert "does not fit its certificate" in wrong(**good | {"keystore_certificate_chain": pem}, keystore_key=key_pem())


# --- real brokers -------------------------------------------------------------------------------------


def trusting(authority: Authority, *servers: str, **settings: Any) -> ClusterConfig:
    return config(*servers, truststore_type="PEM", truststore_location=str(authority.certificate), **settings)


@pytest.mark.broker
def test_both_clients_speak_tls(source_cluster: KafkaCluster, authority: Authority) -> None:
    ours = trusting(authority, *source_cluster.tls_bootstrap_servers.split(","))
    with ClusterAdmin.connect(ours, "test", 20) as admin:
        assert admin.cluster_id() == source_cluster.cluster_id
    client = ClusterClient(ours, "test")
    client.metadata([])
    assert client.cluster_id == source_cluster.cluster_id
    # The broker tells its clients on the TLS listener the addresses of that listener.
    assert isinstance(client.broker(1).socket, ssl.SSLSocket)
    client.close()


@pytest.mark.broker
@pytest.mark.parametrize("known", [True, False])
def test_a_client_may_show_who_it_is(
    source_cluster: KafkaCluster, authority: Authority, tmp_path: Path, known: bool
) -> None:
    signer = authority if known else Authority(tmp_path)
    keys = str(signer.issue(tmp_path / "keys.pem", "us"))
    servers = source_cluster.tls_bootstrap_servers
    client = ClusterClient(trusting(authority, servers, keystore_type="PEM", keystore_location=keys), "test")
    if known:
        client.metadata([])
    else:
        with pytest.raises(ClusterUnreachable, match=r"refuses sparkmirror's certificate.*check ssl\.keystore"):
            client.metadata([])
    client.close()


def refused(ours: ClusterConfig) -> str:
    """Why no broker is reached, said at once by both kinds of client."""
    with pytest.raises(ClusterUnreachable) as by_admin:
        ClusterAdmin.connect(ours, "test", 20)
    client = ClusterClient(ours, "test")
    with pytest.raises(ClusterUnreachable) as by_client:
        client.metadata([])
    client.close()
    line = str(by_admin.value)
    assert line.startswith("cluster us can't be reached at ")
    assert line.partition(" at ")[2] in str(by_client.value)
    assert "\n" not in line
    return line


@pytest.mark.broker
def test_brokers_that_do_not_fit(source_cluster: KafkaCluster, authority: Authority, tmp_path: Path) -> None:
    port = source_cluster.brokers[0].tls_port
    clear = source_cluster.bootstrap_servers
    stranger = Authority(tmp_path)
    assert "certificate is not trusted" in refused(trusting(stranger, f"127.0.0.1:{port}"))
    assert "certificate is not for this host" in refused(trusting(authority, f"localhost:{port}"))
    assert "check that this port speaks TLS" in refused(trusting(authority, clear))
    plain = trusting(authority, f"127.0.0.1:{port}").model_copy(update={"security_protocol": "PLAINTEXT"})
    with pytest.raises(ClusterUnreachable, match=r"it wants TLS; write security\.protocol = SSL"):
        ClusterClient(plain, "test").metadata([])


@pytest.mark.broker
def test_a_host_that_is_not_looked_at(source_cluster: KafkaCluster, authority: Authority) -> None:
    port = source_cluster.brokers[0].tls_port
    ours = trusting(authority, f"localhost:{port}", endpoint_identification_algorithm="")
    with ClusterAdmin.connect(ours, "test", 20) as admin:
        assert admin.cluster_id() == source_cluster.cluster_id
