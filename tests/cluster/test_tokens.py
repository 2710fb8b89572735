"""Tokens: how long one is kept, what the file and the server may say, and the AWS library's own."""

from __future__ import annotations

import base64
import json
import socket
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Self
from urllib.parse import parse_qs, urlsplit

import pytest
from aws_msk_iam_sasl_signer import MSKAuthTokenProvider
from botocore.auth import SigV4QueryAuth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from sparkmirror.config.credentials import GivenToken, MskIam, Token, TokenFile, TokenRequest, UnsecuredToken
from sparkmirror.config.model import ClusterConfig, SaslConfig
from sparkmirror.kafka.cluster.msk_tokens import region_of
from sparkmirror.kafka.cluster.sign_in import sign_in
from sparkmirror.kafka.cluster.tokens import TokenKeeper, keeper
from sparkmirror.kafka.wire.sasl import SaslError

ACCESS, SECRET, SESSION = "AKIDEXAMPLE", "hunter2-of-aws", "a-session"


def jwt(expires_at: float) -> str:
    body = base64.urlsafe_b64encode(json.dumps({"sub": "a", "exp": expires_at}).encode()).rstrip(b"=").decode()
    return f"e30.{body}.sig"


def test_a_token_is_kept_for_four_fifths_of_its_life(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1000.0
    monkeypatch.setattr(time, "time", lambda: now)
    made: list[Token] = []

    def fetch() -> Token:
        made.append(Token(str(len(made)), now + 100))
        return made[-1]

    kept = TokenKeeper(fetch)
    assert [kept.token(), kept.token()] == ["0", "0"]
    now = 1079.0
    assert kept.token() == "0"
    now = 1081.0
    assert kept.token() == "1"


def test_an_old_token_bridges_a_server_that_is_away_until_it_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1000.0
    monkeypatch.setattr(time, "time", lambda: now)
    answers: list[Token | SaslError] = [Token("old", 1100.0), SaslError("away"), SaslError("away")]

    def fetch() -> Token:
        answer = answers.pop(0)
        if isinstance(answer, SaslError):
            raise answer
        return answer

    kept = TokenKeeper(fetch)
    kept.token()
    now = 1090.0
    assert kept.token() == "old"
    now = 1101.0
    with pytest.raises(SaslError, match="away"):
        kept.token()


def test_a_file_is_read_each_time(tmp_path: Path) -> None:
    path = tmp_path / "token"
    kept = keeper(TokenFile(str(path)))
    with pytest.raises(SaslError, match="can't be read: No such file"):
        kept.token()
    for number in (1, 2):
        text = jwt(time.time() + 100 * number)
        path.write_text(text + "\n")
        assert kept.token() == text
    path.write_text(jwt(time.time() - 1))
    with pytest.raises(SaslError, match="has expired"):
        kept.token()
    path.write_text("no token at all")
    with pytest.raises(SaslError, match="gave no token") as caught:
        kept.token()
    assert "at all" not in str(caught.value)


def test_a_token_without_a_signature() -> None:
    login = UnsecuredToken(
        claims=(("sub", "me"), ("scope", ("a", "b")), ("n", 1.5)),
        subject_claim="sub",
        scope_claim="scope",
        lifetime_s=60,
        extensions=(),
    )
    head, body, signature = keeper(login).token().split(".")
    assert (json.loads(base64.urlsafe_b64decode(head + "==")), signature) == ({"alg": "none"}, "")
    claims = json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))
    assert (claims["sub"], claims["scope"], claims["n"]) == ("me", ["a", "b"], 1.5)
    assert claims["exp"] - claims["iat"] == 60


# --- servers ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Asked:
    """One request."""

    headers: Message
    body: str


