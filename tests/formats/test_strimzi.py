"""Strimzi's resources become the same keys as an mm2.properties file has."""

from __future__ import annotations

import base64
import copy
from pathlib import Path
from typing import Any

import pytest
import yaml
from resources import RESOURCE, TARGET, change, read_resource, shape_at, values
from tools.strimzi_page import page

from sparkmirror.config.formats import model_of, read
from sparkmirror.config.formats.strimzi_fields import FIELDS, field_of
from sparkmirror.config.formats.strimzi_security import OAUTH_IDLE, OF_TYPES
from sparkmirror.config.formats.strimzi_shapes import ShapeKind
from sparkmirror.config.jaas import parse_jaas
from sparkmirror.config.strimzi_oauth import STRIMZI_HANDLER
from sparkmirror.errors import ConfigError

HERE = Path(__file__).parent
ROOT = HERE.parents[1]


def test_the_ordinary_resource(tmp_path: Path) -> None:
    reading = read_resource(tmp_path)
    assert values(reading) == {
        "clusters": "us, eu",
        "emit.heartbeats.enabled": "false",
        "us->eu.enabled": "true",
        "us->eu.emit.heartbeats.enabled": "false",
        "us.bootstrap.servers": "us1:9092",
        "us.security.protocol": "PLAINTEXT",
        "eu.bootstrap.servers": "eu1:9092",
        "eu.security.protocol": "PLAINTEXT",
        "us->eu.tasks.max": "4",
        "us->eu.replication.factor": "-1",
        "us->eu.topics": "orders.*",
        "us->eu.groups": "billing-.*",
        "us->eu.sync.group.offsets.enabled": "true",
        "eu.offset.storage.topic": "g-offsets",
    }
    config, _ = model_of(reading)
    (flow,) = config.flows
    assert (flow.name, flow.tasks_max, flow.connect.offset_storage_topic) == ("us->eu", 4, "g-offsets")
    assert flow.connect.connector == "us->eu.MirrorSourceConnector"
    assert not config.beats
    assert not config.warnings


def test_the_old_layout_says_the_same(tmp_path: Path) -> None:
    """As Strimzi's converter has it: the cluster connected to is the target, its topics lifted out of its config."""

    def old(spec: dict[str, Any]) -> None:
        target = spec.pop("target")
        mirror = spec["mirrors"][0]
        source = mirror.pop("source")
        config = {"offset.storage.topic": "g-offsets", "group.id": "g"}
        spec["connectCluster"] = "eu"
        spec["clusters"] = [source, {"alias": "eu", "bootstrapServers": target["bootstrapServers"], "config": config}]
        mirror |= {"sourceCluster": "us", "targetCluster": "eu"}

    assert values(read_resource(tmp_path, old, version="v1beta2")) == values(read_resource(tmp_path))
    assert values(read_resource(tmp_path, version="v1beta2")) == values(read_resource(tmp_path))


def test_the_old_layouts_defaults(tmp_path: Path) -> None:
    def old(spec: dict[str, Any]) -> None:
        del spec["target"]
        spec["connectCluster"] = "eu"
        spec["clusters"] = [spec["mirrors"][0].pop("source"), {"alias": "eu", "bootstrapServers": "eu1:9092"}]
        mirror = spec["mirrors"][0]
        mirror |= {"sourceCluster": "us", "topicsBlacklistPattern": "a", "heartbeatConnector": {}}
        mirror["checkpointConnector"]["pause"] = True

    keys = values(read_resource(tmp_path, old, version="v1beta2"))
    assert keys["eu.offset.storage.topic"] == "mirrormaker2-cluster-offsets"
    assert keys["us->eu.topics.exclude"] == "a"
    assert keys["us->eu.emit.heartbeats.enabled"] == "true"
    assert keys["us->eu.emit.checkpoints.enabled"] == "false"


def test_two_mirrors_in_one_resource(tmp_path: Path) -> None:
    def two(spec: dict[str, Any]) -> None:
        spec["mirrors"].append(
            {"source": {"alias": "asia", "bootstrapServers": "asia1:9092"}, "sourceConnector": {}, "topicsPattern": "b"}
        )

    config, _ = model_of(read_resource(tmp_path, two))
    assert [(flow.name, flow.topics) for flow in config.flows] == [("us->eu", ("orders.*",)), ("asia->eu", ("b",))]
    assert [flow.group.emit_checkpoints_enabled for flow in config.flows] == [True, False]


