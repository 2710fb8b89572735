"""Tokens: how long one is kept, what the file and the server may say, and the AWS library's own."""

from __future__ import annotations

import base64
import json
import time
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from aws_msk_iam_sasl_signer import MSKAuthTokenProvider
from botocore.auth import SigV4QueryAuth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from sparkmirror.cluster.sign_in import sign_in
from sparkmirror.cluster.tokens import Token, TokenKeeper, keeper, region_of
from sparkmirror.config.login import MskIam, TokenFile, UnsecuredToken
from sparkmirror.config.model import ClusterConfig, SaslConfig
from sparkmirror.wire.sasl import SaslError

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
    kept = keeper(TokenFile(str(path), ()), 1.0, "")
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
    login = UnsecuredToken((("sub", "me"), ("scope", ("a", "b")), ("n", 1.5)), "sub", "scope", 60, ())
    head, body, signature = keeper(login, 1.0, "").token().split(".")
    assert (json.loads(base64.urlsafe_b64decode(head + "==")), signature) == ({"alg": "none"}, "")
    claims = json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))
    assert (claims["sub"], claims["scope"], claims["n"]) == ("me", ["a", "b"], 1.5)
    assert claims["exp"] - claims["iat"] == 60


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
def test_profile_and_role_reach_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[object, ...]] = []

    def note(*arguments: object) -> tuple[str, int]:
        asked.append(arguments)
        return "token", int(time.time() * 1000) + 900_000

    for name in ("generate_auth_token_from_profile", "generate_auth_token_from_role_arn"):
        monkeypatch.setattr(MSKAuthTokenProvider, name, note)
    assert keeper(MskIam(profile="p"), 1.0, "us-east-1").token() == "token"
    assert keeper(MskIam(role_arn="arn", session_name="s"), 1.0, "us-east-1").token() == "token"
    assert keeper(MskIam(role_arn="arn"), 1.0, "us-east-1").token() == "token"
    assert asked == [("us-east-1", "p"), ("us-east-1", "arn", "s"), ("us-east-1", "arn")]


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
    with pytest.raises(SaslError, match="there are no AWS credentials"):
        keeper(MskIam(), 1.0, "us-east-1").token()
    with pytest.raises(SaslError, match="AWS gives no credentials"):
        keeper(MskIam(profile="nobody"), 1.0, "us-east-1").token()