class AnsweringServer:
    """Gives the same answer to every POST, and keeps what was asked."""

    def __init__(
        self, content_type: str, content: str, status: int = 200, headers: Mapping[str, str] | None = None
    ) -> None:
        self.requests: list[Asked] = []
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                length = int(self.headers["Content-Length"])
                server.requests.append(Asked(self.headers, self.rfile.read(length).decode()))
                self.send_response(status)
                self.send_header("Content-Type", content_type)
                for name, value in (headers or {}).items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(content.encode())))
                self.end_headers()
                self.wfile.write(content.encode())

            def log_message(self, *_: object) -> None:
                """Nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()


def basic(headers: Message) -> str:
    kind, _, text = headers["Authorization"].partition(" ")
    assert kind == "Basic"
    return base64.b64decode(text).decode()


def test_what_a_token_server_is_asked(tmp_path: Path) -> None:
    """The form, the header, and files that are read for each request."""
    assertion = tmp_path / "assertion"
    form = (("grant_type", "client_credentials"), ("scope", "a b"), ("audience", "https://x"))
    with AnsweringServer("application/json", json.dumps({"access_token": "opaque", "expires_in": "0"})) as server:
        keeper(TokenRequest(url=server.url, principal="i", client=("i d", "s:%"), form=form)).token()
        keeper(
            TokenRequest(
                url=server.url, principal="i", client=("i d~", "s:%*"), form=form, urlencoded=True, accepts_json=False
            )
        ).token()
        kept = keeper(
            TokenRequest(
                url=server.url, principal="i", client=None, form=form, files=(("client_assertion", str(assertion)),)
            )
        )
        with pytest.raises(SaslError, match="can't be read: No such file"):
            kept.token()
        for text in ("one", "two"):
            assertion.write_text(text + "\n")
            kept.token()
    plain, encoded, one, two = server.requests
    assert parse_qs(plain.body) == {name: [value] for name, value in form} == parse_qs(encoded.body)
    assert (basic(plain.headers), basic(encoded.headers)) == ("i d:s:%", "i+d%7E:s%3A%25*")
    assert (plain.headers["Accept"], encoded.headers["Accept"]) == ("application/json", None)
    assert [parse_qs(each.body)["client_assertion"] for each in (one, two)] == [["one"], ["two"]]
    assert one.headers["Authorization"] is None


def test_a_token_is_used_no_longer_than_is_wished(monkeypatch: pytest.MonkeyPatch) -> None:
    now = time.time()
    with AnsweringServer("application/json", json.dumps({"access_token": jwt(now + 3600)})) as server:
        login = TokenRequest(url=server.url, principal="i", client=("i", "s"), form=(), longest_life_s=60)
        keeper(login).token()
        monkeypatch.setattr(time, "time", lambda: now + 40)
        keeper(login).token()
        assert len(server.requests) == 1
        monkeypatch.setattr(time, "time", lambda: now + 60)
        keeper(login).token()
    assert len(server.requests) == 2


def refused(login: TokenRequest) -> str:
    with pytest.raises(SaslError) as caught:
        keeper(login).token()
    (line,) = str(caught.value).splitlines()
    return line


def test_what_a_token_server_may_not_do() -> None:
    """Each a line, and none with a secret."""
    form = (("grant_type", "refresh_token"), ("refresh_token", "hunter2"))
    with AnsweringServer("application/json", json.dumps({"access_token": "opaque"})) as server:
        assert "without expires_in" in refused(TokenRequest(url=server.url, principal="i", client=None, form=form))
    said = json.dumps(
        {"error": "invalid_grant", "error_description": "grant_type=refresh_token&\nrefresh_token=hunter2"}
    )
    with AnsweringServer("application/json", said, status=400) as server:
        line = refused(TokenRequest(url=server.url, principal="i", client=None, form=form))
        assert line.endswith("answers 400 Bad Request (invalid_grant)")
    with AnsweringServer("application/json", "{}") as other:
        with AnsweringServer("text/plain", "", status=302, headers={"Location": other.url}) as server:
            assert "answers 302 Found" in refused(
                TokenRequest(url=server.url, principal="i", client=("i", "s"), form=())
            )
        assert other.requests == []
    for url in ("http://a..b/t", "http://127.0.0.1/\N{SNOWMAN}"):
        assert "can't be asked" in refused(TokenRequest(url=url, principal="i", client=None, form=()))
    assert "can't be asked" in refused(
        TokenRequest(url="http://127.0.0.1:1", principal="i", client=None, form=(), timeout_s=1e18)
    )
    store = (("ssl.truststore.type", "BCFKS"),)
    assert "must be" in refused(TokenRequest(url="https://127.0.0.1:1", principal="i", client=None, form=(), tls=store))
    with pytest.raises(SaslError, match="can't be read"):
        keeper(TokenFile("a\0b")).token()


@pytest.mark.parametrize("said", ['{"error": "the secret"}', '{"error": ["invalid_grant"]}', "the secret", "[]", ""])
def test_nothing_else_of_a_servers_answer_is_shown(said: str) -> None:
    """The server may be any that this machine reaches, and the reader may be any who puts connectors."""
    with AnsweringServer("application/json", said, status=403) as server:
        line = refused(TokenRequest(url=server.url, principal="i", client=None, form=()))
        assert line.endswith("answers 403 Forbidden")


@pytest.mark.parametrize(
    "said", [b"-ERR the secret\r\n", b"HTTP/1.1 999 the secret\r\n\r\n", b"HTTP/1.1 x the secret\r\n"]
)
def test_nor_of_a_server_of_another_protocol(said: bytes) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            client, _ = server.accept()
            with client:
                client.recv(65_536)
                client.sendall(said)

        thread = threading.Thread(target=answer, daemon=True)
        thread.start()
        url = f"http://127.0.0.1:{server.getsockname()[1]}/"
        line = refused(TokenRequest(url=url, principal="i", client=None, form=()))
        thread.join()
    assert "secret" not in line
    assert url.rstrip("/") in line


def test_a_given_token() -> None:
    text = jwt(time.time() + 100)
    assert keeper(GivenToken(text)).token() == text
    with pytest.raises(SaslError, match="has expired: write a new one") as caught:
        keeper(GivenToken(jwt(1.0))).token()
    assert "e30" not in str(caught.value)


# --- AWS --------------------------------------------------------------------------------------------------


@pytest.fixture
def credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", ACCESS)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    monkeypatch.setenv("AWS_SESSION_TOKEN", SESSION)
    keeper.cache_clear()


def url_of(token: str) -> str:
    return base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)).decode()


@pytest.mark.usefixtures("credentials")
def test_an_iam_token_is_what_the_aws_library_signs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Our token, and one signed here by botocore for the moment that it bears: the same URL, signature included."""
    config = ClusterConfig(
        alias="us",
        bootstrap_servers=("b-1.demo.abc.c2.kafka.eu-west-3.amazonaws.com:9098",),
        security_protocol="SASL_SSL",
        sasl=SaslConfig.model_validate(
            {"mechanism": "AWS_MSK_IAM", "jaas_config": "software.amazon.msk.auth.iam.IAMLoginModule required;"}
        ),
    )
    how = sign_in(config)
    assert how is not None
    assert how.mechanism == "OAUTHBEARER"
    message = how.begin("b-1.demo.abc.c2.kafka.eu-west-3.amazonaws.com").respond(b"")
    assert message is not None
    assert message.startswith(b"n,,\x01auth=Bearer ")
    url = url_of(message.split(b"Bearer ")[1].rstrip(b"\x01").decode())
    said = {name: values[0] for name, values in parse_qs(urlsplit(url).query).items()}
    assert urlsplit(url).hostname == "kafka.eu-west-3.amazonaws.com"
    assert said["Action"] == "kafka-cluster:Connect"
    assert said["X-Amz-Credential"].startswith(f"{ACCESS}/{said['X-Amz-Date'][:8]}/eu-west-3/kafka-cluster/")
    assert said["X-Amz-Security-Token"] == SESSION

    monkeypatch.setattr("botocore.auth.get_current_datetime", lambda **_: moment(said["X-Amz-Date"]), raising=True)
    request = AWSRequest("GET", "https://kafka.eu-west-3.amazonaws.com/", params={"Action": "kafka-cluster:Connect"})
    SigV4QueryAuth(Credentials(ACCESS, SECRET, SESSION), "kafka-cluster", "eu-west-3", expires=900).add_auth(request)
    expected = {name: values[0] for name, values in parse_qs(urlsplit(request.url).query).items()}
    assert {name: value for name, value in said.items() if name != "User-Agent"} == expected
    assert SECRET not in url