def test_two_resources_in_one_file(tmp_path: Path) -> None:
    back = copy.deepcopy(RESOURCE)
    back["spec"]["target"] = {**TARGET, "alias": "us", "bootstrapServers": "us1:9092"}
    back["spec"]["mirrors"][0]["source"] = {"alias": "eu", "bootstrapServers": "eu1:9092"}
    config, _ = model_of(read_resource(tmp_path, lambda spec: None, back))
    assert sorted(flow.name for flow in config.flows) == ["eu->us", "us->eu"]


def test_a_checkpoint_connector_alone(tmp_path: Path) -> None:
    """As in Strimzi: groups are translated, and nothing is copied. A mirror next to it copies as ever."""

    def alone(spec: dict[str, Any]) -> None:
        del spec["mirrors"][0]["sourceConnector"]
        spec["mirrors"].append(
            {"source": {"alias": "asia", "bootstrapServers": "asia1:9092"}, "sourceConnector": {}, "topicsPattern": "b"}
        )

    config, _ = model_of(read_resource(tmp_path, alone))
    first, second = config.flows
    assert (first.name, first.copies, first.topics) == ("us->eu", False, ("orders.*",))
    assert (first.group.emit_checkpoints_enabled, first.group.sync_group_offsets_enabled) == (True, True)
    assert first.group.groups == ("billing-.*",)
    assert (second.name, second.copies, second.group.emit_checkpoints_enabled) == ("asia->eu", True, False)
    (said,) = config.warnings
    assert "mirror.yaml, line 19: us->eu.MirrorCheckpointConnector: us->eu has no MirrorSource" in said
    assert "nothing is copied" in said


def test_a_checkpoint_connector_and_its_source_connector_in_two_resources(tmp_path: Path) -> None:
    copying = copy.deepcopy(RESOURCE)
    del copying["spec"]["mirrors"][0]["checkpointConnector"]
    config, _ = model_of(read_resource(tmp_path, lambda spec: spec["mirrors"][0].pop("sourceConnector"), copying))
    (flow,) = config.flows
    assert (flow.copies, flow.group.sync_group_offsets_enabled) == (True, True)
    assert not config.warnings


def test_a_checkpoint_connector_alone_that_rests(tmp_path: Path) -> None:
    def alone(spec: dict[str, Any]) -> None:
        del spec["mirrors"][0]["sourceConnector"]
        spec["mirrors"][0]["checkpointConnector"]["state"] = "paused"

    reading = read_resource(tmp_path, alone)
    assert reading.idle
    assert values(reading)["us->eu.enabled"] == "false"


# --- security -------------------------------------------------------------------------------------


def secret(name: str, **texts: str) -> dict[str, Any]:
    data = {key.replace("_", "."): base64.b64encode(text.encode()).decode() for key, text in texts.items()}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "data": data}


def test_certificates_from_manifests(tmp_path: Path) -> None:
    def tls(spec: dict[str, Any]) -> None:
        certificates = [{"secretName": "ca", "pattern": "*.crt"}, {"secretName": "other", "certificate": "ca.crt"}]
        spec["target"]["tls"] = {"trustedCertificates": certificates}
        pair = {"secretName": "me", "certificate": "user.crt", "key": "user.key"}
        spec["target"]["authentication"] = {"type": "tls", "certificateAndKey": pair}

    others = [
        secret("ca", b_crt="B", a_crt="A", ca_p12="no"),
        {"kind": "Secret", "metadata": {"name": "other"}, "stringData": {"ca.crt": "C"}},
        secret("me", user_crt="MINE", user_key="KEY"),
    ]
    keys = values(read_resource(tmp_path, tls, *others))
    assert {key: value for key, value in keys.items() if key.startswith("eu.s")} == {
        "eu.security.protocol": "SSL",
        "eu.ssl.truststore.type": "PEM",
        "eu.ssl.truststore.certificates": "A\nB\nC",
        "eu.ssl.keystore.type": "PEM",
        "eu.ssl.keystore.certificate.chain": "MINE",
        "eu.ssl.keystore.key": "KEY",
    }


