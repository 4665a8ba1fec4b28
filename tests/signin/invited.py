"""Accounts without a provider: their links and passkeys, and browsers that use them; the hub in this process."""

import json
import re
from html import unescape
from typing import Any
from urllib.parse import urlsplit

from accounts import invitations
from accounts.models import User
from tests.authenticator import Authenticator
from tests.native.rows import browser

COOKIE, GOOD = "cw_session", "nine lives of a lobster"
CHOSEN = {"password": GOOD, "again": GOOD}


def path_of(url: str) -> str:
    assert url.startswith("https://hub.example/join/")
    return urlsplit(url).path


def invite(login: str = "ann", *, admin: bool = False, by: User | None = None) -> str:
    return path_of(invitations.invite(login, is_admin=admin, made_by=by).url)


def options_of(answer: Any) -> dict[str, Any]:
    found = re.search(r'data-options="([^"]*)"', answer.content.decode())
    assert found
    options: dict[str, Any] = json.loads(unescape(found[1]))
    return options


def make_passkey(login: str = "ann", device: Authenticator | None = None) -> Authenticator:
    device, client, link = device or Authenticator(), browser(), invite(login)
    answer = client.post(link, {"credential": device.make(options_of(client.get(link)))})
    assert answer.status_code == 302, answer.content
    return device


def begin_passkey(client: Any) -> tuple[str, dict[str, Any]]:
    body = client.post("/signin/passkey/options").json()
    return body["state"], body["options"]


def sign_in_by_passkey(client: Any, device: Authenticator, **lies: str) -> Any:
    state, options = begin_passkey(client)
    return client.post("/signin/passkey", {"state": state, "credential": device.sign(options, **lies)})


def sign_in_by_password(client: Any, login: str = "ann", password: str = GOOD, **more: str) -> Any:
    return client.post("/signin/password", {"login": login, "password": password, **more})
