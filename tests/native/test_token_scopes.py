"""Tokens that are for less than all: their scopes, their one agent, their time, and their replacement."""

import re
from collections.abc import Iterator
from datetime import timedelta
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone
from rest_framework.permissions import AllowAny

from accounts.authn import find_holder, presented
from accounts.models import Credential, User
from accounts.rest import HasBrowserSession, HasUnlimitedToken
from agents.models import Agent
from agnt.service.keys import mint_key
from mcp_server.service.calls import ToolCaller
from mcp_server.service.catalog import find_handle, load_agent_tools
from tests.native.rows import Person, api, browser, make_agent
from tests.routes import routes

pytestmark = pytest.mark.django_db

SCOPES = ("ask", "read", "publish", "admin")
OPEN_TO_ALL_SCOPES = {"/api/v1/me"}
# Callers may rate an answer, and report what was wrong with it.
ASKING = {"/api/v1/questions/x/problem", "/api/v1/questions/x/rating"}
UPLOADS = "post", "/api/v1/files"  # a file to ask with, also by a token for one agent
IN_A_PATH = re.compile(r"<(?:(\w+):)?\w+>")
ANY_ID = "00000000-0000-4000-8000-000000000000"
SEAT_TEXT = (
    "scopes: connect is for an agent of its user: want connect:alice/name;"
    " a name begins with a letter, broadcast and gateway are none"
)
FILLED = {"int": "1", "uuid": ANY_ID, "str": "x", "path": "x", "slug": "x", None: "x"}


def mint(person: Person, **body: Any) -> Any:
    return api(person.session).post("/api/v1/auth/apps/mint", {"name": "mine", **body}, format="json")


def token(person: Person, **body: Any) -> str:
    answer = mint(person, **body)
    assert answer.status_code == 201, answer.content
    return str(answer.json()["token"])


def calls() -> Iterator[tuple[str, str, str]]:
    """Each call of the native API, and the scope that it must take: by its method, but for those below."""
    for pattern, found in routes():
        path, view = IN_A_PATH.sub(lambda part: FILLED[part[1]], pattern), getattr(found.callback, "cls", None)
        if view is None or not path.startswith("/api/v1/") or path in OPEN_TO_ALL_SCOPES:
            continue
        if not view.permission_classes:
            continue  # an OAuth endpoint has no caller yet
        if {HasBrowserSession, HasUnlimitedToken, AllowAny} & set(view.permission_classes):
            continue  # it takes no limited token at all
        for method in ("get", "post", "put", "patch", "delete"):
            if hasattr(view, method):
                yield method, path, scope_of(method, path)


def scope_of(method: str, path: str) -> str:
    """The scope that docs/reference/tokens.md names for a call."""
    if path.startswith("/api/v1/admin/"):
        return "admin"
    if path in ASKING or (method, path) == UPLOADS:
        return "ask"
    return "read" if method == "get" else "publish"


def test_every_call_takes_its_scope_and_no_other(staff: Person) -> None:
    clients = {scope: api(token(staff, scopes=[scope])) for scope in SCOPES}
    clients["one agent"] = api(token(staff, agent="root/helper"))
    clients["connect"] = api(token(staff, scopes=["connect:root/helper"]))
    found = list(calls())
    assert len(found) > 60
    for method, path, needed in found:
        for scope, client in clients.items():
            answer = getattr(client, method)(path, {}, format=None if method == "get" else "json")
            is_refused = answer.status_code == 403 and answer.json()["error"] == "insufficient_scope"
            takes = (needed, "one agent") if (method, path) == UPLOADS else (needed,)
            assert is_refused == (scope not in takes), (method, path, scope, answer.status_code, answer.content)
            if is_refused:
                challenge = answer.headers["WWW-Authenticate"]
                assert challenge == f'Bearer error="insufficient_scope", scope="{needed}"'
    of_me = {scope: client.get("/api/v1/me").status_code for scope, client in clients.items()}
    assert of_me == dict.fromkeys(clients, 200) | {"connect": 403}


def test_no_call_takes_a_key_of_agnt(alice: Person) -> None:
    client = api(mint_key(alice.user, "key").token)
    for method, path, _ in [*calls(), ("get", "/api/v1/me", "")]:
        answer = getattr(client, method)(path, {}, format=None if method == "get" else "json")
        assert answer.status_code == 401, (method, path, answer.content)


