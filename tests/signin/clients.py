"""Browsers, command lines and apps, written against the contract alone."""

import base64
import hashlib
import secrets
import threading
from collections.abc import Callable
from http.server import HTTPServer
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import httpx

from lab.callers import TLS, Json, bearer
from lab.hub_process import HubProcess
from lab.receivers import Handler
from tests.github import GitHub

COOKIE = "cw_session"


def program(url: str, token: str | None = None, agent: str = "clawborrator-cli") -> httpx.Client:
    headers = {"User-Agent": agent} | (bearer(token) if token else {})
    return httpx.Client(base_url=url, headers=headers, trust_env=False, verify=TLS, timeout=30)


def status(hub: HubProcess, token: str | None) -> int:
    """The status of a request with a token: 200, or 401 when the token is not accepted."""
    with program(hub.url, token) as client:
        return client.get("/api/v1/me").status_code


class Browser:
    """A person's browser: it keeps the hub's cookies and follows nothing by itself."""

    def __init__(self, hub: HubProcess, github: GitHub) -> None:
        self.hub, self.github = hub, github
        headers = {"Accept": "text/html,*/*;q=0.8", "User-Agent": "Mozilla/5.0 (X11; Linux) Firefox/150.0"}
        self.client = httpx.Client(base_url=hub.url, headers=headers, trust_env=False, verify=TLS, timeout=30)

    def get(self, address: str, **options: Any) -> httpx.Response:
        return self.client.get(address, **options)

    def post(self, path: str, form: dict[str, str]) -> httpx.Response:
        """Send a form with its token, as our own page does."""
        self.client.get("/account")
        sent = form | {"csrfmiddlewaretoken": self.client.cookies["csrftoken"]}
        return self.client.post(path, data=sent, headers={"Origin": self.hub.url})

    @property
    def session(self) -> str | None:
        return self.client.cookies.get(COOKIE)

    def start(self, path: str = "/api/v1/auth/oauth/start", **query: str) -> str:
        """Begin at the hub; where GitHub is asked."""
        answer = self.get(path, params=query or None)
        assert answer.status_code == 302, answer.text
        return answer.headers["location"]

    def agree(self, authorize_url: str) -> str:
        """Agree at GitHub; the callback that it leads to."""
        answer = httpx.get(authorize_url, trust_env=False, verify=TLS)
        assert answer.status_code == 302, answer.text
        return str(answer.headers["location"])

    def sign_in(self, login: str, **query: str) -> httpx.Response:
        """The whole leg; the callback's answer."""
        self.github.person = login
        return self.get(self.agree(self.start(**query)))


class Pkce:
    def __init__(self) -> None:
        self.verifier = secrets.token_urlsafe(32)
        self.state = secrets.token_urlsafe(16)
        hashed = hashlib.sha256(self.verifier.encode()).digest()
        self.challenge = base64.urlsafe_b64encode(hashed).decode().rstrip("=")

    def query(self, redirect_uri: str, **more: str) -> dict[str, str]:
        return {
            "redirect_uri": redirect_uri,
            "state": self.state,
            "code_challenge": self.challenge,
            "code_challenge_method": "S256",
        } | more


class CommandLine(Pkce):
    """A command line with a listener of its own on loopback."""

    def __init__(self, hub: HubProcess, machine_id: str = "") -> None:
        super().__init__()
        self.hub, self.machine_id = hub, machine_id or secrets.token_hex(8)
        self.landed: list[dict[str, str]] = []
        outer = self

        class RequestHandler(Handler):
            def do_GET(self) -> None:
                parts = urlsplit(self.path)
                if parts.path == "/callback":
                    outer.landed.append({name: one[0] for name, one in parse_qs(parts.query).items()})
                self.answer(200, b"you can close this window")

        self._server = HTTPServer(("127.0.0.1", 0), RequestHandler)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        self.redirect_uri = f"http://localhost:{self._server.server_port}/callback"

    @property
    def start_url(self) -> str:
        """The address that the command line opens in the browser."""
        return f"/api/v1/auth/oauth/start?{urlencode(self.query(self.redirect_uri, machine_id=self.machine_id))}"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def code(self, browser: Browser, login: str = "ann") -> str:
        """Go through the browser; the code that came to the listener."""
        browser.github.person = login
        back = browser.get(browser.agree(browser.start(self.start_url)))
        assert back.status_code == 302, back.text
        address = back.headers["location"]
        assert address.startswith(f"{self.redirect_uri}?")
        httpx.get(address, trust_env=False, verify=TLS)
        landed = self.landed[-1]
        assert landed["state"] == self.state
        return landed["code"]

    def exchange(self, code: str, verifier: str = "", path: str = "/api/v1/auth/oauth/token") -> httpx.Response:
        with program(self.hub.url) as client:
            return client.post(path, json={"code": code, "code_verifier": verifier or self.verifier})

    def login(self, browser: Browser, login: str = "ann") -> Json:
        answer = self.exchange(self.code(browser, login))
        assert answer.status_code == 200, answer.text
        self.close()
        body: Json = answer.json()
        return body


MakeBrowser = Callable[[HubProcess], Browser]
MakeCli = Callable[..., CommandLine]


def refused(answer: httpx.Response, code: str, status: int = 400) -> None:
    """Check that an answer is `{error, message}` with that code."""
    assert answer.status_code == status, answer.text
    body = answer.json()
    assert set(body) == {"error", "message"}
    assert body["error"] == code, body
    assert body["message"]
