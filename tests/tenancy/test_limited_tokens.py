"""Tokens for less than all, of the owner and of the staff: each opens what its scope names, and nothing else."""

import itertools
import json
from contextlib import suppress

import pytest
from websockets.exceptions import ConnectionClosed

from lab.channel_agent import dial
from tests.tenancy.callers import LIMITED, Caller, verdict
from tests.tenancy.dialect_requests import AGENT_REQUESTS, SEND
from tests.tenancy.rest_rules import ASKING, REST
from tests.tenancy.rights import May
from tests.tenancy.rules import BRIDGE, PAGES
from tests.tenancy.test_agents import PUBLIC, ask, get, handle_of
from tests.tenancy.test_channel_frames import REGISTER
from tests.tenancy.test_matrix import CANARY, patiently
from tests.tenancy.test_pages import OWN_PAGES, path_of, visit
from tests.tenancy.world import World

REFUSED = "insufficient_scope"
MAKES_TOKENS = (
    "POST /api/v1/tokens/channel",
    "DELETE /api/v1/tokens/{token_id}",
    "POST /api/v1/network/keys",
    "PATCH /api/v1/network/keys/{api_key_id}",
    "DELETE /api/v1/network/keys/{api_key_id}",
    "POST /api/v1/network/keys/{api_key_id}/rotate-secret",
    "GET /api/v1/network/venues/{venue_id}/secret",
    "POST /api/v1/network/venues/{venue_id}/secret",
)
NEEDS_NO_SCOPE = "GET /api/v1/me"
CONNECTS = "connect"  # it takes a seat at the gateway, and nothing else
EACH = pytest.mark.parametrize("one", LIMITED)


def scope_of(name: str) -> str:
    """The scope that an address under /api/v1 takes, as docs/reference/tokens.md says."""
    if "/api/v1/admin/" in name:
        return "admin"
    if name in ASKING and name.startswith("POST "):
        return "ask"
    return "read" if name.startswith("GET ") else "publish"


def expected(name: str, caller: Caller) -> int | str | None:
    """A status, `REFUSED`, or None where the token does what an app token without limits does."""
    by_app = verdict(REST[name], caller)  # which knows no scopes
    needs_none = name == NEEDS_NO_SCOPE and caller.scope != CONNECTS
    if REST[name].may is May.ANY_CALLER or needs_none or by_app == 401:
        return by_app
    if name in MAKES_TOKENS or by_app == 403:
        return 403  # it takes the staff, a session, or a token without limits
    return by_app if scope_of(name) == caller.scope else REFUSED


ADDRESSES = [name for name, rule in REST.items() if rule.may is not May.BY_HAND]


@EACH
def test_each_address_takes_a_limited_token_for_its_scope_alone(tenants: World, one: str) -> None:
    caller, before = LIMITED[one], tenants.changes.mark()
    said = {name: expected(name, caller) for name in ADDRESSES}
    for name in [name for name in ADDRESSES if said[name] is not None]:
        answer = tenants.call(name, REST[name], caller.token, tenants.main)
        assert answer.status_code == (403 if said[name] == REFUSED else said[name]), (name, answer.text)
        if said[name] == REFUSED:
            assert answer.json()["error"] == REFUSED, (name, answer.text)
            challenge = f'Bearer error="{REFUSED}", scope="{scope_of(name)}"'
            assert answer.headers["www-authenticate"] == challenge, name
        assert not CANARY.search(answer.text), (name, answer.text)
    tenants.changes.check_none(before)
    opened = {name for name in ADDRESSES if said[name] is None and REST[name].may is not May.ANY_CALLER}
    # A call that writes would need a set of rows of its own for each token of the scope `publish`.
    # `test_every_call_takes_its_scope_and_no_other` shows that the call takes this scope.
    changing = {name for name in opened if REST[name].writes}
    assert bool(changing) == (caller.scope == "publish")
    for name in [name for name in ADDRESSES if said[name] is None and name not in changing]:
        answer = patiently(tenants, name, REST[name], caller, tenants.main)
        assert answer.status_code in REST[name].ok, (name, answer.text)
    assert (NEEDS_NO_SCOPE in opened) == (caller.scope != CONNECTS)
    opens_none = caller.scope in ("", CONNECTS) or (caller.scope == "admin" and not caller.is_staff)
    assert {scope_of(name) for name in opened - {NEEDS_NO_SCOPE}} == (set() if opens_none else {caller.scope})


@EACH
def test_which_agents_a_limited_token_asks(tenants: World, one: str) -> None:
    caller, before = LIMITED[one], tenants.changes.mark()
    may = {PUBLIC: caller.scope in ("ask", ""), handle_of(tenants, "private"): caller.scope == "ask"}
    for number, handle in enumerate(handle for handle in may if not may[handle]):
        for spoken in [SEND] if number else AGENT_REQUESTS:  # one function looks at the agent of every call
            answer = ask(tenants, handle, caller.token, spoken)
            is_absent = caller.rank == 0 and handle != PUBLIC  # for the token's user, whatever the scope
            refused = (404, False) if is_absent else (403, True)
            assert (answer.status_code, spoken.no_scope in answer.text) == refused, (spoken, answer.text)
    tenants.changes.check_none(before)
    for handle in [handle for handle in may if may[handle]]:
        answer = ask(tenants, handle, caller.token)
        assert answer.status_code == 200, answer.text
        assert ("echo: what's" in answer.text) == (handle == PUBLIC), answer.text  # the other is offline


@EACH
def test_which_cards_a_limited_token_sees(tenants: World, one: str) -> None:
    sees_all = LIMITED[one].scope in ("ask", "read")
    for name in [name for name in BRIDGE if name.startswith("GET ") and "{slug}" in name]:
        for kind in ("limited", "private"):
            path = name.removeprefix("GET ").format(owner="olga", slug=tenants.main[f"{kind} slug"], given="v1")
            assert get(tenants, path, LIMITED[one].token).status_code == (200 if sees_all else 404), path
        path = name.removeprefix("GET ").format(owner="olga", slug="pub-main", given="v1")
        assert get(tenants, path, LIMITED[one].token).status_code == 200


@pytest.mark.parametrize("socket", ["/cli", "/channel"])
async def test_no_socket_takes_a_limited_token(tenants: World, socket: str) -> None:
    for one, caller in LIMITED.items():
        opened = await dial(tenants.hub.url.replace("http", "ws", 1) + socket, tenants.tokens[caller.token])
        with suppress(ConnectionClosed):
            await opened.send(REGISTER)
        assert json.loads(await opened.recv())["code"] == "auth_failed", one
        await opened.wait_closed()
        assert opened.close_code == 1008, one


def test_no_page_of_ones_own_takes_a_limited_token(tenants: World) -> None:
    """The limited tokens in turn: pages take no token of an app, as `test_pages.py` shows by an unlimited one."""
    browsers = [name for name, rule in PAGES.items() if rule.may is May.BROWSER]
    for name, caller in zip([*browsers, *OWN_PAGES], itertools.cycle(LIMITED.values()), strict=False):
        answer = visit(tenants, path_of(name, tenants.main), caller.token)
        assert answer.status_code in (302, 401, 404, 405), (name, answer.status_code)
        assert not CANARY.search(answer.text), name