def test_no_token_is_for_a_seat_that_its_user_cannot_have(
    alice: Person, bob: Person, subtests: pytest.Subtests
) -> None:
    make_agent(bob.user)
    for scope in [
        "connect:bob/helper",
        "connect:bob/absent",
        "connect:absent/helper",
        "connect:alice/gateway",
        "connect:alice/9th",
    ]:
        with subtests.test(scope=scope):
            refused, text = mint(alice, scopes=[scope]), SEAT_TEXT
            assert (refused.status_code, refused.json()) == (
                400,
                {"error": "validation_failed", "message": text},
            )
            page = browser(alice.session)
            agent = scope.partition(":")[2]
            form = {"kind": "app", "name": "seat", "scope": ["connect"], "agent": agent}
            assert page.post("/account", form).status_code == 400
            with pytest.raises(CommandError, match=f"^--{re.escape(text)}$"):
                call_command("mint_token", "--login", "Alice", "--scopes", scope)
            with pytest.raises(CommandError, match="--scopes: connect is for an agent of its user"):
                call_command("mint_token", "--login", "unknown", "--scopes", scope)
            assert not Credential.objects.filter(scopes__contains="connect").exists()
            assert not User.objects.named("unknown")


def test_a_token_is_for_a_seat_of_ones_own_before_its_agent_connects(alice: Person) -> None:
    assert mint(alice, scopes=["connect:Alice/helper"]).status_code == 201
    form = {"kind": "app", "name": "seat", "scope": ["connect"], "agent": "alice/helper"}
    assert "@alice/helper at the gateway" in browser(alice.session).post("/account", form).content.decode()


def test_a_token_for_a_seat_under_an_earlier_login_is_not_replaced(alice: Person) -> None:
    made = mint(alice, scopes=["connect:alice/helper"]).json()
    User.objects.filter(pk=alice.user.pk).update(login="alicia")
    refused = api(alice.session).post(f"/api/v1/tokens/{made['id']}/rotate", {}, format="json")
    assert (refused.status_code, refused.json()["error"]) == (400, "validation_failed")
    answer = browser(alice.session).post(f"/account/rotate/{made['id']}")
    assert (answer.status_code, "connect:alicia/name" in answer.content.decode()) == (400, True)


def test_what_a_token_is_for_is_shown(alice: Person) -> None:
    made = mint(alice, scopes=["read", "ask", "read"], expires_in=3600).json()
    assert made["scopes"] == ["ask", "read"]
    agents = mint(alice, agent="@Bob/Helper".lower(), scopes=["ask"]).json()
    assert (agents["agent"], agents["scopes"], agents["expiresAt"]) == ("bob/helper", ["ask"], None)
    newest, before, *_ = api(alice.session).get("/api/v1/tokens").json()["items"]
    assert (newest["agent"], newest["scopes"]) == ("bob/helper", ["ask"])
    assert (before["scopes"], before["expiresAt"], before["agent"]) == (["ask", "read"], made["expiresAt"], None)
    page = browser(alice.session).get("/account").content.decode()
    assert "For ask read." in page
    assert "For @bob/helper alone." in page
    assert "valid until" in page


def test_limits_that_are_none_are_refused(alice: Person) -> None:
    for body in [
        {"scopes": []},
        {"scopes": ["everything"]},
        {"scopes": "ask"},
        {"agent": "helper"},
        {"agent": "bob/helper", "scopes": ["ask", "publish"]},
        {"expires_in": 0},
        {"expires_in": "soon"},
        {"expires_in": 10**12},
        {"scope": "ask"},
    ]:
        assert mint(alice, **body).status_code == 400, body


def test_a_token_ends_with_its_time(alice: Person) -> None:
    client = api(token(alice, expires_in=60))
    assert client.get("/api/v1/me").status_code == 200
    Credential.objects.filter(name="mine").update(expires_at=timezone.now() - timedelta(seconds=1))
    assert client.get("/api/v1/me").status_code == 401
    made = api(alice.session).post("/api/v1/tokens/channel", {"name": "agent", "expires_in": 600}, format="json")
    assert made.json()["expiresAt"] is not None


def test_a_replaced_token_is_good_for_the_overlap(alice: Person, bob: Person) -> None:
    old = token(alice, scopes=["read"], expires_in=7200)
    row = Credential.objects.get(name="mine")
    path = f"/api/v1/tokens/{row.pk}/rotate"
    assert api(bob.session).post(path, {}, format="json").status_code == 404
    assert api(alice.app).post(path, {}, format="json").status_code == 403
    new = api(alice.session).post(path, {"overlap": 600}, format="json").json()
    assert (new["scopes"], new["name"]) == (["read"], "mine")
    for text in (old, new["token"]):
        assert api(text).get("/api/v1/me").status_code == 200
        assert api(text).get("/api/v1/agents").status_code == 200
        assert api(text).post("/api/v1/blocks", {"login": "bob"}, format="json").status_code == 403
    row.refresh_from_db()
    assert row.expires_at is not None
    assert timedelta(0) < row.expires_at - timezone.now() <= timedelta(seconds=600)
    api(alice.session).post(f"/api/v1/tokens/{new['id']}/rotate", {"overlap": 0}, format="json")
    assert api(new["token"]).get("/api/v1/me").status_code == 401
    assert api(alice.session).post(path, {"overlap": 604_801}, format="json").status_code == 400