def test_mounted_secrets_stay_references(tmp_path: Path) -> None:
    """What is mounted is read when a connection is made; nothing secret is in the configuration."""
    for name, key, text in (("ca", "ca.crt", "CERT"), ("me", "user.crt", "MINE"), ("me", "user.key", "hunter2")):
        (tmp_path / name).mkdir(exist_ok=True)
        (tmp_path / name / key).write_text(text)

    def tls(spec: dict[str, Any]) -> None:
        spec["target"]["tls"] = {"trustedCertificates": [{"secretName": "ca", "certificate": "ca.crt"}]}
        pair = {"secretName": "me", "certificate": "user.crt", "key": "user.key"}
        spec["target"]["authentication"] = {"type": "tls", "certificateAndKey": pair}

    reading = read_resource(tmp_path, tls)
    assert values(reading)["eu.ssl.keystore.key"] == f"${{strimzidir:{tmp_path}/me:user.key}}"
    config, _ = model_of(reading)
    assert config.flows[0].target.ssl.truststore_certificates == "CERT"
    assert not config.flows[0].has_secrets


@pytest.mark.parametrize(
    ("kind", "tls", "protocol", "mechanism", "module"),
    [
        ("scram-sha-512", True, "SASL_SSL", "SCRAM-SHA-512", "scram.ScramLoginModule"),
        ("scram-sha-256", False, "SASL_PLAINTEXT", "SCRAM-SHA-256", "scram.ScramLoginModule"),
        ("plain", True, "SASL_SSL", "PLAIN", "plain.PlainLoginModule"),
    ],
)
def test_passwords(tmp_path: Path, kind: str, tls: bool, protocol: str, mechanism: str, module: str) -> None:
    def sign_in(spec: dict[str, Any]) -> None:
        password = {"secretName": "me", "password": "password"}
        source = spec["mirrors"][0]["source"]
        source["authentication"] = {"type": kind, "username": "mirror", "passwordSecret": password}
        if tls:
            source["tls"] = {"trustedCertificates": []}

    keys = values(read_resource(tmp_path, sign_in, secret("me", password='a"b\\c')))
    assert keys["us.security.protocol"] == protocol
    assert keys["us.sasl.mechanism"] == mechanism
    line = f'org.apache.kafka.common.security.{module} required username="mirror" password="a\\"b\\\\c";'
    assert keys["us.sasl.jaas.config"] == line
    assert "us.ssl.truststore.certificates" not in keys


def test_custom_authentication(tmp_path: Path) -> None:
    """Amazon's IAM, as Strimzi does it since 0.48."""
    config = {
        "sasl.mechanism": "AWS_MSK_IAM",
        "sasl.jaas.config": "software.amazon.msk.auth.iam.IAMLoginModule required;",
        "sasl.client.callback.handler.class": "software.amazon.msk.auth.iam.IAMClientCallbackHandler",
    }

    def iam(spec: dict[str, Any]) -> None:
        spec["target"] |= {"tls": {}, "authentication": {"type": "custom", "sasl": True, "config": config}}

    keys = values(read_resource(tmp_path, iam))
    assert keys["eu.security.protocol"] == "SASL_SSL"
    assert {key: keys[f"eu.{key}"] for key in config} == config


