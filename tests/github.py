"""A GitHub look-alike on a real port: authorize, token, user, memberships; slow, failing or lying on demand."""

import base64
import hashlib
import json
import secrets
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from lab.processes import free_port

CLIENT_ID = "Iv1.clawbridge"
CLIENT_SECRET = "canary-github-secret-5f1d"
Handler = Callable[["Exchange"], None]


@dataclass
class Grant:
    """A code that was given out, for whom and for which request."""

    login: str
    query: dict[str, str]


@dataclass
class Exchange:
    """One request, and the way to answer it."""

    handler: BaseHTTPRequestHandler
    path: str
    query: dict[str, str]
    form: dict[str, str]

    def answer(self, status: int, body: Any = b"", **headers: str) -> None:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.handler.send_response(status)
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        for name, value in ({"Content-Type": "application/json"} | named).items():
            self.handler.send_header(name, value)
        self.handler.send_header("Content-Length", str(len(data)))
        self.handler.end_headers()
        self.handler.wfile.write(data)

    def drip_headers(self, seconds: float) -> None:
        """A head that never ends, a byte at a time."""
        self.handler.wfile.write(b"HTTP/1.1 200 OK\r\nX-Slow: ")
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            self.handler.wfile.write(b"a")
            self.handler.wfile.flush()
            time.sleep(0.2)

    def drip(self, seconds: float) -> None:
        """A body that never ends, a byte at a time."""
        self.handler.send_response(200)
        self.handler.send_header("Content-Type", "application/json")
        self.handler.send_header("Content-Length", "1000000")
        self.handler.end_headers()
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            self.handler.wfile.write(b" ")
            self.handler.wfile.flush()
            time.sleep(0.2)


@dataclass
class GitHub:
    """One GitHub. `person` is who sits at the browser; `instead` replaces the answer of a path."""

    people: dict[str, int] = field(default_factory=dict)
    person: str = "ann"
    memberships: dict[tuple[str, str], str] = field(default_factory=dict)
    instead: dict[str, Handler] = field(default_factory=dict)
    seen: list[tuple[str, str, dict[str, str]]] = field(default_factory=list)
    tokens: dict[str, str] = field(default_factory=dict)
    codes: dict[str, Grant] = field(default_factory=dict)
    shows_button: bool = False
    port: int = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def settings(self) -> dict[str, str]:
        """The settings of a hub that uses this server."""
        return {
            "GITHUB_CLIENT_ID": CLIENT_ID,
            "GITHUB_CLIENT_SECRET": CLIENT_SECRET,
            "GITHUB_URL": self.url,
            "GITHUB_API_URL": f"{self.url}/api/v3",
        }

    def start(self) -> None:
        github = self

        class RequestHandler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                github.take(self, {})

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
                github.take(self, first(parse_qs(body)))

            def log_message(self, format: str, *args: Any) -> None:
                return

        self.port = free_port()
        self._server = ThreadingHTTPServer(("127.0.0.1", self.port), RequestHandler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def reset(self) -> None:
        """Return to the state at the start: honest, quick, without a request."""
        self.person, self.shows_button = "ann", False
        for one in (self.instead, self.seen, self.memberships):
            one.clear()

    def id_of(self, login: str) -> int:
        return self.people.setdefault(login, 1000 + len(self.people))

    def take(self, handler: BaseHTTPRequestHandler, form: dict[str, str]) -> None:
        parts = urlsplit(handler.path)
        exchange = Exchange(handler, parts.path, first(parse_qs(parts.query)), form)
        self.seen.append((handler.command, parts.path, exchange.query | form))
        try:
            self.instead.get(parts.path, self._honest)(exchange)
        except (BrokenPipeError, ConnectionResetError):
            handler.close_connection = True

    def _honest(self, exchange: Exchange) -> None:
        match exchange.path:
            case "/login/oauth/authorize":
                self._authorize(exchange)
            case "/favicon.ico":
                exchange.answer(204)
            case "/login/oauth/access_token":
                self._token(exchange)
            case "/api/v3/user":
                if login := self._caller(exchange):
                    exchange.answer(200, self.profile(login))
            case path if path.startswith("/api/v3/user/memberships/orgs/"):
                self._membership(exchange, path.rpartition("/")[2])
            case _:
                exchange.answer(404, {"message": "Not Found"})

    def profile(self, login: str) -> dict[str, Any]:
        return {"id": self.id_of(login), "login": login, "avatar_url": f"https://avatars.test/{login}"}

    def _authorize(self, exchange: Exchange) -> None:
        query = exchange.query
        if query.get("client_id") != CLIENT_ID or "code_challenge" not in query:
            exchange.answer(404, b"no such app")
        elif self.shows_button and "go" not in query:
            fields = "".join(f'<input type="hidden" name="{n}" value="{v}">' for n, v in query.items())
            page = f'<form>{fields}<button id="go" name="go" value="1">Authorize</button></form>'
            exchange.answer(200, page.encode(), Content_Type="text/html")
        else:
            exchange.answer(302, Location=self.back(query))

    def back(self, query: dict[str, str]) -> str:
        """The address to which a browser goes once its person has agreed."""
        code = secrets.token_hex(10)
        self.codes[code] = Grant(self.person, query)
        return f"{query['redirect_uri']}?{urlencode({'code': code, 'state': query['state']})}"

    def _token(self, exchange: Exchange) -> None:
        form = exchange.form
        grant = self.codes.pop(form.get("code", ""), None)
        hashed = base64.urlsafe_b64encode(hashlib.sha256(form.get("code_verifier", "").encode()).digest())
        if (
            grant is None
            or (form.get("client_id"), form.get("client_secret")) != (CLIENT_ID, CLIENT_SECRET)
            or form.get("redirect_uri") != grant.query["redirect_uri"]
            or hashed.decode().rstrip("=") != grant.query["code_challenge"]
        ):  # GitHub says so with a 200
            exchange.answer(200, {"error": "bad_verification_code", "error_description": "incorrect or expired"})
            return
        token = f"gho_canary{secrets.token_hex(12)}"
        self.tokens[token] = grant.login
        exchange.answer(
            200, {"access_token": token, "scope": grant.query.get("scope", ""), "token_type": "bearer"}
        )

    def _membership(self, exchange: Exchange, org: str) -> None:
        login = self._caller(exchange)
        state = self.memberships.get((login, org)) if login else None
        if login and state is None:
            exchange.answer(404, {"message": "Not Found"})
        elif login:
            exchange.answer(200, {"state": state, "organization": {"login": org}})

    def _caller(self, exchange: Exchange) -> str:
        token = exchange.handler.headers.get("Authorization", "").removeprefix("Bearer ")
        if token not in self.tokens:
            exchange.answer(401, {"message": "Bad credentials"})
        return self.tokens.get(token, "")


def deny(exchange: Exchange) -> None:
    """A user who does not agree, at either kind of provider."""
    query = exchange.query
    exchange.answer(302, Location=f"{query['redirect_uri']}?error=access_denied&state={query['state']}")


def first(values: dict[str, list[str]]) -> dict[str, str]:
    return {name: several[0] for name, several in values.items()}