def moment(text: str) -> object:
    from datetime import UTC, datetime

    return datetime.strptime(text, "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)


@pytest.mark.usefixtures("credentials")
def test_a_profile_reaches_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[object, ...]] = []

    def note(*arguments: object) -> tuple[str, int]:
        asked.append(arguments)
        return "token", int(time.time() * 1000) + 900_000

    monkeypatch.setattr(MSKAuthTokenProvider, "generate_auth_token_from_profile", note)
    assert keeper(MskIam(profile="p"), "us-east-1").token() == "token"
    assert asked == [("us-east-1", "p")]


TAKEN = """<AssumeRoleResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><AssumeRoleResult><Credentials>
<AccessKeyId>AKIDOFROLE</AccessKeyId><SecretAccessKey>role-secret</SecretAccessKey><SessionToken>role-session</SessionToken>
<Expiration>2099-01-01T00:00:00Z</Expiration></Credentials></AssumeRoleResult></AssumeRoleResponse>"""


@pytest.mark.usefixtures("credentials")
@pytest.mark.parametrize(
    ("login", "signed_by", "region", "form"),
    [
        (MskIam(role_arn="arn:aws:iam::1:role/r"), ACCESS, "us-east-1", {"RoleSessionName": ["aws-msk-iam-auth"]}),
        (
            MskIam(
                role_arn="arn:aws:iam::1:role/r",
                session_name="us",
                external_id="ext",
                sts_region="eu-west-3",
                keys=("AKIDOFKEYS", "their-secret", ""),
            ),
            "AKIDOFKEYS",
            "eu-west-3",
            {"RoleSessionName": ["us"], "ExternalId": ["ext"]},
        ),
    ],
)
def test_a_role_is_taken_and_signs(
    monkeypatch: pytest.MonkeyPatch, login: MskIam, signed_by: str, region: str, form: dict[str, list[str]]
) -> None:
    """A mock of AWS's token service: the AWS library asks it for the role, and signs with what it gives."""
    monkeypatch.delenv("AWS_REGION", raising=False)
    monkeypatch.delenv("AWS_DEFAULT_REGION", raising=False)
    with AnsweringServer("text/xml", TAKEN) as server:
        monkeypatch.setenv("AWS_ENDPOINT_URL_STS", server.url)
        url = url_of(keeper(login, "us-east-1").token())
    (asked,) = server.requests
    expected = {"Action": ["AssumeRole"], "Version": ["2011-06-15"], "RoleArn": ["arn:aws:iam::1:role/r"], **form}
    assert parse_qs(asked.body) == expected
    assert f"Credential={signed_by}/" in asked.headers["Authorization"]
    assert f"/{region}/sts/" in asked.headers["Authorization"]
    said = {name: values[0] for name, values in parse_qs(urlsplit(url).query).items()}
    assert said["X-Amz-Credential"].startswith("AKIDOFROLE/")
    assert said["X-Amz-Security-Token"] == "role-session"
    assert "role-secret" not in url