def test_oauth(tmp_path: Path) -> None:
    """As the operator writes it, for Strimzi's own login handler; every field of the type."""

    def oauth(spec: dict[str, Any]) -> None:
        spec["target"]["authentication"] = {
            "type": "oauth",
            "clientId": "mirror",
            "clientSecret": {"secretName": "me", "key": "secret"},
            "tokenEndpointUri": "https://id.example.com/token",
            "scope": "kafka",
            "audience": "brokers",
            "grantType": "urn:x",
            "refreshToken": {"secretName": "me", "key": "refresh"},
            "username": "someone",
            "passwordSecret": {"secretName": "me", "password": "word"},
            "clientAssertion": {"secretName": "me", "key": "assertion"},
            "clientAssertionType": "saml",
            "connectTimeoutSeconds": 5,
            "readTimeoutSeconds": 6,
            "maxTokenExpirySeconds": 600,
            "includeAcceptHeader": False,
            "saslExtensions": {"pool": "x"},
            "tlsTrustedCertificates": [{"secretName": "me", "certificate": "ca"}],
            "disableTlsHostnameVerification": True,
        }

    given = secret("me", secret="hush", refresh="r", word="w", assertion="a", ca="-----BEGIN\r\nx\n")
    keys = values(read_resource(tmp_path, oauth, given, version="v1beta2"))
    assert keys["eu.sasl.mechanism"] == "OAUTHBEARER"
    assert keys["eu.sasl.login.callback.handler.class"] == STRIMZI_HANDLER
    entry = parse_jaas(keys["eu.sasl.jaas.config"])
    assert entry.module.endswith(".OAuthBearerLoginModule")
    assert {name.removeprefix("oauth."): value for name, value in entry.options.items()} == {
        "client.id": "mirror",
        "client.secret": "hush",
        "token.endpoint.uri": "https://id.example.com/token",
        "scope": "kafka",
        "audience": "brokers",
        "client.credentials.grant.type": "urn:x",
        "refresh.token": "r",
        "password.grant.username": "someone",
        "password.grant.password": "w",
        "client.assertion": "a",
        "client.assertion.type": "saml",
        "connect.timeout.seconds": "5",
        "read.timeout.seconds": "6",
        "max.token.expiry.seconds": "600",
        "include.accept.header": "false",
        "sasl.extension.pool": "x",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.certificates": "-----BEGIN\r\nx\n",
        "ssl.endpoint.identification.algorithm": "",
    }


def test_oauth_by_files(tmp_path: Path) -> None:
    """What is mounted is referred to, and read again with each sign-in."""
    mounted = tmp_path / "me"
    mounted.mkdir()
    for key in ("token", "ca"):
        mounted.joinpath(key).write_text(key)

    def oauth(spec: dict[str, Any]) -> None:
        spec["target"]["authentication"] = {
            "type": "oauth",
            "accessToken": {"secretName": "me", "key": "token"},
            "clientAssertionLocation": "/var/assertion",
            "tlsTrustedCertificates": [{"secretName": "me", "pattern": "c*"}],
        }

    keys = values(read_resource(tmp_path, oauth, version="v1beta2"))
    options = parse_jaas(keys["eu.sasl.jaas.config"]).options
    assert dict(options) == {
        "oauth.access.token": f"${{strimzidir:{mounted}:token}}",
        "oauth.client.assertion.location": "/var/assertion",
        "oauth.ssl.truststore.type": "PEM",
        "oauth.ssl.truststore.location": str(mounted / "ca"),
    }


