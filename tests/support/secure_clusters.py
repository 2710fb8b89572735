"""How tests sign in to the further listeners of their clusters: settings of `mm2.properties`, and users to make."""

from __future__ import annotations

from kafka import KafkaAdminClient
from kafka.admin import ScramMechanism, UserScramCredentialUpsertion
from lab import Authority, KafkaCluster

KAFKA = "org.apache.kafka.common.security."
PASSWORD = 'it\'s "hunter2"; = \\ {}'
"""With all that a JAAS line must escape."""


def quoted(text: str) -> str:
    """In double quotes, as a JAAS line has it; in a properties file backslashes are doubled once more."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def scram_user(cluster: KafkaCluster, name: str, password: str) -> None:
    """Make a user for SCRAM, or give it another password."""
    admin = KafkaAdminClient(bootstrap_servers=cluster.direct_servers)
    try:
        for mechanism in (ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512):
            change = UserScramCredentialUpsertion(name, mechanism, password, iterations=4096)
            assert admin.alter_user_scram_credentials([change]) == {name: None}
    finally:
        admin.close()


def scram_settings(authority: Authority, name: str, password: str, mechanism: str = "SCRAM-SHA-512") -> dict[str, str]:
    """SASL_SSL with SCRAM."""
    module = f"{KAFKA}scram.ScramLoginModule required username={quoted(name)} password={quoted(password)};"
    return {
        **authority.client_settings(),
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": mechanism,
        "sasl.jaas.config": module,
    }


def plain_settings(name: str, password: str) -> dict[str, str]:
    """SASL_PLAINTEXT with PLAIN."""
    module = f"{KAFKA}plain.PlainLoginModule required username={quoted(name)} password={quoted(password)};"
    return {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", "sasl.jaas.config": module}


def token_settings(name: str) -> dict[str, str]:
    """SASL_PLAINTEXT with OAUTHBEARER and tokens without a signature."""
    module = f"{KAFKA}oauthbearer.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub={quoted(name)};"
    return {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "OAUTHBEARER", "sasl.jaas.config": module}


def of_cluster(alias: str, settings: dict[str, str]) -> dict[str, str]:
    """The same settings as keys of one cluster, escaped for a properties file."""
    return {f"{alias}.{key}": value.replace("\\", "\\\\") for key, value in settings.items()}
