"""TLS and SASL settings of either cluster: where they are looked for, what they mean, and secrets that stay secret."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from pydantic import SecretStr

from sparkmirror.config import FlowConfig, MirrorConfig
from sparkmirror.config.credentials import (
    GivenToken,
    Kerberos,
    Login,
    MskIam,
    Password,
    TokenFile,
    TokenRequest,
    UnsecuredToken,
)
from sparkmirror.config.kerberos_login import KERBEROS_MODULE
from sparkmirror.config.login import read_login
from sparkmirror.config.model import REVEAL, SaslConfig, SslConfig
from sparkmirror.config.providers import with_secrets
from sparkmirror.config.settings import SSL_SETTINGS
from sparkmirror.config.strimzi_oauth import STRIMZI_HANDLER
from sparkmirror.errors import ConfigError
from sparkmirror.pump.messages.orders import FlowOrder, PumpOrder

Load = Callable[..., MirrorConfig]
TLS = "security.protocol = SSL\n"


def flow(config: MirrorConfig) -> FlowConfig:
    (only,) = config.flows
    return only


# --- places -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lines", "protocols"),
    [
        ("", ("PLAINTEXT", "PLAINTEXT")),
        ("security.protocol = SSL", ("SSL", "SSL")),
        ("us.security.protocol = ssl", ("SSL", "PLAINTEXT")),
        ("eu.security.protocol = Ssl", ("PLAINTEXT", "SSL")),
        ("security.protocol = SSL\nus.security.protocol = plaintext", ("PLAINTEXT", "SSL")),
        ("consumer.security.protocol = SSL", ("PLAINTEXT", "PLAINTEXT")),
    ],
)
def test_each_cluster_has_its_protocol(load: Load, lines: str, protocols: tuple[str, str]) -> None:
    both = flow(load(lines))
    assert (both.source.security_protocol, both.target.security_protocol) == protocols
    assert (both.source.encrypted, both.target.encrypted) == tuple(name == "SSL" for name in protocols)


VALUES = {
    "ssl.truststore.location": "/etc/trust.p12",
    "ssl.truststore.type": "pkcs12",
    "ssl.truststore.password": "trust me",
    "ssl.truststore.certificates": "-----BEGIN CERTIFICATE----- AAAA -----END CERTIFICATE-----",
    "ssl.keystore.location": "/etc/keys.p12",
    "ssl.keystore.type": "PKCS12",
    "ssl.keystore.password": "open",
    "ssl.keystore.key": "-----BEGIN PRIVATE KEY----- AAAA -----END PRIVATE KEY-----",
    "ssl.keystore.certificate.chain": "-----BEGIN CERTIFICATE----- BBBB -----END CERTIFICATE-----",
    "ssl.key.password": "sesame",
    "ssl.endpoint.identification.algorithm": "",
    "ssl.enabled.protocols": "TLSv1.2",
    "ssl.protocol": "TLSv1.2",
}


@pytest.mark.parametrize("setting", SSL_SETTINGS, ids=lambda setting: setting.name)
def test_a_setting_counts_for_its_cluster_before_the_others(load: Load, setting: object) -> None:
    name, field = setting.name, setting.field  # type: ignore[attr-defined]
    value = setting.kind.parse(VALUES[name])  # type: ignore[attr-defined]
    default = getattr(SslConfig(), field)
    assert value != default

    def read(lines: str) -> tuple[object, object]:
        config = load(TLS + lines)
        assert config.warnings == ()
        found = (getattr(flow(config).source.ssl, field), getattr(flow(config).target.ssl, field))
        return tuple(one.get_secret_value() if isinstance(one, SecretStr) else one for one in found)  # type: ignore[return-value]

    if isinstance(default, SecretStr):
        default = ""
    assert read(f"{name} = {VALUES[name]}") == (value, value)
    assert read(f"us.{name} = {VALUES[name]}") == (value, default)
    assert read(f"eu.{name} = {VALUES[name]}") == (default, value)


def test_every_setting_is_tried() -> None:
    assert {setting.name for setting in SSL_SETTINGS} == set(VALUES)
    assert {setting.field for setting in SSL_SETTINGS} == set(SslConfig.model_fields)


def test_without_tls_its_settings_do_nothing_and_say_so(load: Load) -> None:
    config = load("us.security.protocol = SSL\nssl.key.password = x\neu.ssl.truststore.location = /x")
    assert flow(config).source.ssl.key_password.get_secret_value() == "x"
    assert flow(config).target.ssl == SslConfig()
    (warning,) = config.warnings
    assert warning.endswith("eu.ssl.truststore.location: has no effect without TLS: write security.protocol")


@pytest.mark.parametrize(
    ("key", "part"),
    [
        ("consumer.ssl.protocol", "write ssl.protocol or us.ssl.protocol"),
        ("us.ssl.cipher.suites", "has no effect: it is for Java's TLS, and sparkmirror's is OpenSSL's"),
        ("us.sasl.mechanism", "has no effect without SASL"),
    ],
)
def test_what_does_nothing_is_named(load: Load, key: str, part: str) -> None:
    (warning,) = load(f"{TLS}{key} = TLSv1.3").warnings
    assert part in warning


# --- what can't be --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("key", "value", "part"),
    [
        ("us.producer.ssl.truststore.location", "/other", "write us.ssl.truststore.location"),
        ("us->eu.source.producer.security.protocol", "PLAINTEXT", "write us.security.protocol"),
        ("us->eu.target.consumer.ssl.key.password", "/other", "write eu.ssl.key.password"),
        ("us->eu.security.protocol", "PLAINTEXT", "write eu.security.protocol"),
    ],
)
def test_a_client_of_its_own_kind_is_refused(load: Load, key: str, value: str, part: str) -> None:
    with pytest.raises(ConfigError, match=part) as caught:
        load(f"{TLS}ssl.truststore.location = /trust\n{key} = {value}")
    assert caught.value.key == key
    assert "/other" not in str(caught.value)


def test_a_client_may_repeat_what_its_cluster_has(load: Load) -> None:
    lines = (
        "ssl.truststore.location = /x\nus.consumer.ssl.truststore.location = /x\nus.consumer.security.protocol = ssl"
    )
    assert load(TLS + lines).warnings == ()


@pytest.mark.parametrize(
    ("key", "value", "part"),
    [
        ("ssl.truststore.type", "BCFKS", "must be JKS or PKCS12 or PEM"),
        ("us.ssl.enabled.protocols", "TLSv1.1", "must be a list of TLSv1.2 and TLSv1.3"),
        ("us.ssl.enabled.protocols", "TLSv1.4", "must be a list of TLSv1.2 and TLSv1.3"),
        ("ssl.protocol", "SSL", "must be TLSv1.3 or TLSv1.2 or TLS"),
        ("ssl.endpoint.identification.algorithm", "ldaps", "must be https or nothing"),
    ],
)
def test_bad_value(load: Load, key: str, value: str, part: str) -> None:
    with pytest.raises(ConfigError, match=part):
        load(f"{TLS}{key} = {value}")


def test_old_versions_of_tls_are_left_out_as_in_java(load: Load) -> None:
    config = load(TLS + "ssl.enabled.protocols = TLSv1.2, TLSv1.1, TLSv1")
    assert flow(config).source.ssl.enabled_protocols == ("TLSv1.2",)


# --- secrets --------------------------------------------------------------------------------------------

SECRETS = ("ssl.truststore.password", "ssl.keystore.password", "ssl.keystore.key", "ssl.key.password")


def order(config: MirrorConfig) -> PumpOrder:
    one = FlowOrder(flow=flow(config), cluster_id="x", producer_id=1, producer_epoch=0, routes=())
    return PumpOrder(epoch=1, task=0, incarnation="x", seconds=1.0, flows=(one,))


@pytest.mark.parametrize("key", SECRETS)
def test_a_secret_shows_nowhere_but_in_an_order_that_travels(load: Load, key: str) -> None:
    config = load(f"{TLS}us.{key} = hunter2")
    assert flow(config).has_secrets
    made = order(config)
    shown = [
        repr(config),
        str(config),
        config.model_dump_json(),
        repr(config.model_dump()),
        repr(config.model_dump(mode="json")),
        made.model_dump_json(),
        repr(made),
    ]
    assert [text for text in shown if "hunter2" in text] == []
    assert "hunter2" in made.to_json()
    again = PumpOrder.model_validate_json(made.to_json())
    assert again == made
    assert again.flows[0].flow.source.ssl == flow(config).source.ssl


def test_what_can_not_be_read_does_not_show_its_secrets(load: Load) -> None:
    data = json.loads(order(load(f"{TLS}us.ssl.key.password = hunter2")).to_json())
    data["flows"][0]["flow"]["source"]["ssl"]["protocol"] = {"ssl": "hunter2"}
    data["flows"][0]["flow"]["source"]["ssl"]["surprise"] = "hunter2"
    with pytest.raises(ValueError, match="surprise") as caught:
        PumpOrder.model_validate_json(json.dumps(data))
    assert "hunter2" not in str(caught.value)
    with pytest.raises(ValueError, match="key_password") as caught:
        SslConfig.model_validate({"key_password": ["hunter2"]})
    assert "hunter2" not in str(caught.value)


def test_what_is_no_secret_may_travel_anywhere(load: Load) -> None:
    config = load(f"{TLS}ssl.truststore.location = /x\nssl.truststore.type = PEM")
    assert not flow(config).has_secrets
    assert json.loads(config.model_dump_json()) == json.loads(config.model_dump_json(context=REVEAL))


# --- SASL -----------------------------------------------------------------------------------------------

KAFKA = "org.apache.kafka.common.security."
SCRAM = f'sasl.jaas.config = {KAFKA}scram.ScramLoginModule required username="mirror" password="hunter2";\n'
SASL = "security.protocol = SASL_SSL\nsasl.mechanism = SCRAM-SHA-512\n"
OAUTH = (
    "us.security.protocol = SASL_PLAINTEXT\nus.sasl.mechanism = OAUTHBEARER\nus.sasl.jaas.config = "
    f"{KAFKA}oauthbearer.OAuthBearerLoginModule required "
)
ENDPOINT = "us.sasl.oauthbearer.token.endpoint.url = "
MSK = (
    "us.security.protocol = SASL_SSL\nus.sasl.mechanism = AWS_MSK_IAM\n"
    "us.sasl.client.callback.handler.class = software.amazon.msk.auth.iam.IAMClientCallbackHandler\n"
    "us.sasl.jaas.config = software.amazon.msk.auth.iam.IAMLoginModule required"
)
STRIMZI = (
    f"us.sasl.login.callback.handler.class = {STRIMZI_HANDLER}\n"
    + OAUTH.rstrip()
    + ' oauth.token.endpoint.uri="https://id/token" '
)
KERBEROS = (
    "us.security.protocol = SASL_PLAINTEXT\nus.sasl.mechanism = GSSAPI\n"
    f"us.sasl.jaas.config = {KERBEROS_MODULE} required"
)
BY_SECRET = (("grant_type", "client_credentials"),)


def by_strimzi(
    principal: str, client: tuple[str, str] | None, *form: tuple[str, str], files: tuple[tuple[str, str], ...] = ()
) -> TokenRequest:
    return TokenRequest(
        url="https://id/token",
        principal=principal,
        client=client,
        form=form,
        files=files,
        urlencoded=True,
        timeout_s=60,
    )


PROVIDER = "config.providers = env\nconfig.providers.env.class = EnvVarConfigProvider\n"


def login(config: MirrorConfig) -> Login:
    return read_login(with_secrets(flow(config).source).sasl)


def test_scram_on_both_sides(load: Load) -> None:
    config = load(SASL + SCRAM)
    assert config.warnings == ()
    assert login(config) == Password("SCRAM-SHA-512", "mirror", "hunter2")
    assert (flow(config).source.encrypted, flow(config).source.signs_in) == (True, True)
    assert flow(config).source.copier is None


def test_each_side_in_its_own_way(load: Load) -> None:
    plain = f"us.sasl.jaas.config = {KAFKA}plain.PlainLoginModule required username=a password=b;\n"
    config = load("us.security.protocol = sasl_plaintext\nus.sasl.mechanism = PLAIN\n" + plain)
    assert login(config) == Password("PLAIN", "a", "b")
    assert (flow(config).source.security_protocol, flow(config).target.security_protocol) == (
        "SASL_PLAINTEXT",
        "PLAINTEXT",
    )
    assert flow(config).target.sasl == SaslConfig()


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (
            OAUTH + f'clientId="a" clientSecret="b" scope="c";\n{ENDPOINT}https://id/token',
            TokenRequest(url="https://id/token", principal="a", client=("a", "b"), form=(*BY_SECRET, ("scope", "c"))),
        ),
        (
            OAUTH + f'extension_logicalCluster="x" ssl.truststore.type="PEM";\n{ENDPOINT}https://id/token\n'
            f"us.sasl.login.callback.handler.class = {KAFKA}oauthbearer.OAuthBearerLoginCallbackHandler\n"
            "us.sasl.oauthbearer.client.credentials.client.id = a\nus.sasl.oauthbearer.scope = c\n"
            "us.sasl.oauthbearer.client.credentials.client.secret = b\nus.sasl.oauthbearer.header.urlencode = true",
            TokenRequest(
                url="https://id/token",
                principal="a",
                client=("a", "b"),
                form=(*BY_SECRET, ("scope", "c")),
                urlencoded=True,
                tls=(("ssl.truststore.type", "PEM"),),
                extensions=(("logicalCluster", "x"),),
            ),
        ),
        (OAUTH + f";\n{ENDPOINT}file:///var/token", TokenFile("/var/token", ())),
        (
            OAUTH + f";\n{ENDPOINT}file:/var/token\nus.sasl.oauthbearer.jwt.retriever.class = "
            f"{KAFKA}oauthbearer.FileJwtRetriever",
            TokenFile("/var/token", ()),
        ),
        (
            OAUTH + 'unsecuredLoginStringClaim_sub="me" unsecuredLoginListClaim_scope=",a,b";',
            UnsecuredToken(
                claims=(("sub", "me"), ("scope", ("a", "b"))),
                subject_claim="sub",
                scope_claim="scope",
                lifetime_s=3600,
                extensions=(),
            ),
        ),
        (
            KERBEROS + ' useKeyTab=true keyTab="/k" principal="a@B" storeKey=true serviceName="kafka";',
            Kerberos("kafka", "a@B", keytab="/k"),
        ),
        (
            KERBEROS + ' useKeyTab=true keyTab="FILE:/k" principal="a@B" useTicketCache=true ticketCache="/t";\n'
            "us.sasl.kerberos.service.name = kafka",
            Kerberos("kafka", "a@B", keytab="/k"),
        ),
        (KERBEROS + " useTicketCache=TRUE doNotPrompt=true renewTGT=true serviceName=k;", Kerberos("k", "")),
        (
            KERBEROS + ' useKeyTab=false useTicketCache=true ticketCache="/t" principal="a@B";\n'
            "sasl.kerberos.service.name = kafka",
            Kerberos("kafka", "a@B", cache="/t"),
        ),
        (MSK + ";", MskIam()),
        (
            MSK + ' awsProfileName="p" awsRoleArn="arn:aws:iam::1:role/r" awsRoleSessionName="s" awsDebugCreds=true;',
            MskIam(profile="p", role_arn="arn:aws:iam::1:role/r", session_name="s"),
        ),
        (
            MSK + ' awsRoleArn="arn" awsRoleExternalId="x" awsStsRegion="eu-west-3" awsMaxRetries="3";',
            MskIam(role_arn="arn", external_id="x", sts_region="eu-west-3"),
        ),
        (
            STRIMZI + 'oauth.client.id="a" oauth.client.secret="b" oauth.scope="c" oauth.audience="d"'
            ' oauth.read.timeout.seconds="9" oauth.connect.timeout.seconds="0" oauth.sasl.extension.pool="x"'
            ' oauth.max.token.expiry.seconds="600" oauth.include.accept.header="no" oauth.http.retries="2"'
            ' oauth.ssl.truststore.location="/ca" oauth.ssl.truststore.type="pem"'
            ' oauth.ssl.endpoint.identification.algorithm="";',
            TokenRequest(
                url="https://id/token",
                principal="a",
                client=("a", "b"),
                form=(*BY_SECRET, ("scope", "c"), ("audience", "d")),
                urlencoded=True,
                accepts_json=False,
                timeout_s=60,
                longest_life_s=600,
                tls=(
                    ("ssl.endpoint.identification.algorithm", ""),
                    ("ssl.truststore.location", "/ca"),
                    ("ssl.truststore.type", "PEM"),
                ),
                extensions=(("pool", "x"),),
            ),
        ),
        (
            STRIMZI + 'oauth.client.id="a" oauth.refresh.token="r" oauth.password.grant.username="u";',
            by_strimzi("a", None, ("grant_type", "refresh_token"), ("refresh_token", "r"), ("client_id", "a")),
        ),
        (
            STRIMZI + 'oauth.client.id="a" oauth.client.secret="b" oauth.refresh.token.location="/r";',
            by_strimzi(
                "a", ("a", "b"), ("grant_type", "refresh_token"), ("client_id", "a"), files=(("refresh_token", "/r"),)
            ),
        ),
        (
            STRIMZI + 'oauth.client.id="a" oauth.password.grant.username="u" oauth.password.grant.password="p";',
            by_strimzi("u", ("a", ""), ("grant_type", "password"), ("username", "u"), ("password", "p")),
        ),
        (
            STRIMZI + 'oauth.client.id="a" oauth.client.assertion.location="/j" oauth.client.assertion="x"'
            ' oauth.client.assertion.type="t" oauth.client.credentials.grant.type="g";',
            by_strimzi(
                "a",
                None,
                ("grant_type", "g"),
                ("client_id", "a"),
                ("client_assertion_type", "t"),
                files=(("client_assertion", "/j"),),
            ),
        ),
        (
            STRIMZI + 'oauth.client.id="a" oauth.client.secret="" oauth.username.claim="sub";',
            by_strimzi("a", ("a", ""), *BY_SECRET),
        ),
        (STRIMZI + 'oauth.access.token="e30.e30.x" oauth.client.id="a";', GivenToken("e30.e30.x")),
        (STRIMZI + 'oauth.access.token="x" oauth.access.token.location="/token";', TokenFile("/token")),
    ],
)
def test_tokens(load: Load, lines: str, expected: Login) -> None:
    config = load(lines)
    assert config.warnings == ()
    assert login(config) == expected
    assert flow(config).has_secrets == any(
        word in lines.replace('oauth.client.secret=""', "")
        for word in ("ecret=", "secret =", ".token=", "password=", "assertion=")
    )


@pytest.mark.parametrize(
    ("lines", "key", "part"),
    [
        (
            "us.security.protocol = SASL_SSL",
            "us.sasl.jaas.config",
            "that is for Kerberos, which counts where no sasl.mechanism is written",
        ),
        (
            SASL.replace("SCRAM-SHA-512", "GSSAPI"),
            "us.sasl.jaas.config",
            f"is missing: write {KERBEROS_MODULE} required",
        ),
        (KERBEROS + ";", "us.sasl.kerberos.service.name", "is missing: write the beginning of the brokers' principals"),
        (
            KERBEROS + " serviceName=kafka;\nsasl.kerberos.service.name = other",
            "sasl.kerberos.service.name",
            "is other, and serviceName in sasl.jaas.config kafka: write the same",
        ),
        (KERBEROS + ' serviceName=kafka useKeyTab=true keyTab="/k";', "us.sasl.jaas.config", "principal is missing"),
        (KERBEROS + " serviceName=kafka useKeyTab=true principal=a;", "us.sasl.jaas.config", "keyTab is missing"),
        (
            KERBEROS + " serviceName=kafka principal=a;",
            "us.sasl.jaas.config",
            "says nothing to sign in with: write useK",
        ),
        (SASL.replace("SCRAM-SHA-512", "DIGEST-MD5"), "sasl.mechanism", "must be PLAIN or SCRAM-SHA-256"),
        (SASL, "us.sasl.jaas.config", "is missing: write org.apache.kafka.common.security.scram.ScramLoginModule"),
        (SASL + SCRAM.replace(";\n", "\n"), "sasl.jaas.config", "does not end with a semicolon"),
        (SASL + SCRAM.replace("scram.Scram", "plain.Plain"), "sasl.jaas.config", "needs the login module"),
        (SASL + SCRAM.replace("username", "user"), "sasl.jaas.config", "option username is missing"),
        (OAUTH + f'clientId="a";\n{ENDPOINT}https://x', "us.sasl.jaas.config", "option clientSecret is missing"),
        (OAUTH + f";\n{ENDPOINT}ftp://x", "us.sasl.oauthbearer.token.endpoint.url", "must begin with https:, http:"),
        (OAUTH + ";", "us.sasl.jaas.config", "names no principal"),
        (MSK + ' awsRoleArn="r" awsRoleAccessKeyId="k";', "us.sasl.jaas.config", "awsRoleSecretAccessKey is missing"),
        (STRIMZI + ";", "us.sasl.jaas.config", "option oauth.client.id is missing"),
        (STRIMZI + 'oauth.client.id="a";', "us.sasl.jaas.config", "says nothing to sign in with: write oauth.client"),
        (
            STRIMZI + 'oauth.client.id="a" oauth.password.grant.username="u";',
            "us.sasl.jaas.config",
            "option oauth.password.grant.password is missing",
        ),
        (
            STRIMZI.replace("https:", "ftp:") + 'oauth.client.id="a" oauth.client.secret="b";',
            "us.sasl.jaas.config",
            "option oauth.token.endpoint.uri must begin",
        ),
        (
            STRIMZI + 'oauth.client.id="a" oauth.client.secret="b" oauth.max.token.expiry.seconds="59";',
            "us.sasl.jaas.config",
            "must be 60 at least",
        ),
        (
            STRIMZI + 'oauth.client.id="a" oauth.client.secret="b" oauth.sasl.extension.a1="x";',
            "us.sasl.jaas.config",
            "needs a name of letters",
        ),
        (
            STRIMZI + 'oauth.client.id="a" oauth.client.secret="b" oauth.read.timeout.seconds="inf";',
            "us.sasl.jaas.config",
            "option oauth.read.timeout.seconds must be a number",
        ),
        (
            STRIMZI.replace("//id", "//u:hunter2@id") + 'oauth.client.id="a" oauth.client.secret="b";',
            "us.sasl.jaas.config",
            "must not hold a user or password",
        ),
        (
            OAUTH + f'clientId="a" clientSecret="b";\n{ENDPOINT}https://u:hunter2@x',
            "us.sasl.oauthbearer.token.endpoint.url",
            "must not hold a user or password",
        ),
        (
            STRIMZI + 'oauth.client.id="a" oauth.client.secret="b" oauth.include.accept.header="perhaps";',
            "us.sasl.jaas.config",
            "oauth.include.accept.header must be true or false",
        ),
        (MSK + ' awsStranger="x";', "us.sasl.jaas.config", "option awsStranger of IAMLoginModule"),
        (
            SASL + SCRAM + "sasl.login.callback.handler.class = com.example.X",
            "sasl.login.callback.handler.class",
            "must",
        ),
    ],
)
def test_a_login_that_can_not_be(load: Load, lines: str, key: str, part: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load(lines)
    assert caught.value.key == key
    assert part in str(caught.value)
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    ("key", "part"),
    [
        ("sasl.kerberos.kinit.cmd", "has no effect: new tickets are got after four fifths of their lives"),
        ("us.sasl.kerberos.ticket.renew.window.factor", "has no effect: new tickets are got after"),
        ("us.sasl.kerberos.ticket.renew.jitter", "has no effect: new tickets are got after"),
        ("sasl.kerberos.min.time.before.relogin", "has no effect: new tickets are got after"),
        ("us.sasl.kerberos.principal.to.local.rules", "has no effect: it is for the brokers"),
    ],
)
def test_keys_of_kerberos_without_effect(load: Load, key: str, part: str) -> None:
    (warning,) = load(KERBEROS + f" useTicketCache=true serviceName=kafka;\n{key} = 1").warnings
    assert f"{key}: {part}" in warning


def test_a_login_without_sasl_does_nothing_and_says_so(load: Load) -> None:
    (warning,) = load(SCRAM).warnings
    assert warning.endswith("sasl.jaas.config: has no effect without SASL: write security.protocol")


@pytest.mark.parametrize(
    ("given", "secret"),
    [
        ('username="mirror" password="hunter2"', True),
        ('username="mirror" password="${env:SECRET}"', False),
        ('username="${env:SECRET}" password="${env:SECRET}"', False),
        ('username="mirror" password="h${env:SECRET}"', True),
        ('username="mirror" password="${vault:x:hunter2}"', True),
    ],
)
def test_a_reference_travels_and_what_it_leads_to_does_not(
    load: Load, monkeypatch: pytest.MonkeyPatch, given: str, secret: bool
) -> None:
    monkeypatch.setenv("SECRET", "hunter3")
    config = load(PROVIDER + SASL + f"sasl.jaas.config = {KAFKA}scram.ScramLoginModule required {given};")
    assert flow(config).has_secrets is secret
    text = order(config).to_json()
    assert "hunter3" not in text
    if "env:" in given:
        assert "${env:SECRET}" in text
        again = PumpOrder.model_validate_json(text).flows[0].flow.source
        found = read_login(with_secrets(again).sasl)
        assert isinstance(found, Password)
        assert "hunter3" in found.password
    assert "hunter" not in repr(config) + repr(order(config)) + config.model_dump_json()


def test_a_whole_line_may_stand_elsewhere(load: Load, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAAS", f'{KAFKA}scram.ScramLoginModule required username="a" password="hunter2";')
    config = load(PROVIDER + SASL + "sasl.jaas.config = ${env:JAAS}")
    assert not flow(config).has_secrets
    assert login(config) == Password("SCRAM-SHA-512", "a", "hunter2")
    assert "hunter2" not in order(config).to_json()