def test_references_in_values(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OUR_TOPICS", "from-the-environment")

    def refer(spec: dict[str, Any]) -> None:
        spec["mirrors"][0]["topicsPattern"] = "${strimzienv:OUR_TOPICS}"
        spec["mirrors"][0]["groupsPattern"] = "${strimziconfigmaps:kafka/patterns:groups}"
        spec["rack"] = {"type": "environment-variable", "envVarName": "OUR_TOPICS"}

    patterns = {"kind": "ConfigMap", "metadata": {"name": "patterns"}, "data": {"groups": "g-.*"}}
    (flow,) = model_of(read_resource(tmp_path, refer, patterns))[0].flows
    assert (flow.topics, flow.group.groups) == (("from-the-environment",), ("g-.*",))
    assert flow.fetch.client_rack == "from-the-environment"


SCRAM = {"type": "scram-sha-512", "username": "u", "passwordSecret": {"secretName": "me", "password": "password"}}
OAUTH = {
    "type": "oauth",
    "clientId": "x",
    "tokenEndpointUri": "https://t",
    "clientSecret": {"secretName": "me", "key": "password"},
}


# --- what is wrong, and what has no effect ---------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda spec: spec.pop("mirrors"), "mirrors is missing"),
        (lambda spec: spec.pop("target"), "spec.target: is missing"),
        (lambda spec: spec["target"].pop("groupId"), "spec.target.groupId: is missing"),
        (lambda spec: spec["mirrors"][0]["source"].update(alias="eu"), "they must be two clusters"),
        (lambda spec: spec["target"].update(authentication={"type": "kerberos"}), "must be one of tls, plain, "),
        (
            lambda spec: spec["target"].update(tls={"trustedCertificates": [{"secretName": "x", "certificate": "y"}]}),
            "target.tls.trustedCertificates: Secret x is not there",
        ),
        (
            lambda spec: spec["mirrors"][0]["sourceConnector"].update(state="asleep"),
            "must be paused, stopped or running",
        ),
        (
            lambda spec: spec["mirrors"][0]["sourceConnector"].update(tasksMax=0),
            "sourceConnector.tasksMax: '0' is not allowed",
        ),
    ],
)
def test_what_is_wrong_is_one_line_with_its_place(tmp_path: Path, change: Any, says: str) -> None:
    with pytest.raises(ConfigError) as caught:
        model_of(read_resource(tmp_path, change))
    assert says in str(caught.value)
    assert "mirror.yaml" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_wrong_in_the_old_layout(tmp_path: Path) -> None:
    def elsewhere(spec: dict[str, Any]) -> None:
        spec["connectCluster"] = "us"
        spec["clusters"] = [{"alias": "eu", "bootstrapServers": "x:1"}, spec["mirrors"][0].pop("source")]
        del spec["target"]
        spec["mirrors"][0] |= {"sourceCluster": "us", "targetCluster": "eu"}

    with pytest.raises(ConfigError, match="is not us, the connectCluster"):
        read_resource(tmp_path, elsewhere, version="v1beta2")


def test_what_has_no_effect_is_named(tmp_path: Path) -> None:
    def extra(spec: dict[str, Any]) -> None:
        spec["resources"] = {"limits": {"memory": "1Gi"}}
        spec["recources"] = {}
        spec["connectCluster"] = "eu"
        spec["target"]["config"] = {"ssl.truststore.location": "/x", "producer.linger.ms": 5}
        spec["mirrors"][0]["sourceConnector"]["config"]["name"] = "mine"
        spec["mirrors"][0]["source"]["config"] = {"batch.size": 1}

    said = "\n".join(model_of(read_resource(tmp_path, extra))[0].warnings)
    assert "spec.resources: has no effect: the pod is described" in said
    assert "spec.recources: is no field of KafkaMirrorMaker2" in said
    assert "spec.connectCluster: is a field of v1beta2 only" in said
    assert "spec.target.config.ssl.truststore.location: is taken out by Strimzi" in said
    assert "spec.target.config.producer.linger.ms: has no effect: batches are copied as they are" in said
    assert "spec.mirrors[0].sourceConnector.config.name: is taken out by Strimzi" in said
    assert "source.config.batch.size: reaches no client" in said


@pytest.mark.parametrize(
    ("path", "value", "says"),
    [
        ("mirrors.0.sourceConnector.maxTasks", 8, "is no field of KafkaMirrorMaker2"),
        ("mirrors.0.checkpointConnector.paused", True, "is no field of KafkaMirrorMaker2"),
        ("mirrors.0.topicPattern", "x", "is no field of KafkaMirrorMaker2"),
        ("target.tls", {"hostnameVerification": False}, "target.tls.hostnameVerification: is no field"),
        (
            "target.tls",
            {"trustedCertificates": [{"secretName": "me", "certificate": "password", "cert": "x"}]},
            "target.tls.trustedCertificates[0].cert: is no field",
        ),
        ("mirrors.0.source.authentication", SCRAM | {"bogus": 1}, "source.authentication.bogus: is no field"),
        (
            "mirrors.0.source.authentication",
            SCRAM | {"passwordSecret": {"secretName": "me", "password": "password", "key": "x"}},
            "source.authentication.passwordSecret.key: is no field",
        ),
        (
            "mirrors.0.source.authentication",
            SCRAM | {"clientId": "x"},
            "source.authentication.clientId: has no effect: it is not for authentication of type scram-sha-512",
        ),
        ("target.authentication", OAUTH | {"httpRetries": 4}, "httpRetries: has no effect: the token server is asked"),
        ("target.authentication", OAUTH | {"enableMetrics": True}, "enableMetrics: has no effect: there is no JMX"),
        ("target.authentication", OAUTH | {"accessTokenIsJwt": False}, "accessTokenIsJwt: has no effect: a token is"),
        ("target.authentication", OAUTH | {"audiences": "x"}, "target.authentication.audiences: is no field"),
        ("rack", {"type": "environment-variable", "envVarName": "HOME", "key": "x"}, "spec.rack.key: is no field"),
        ("mirrors.0.sourceConnector.pause", True, "is a field of v1beta2 only"),
    ],
)
def test_misspelt_and_idle_below_a_field(tmp_path: Path, path: str, value: Any, says: str) -> None:
    reading = read_resource(tmp_path, change(path, value), secret("me", password="hush"))
    (said,) = model_of(reading)[0].warnings
    assert says in said
    assert values(reading)["us->eu.enabled"] == "true"


