"""A client for a schema registry with Confluent's API.

Apicurio, Karapace, Redpanda and others have this API as well. Calls block. Each answer is kept and not asked for again,
since an id's schema never changes.
"""

from __future__ import annotations

import base64
import json
import ssl
import time
from collections.abc import Mapping
from http.client import HTTPException
from typing import Any, NamedTuple
from urllib.error import HTTPError, URLError
from urllib.parse import quote
from urllib.request import HTTPSHandler, ProxyHandler, Request, build_opener

from sparkmirror.config.model import ClusterConfig, RegistryConfig
from sparkmirror.config.providers import resolve
from sparkmirror.config.schema_settings import SCHEMAS, Side
from sparkmirror.errors import ConfigError, RegistryUnreachable
from sparkmirror.kafka.cluster.tls_contexts import ssl_context
from sparkmirror.kafka.cluster.tokens import NoRedirects

TIMEOUT_S = 10.0
LARGEST_ANSWER = 16 << 20
"""Largest answer in bytes; no schema is larger."""
_PAUSES_S = (0.5, 2.0)
"""Pauses in seconds before the second and the third try."""
_BUSY = (429, 502, 503, 504)
_NOT_THERE = (40401, 40402, 40403)
"""Confluent's error codes for an unknown subject, version, or schema.

Any other 404 comes from a server without this API.
"""
_JSON = "application/vnd.schemaregistry.v1+json"


class SchemaReference(NamedTuple):
    """A schema that another schema refers to: its name there, subject and version."""

    name: str
    subject: str
    version: int


class Schema(NamedTuple):
    """A schema as a registry has it."""

    type: str
    """`AVRO`, `PROTOBUF` or `JSON`."""
    text: str
    references: tuple[SchemaReference, ...] = ()


