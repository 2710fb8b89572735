"""Tokens for Amazon MSK, signed with AWS credentials by the AWS library.

Connections present the tokens by OAUTHBEARER; MSK accepts it at the same port as AWS_MSK_IAM, the mechanism in AWS's
Java library.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from sparkmirror.config.credentials import MskIam, Token
from sparkmirror.kafka.wire.sasl import SaslError

if TYPE_CHECKING:
    from botocore.credentials import Credentials
    from botocore.session import Session

MSK_HOST = re.compile(r"\.kafka(?:-serverless)?\.([a-z0-9-]+)\.amazonaws\.com")
"""Host names of Amazon MSK's brokers; the group is the region."""

_SESSION_NAME = "aws-msk-iam-auth"
"""Session name for a role without one, as in AWS's Java library."""


def region_of(login: MskIam, host: str) -> str:
    """Return a broker's AWS region.

    From the host name, or else from `AWS_REGION`, `AWS_DEFAULT_REGION` or the profile. Raises `SaslError` without any.
    """
    match = MSK_HOST.search(host)
    if match:
        return match[1]
    from botocore.exceptions import BotoCoreError
    from botocore.session import Session

    try:
        region = _stated_region(Session(profile=login.profile or None))
    except BotoCoreError as error:
        raise SaslError(f"the AWS region of {host} is not known: {' '.join(str(error).split())}") from None
    if not region:
        raise SaslError(f"the AWS region of {host} is not known: set AWS_REGION")
    return region


def _stated_region(session: Session) -> str:
    """Return the configured region; empty without one.

    Java's environment variable comes first, then Python's, then the profile.
    """
    return str(os.environ.get("AWS_REGION") or session.get_config_variable("region") or "")


def signed_token(login: MskIam, region: str) -> Token:
    """Make a token for this region's brokers.

    Raises `SaslError`, and `ImportError` without the AWS library.
    """
    from aws_msk_iam_sasl_signer import MSKAuthTokenProvider
    from botocore.credentials import CredentialProvider
    from botocore.exceptions import BotoCoreError, ClientError

    class Role(CredentialProvider):  # type: ignore[misc]
        def load(self) -> Credentials:
            return _role(login, region)

    try:
        if login.role_arn:
            made = MSKAuthTokenProvider.generate_auth_token_from_credentials_provider(region, Role())
        elif login.profile:
            made = MSKAuthTokenProvider.generate_auth_token_from_profile(region, login.profile)
        else:
            made = MSKAuthTokenProvider.generate_auth_token(region)
    except AttributeError:  # raised by the library if it finds no credentials
        raise SaslError("there are no AWS credentials: set them in the environment, a profile or the role") from None
    except (BotoCoreError, ClientError, ValueError) as error:
        raise SaslError(f"AWS gives no credentials: {' '.join(str(error).split())}") from None
    text, expires_ms = made
    return Token(text, expires_ms / 1000)


def _role(login: MskIam, region: str) -> Credentials:
    """Get the role's credentials from AWS's token service (STS).

    The signing library can't pass an external id, a region or keys to the token service.
    """
    from botocore.credentials import Credentials
    from botocore.session import Session

    keys = {}
    if login.keys is not None:
        names = "aws_access_key_id", "aws_secret_access_key", "aws_session_token"
        keys = {name: value for name, value in zip(names, login.keys, strict=True) if value}
    session = Session(profile=login.profile or None)
    near = login.sts_region or _stated_region(session) or region
    tokens = session.create_client("sts", region_name=near, **keys)
    external = {"ExternalId": login.external_id} if login.external_id else {}
    taken = tokens.assume_role(RoleArn=login.role_arn, RoleSessionName=login.session_name or _SESSION_NAME, **external)[
        "Credentials"
    ]
    return Credentials(taken["AccessKeyId"], taken["SecretAccessKey"], taken["SessionToken"])