def test_two_layouts_in_one(tmp_path: Path) -> None:
    """One counts; what belongs to the other is named."""

    def both(spec: dict[str, Any]) -> None:
        spec |= {"connectCluster": "z", "clusters": [{"alias": "z", "bootstrapServers": "z:1"}]}
        spec["mirrors"][0]["sourceCluster"] = "q"

    reading = read_resource(tmp_path, both, version="v1beta2")
    assert [note.key for note in reading.notes if note.reason.endswith("spec.target is there, and counts")] == [
        "spec.mirrors[0].sourceCluster",
        "spec.connectCluster",
        "spec.clusters",
    ]
    assert values(reading)["clusters"] == "us, eu"


@pytest.mark.parametrize("empty", ["---\n# comment\n---\n{}---\n", "# comment\n---\n{}", "---\n\n---\nnull\n---\n{}"])
def test_empty_documents_are_passed_over(tmp_path: Path, empty: str) -> None:
    """As kubectl does it. The lines of messages are the file's own all the same."""
    path = tmp_path / "mirror.yaml"
    wrong = copy.deepcopy(RESOURCE)
    wrong["spec"]["mirrors"][0]["sourceConnector"]["tasksMax"] = 0
    path.write_text(empty.format(yaml.safe_dump(RESOURCE)))
    assert [flow.name for flow in model_of(read([str(path)]))[0].flows] == ["us->eu"]
    path.write_text(empty.format(yaml.safe_dump(wrong)))
    number = 1 + next(n for n, line in enumerate(path.read_text().splitlines()) if "tasksMax: 0" in line)
    with pytest.raises(ConfigError, match=rf"mirror.yaml, line {number}: .*tasksMax: '0' is not allowed"):
        model_of(read([str(path)]))


def test_a_file_of_empty_documents_has_no_resource(tmp_path: Path) -> None:
    path = tmp_path / "mirror.yaml"
    path.write_text("---\n# nothing\n---\n")
    with pytest.raises(ConfigError, match="holds no resource of kind KafkaMirrorMaker2"):
        read([str(path)])


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("{{- if .Values.mirror.enabled }}\nkind: KafkaMirrorMaker2\n{{- end }}\n", 1),
        ("kind: KafkaMirrorMaker2\nmetadata:\n  name: {{ .Release.Name }}-mm2\n", 3),
        ("kind: KafkaMirrorMaker2\nspec:\n  replicas: {{ .Values.replicas }}\n", 3),
    ],
)
def test_a_template_must_be_rendered(tmp_path: Path, text: str, line: int) -> None:
    path = tmp_path / "mirror.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=rf"line {line}: .*not rendered yet: give what helm template") as caught:
        read([str(path)])
    assert "\n" not in str(caught.value)


def test_text_that_only_looks_like_a_template_is_read(tmp_path: Path) -> None:
    path = tmp_path / "mirror.yaml"
    rule = {"kind": "PrometheusRule", "spec": {"summary": "lag of {{ $labels.topic }}"}}
    path.write_text(yaml.safe_dump_all([rule, RESOURCE]))
    assert model_of(read([str(path)]))[0].flows


OLD_MIRRORS = """
apiVersion: kafka.strimzi.io/v1beta2
kind: KafkaMirrorMaker2
metadata: {name: ring}
spec:
  connectCluster: c
  clusters:
  - {alias: a, bootstrapServers: "a:9092"}
  - {alias: b, bootstrapServers: "b:9092"}
  - {alias: c, bootstrapServers: "c:9092"}
  mirrors:
"""