@pytest.mark.parametrize("variable", ["AWS_REGION", "AWS_DEFAULT_REGION"])
@pytest.mark.parametrize(
    ("host", "region"),
    [
        ("b-1.demo.abc.c2.kafka.us-east-1.amazonaws.com", "us-east-1"),
        ("boot-xyz.c1.kafka-serverless.eu-north-1.amazonaws.com", "eu-north-1"),
        ("broker.example", "ap-south-1"),
    ],
)
def test_the_region(monkeypatch: pytest.MonkeyPatch, host: str, region: str, variable: str) -> None:
    monkeypatch.setenv(variable, "ap-south-1")
    assert region_of(MskIam(), host) == region


def test_no_region_and_no_credentials(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("AWS_DEFAULT_REGION", "AWS_REGION", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    keeper.cache_clear()
    with pytest.raises(SaslError, match="set AWS_REGION"):
        region_of(MskIam(), "broker.example")
    with pytest.raises(SaslError, match="nobody"):
        region_of(MskIam(profile="nobody"), "broker.example")
    with pytest.raises(SaslError, match="there are no AWS credentials"):
        keeper(MskIam(), "us-east-1").token()
    with pytest.raises(SaslError, match="AWS gives no credentials"):
        keeper(MskIam(profile="nobody"), "us-east-1").token()