def test_the_account_page_makes_and_replaces(alice: Person, bob: Person) -> None:
    page = browser(alice.session)
    form = {"kind": "app", "name": "narrow", "scope": ["ask", "read"], "agent": "bob/helper", "expires": "2"}
    assert "Your new token" in page.post("/account", form).content.decode()
    made = Credential.objects.get(name="narrow")
    assert (made.scopes, made.only_agent) == ("ask read", "bob/helper")
    assert made.expires_at is not None
    for wrong in (
        {"expires": "many"},
        {"expires": "2", "unit": "years"},
        {"agent": "unknown"},
        {"scope": ["publish"]},
        {"kind": "channel"},
    ):
        assert page.post("/account", form | wrong).status_code == 400
    assert browser(bob.session).post(f"/account/rotate/{made.pk}").status_code == 302
    assert Credential.objects.filter(name="narrow").count() == 1
    assert "Your new token" in page.post(f"/account/rotate/{made.pk}").content.decode()
    assert Credential.objects.filter(name="narrow", scopes="ask read", only_agent="bob/helper").count() == 2


def test_the_command_makes_tokens_with_the_same_limits(alice: Person) -> None:
    options = ("--kind", "app", "--name", "narrow", "--scopes", "read,ask", "--expires-in", "7200")
    said = StringIO()
    call_command("mint_token", "--login", "alice", *options, "--agent", "@Bob/helper", stdout=said)
    made = Credential.objects.get(name="narrow")
    assert (made.scopes, made.only_agent) == ("ask read", "bob/helper")
    assert made.expires_at is not None
    assert made.expires_at - made.created_at == timedelta(hours=2)
    assert api(said.getvalue().strip()).get("/api/v1/me").status_code == 200
    call_command("mint_token", "--login", "alice", "--kind", "channel", "--expires-in", "60", stdout=said)


def test_the_command_refuses_limits_that_are_none(db: None, subtests: pytest.Subtests) -> None:
    for options, named in [
        (("app", "--scopes", "ask,all"), "--scopes: "),
        (("app", "--scopes", ""), "--scopes: "),
        (("app", "--scopes", "publish", "--agent", "bob/helper"), "--scopes: a token for one agent"),
        (("app", "--agent", "helper"), "--agent: "),
        (("app", "--expires-in", "59"), "--expires-in: "),
        (("channel", "--scopes", "ask"), "of the kind app"),
        (("session", "--expires-in", "60"), "a session"),
    ]:
        with subtests.test(options=options):
            with pytest.raises(CommandError, match=named):
                call_command("mint_token", "--login", "someone", "--kind", *options)
            assert not User.objects.named("someone"), (options, named)


def test_a_card_is_shown_to_tokens_that_may_ask_or_read(alice: Person) -> None:
    make_agent(alice.user, access="private")
    path = "/api/a2a/v1/agents/alice/helper/agent-card.json"
    for limits, status in (
        ({"scopes": ["ask"]}, 200),
        ({"scopes": ["read"]}, 200),
        ({"scopes": ["publish", "admin"]}, 404),
        ({"agent": "alice/helper"}, 200),
        ({"agent": "alice/other"}, 404),
    ):
        assert api(token(alice, **limits)).get(path).status_code == status, limits


def test_agents_are_tools_of_tokens_that_may_list_them(alice: Person, agent: Agent) -> None:
    for scope, lists in [("ask", True), ("read", True), ("publish", False), ("admin", False)]:
        shown = presented({"authorization": f"Bearer {token(alice, scopes=[scope])}"})
        holder = find_holder(shown, "app")
        assert shown is not None, (scope, lists)
        assert holder is not None, (scope, lists)
        caller = ToolCaller(token=shown, identity=holder.identity, body_bytes=0, traceparent="")
        assert [one.name for one in load_agent_tools(caller, "")[0]] == ["ask_alice_helper"] * lists, (
            scope,
            lists,
        )
        assert find_handle(caller, "ask_alice_helper") == (agent.handle if lists else None), (scope, lists)