def one_mirror(source: str, target: str) -> str:
    return f"  - {{sourceCluster: {source}, targetCluster: {target}, sourceConnector: {{}}, topicsPattern: x}}\n"


def test_several_targets_are_several_resources(tmp_path: Path) -> None:
    """The advice can be followed; that c is a mirror's source, too, is no mistake of its own."""
    path = tmp_path / "mirror.yaml"
    path.write_text(OLD_MIRRORS + one_mirror("a", "b") + one_mirror("b", "c") + one_mirror("c", "a"))
    with pytest.raises(ConfigError) as caught:
        model_of(read([str(path)]))
    assert [f"{each.key}: {each.reason}" for each in caught.value.mistakes] == [
        f"spec.mirrors[{number}].targetCluster: is not c: a resource has one target, its connectCluster; write one"
        " resource for each of b, c, a, with the mirrors into it"
        for number in (0, 2)
    ]


def test_the_connect_cluster_is_the_source(tmp_path: Path) -> None:
    """One mistake has one line, and the line has the word to write."""
    path = tmp_path / "mirror.yaml"
    path.write_text(OLD_MIRRORS + one_mirror("c", "a"))
    with pytest.raises(ConfigError) as caught:
        model_of(read([str(path)]))
    (mistake,) = caught.value.mistakes
    assert str(mistake).endswith(
        "targetCluster: is not c, the connectCluster, where all records go: write connectCluster: a"
    )


@pytest.mark.parametrize(
    ("version", "says"),
    [
        ("eventstreams.ibm.com/v1beta2", "is another vendor's group; .* write kafka.strimzi.io/v1beta2 here: all else"),
        ("kafka.strimzi.io/v1alpha1", "must be kafka.strimzi.io/v1 or kafka.strimzi.io/v1beta2"),
        ("v1beta2", "must be kafka.strimzi.io/v1 or kafka.strimzi.io/v1beta2"),
        ("apps/v2", "must be kafka.strimzi.io/v1 or kafka.strimzi.io/v1beta2"),
    ],
)
def test_other_versions(tmp_path: Path, version: str, says: str) -> None:
    path = tmp_path / "mirror.yaml"
    path.write_text(yaml.safe_dump({**RESOURCE, "apiVersion": version}))
    with pytest.raises(ConfigError, match=says):
        read([str(path)])


def test_nothing_right_is_named(tmp_path: Path) -> None:
    reading = read_resource(tmp_path, change("target.authentication", SCRAM), secret("me", password="hush"))
    assert not model_of(reading)[0].warnings


@pytest.mark.parametrize("state", ["paused", "stopped"])
def test_states(tmp_path: Path, state: str) -> None:
    """Each connector rests alone, as in Kafka Connect: a stopped source connector leaves the checkpoints alone."""

    def groups_rest(spec: dict[str, Any]) -> None:
        spec["mirrors"][0]["checkpointConnector"]["state"] = state

    def all_rest(spec: dict[str, Any]) -> None:
        groups_rest(spec)
        spec["mirrors"][0]["sourceConnector"]["state"] = state

    def copying_rests(spec: dict[str, Any]) -> None:
        spec["mirrors"][0]["sourceConnector"]["state"] = state

    reading = read_resource(tmp_path, groups_rest)
    assert values(reading)["us->eu.emit.checkpoints.enabled"] == "false"
    assert values(reading)["us->eu.enabled"] == "true"
    assert not reading.idle
    (flow,) = model_of(reading)[0].flows
    assert (flow.copies, flow.group.emit_checkpoints_enabled) == (True, False)
    config, _ = model_of(read_resource(tmp_path, copying_rests))
    (flow,) = config.flows
    assert (flow.copies, flow.group.emit_checkpoints_enabled) == (False, True)
    assert flow.connect.connector == "us->eu.MirrorSourceConnector"
    assert not config.warnings
    assert read_resource(tmp_path, all_rest).idle == "every connector is paused or stopped"


