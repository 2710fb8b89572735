"""Way to sign in to a cluster by SASL, read from Kafka's own settings.

The settings are Kafka 4.3.1's (`SaslConfigs`), those for Java's `Krb5LoginModule`, for Amazon's `aws-msk-iam-auth`, and
for Strimzi's `kafka-oauth-client`. Mechanism, login module and callback handler tell the libraries apart.
"""

from __future__ import annotations

from collections.abc import Mapping

from sparkmirror.config.credentials import Login, LoginError, MskIam, Password, needed
from sparkmirror.config.jaas import parse_jaas
from sparkmirror.config.kerberos_login import KERBEROS_MODULE, read_kerberos
from sparkmirror.config.model import SaslConfig
from sparkmirror.config.oauth_login import OAUTH_HANDLERS, SECURITY, UNSECURED_HANDLER, read_oauth
from sparkmirror.config.strimzi_oauth import STRIMZI_HANDLER, read_strimzi_oauth

SCRAM = ("SCRAM-SHA-256", "SCRAM-SHA-512")
OAUTHBEARER = "OAUTHBEARER"
AWS_MSK_IAM = "AWS_MSK_IAM"
GSSAPI = "GSSAPI"
MECHANISMS = ("PLAIN", *SCRAM, OAUTHBEARER, AWS_MSK_IAM, GSSAPI)

_MSK = "software.amazon.msk.auth.iam."
_MODULES = {
    "PLAIN": SECURITY + "plain.PlainLoginModule",
    **dict.fromkeys(SCRAM, SECURITY + "scram.ScramLoginModule"),
    OAUTHBEARER: SECURITY + "oauthbearer.OAuthBearerLoginModule",
    AWS_MSK_IAM: _MSK + "IAMLoginModule",
    GSSAPI: KERBEROS_MODULE,
}
MSK_CLIENT_HANDLER = _MSK + "IAMClientCallbackHandler"
MSK_OAUTH_CLIENT_HANDLER = _MSK + "IAMOAuthBearerClientCallbackHandler"
MSK_LOGIN_HANDLER = _MSK + "IAMOAuthBearerLoginCallbackHandler"
_MSK_OPTIONS = (
    "awsProfileName",
    "awsRoleArn",
    "awsRoleSessionName",
    "awsRoleExternalId",
    "awsRoleAccessKeyId",
    "awsRoleSecretAccessKey",
    "awsRoleSessionToken",
    "awsStsRegion",
    "awsDebugCreds",
    "awsMaxRetries",
    "awsMaxBackOffTimeMs",
)
LOGIN_HANDLERS = ("", *OAUTH_HANDLERS, UNSECURED_HANDLER, STRIMZI_HANDLER, MSK_LOGIN_HANDLER)
CLIENT_HANDLERS = ("", MSK_CLIENT_HANDLER, MSK_OAUTH_CLIENT_HANDLER)

_BY_DEFAULT = "; that is for Kerberos, which counts where no sasl.mechanism is written"


def read_login(sasl: SaslConfig) -> Login:
    """Return the way to sign in; raise `LoginError`.

    The caller resolves references to secrets before. The error names the setting to blame and never a secret.
    """
    mechanism = sasl.mechanism
    text = sasl.jaas_config.get_secret_value()
    if not text:
        line = f'is missing: write {_MODULES[mechanism]} required <option>="<value>";'
        raise LoginError("jaas.config", line + (_BY_DEFAULT if mechanism == GSSAPI else ""))
    try:
        entry = parse_jaas(text)
    except ValueError as error:
        raise LoginError("jaas.config", str(error)) from None
    if entry.module != _MODULES[mechanism]:
        raise LoginError("jaas.config", f"sasl.mechanism {mechanism} needs the login module {_MODULES[mechanism]}")
    if sasl.login_callback_handler_class == MSK_LOGIN_HANDLER or mechanism == AWS_MSK_IAM:
        return _msk(entry.options)
    if sasl.login_callback_handler_class == STRIMZI_HANDLER:
        return read_strimzi_oauth(entry.options)
    if mechanism == OAUTHBEARER:
        return read_oauth(sasl, entry.options)
    if mechanism == GSSAPI:
        return read_kerberos(sasl, entry.options)
    username, password = (needed(entry.options, option) for option in ("username", "password"))
    return Password(mechanism, username, password)


def _msk(options: Mapping[str, str]) -> MskIam:
    """Read the options as `aws-msk-iam-auth` does (`MSKCredentialProvider`)."""
    for option in options:
        if option not in _MSK_OPTIONS:
            raise LoginError("jaas.config", f"option {option} of IAMLoginModule is not supported")
    keys = None
    if "awsRoleAccessKeyId" in options or "awsRoleSecretAccessKey" in options:
        needed(options, "awsRoleArn")
        pair = needed(options, "awsRoleAccessKeyId"), needed(options, "awsRoleSecretAccessKey")
        keys = (*pair, options.get("awsRoleSessionToken", ""))
    return MskIam(
        profile=options.get("awsProfileName", ""),
        role_arn=options.get("awsRoleArn", ""),
        session_name=options.get("awsRoleSessionName", ""),
        external_id=options.get("awsRoleExternalId", ""),
        sts_region=options.get("awsStsRegion", ""),
        keys=keys,
    )
