"""An OIDC token server on 127.0.0.1, with keys of its own: JWTs signed by RS256 for one client id and secret."""

from __future__ import annotations

import base64
import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self
from urllib.parse import parse_qs

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa

AUDIENCE = "kafka"
REFRESH = "may-be-used-again"
"""The refresh token that is taken."""


def encoded(data: bytes) -> str:
    """URL-safe base64 without padding, as JWTs have it."""
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


class TokenServer:
    """`url` gives tokens, `keys_url` the public key. `secret` may be changed while it runs."""

    def __init__(self, client_id: str, secret: str, lifetime_s: float = 3600.0) -> None:
        self.client_id = client_id
        self.secret = secret
        self.lifetime_s = lifetime_s
        self.given = 0
        """How many tokens it has given."""
        self.refused = 0
        self.forms: list[dict[str, list[str]]] = []
        self._key = rsa.generate_private_key(65537, 2048)
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self._answer(200, server.keys())

            def do_POST(self) -> None:
                form = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
                self._answer(*server.answer(form, self.headers.get("Authorization", "")))

            def _answer(self, code: int, content: Any) -> None:
                body = json.dumps(content).encode()
                self.send_response(code)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                """Nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        base = f"http://127.0.0.1:{self._server.server_address[1]}"
        self.url, self.keys_url = f"{base}/token", f"{base}/keys"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()

    def keys(self) -> dict[str, Any]:
        """The JSON web key set."""
        numbers = self._key.public_key().public_numbers()
        modulus = encoded(numbers.n.to_bytes(256, "big"))
        return {"keys": [{"kty": "RSA", "kid": "1", "use": "sig", "alg": "RS256", "n": modulus, "e": "AQAB"}]}

    def answer(self, form: dict[str, list[str]], authorization: str) -> tuple[int, Any]:
        """What the token endpoint says."""
        self.forms.append(form)
        expected = base64.b64encode(f"{self.client_id}:{self.secret}".encode()).decode()
        known = authorization == f"Basic {expected}" or form.get("client_assertion") == [self.secret]
        granted = form["grant_type"] == ["client_credentials"] or form.get("refresh_token") == [REFRESH]
        if not known or not granted:
            self.refused += 1
            return 401, {"error": "invalid_client", "error_description": "no such client"}
        self.given += 1
        return 200, {"access_token": self.token(), "token_type": "Bearer", "expires_in": int(self.lifetime_s)}

    def token(self) -> str:
        """A fresh one."""
        now = time.time()
        claims = {
            "sub": self.client_id,
            "aud": AUDIENCE,
            "iss": "test",
            "scope": "kafka",
            "iat": int(now),
            "exp": int(now + self.lifetime_s),
        }
        parts = [encoded(json.dumps(part).encode()) for part in ({"alg": "RS256", "kid": "1"}, claims)]
        message = ".".join(parts)
        signature = self._key.sign(message.encode(), padding.PKCS1v15(), hashes.SHA256())
        return f"{message}.{encoded(signature)}"
