"""An OpenID Connect provider on a real port: discovery, authorize, token, keys, user info; honest or not."""

import base64
import hashlib
import secrets
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import httpx
from joserfc import jwt
from joserfc.jwk import ECKey, RSAKey

from accounts.signup import Provider
from lab.callers import TLS
from lab.processes import free_port
from tests.github import Exchange, Grant, first

CLIENT_ID, CLIENT_SECRET = "clawbridge", "canary-oidc-secret-81c4"
GONE = object()
START, COOKIE = "/api/v1/auth/oidc/1/start", "cw_session"
PAGE = {"accept": "text/html"}


class Quiet(ThreadingHTTPServer):
    """A hub that gives up on a long answer resets the connection; that is no failure here."""

    def handle_error(self, request: Any, client_address: Any) -> None:
        return


@dataclass
class Oidc:
    """One provider. `person` sits at the browser, `claims` are theirs; `lies` replace claims of the ID token.

    `instead` replaces the answer of a path; `key` signs, `shown_keys` are published.
    """

    person: str = "ann"
    claims: dict[str, Any] = field(default_factory=dict)
    lies: dict[str, Any] = field(default_factory=dict)
    instead: dict[str, Callable[[Exchange], None]] = field(default_factory=dict)
    seen: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    codes: dict[str, Grant] = field(default_factory=dict)
    tokens: dict[str, str] = field(default_factory=dict)
    metadata: dict[str, Any] = field(default_factory=dict)
    key: Any = None
    header: dict[str, Any] = field(default_factory=dict)
    shown_keys: list[Any] = field(default_factory=list)
    port: int = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def provider(self, number: int = 1, name: str = "Acme") -> Provider:
        return Provider(number, self.url, CLIENT_ID, CLIENT_SECRET, name)

    def start(self) -> None:
        oidc = self

        class RequestHandler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                oidc.take(self, {})

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
                oidc.take(self, first(parse_qs(body)))

            def log_message(self, format: str, *args: Any) -> None:
                return

        self.port = free_port()
        self._server = Quiet(("127.0.0.1", self.port), RequestHandler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        self._own_key = RSAKey.generate_key(2048, {"kid": "one"})
        self.reset()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def reset(self) -> None:
        """Honest again."""
        self.person, self.key, self.shown_keys = "ann", self._own_key, [self._own_key]
        self.header = {"alg": "RS256", "kid": "one"}
        for one in (self.claims, self.lies, self.instead, self.seen, self.metadata):
            one.clear()

    def take(self, handler: BaseHTTPRequestHandler, form: dict[str, str]) -> None:
        parts = urlsplit(handler.path)
        exchange = Exchange(handler, parts.path, first(parse_qs(parts.query)), form)
        self.seen.append((parts.path, exchange.query | form))
        self.instead.get(parts.path, self._honest)(exchange)

    def _honest(self, exchange: Exchange) -> None:
        match exchange.path:
            case "/.well-known/openid-configuration":
                exchange.answer(200, self.described())
            case "/jwks":
                exchange.answer(200, {"keys": [one.as_dict(private=False) for one in self.shown_keys]})
            case "/authorize":
                exchange.answer(302, Location=self.back(exchange.query))
            case "/token":
                self._token(exchange)
            case "/userinfo":
                token = exchange.handler.headers.get("Authorization", "").removeprefix("Bearer ")
                exchange.answer(200, {"sub": self.tokens[token], "preferred_username": self.tokens[token]})
            case _:
                exchange.answer(404, {})

    def described(self) -> dict[str, Any]:
        addresses = {"authorization": "authorize", "token": "token", "userinfo": "userinfo"}
        return {
            "issuer": self.url,
            "jwks_uri": f"{self.url}/jwks",
            **{f"{name}_endpoint": f"{self.url}/{path}" for name, path in addresses.items()},
            **self.metadata,
        }

    def back(self, query: dict[str, str]) -> str:
        """The address to which a browser goes once its person has agreed."""
        code = secrets.token_hex(10)
        self.codes[code] = Grant(self.person, query)
        return f"{query['redirect_uri']}?{urlencode({'code': code, 'state': query['state']})}"

    def _token(self, exchange: Exchange) -> None:
        form, grant = exchange.form, self.codes.pop(exchange.form.get("code", ""), None)
        hashed = base64.urlsafe_b64encode(hashlib.sha256(form.get("code_verifier", "").encode()).digest())
        basic = base64.b64encode(f"{CLIENT_ID}:{CLIENT_SECRET}".encode()).decode()
        if (
            grant is None
            or exchange.handler.headers.get("Authorization") != f"Basic {basic}"
            or form.get("redirect_uri") != grant.query["redirect_uri"]
            or grant.query.get("code_challenge_method") != "S256"
            or hashed.decode().rstrip("=") != grant.query["code_challenge"]
        ):
            exchange.answer(400, {"error": "invalid_grant"})
            return
        access = f"canary{secrets.token_hex(12)}"
        self.tokens[access] = grant.login
        answer = {"access_token": access, "token_type": "Bearer", "id_token": self._id_token(grant)}
        exchange.answer(200, answer)

    def _id_token(self, grant: Grant) -> str:
        now = int(time.time())
        claims = {
            "iss": self.url,
            "sub": grant.login,
            "aud": CLIENT_ID,
            "iat": now,
            "exp": now + 300,
            "nonce": grant.query.get("nonce"),
            **self.claims,
            **self.lies,
        }
        honest = {name: value for name, value in claims.items() if value is not GONE}
        return jwt.encode(self.header, honest, self.key, algorithms=["RS256", "HS256", "none", "ES256"])


def other_key(kid: str = "one") -> RSAKey:
    """A key that is not the provider's, under the name of its key."""
    return RSAKey.generate_key(2048, {"kid": kid})


__all__ = ["CLIENT_ID", "CLIENT_SECRET", "GONE", "ECKey", "Oidc", "other_key"]


def sign_in_by_oidc(client: Any, start: str = START) -> Any:
    """The whole leg; the callback's answer."""
    off = client.get(start, headers=PAGE)
    if off.status_code != 302:
        return off
    back = httpx.get(off["Location"], trust_env=False, verify=TLS).headers["location"]
    parts = urlsplit(back)
    return client.get(f"{parts.path}?{parts.query}", headers=PAGE)


def me(client: Any) -> Any:
    return client.get("/api/v1/me").json()
