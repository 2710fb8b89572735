"""Sign in to a cluster: conversations as its configuration says.

Secrets are read again for each sign-in.
"""

from __future__ import annotations

from dataclasses import dataclass

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
from sparkmirror.kafka.cluster.msk_tokens import region_of
from sparkmirror.kafka.cluster.tickets import Context
from sparkmirror.kafka.cluster.tokens import TokenLogin, keeper
from sparkmirror.kafka.wire.sasl import Conversation, Gssapi, OAuthBearer, Plain, SaslError, Scram

MSK_EXTRA = (
    "AWS_MSK_IAM needs the AWS library aws-msk-iam-sasl-signer-python, which is not installed here: "
    "pip install 'sparkmirror[msk]'"
)


@dataclass(frozen=True, slots=True)
class ClusterSignIn:
    """One cluster's `wire.rpc.SignIn`.

    References in the configuration are resolved for each sign-in.
    """

    config: ClusterConfig

    @property
    def mechanism(self) -> str:
        """Mechanism's name at the brokers: OAUTHBEARER for MSK's signed tokens."""
        named = self.config.sasl.mechanism
        return named if named in ("PLAIN", *SCRAM, GSSAPI) else OAUTHBEARER

    @property
    def principal(self) -> str:
        """Principal that signs in, or where it comes from; empty if unknown."""
        try:
            return _principal(self._login())
        except SaslError:
            return ""

    def begin(self, host: str) -> Conversation:
        """Begin a sign-in at this broker; raise `SaslError` without credentials."""
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
    """Return this cluster's sign-in; None if clients don't sign in there."""
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
