"""Kerberos tickets, got with a keytab or taken from a ticket cache.

Tickets got with a keytab are kept for all this process's connections, in the process's memory and never in the user's
own cache. A separate thread gets new tickets after four fifths of the old tickets' life; the old tickets stay in use
until they expire, so that no connection waits for a KDC that hangs.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import threading
import time
from typing import TYPE_CHECKING

from sparkmirror.config.credentials import Kerberos
from sparkmirror.config.named_file import read_named_file
from sparkmirror.kafka.cluster.ticket_troubles import explain
from sparkmirror.kafka.wire.sasl import SaslError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gssapi import Credentials, SecurityContext

KERBEROS_EXTRA = (
    "GSSAPI (Kerberos) needs the package gssapi, which is not installed here: sudo apt-get install libkrb5-dev gcc, and"
    " pip install 'sparkmirror[kerberos]'"
)

RENEWED_AFTER = 0.8
"""Share of the tickets' life after which new ones are got.

As `sasl.kerberos.ticket.renew.window.factor` in Kafka's clients.
"""

RETRIED_AFTER = 0.1
"""Share of the remaining life after which a failed renewal is retried."""

SIGN_IN_S = 2.0
"""Shortest remaining life for a sign-in: shorter tickets could expire during it."""

RENEWAL = "sparkmirror tickets"
"""Name for the threads that renew tickets."""

_cache_numbers = itertools.count(1)


class Context:
    """One broker's `wire.sasl.SecurityContext`."""

    def __init__(self, login: Kerberos, host: str) -> None:
        self._login = login
        self._host = host
        check(login)
        from gssapi import MechType, Name, NameType, RequirementFlag, SecurityContext
        from gssapi.exceptions import GSSError

        self._error = GSSError
        credentials = keeper(login).credentials() if login.keytab else _cached(login)
        with self._explained():
            self._context: SecurityContext = SecurityContext(
                name=Name(f"{login.service}@{host}", name_type=NameType.hostbased_service),
                creds=credentials,
                mech=MechType.kerberos,
                usage="initiate",
                flags=RequirementFlag.mutual_authentication,
            )

    @property
    def complete(self) -> bool:
        """True once client and broker have authenticated each other."""
        with self._explained():
            return bool(self._context.complete)

    @property
    def initiator(self) -> str:
        with self._explained():
            return str(self._context.initiator_name)

    def step(self, token: bytes) -> bytes:
        """Return the next token to send, for the broker's last token.

        Asks the KDC for a ticket for the broker's service, if there is none yet.
        """
        with self._explained():
            return self._context.step(token or None) or b""

    def wrap(self, message: bytes) -> bytes:
        """Return the message with a proof of who sent it, without encryption."""
        with self._explained():
            return bytes(self._context.wrap(message, False).message)

    def unwrap(self, message: bytes) -> bytes:
        """Check the proof in a broker's message; return the message."""
        with self._explained():
            return bytes(self._context.unwrap(message).message)

    @contextlib.contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except self._error as error:
            raise SaslError(explain(error, self._login, self._host)) from None


