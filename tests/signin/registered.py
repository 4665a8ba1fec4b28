"""Registered clients of the hub's authorization server, written against the contract alone."""

import html
import re
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import httpx
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken

from tests.signin.clients import Browser, Pkce, program

BACK = "http://127.0.0.1:8765/callback"
CLIENTS, TOKEN = "/api/v1/auth/clients", "/api/v1/auth/clients/token"


class Kept:
    tokens: OAuthToken | None = None
    client: OAuthClientInformationFull | None = None

    async def get_tokens(self) -> OAuthToken | None:
        return self.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self.client = client_info


def allow(browser: Browser, address: str, decision: str = "allow", *, back: str = BACK) -> dict[str, str]:
    """Press a button of the consent page; what the client's address is told."""
    page = browser.get(address)
    assert page.status_code == 200, page.text
    fields = dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', page.text))
    fields.pop("csrfmiddlewaretoken")
    sent = {name: html.unescape(value) for name, value in fields.items()}
    answer = browser.post("/consent", sent | {"decision": decision})
    assert answer.status_code == 302, answer.text
    assert answer.headers["location"].startswith(f"{back}?")
    return {name: one[0] for name, one in parse_qs(urlsplit(answer.headers["location"]).query).items()}


def register(browser: Browser, *addresses: str, **more: Any) -> httpx.Response:
    with program(browser.hub.url) as client:
        body = {"redirect_uris": list(addresses or [BACK]), "client_name": "Orchard <b>", **more}
        return client.post(CLIENTS, json=body)


def consent(pkce: Pkce, client_id: str, /, **more: str) -> str:
    query = pkce.query(BACK) | {"client_id": client_id, "response_type": "code"} | more
    return f"/consent?{urlencode(query)}"


def redeem(browser: Browser, client_id: str, code: str, verifier: str, /, **more: str) -> httpx.Response:
    form = {
        "grant_type": "authorization_code", "code": code, "client_id": client_id, "redirect_uri": BACK,
        "code_verifier": verifier,
    }  # fmt: skip
    with program(browser.hub.url) as client:
        return client.post(TOKEN, data=form | more)