def test_more_replicas_are_named(tmp_path: Path) -> None:
    """One process is what runs. Where the old layout's default is three, nobody has asked for them."""
    (said,) = model_of(read_resource(tmp_path, change("replicas", 3)))[0].warnings
    assert "spec.replicas: has no effect above 1: this process is one" in said
    assert "for 2 that stand by, start as many more" in said
    unsaid = read_resource(tmp_path, lambda spec: spec.pop("replicas"), version="v1beta2")
    assert unsaid.resources[0].replicas == 3
    assert not model_of(unsaid)[0].warnings


@pytest.mark.parametrize(
    ("field", "says"),
    [
        ("metricsConfig", "there is no JMX; `sparkmirror run --metrics-port 9404 --metrics-profile strimzi`"),
        ("jmxOptions", "records are copied outside of Spark's JVM"),
    ],
)
def test_metrics_are_named(tmp_path: Path, field: str, says: str) -> None:
    (said,) = model_of(read_resource(tmp_path, change(field, {"type": "strimziMetricsReporter"})))[0].warnings
    assert f"spec.{field}: has no effect: {says}" in said


def test_scaled_to_nothing(tmp_path: Path) -> None:
    assert read_resource(tmp_path, lambda spec: spec.update(replicas=0)).idle == "replicas is 0"


# --- the fields, all of them -----------------------------------------------------------------------


def test_every_field_is_decided() -> None:
    for line in (HERE / "fields_of_the_resource.txt").read_text().split():
        assert field_of(line.removeprefix("spec.")) is not None, line


def leaves(*parents: str) -> list[str]:
    """Fields below these, as `authentication.type`."""
    lines = (HERE / "fields_of_the_resource.txt").read_text().split()
    return [line.removeprefix(parent) for parent in parents for line in lines if line.startswith(f"{parent}.")]


AUTHENTICATION = leaves("spec.clusters[].authentication")


@pytest.mark.parametrize("leaf", AUTHENTICATION)
def test_every_field_of_authentication_is_decided(leaf: str) -> None:
    """What is read has a shape down to its last field; what isn't has a reason."""
    name = leaf.split(".")[1].removesuffix("[]")
    honoured = {name for names in OF_TYPES.values() for name in names} | {"type"}
    assert (name in honoured) != (name in OAUTH_IDLE), "it is read, or it is idle"
    for end in ("target", "mirrors[].source", "clusters[]"):
        assert name in OAUTH_IDLE or isinstance(shape_at(f"{end}.authentication{leaf}"), ShapeKind)


def test_no_field_of_authentication_is_made_up() -> None:
    """Neither in the types nor in the shapes; v1 has some of v1beta2's."""
    names = {leaf.split(".")[1].removesuffix("[]") for leaf in AUTHENTICATION}
    assert {name for names in OF_TYPES.values() for name in names} | OAUTH_IDLE.keys() <= names
    shape = shape_at("clusters[].authentication")
    assert isinstance(shape, dict)
    assert shape.keys() <= names
    assert set(leaves("spec.target.authentication", "spec.mirrors[].source.authentication")) <= set(AUTHENTICATION)


def test_no_field_is_made_up() -> None:
    known = (HERE / "fields_of_the_resource.txt").read_text().split()
    for field in FIELDS:
        assert field.words
        assert any(f"{line}.".startswith((f"spec.{field.path}.", f"spec.{field.path}[")) for line in known), field.path


def test_the_page_is_as_the_code_is() -> None:
    text = (ROOT / "docs" / "strimzi.md").read_text()
    assert text.endswith(page()), "write the output of tools.strimzi_page at the page's end"


@pytest.mark.parametrize("path", sorted((ROOT / "examples" / "strimzi").glob("*.yaml")), ids=lambda path: path.stem)
def test_examples_are_read(path: Path, tmp_path: Path) -> None:
    for name in ("east-cluster-ca-cert", "west-cluster-ca-cert", "mirror-user", "east-mirror-user"):
        (tmp_path / name).mkdir()
        for key in ("ca.crt", "user.crt", "user.key", "password"):
            (tmp_path / name / key).write_text("x")
    reading = read([str(path)], str(tmp_path))
    assert reading.resources
    assert values(reading)["clusters"]