class Registry:
    """The registry of a flow's source or target.

    All public methods raise `RegistryUnreachable`.
    """

    def __init__(self, config: RegistryConfig, side: Side) -> None:
        self.url = config.url
        self._name = f"the {side}'s schema registry {config.url}"
        self._prefix = f"{SCHEMAS}{side}."
        self._headers = {"Accept": f"{_JSON}, application/json"} | self._sign_in(config, side)
        self._opener = build_opener(ProxyHandler(), HTTPSHandler(context=_tls(config, side)), NoRedirects())
        self._answers: dict[str, Any] = {}

    def schema(self, number: str) -> Schema | None:
        return self._schema(self._get(f"/schemas/ids/{number}"))

    def version(self, subject: str, version: int) -> Schema | None:
        """Return the schema of a subject's version; None for an unknown version.

        Deleted versions count, because other schemas may refer to them.
        """
        return self._schema(self._get(f"/subjects/{quote(subject, safe='')}/versions/{version}?deleted=true"))

    def subjects(self, number: str) -> tuple[str, ...]:
        """Return the places where an id is registered, such as `orders-value version 3`."""
        answer = self._get(f"/schemas/ids/{number}/versions")
        try:
            return tuple(sorted(f"{entry['subject']} version {entry['version']}" for entry in answer or ()))
        except (TypeError, KeyError):
            raise self._no_registry("its answer is none of that API") from None

    def id_of(self, subject: str, schema: Schema) -> str | None:
        """Return the id under which a subject has this schema; None if it has not.

        The subject's schema must have the same text.
        """
        form: dict[str, object] = {"schema": schema.text, "schemaType": schema.type}
        if schema.references:
            form["references"] = [reference._asdict() for reference in schema.references]
        answer = self._asked(f"/subjects/{quote(subject, safe='')}", form, refused=(422,))
        return str(answer["id"]) if isinstance(answer, dict) and "id" in answer else None

    def _schema(self, answer: Any) -> Schema | None:
        if answer is None:
            return None
        try:
            references = tuple(
                SchemaReference(str(entry["name"]), str(entry["subject"]), int(entry["version"]))
                for entry in answer.get("references") or ()
            )
            return Schema(str(answer.get("schemaType") or "AVRO"), str(answer["schema"]), references)
        except (AttributeError, TypeError, KeyError, ValueError):
            raise self._no_registry("its answer is none of that API") from None

    def _get(self, path: str) -> Any:
        if path not in self._answers:
            self._answers[path] = self._asked(path)
        return self._answers[path]

    def _asked(self, path: str, form: Mapping[str, object] | None = None, refused: tuple[int, ...] = ()) -> Any:
        """Ask the registry; return the answer.

        Returns None for a missing item, and for the statuses in `refused`.
        """
        data = None if form is None else json.dumps(form).encode()
        headers = self._headers if data is None else self._headers | {"Content-Type": _JSON}
        request = Request(self.url + path, data=data, headers=headers)  # noqa: S310 - the scheme was checked
        pauses = iter(_PAUSES_S)
        while True:
            try:
                with self._opener.open(request, timeout=TIMEOUT_S) as answer:
                    return self._json(answer.read(LARGEST_ANSWER + 1))
            except HTTPError as error:
                if error.code in refused:
                    return None
                pause = next(pauses, None) if error.code in _BUSY else None
                if pause is None:
                    return self._missing(error)
            except (OSError, HTTPException) as error:
                reason = error.reason if isinstance(error, URLError) else error
                pause = None if isinstance(reason, ssl.SSLError) else next(pauses, None)
                if pause is None:
                    raise RegistryUnreachable(
                        f"{self._name} can't be asked: {' '.join(str(reason).split()) or type(reason).__name__}"
                    ) from None
            time.sleep(pause)

    def _missing(self, error: HTTPError) -> None:
        """Return None for a missing item; raise the error that any other status means."""
        status = f"{error.code} {error.reason}"
        if error.code in (401, 403):
            keys = f"{self._prefix}basic.auth.user.info or {self._prefix}bearer.auth.token"
            raise RegistryUnreachable(f"{self._name} refuses sparkmirror ({status}): see {keys}") from None
        if error.code // 100 == 3:
            raise self._no_registry(f"it redirects to another address ({status}): write that address") from None
        if error.code != 404:
            raise RegistryUnreachable(f"{self._name} answers {status}") from None
        said = self._json(error.read(LARGEST_ANSWER + 1))
        if not isinstance(said, dict) or said.get("error_code") not in _NOT_THERE:
            raise self._no_registry("Confluent's API does not begin there, as for Apicurio it does at /apis/ccompat/v7")

    def _json(self, content: bytes) -> Any:
        try:
            if len(content) <= LARGEST_ANSWER:
                return json.loads(content)
        except (ValueError, RecursionError):
            pass
        raise self._no_registry("Confluent's API does not begin there, as for Apicurio it does at /apis/ccompat/v7")

    def _no_registry(self, why: str) -> RegistryUnreachable:
        return RegistryUnreachable(f"{self._name} does not answer as one: {why}")

    def _sign_in(self, config: RegistryConfig, side: Side) -> dict[str, str]:
        user = _secret(config, side, "basic.auth.user.info", config.basic_auth_user_info.get_secret_value())
        token = _secret(config, side, "bearer.auth.token", config.bearer_auth_token.get_secret_value())
        if user and token:
            raise ConfigError("write one of basic.auth.user.info and bearer.auth.token", origin=f"registry {side}")
        if user and ":" not in user:
            reason = "is not written as user:password"
            raise ConfigError(reason, origin=f"registry {side}", key=f"{self._prefix}basic.auth.user.info")
        if user:
            return {"Authorization": "Basic " + base64.b64encode(user.encode()).decode()}
        if token and not (token.isascii() and token.isprintable()):
            raise ConfigError("is no token", origin=f"registry {side}", key=f"{self._prefix}bearer.auth.token")
        return {"Authorization": f"Bearer {token}"} if token else {}


def _secret(config: RegistryConfig, side: Side, name: str, text: str) -> str:
    try:
        return resolve(text, config.providers).strip()
    except ValueError as error:
        raise ConfigError(str(error), origin=f"registry {side}", key=f"{SCHEMAS}{side}.{name}") from None


def _tls(config: RegistryConfig, side: Side) -> ssl.SSLContext:
    """Return the TLS context for the settings.

    Without settings, the system's own certificates are trusted.
    """
    server = ClusterConfig(
        alias=f"{side}'s schema registry",
        bootstrap_servers=(),
        security_protocol="SSL",
        ssl=config.ssl,
        providers=config.providers,
    )
    context = ssl_context(server)
    assert context is not None  # noqa: S101 - security_protocol is SSL
    return context
