"""SASL without a socket: the vectors of the RFCs, kafka-python's clients as the oracle, and what must be refused."""

from __future__ import annotations

import base64
import hashlib
import hmac

import pytest
from kafka.net.sasl.scram import ScramClient

from sparkmirror.kafka.wire.sasl import Gssapi, OAuthBearer, Plain, SaslError, Scram


def test_plain() -> None:
    talk = Plain("ä", "b c")
    assert talk.respond(b"") == "\0ä\0b c".encode()
    assert talk.respond(b"") is None


def test_the_example_of_rfc_7677() -> None:
    talk = Scram("SCRAM-SHA-256", "user", "pencil", "rOprNGfwEbeRWgbNEkqO")
    assert talk.respond(b"") == b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO"
    challenge = b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
    assert talk.respond(challenge) == (
        b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
    )
    assert talk.respond(b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=") is None


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_the_same_proof_as_another_client(mechanism: str) -> None:
    theirs = ScramClient("mirror", "hünter2", mechanism)
    talk = Scram(mechanism, "mirror", "hünter2", theirs.nonce.decode())
    assert talk.respond(b"") == theirs.first_message()
    challenge = b"r=" + theirs.nonce + b"more,s=" + base64.b64encode(b"salt") + b",i=5000"
    theirs.process_server_first_message(challenge)
    assert talk.respond(challenge) == theirs.final_message()
    assert talk.respond(b"v=" + base64.b64encode(theirs.server_signature)) is None


def test_a_name_is_escaped() -> None:
    assert Scram("SCRAM-SHA-512", "a=b,c", "x", "n").respond(b"") == b"n,,n=a=3Db=2Cc,r=n"


@pytest.mark.parametrize(
    ("challenge", "part"),
    [
        (b"r=other,s=c2FsdA==,i=4096", "does not answer sparkmirror's"),
        (b"r=nonce,s=c2FsdA==,i=4096", "does not answer sparkmirror's"),
        (b"r=nonce1,s=c2FsdA==,i=1", "asks for 1 iterations"),
        (b"r=nonce1,s=c2FsdA==,i=99999999", "asks for 99999999 iterations"),
        (b"r=nonce1,s=c2FsdA==", "can't be read"),
        (b"r=nonce1,s=?,i=4096", "can't be read"),
        (b"\xff", "can't be read"),
    ],
)
def test_a_broker_that_can_not_be_right(challenge: bytes, part: str) -> None:
    talk = Scram("SCRAM-SHA-256", "user", "hunter2", "nonce")
    talk.respond(b"")
    with pytest.raises(SaslError, match=part) as caught:
        talk.respond(challenge)
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    ("last", "part"),
    [
        (b"v=AAAA", "could not prove"),
        (b"v=", "could not prove"),
        ("v=é".encode(), "could not prove"),
        (b"", "prove"),
        (b"e=no", "no"),
    ],
)
def test_a_broker_that_does_not_know_the_password(last: bytes, part: str) -> None:
    talk = Scram("SCRAM-SHA-256", "user", "pencil", "nonce")
    talk.respond(b"")
    talk.respond(b"r=nonce1,s=c2FsdA==,i=4096")
    with pytest.raises(SaslError, match=part):
        talk.respond(last)


def test_a_broker_proves_itself_by_the_whole_talk() -> None:
    """What it said before counts too: the same signature for another talk is worth nothing."""
    salted = hashlib.pbkdf2_hmac("sha256", b"pencil", b"salt", 4096)
    server_key = hmac.digest(salted, b"Server Key", "sha256")
    message = b"n=user,r=nonce,r=nonce1,s=c2FsdA==,i=4096,c=biws,r=nonce1"
    signature = base64.b64encode(hmac.digest(server_key, message, "sha256"))
    for nonce, fine in (("nonce", True), ("nonc", False)):
        talk = Scram("SCRAM-SHA-256", "user", "pencil", nonce)
        talk.respond(b"")
        talk.respond(b"r=nonce1,s=c2FsdA==,i=4096")
        if fine:
            assert talk.respond(b"v=" + signature) is None
        else:
            with pytest.raises(SaslError):
                talk.respond(b"v=" + signature)


def test_a_token_and_its_extensions() -> None:
    talk = OAuthBearer("abc.def.", {"logicalCluster": "lkc-1", "poolId": "p"})
    assert talk.respond(b"") == b"n,,\x01auth=Bearer abc.def.\x01logicalCluster=lkc-1\x01poolId=p\x01\x01"
    assert talk.respond(b"") is None


@pytest.mark.parametrize("name", ["auth", "a b", "a1", ""])
def test_an_extension_that_can_not_be(name: str) -> None:
    with pytest.raises(SaslError, match="extension"):
        OAuthBearer("abc", {name: "x"})


def test_a_refused_token() -> None:
    talk = OAuthBearer("secret-token", {})
    talk.respond(b"")
    assert talk.respond(b'{"status":"invalid_token"}') == b"\x01"
    with pytest.raises(SaslError, match=r"refuses the token \(invalid_token\)") as caught:
        talk.respond(b"")
    assert "secret-token" not in str(caught.value)


class Played:
    """A Kerberos context of so many tokens; what is wrapped stands in brackets."""

    initiator = "mirror@R"

    def __init__(self, *tokens: bytes) -> None:
        self._tokens = list(tokens)
        self.heard: list[bytes] = []

    @property
    def complete(self) -> bool:
        return not self._tokens

    def step(self, token: bytes) -> bytes:
        self.heard.append(token)
        return self._tokens.pop(0)

    def wrap(self, message: bytes) -> bytes:
        return b"(" + message + b")"

    def unwrap(self, message: bytes) -> bytes:
        return message[1:-1]


def test_tokens_and_the_agreement_that_nothing_is_wrapped() -> None:
    context = Played(b"first", b"")
    talk = Gssapi(context)
    assert talk.respond(b"") == b"first"
    assert talk.respond(b"theirs") == b"", "whoever has nothing to send sends an empty token"
    assert context.heard == [b"", b"theirs"]
    assert talk.respond(b"(\x07\x00\xff\xff)") == b"(\x01\x00\x00\x00mirror@R)"
    assert talk.respond(b"") is None


@pytest.mark.parametrize("offer", [b"(\x06\x00\xff\xff)", b"()", b"(\x01)"])
def test_a_broker_that_wants_a_security_layer(offer: bytes) -> None:
    talk = Gssapi(Played(b"only"))
    talk.respond(b"")
    with pytest.raises(SaslError, match="wants all that follows to be wrapped"):
        talk.respond(offer)
