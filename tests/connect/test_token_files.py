"""Over HTTP no file of the server becomes a token, which would be sent to brokers of the connector's choice."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.connect.serving import worker_config, worker_settings
from tests.support.connectors import specs, worker_file
from tests.support.in_memory_api import in_memory_api
from tests.support.rest_cases import connector

from sparkmirror.config.oauth_login import OAUTH_HANDLERS
from sparkmirror.connect.flows import Flows, read_flows
from sparkmirror.connect.loadable import Loadable
from sparkmirror.errors import ConfigError

URL = "sasl.oauthbearer.token.endpoint.url"
PLUGIN = "/connector-plugins/MirrorSourceConnector/config/validate"
WHY = "names a file of the server"
MODULE = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required"
HANDLER = "io.strimzi.kafka.oauth.client.JaasClientOauthLoginCallbackHandler"
SIGNED = {
    "source.cluster.security.protocol": "SASL_SSL",
    "source.cluster.sasl.mechanism": "OAUTHBEARER",
}


def source(**more: str) -> dict[str, str]:
    converter = "org.apache.kafka.connect.converters.ByteArrayConverter"
    ends = connector("Source", "127.0.0.1:1", "127.0.0.1:2")
    return {**ends, **SIGNED, "key.converter": converter, "value.converter": converter, **more}


def jaas(**options: str) -> dict[str, str]:
    said = " ".join(f'{name.replace("_", ".")}="{value}"' for name, value in options.items())
    return {
        "source.cluster.sasl.jaas.config": f"{MODULE} {said};",
        "source.cluster.sasl.login.callback.handler.class": HANDLER,
    }


READS = [
    {f"source.cluster.{URL}": "file:///etc/passwd"},
    {f"target.cluster.{URL}": "file:/etc/passwd"},
    {f"source.consumer.{URL}": "file:///etc/passwd"},
    {f"consumer.{URL}": " FILE:///etc/passwd"},
    {f"producer.override.{URL}": "file:///etc/passwd"},
    {f"admin.{URL}": "file:////etc/passwd"},
    {URL: "file:///etc/passwd"},
    {"source.cluster.sasl.oauthbearer.jwks.endpoint.url": "file:///etc/passwd"},
    jaas(oauth_access_token_location="/etc/passwd"),
    jaas(oauth_client_id="a", oauth_refresh_token_location="/etc/passwd"),
    jaas(oauth_client_id="a", oauth_client_assertion_location="/etc/passwd"),
    {"admin.sasl.jaas.config": f"{MODULE} oauth.access.token.location='/etc/passwd' oauth.scope=\"hunter2\";"},
]
SERVER = "https://login.example.com/token"
ASKS = [
    {f"source.cluster.{URL}": SERVER},
    {f"target.cluster.{URL}": f" {SERVER} "},
    {f"producer.override.{URL}": SERVER},
    {"source.cluster.sasl.oauthbearer.jwks.endpoint.url": SERVER},
    jaas(oauth_client_id="a", oauth_client_secret="b", oauth_token_endpoint_uri=SERVER),
]
NAMES = [
    {"source.cluster.ssl.truststore.location": "{}"},
    {"ssl.keystore.location": " {}"},
    {"admin.ssl.truststore.location": "{}"},
    jaas(keyTab="{}"),
    jaas(ticketCache="FILE:{}"),
    jaas(oauth_ssl_truststore_location="{}"),
    jaas(ssl_truststore_location="{}"),
]
FREE = [
    jaas(oauth_access_token="abc"),
    {"source.cluster.ssl.truststore.location": "/etc/ssl/ca.pem"},
    {"topics": "file:///etc/passwd"},
]


def flows_of(config: dict[str, str], **worker: str) -> Flows:
    return read_flows(specs({"shop": config}), worker_file({key.replace("_", "."): one for key, one in worker.items()}))


@pytest.mark.parametrize("more", READS)
def test_a_connector_names_no_file_with_a_token(more: dict[str, str]) -> None:
    config, key = source(**more), next(iter(more))
    with in_memory_api() as api:
        for method, path, body in (
            ("PUT", "/connectors/shop/config", config),
            ("POST", "/connectors", {"name": "shop", "config": config}),
        ):
            status, said = api.ask(method, path, body)
            assert status == 400
            assert f"for configuration {key}: {WHY}" in str(said)
        status, checked = api.ask("PUT", PLUGIN, {**config, "name": "shop"})
        assert isinstance(checked, dict)
        wrong = [one["value"] for one in checked["configs"] if WHY in str(one["value"]["errors"])]
        assert (status, [one["name"] for one in wrong]) == (200, [key])
        if key.endswith("jaas.config"):
            assert "passwd" not in str(checked)
        assert api.ask("PUT", "/connectors/shop/config", source())[0] == 201
        assert api.ask("PATCH", "/connectors/shop/config", more)[0] == 400
    # What stands in the topic already, from an earlier release or a real worker.
    failure = flows_of(config).parts["shop"].failure
    assert failure.startswith(f"connector shop: {key}: ")
    assert WHY in failure
    assert ("passwd" in failure) is key.endswith("url"), "a JAAS line holds secrets"


@pytest.mark.parametrize("more", ASKS)
def test_a_connector_names_no_token_server_that_the_file_does_not_list(more: dict[str, str]) -> None:
    """Else the worker asks any server that only it reaches, as a cloud's for credentials."""
    config, key = source(**more), next(iter(more))
    words = "add the URL to sparkmirror.allowed.urls there"
    for urls, allowed in (("", False), (f"https://other.example, {SERVER}2", False), (f"x, {SERVER}", True)):
        listed = Loadable(urls=frozenset(urls.split(", ")))
        with in_memory_api(loadable=listed) as api:
            status, said = api.ask("PUT", "/connectors/shop/config", config)
            assert (status, words in str(said)) == ((201, False) if allowed else (400, True)), said
        failure = flows_of(config, sparkmirror_allowed_urls=urls).parts["shop"].failure
        assert (words in failure) is not allowed, failure
        if not allowed:
            assert failure.startswith(f"connector shop: {key}: ")