class TicketKeeper:
    """A principal's newest tickets, got by its keytab; thread-safe."""

    def __init__(self, login: Kerberos) -> None:
        self._login = login
        self._lock = threading.Lock()
        self._kept: Credentials = None
        self._expires_at = 0.0
        self._renew_at = 0.0
        self._renewing = False
        self._refusal = ""
        self._refused_at = 0.0

    def credentials(self) -> Credentials:
        """Return tickets that are valid for a while.

        Waits for the KDC if there are none. Raises `SaslError`.
        """
        asked_at = time.time()
        with self._lock:
            now = time.time()
            if now >= self._expires_at - SIGN_IN_S:
                self._get(asked_at)
            elif now >= self._renew_at and not self._renewing:
                self._renewing = True
                self._renew_at = now + (self._expires_at - now) * RETRIED_AFTER
                threading.Thread(target=self._renew, name=RENEWAL, daemon=True).start()
            return self._kept

    def _get(self, asked_at: float) -> None:
        if self._refused_at > asked_at:  # another thread was refused while this one waited
            raise SaslError(self._refusal)
        try:
            self._keep(_got(self._login))
        except SaslError as error:
            self._refusal, self._refused_at = str(error), time.time()
            raise

    def _renew(self) -> None:
        """Renew the tickets in a separate thread; sign-ins use the old tickets meanwhile.

        A hanging KDC may take half a minute to time out.
        """
        got = None
        with contextlib.suppress(SaslError):  # retried later; reported once the old tickets have expired
            got = _got(self._login)
        with self._lock:
            self._renewing = False
            if got is not None:
                self._keep(got)

    def _keep(self, got: Credentials) -> None:
        now, life_s = time.time(), got.lifetime or 0
        self._kept = got
        self._expires_at, self._renew_at = now + life_s, now + life_s * RENEWED_AFTER


@functools.lru_cache(maxsize=32)
def keeper(login: Kerberos) -> TicketKeeper:
    """Return this process's only keeper for a principal and its keytab."""
    return TicketKeeper(login)


def check(login: Kerberos) -> None:
    """Raise `SaslError` if this machine lacks the libraries for Kerberos."""
    try:
        import gssapi  # noqa: F401 - only to see if it is installed
    except ModuleNotFoundError:
        raise SaslError(KERBEROS_EXTRA) from None
    except (ImportError, OSError) as error:
        reason = " ".join(str(error).split())
        raise SaslError(f"gssapi can't be loaded here ({reason}): sudo apt-get install libgssapi-krb5-2") from None


def check_keytab(login: Kerberos) -> None:
    """Raise `SaslError` if the keytab is missing or not readable."""
    try:
        read_named_file(login.keytab)
    except OSError as error:
        raise SaslError(
            f"the keytab {login.keytab} can't be read here: {error.strerror}; each process that signs in needs it,"
            " Spark's executors too: put it there at the same path"
        ) from None


def _got(login: Kerberos) -> Credentials:
    """Get new tickets from the KDC."""
    check_keytab(login)
    from gssapi import Credentials, MechType, Name, NameType
    from gssapi.exceptions import GSSError

    cache = {"ccache": f"MEMORY:sparkmirror-{next(_cache_numbers)}"}
    keys = {"client_keytab": f"FILE:{login.keytab}"}
    try:
        whose = Name(login.principal, name_type=NameType.kerberos_principal)
        credentials = Credentials(name=whose, usage="initiate", mechs=[MechType.kerberos], store=cache | keys)
        credentials.inquire()  # makes the library ask the KDC now
    except GSSError as error:
        raise SaslError(explain(error, login, "")) from None
    return credentials


def check_cache(login: Kerberos) -> None:
    """Raise `SaslError` if the ticket cache is a device, or a pipe that may never end."""
    kind, colon, path = login.cache.partition(":")
    try:
        if login.cache and (not colon or kind == "FILE"):
            read_named_file(path if colon else login.cache)
    except FileNotFoundError:
        pass  # the library has more to say
    except OSError as error:
        raise SaslError(f"the ticket cache {login.cache} can't be read here: {error.strerror}") from None


def _cached(login: Kerberos) -> Credentials:
    """Return the tickets that are in the ticket cache now."""
    check_cache(login)
    from gssapi import Credentials, MechType, Name, NameType
    from gssapi.exceptions import GSSError

    whose = Name(login.principal, name_type=NameType.kerberos_principal) if login.principal else None
    store = {"ccache": login.cache if ":" in login.cache else f"FILE:{login.cache}"} if login.cache else None
    try:
        credentials = Credentials(name=whose, usage="initiate", mechs=[MechType.kerberos], store=store)
        credentials.inquire()  # raises if the tickets have expired
    except GSSError as error:
        raise SaslError(explain(error, login, "")) from None
    return credentials
