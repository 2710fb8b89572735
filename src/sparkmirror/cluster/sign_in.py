"""Signing in to a cluster: its configuration becomes a conversation, with what is secret read anew each time."""

from __future__ import annotations

from dataclasses import dataclass

from sparkmirror.cluster.msk_tokens import region_of
from sparkmirror.cluster.tickets import Context
from sparkmirror.cluster.tokens import TokenLogin, keeper
from sparkmirror.config.credentials import (
    GivenToken,
    Kerberos,
    Login,
    LoginError,
    MskIam,
    Password,
    TokenFile,
    TokenRequest,
    UnsecuredToken,
)
from sparkmirror.config.login import GSSAPI, OAUTHBEARER, SCRAM, read_login
from sparkmirror.config.model import ClusterConfig
from sparkmirror.config.providers import with_secrets
from sparkmirror.wire.sasl import Conversation, Gssapi, OAuthBearer, Plain, SaslError, Scram

MSK_EXTRA = (
    "AWS_MSK_IAM needs the AWS library aws-msk-iam-sasl-signer-python, which is not installed here: "
    "pip install 'sparkmirror[msk]'"
)


@dataclass(frozen=True, slots=True)
class ClusterSignIn:
    """`wire.rpc.SignIn` of one cluster. What its configuration refers to is looked up for each sign-in."""

    config: ClusterConfig

    @property
    def mechanism(self) -> str:
        """What brokers call it: MSK's brokers take a signed token by OAUTHBEARER."""
        named = self.config.sasl.mechanism
        return named if named in ("PLAIN", *SCRAM, GSSAPI) else OAUTHBEARER

    @property
    def principal(self) -> str:
        """Whom we sign in as, or what tells it; empty if it can't be told."""
        try:
            return _principal(self._login())
        except SaslError:
            return ""

    def begin(self, host: str) -> Conversation:
        """One sign-in at this broker; raises `SaslError` if there is nothing to sign in with."""
        login = self._login()
        if isinstance(login, Password):
            if login.mechanism == "PLAIN":
                return Plain(login.username, login.password)
            return Scram(login.mechanism, login.username, login.password)
        if isinstance(login, Kerberos):
            return Gssapi(Context(login, host))
        extensions = {} if isinstance(login, MskIam) else dict(login.extensions)
        return OAuthBearer(self._token(login, host), extensions)

    def _login(self) -> Login:
        try:
            return read_login(with_secrets(self.config).sasl)
        except LoginError as error:
            raise SaslError(f"sasl.{error.setting}: {error.reason}") from None
        except ValueError as error:
            raise SaslError(str(error)) from None

    def _token(self, login: TokenLogin, host: str) -> str:
        try:
            region = region_of(login, host) if isinstance(login, MskIam) else ""
            return keeper(login, region).token()
        except ImportError:
            raise SaslError(MSK_EXTRA) from None


def sign_in(config: ClusterConfig) -> ClusterSignIn | None:
    """How to sign in to this cluster; None where it isn't done."""
    return ClusterSignIn(config) if config.signs_in else None


def _principal(login: Login) -> str:
    match login:
        case Password():
            return login.username
        case TokenRequest():
            return login.principal
        case TokenFile():
            return login.path
        case GivenToken():
            return ""
        case UnsecuredToken():
            return str(dict(login.claims)[login.subject_claim])
        case MskIam():
            return login.role_arn or login.profile
        case Kerberos():
            return login.principal