@pytest.mark.parametrize("more", NAMES)
def test_a_connector_names_stores_and_keytabs_of_allowed_directories(tmp_path: Path, more: dict[str, str]) -> None:
    """Any where the worker's file lists none, as for Kafka's config providers."""
    (tmp_path / "allowed").mkdir()
    words = "add its directory to sparkmirror.allowed.paths there"
    for path, listed, free in (
        (f"{tmp_path}/allowed/a.pem", f"{tmp_path}/none, {tmp_path}/allowed", True),
        (f"{tmp_path}/allowed/../b.pem", f"{tmp_path}/allowed", False),
        ("/dev/zero", f"{tmp_path}/allowed", False),
        ("/dev/zero", "", True),
    ):
        (tmp_path / "none").mkdir(exist_ok=True)
        config = source(**{key: value.replace("{}", path) for key, value in more.items()})
        file = worker_config(tmp_path, worker_settings("kafka:9092", "group", 8083, sparkmirror_allowed_paths=listed))
        with in_memory_api(loadable=file.loadable) as api:
            status, said = api.ask("PUT", "/connectors/shop/config", config)
            assert (status, words in str(said)) == ((201, False) if free else (400, True)), said
        failure = flows_of(config, sparkmirror_allowed_paths=listed).parts["shop"].failure
        assert (words in failure) is not free, failure


def test_an_allowed_path_must_exist(tmp_path: Path) -> None:
    with pytest.raises(
        ConfigError, match=r"allowed\.paths: /missing must be an absolute path of something that exists"
    ):
        worker_config(tmp_path, worker_settings("k:9092", "group", 8083, **{"sparkmirror.allowed.paths": "/missing"}))


@pytest.mark.parametrize("more", FREE)
def test_what_reads_no_token_is_free(more: dict[str, str]) -> None:
    with in_memory_api() as api:
        status, said = api.ask("PUT", "/connectors/shop/config", source(**more))
    assert status == 201, said
    assert WHY not in flows_of(source(**more)).parts["shop"].failure


@pytest.mark.parametrize(
    ("key", "inside"),
    [
        (f"source.cluster.{URL}", "file:///etc/passwd"),
        ("source.cluster.sasl.jaas.config", f'{MODULE} oauth.access.token.location="/etc/passwd";'),
    ],
)
def test_nor_where_a_reference_stands_for_it(tmp_path: Path, key: str, inside: str) -> None:
    (tmp_path / "login").write_text(f"hidden={inside}\n")
    providers = {"config_providers": "file", "config_providers_file_class": "FileConfigProvider"}
    config = source(**{key: f"${{file:{tmp_path}/login:hidden}}"})
    file = worker_config(tmp_path, worker_settings("kafka:9092", "group", 8083, **providers))
    with in_memory_api(file.resolve, loadable=file.loadable) as api:
        status, said = api.ask("PUT", "/connectors/shop/config", config)
    # What is secret is looked at when the connector is started.
    assert (status, WHY in str(said), "passwd" in str(said)) == (
        (400, True, False) if URL in key else (201, False, False)
    )
    failure = flows_of(config, **providers).parts["shop"].failure
    assert (WHY in failure, "passwd" in failure) == (True, False)


def test_the_way_that_is_left(tmp_path: Path) -> None:
    """A token in a file of a directory that the worker's own file allows."""
    (tmp_path / "source").write_text("abc")
    providers = {
        "config_providers": "directory",
        "config_providers_directory_class": "DirectoryConfigProvider",
        "config_providers_directory_param_allowed_paths": str(tmp_path),
    }
    providers = {key.replace("allowed_paths", "allowed.paths"): value for key, value in providers.items()}
    config = source(**jaas(oauth_access_token=f"${{directory:{tmp_path}:source}}"))
    flows = flows_of(config, **providers)
    assert not flows.parts["shop"].failure
    (flow,) = flows.config.flows
    assert "abc" not in str(flow.source.sasl.jaas_config.get_secret_value())


def test_the_workers_own_file_may_name_one() -> None:
    """For the cluster that a connector writes to when it names none."""
    config = source()
    del config["target.cluster.bootstrap.servers"], config["source.cluster.security.protocol"]
    own = {
        "security_protocol": "SASL_SSL",
        "sasl_mechanism": "OAUTHBEARER",
        "sasl_jaas_config": f"{MODULE};",
        "sasl_login_callback_handler_class": OAUTH_HANDLERS[0],
        URL: "file:///var/run/token",
    }
    flows = flows_of(config, **own)
    assert not flows.parts["shop"].failure
    (flow,) = flows.config.flows
    assert flow.target.sasl.oauthbearer_token_endpoint_url == "file:///var/run/token"
