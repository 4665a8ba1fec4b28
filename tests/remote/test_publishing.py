"""Publishing and moving a remote server, by REST and on the desk; what is its owner's alone."""

import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.core.management import call_command

from agents.links.remote.card import auth_of
from agents.links.remote.server_state import write_reachable
from agents.models import Agent, Connection, Process, RemoteServer, Session
from hub.bounded_django import RequestSlots
from hub.limits import CARD_LOOKUPS as CARD_LOOKUPS_LIMIT
from hub.wiring import concurrency_limits
from kit.clock import db_now
from kit.concurrency import CARD_LOOKUPS, SLOTS_KEY
from tests.native.desk import FIELDS as AGENT_FIELDS
from tests.native.rows import Person, api, browser, make_agent, make_session, person, register_agent, registration
from tests.remote.caller import far_body, publish_far
from tests.remote.cards import serving_card
from tests.remote.servers import card_03

SECRET = "s3cret-word"
AUTH = {"scheme": "Bearer", "credentials": SECRET}
FIELDS = AGENT_FIELDS | {"name": "", "slug": "", "auth_scheme": "", "credentials": ""}


@pytest.fixture
def url() -> Iterator[str]:
    with serving_card() as url:
        yield url


def change(alice: Person, agent_id: int, **remote: Any) -> Any:
    return api(alice.session).patch(f"/api/v1/agents/{agent_id}", {"remote": remote}, format="json")


def test_an_agent_is_made_of_a_card(alice: Person, url: str) -> None:
    answer = publish_far(alice, url, auth=AUTH)
    assert answer.status_code == 201, answer.content
    body = answer.json()
    assert (body["handle"], body["online"], body["routingName"]) == ("alice/far", True, "@far")
    assert body["remote"] == {
        **{"cardUrl": f"{url}/.well-known/agent-card.json", "authScheme": "Bearer", "breaker": "closed"},
        **dict.fromkeys(("retryAt", "lastFailure", "cardChangedAt", "cardRefusal")),
        **{"cardKeys": [], "tellsCaller": False, "requiresTask": False},
    }
    row = RemoteServer.objects.get()
    assert auth_of(row).credentials == SECRET
    assert SECRET not in row.credentials
    assert row.session.channel_version == "A2A 1.0 over JSONRPC"
    listed = api(alice.session).get("/api/v1/agents?mine=true").json()["items"]
    assert SECRET not in str(listed)
    assert listed[0]["remote"]["authScheme"] == "Bearer"


def test_others_see_the_agent_and_not_its_server(alice: Person, url: str) -> None:
    publish_far(alice, url)
    seen = api(person("bob").session).get("/api/v1/agents/by-handle/alice/far").json()
    assert seen["online"] is True
    assert "remote" not in seen
    assert url not in str(seen)


def test_what_is_wrong_is_a_400_and_makes_nothing(alice: Person) -> None:
    wrong: list[tuple[Any, str]] = [
        ({}, "cardUrl"),
        *(({"cardUrl": url}, "cardUrl") for url in ("ftp://x", "\x00", "https://" + "x" * 3000)),
        ({"cardUrl": 7, "auth": []}, "auth"),
        ({"cardUrl": "http://127.0.0.1:9/card.json"}, "connection failed"),
        ({"cardUrl": "x", "auth": {"scheme": "B", "credentials": "a\nb"}}, "printable"),
        ("text", "remote"),
    ]
    for remote, field in wrong:
        answer = api(alice.session).post("/api/v1/agents", {"name": "Far", "remote": remote}, format="json")
        assert (answer.status_code, field in answer.json()["message"]) == (400, True), answer.content
    assert not Session.objects.exists()


@pytest.mark.parametrize("host", ["[1.2.3.4]", "[::ffff:0x7f.1]", "[1.2.3.4x]"])
def test_a_malformed_host_is_a_400(alice: Person, url: str, host: str) -> None:
    agent_id, wrong = publish_far(alice, url, auth=AUTH).json()["id"], f"https://{host}/x"
    tried = api(alice.session).post("/api/v1/agents/cards", {"cardUrl": wrong}, format="json")
    assert (tried.status_code, "not a URL" in tried.json()["message"]) == (400, True), tried.content
    assert publish_far(alice, wrong).status_code == change(alice, agent_id, cardUrl=wrong).status_code == 400


def test_an_agent_is_a_session_or_a_server(alice: Person, url: str) -> None:
    session, agent = make_session(alice.user), make_agent(alice.user, "other")
    both = {"name": "x", "sessionId": str(session.public_id), "remote": {"cardUrl": url}}
    for body in (both, {"name": "x"}):
        assert api(alice.session).post("/api/v1/agents", body, format="json").status_code == 400
    assert change(alice, agent.pk, cardUrl=url).status_code == 400


def test_a_handle_that_is_taken_leaves_no_session_behind(alice: Person, url: str) -> None:
    assert publish_far(alice, url).status_code == 201
    assert publish_far(alice, url).status_code == 409
    assert RemoteServer.objects.count() == Session.objects.count() == 1


@pytest.mark.parametrize("limit", ["AGENTS_PER_OWNER", "SESSIONS_PER_OWNER"])
def test_one_remote_agent_too_many_is_refused_everywhere(
    alice: Person, url: str, settings: Any, limit: str
) -> None:
    make_agent(alice.user)
    setattr(settings, limit, 1)
    answer = publish_far(alice, url)
    assert (answer.status_code, answer.json()["error"]) == (429, "quota_exceeded")
    page = browser(alice.session).post("/desk/remote", FIELDS | {"card_url": url, "name": "Far", "action": "save"})
    assert (page.status_code, "1 are the most" in page.content.decode()) == (429, True)
    assert RemoteServer.objects.count() == 0


class CardsUnderWay:
    """Middleware: this account has as many card look-ups under way as it may."""

    account_id = 0

    def __init__(self, get_response: Any) -> None:
        self._get_response = get_response

    def __call__(self, request: Any) -> Any:
        limits = concurrency_limits()
        for _ in range(CARD_LOOKUPS_LIMIT.most):
            limits[CARD_LOOKUPS].enter(self.account_id)
        request.scope = {SLOTS_KEY: RequestSlots(limits).take}
        return self._get_response(request)


def test_one_card_look_up_too_many_is_refused_everywhere(alice: Person, url: str, settings: Any) -> None:
    agent_id = publish_far(alice, url).json()["id"]
    CardsUnderWay.account_id = alice.user.pk
    settings.MIDDLEWARE = [f"{__name__}.CardsUnderWay", *settings.MIDDLEWARE]
    client, page, place = api(alice.session), browser(alice.session), {"cardUrl": url}
    answers = [
        client.post("/api/v1/agents/cards", place, format="json"),
        client.post("/api/v1/agents", far_body(url) | {"slug": "more"}, format="json"),
        change(alice, agent_id, cardUrl=url),
        page.post("/desk/remote", FIELDS | {"card_url": url, "action": "check"}),
        page.post(f"/desk/agents/{agent_id}/remote", {"card_url": url, "action": "check"}),
    ]
    assert [one.status_code for one in answers] == [429] * 5
    assert {one.headers["Retry-After"] for one in answers} == {"5"}
    assert all("4 card look-ups under way" in one.content.decode() for one in answers)
    assert api(person("bob").session).post("/api/v1/agents/cards", place, format="json").status_code == 200


def test_a_card_is_shown_and_nothing_kept(alice: Person) -> None:
    with serving_card(card_03()) as url:
        answer = api(alice.session).post("/api/v1/agents/cards", {"cardUrl": url}, format="json")
    assert answer.json() == {
        "url": f"{url}/.well-known/agent-card.json",
        "name": "Old",
        "description": "",
        "version": "1",
        "skills": [],
        "callUrl": f"{url}/a2a",
        "protocolVersion": "0.3",
        "protocolBinding": "JSONRPC",
        "streaming": True,
    }
    assert not RemoteServer.objects.exists()


def test_moving_keeps_credentials_at_home(alice: Person, url: str) -> None:
    agent_id = publish_far(alice, url, auth=AUTH).json()["id"]
    RemoteServer.objects.update(retry_at=db_now() + timedelta(hours=1), opens=3, last_failure="bad")
    write_reachable(RemoteServer.objects.get().pk)
    assert api(alice.session).get("/api/v1/agents?mine=true").json()["items"][0]["online"] is False
    elsewhere = url.replace("127.0.0.1", "localhost")
    refused = change(alice, agent_id, cardUrl=elsewhere)
    assert refused.status_code == 400
    assert "another host" in refused.json()["message"]
    assert change(alice, agent_id, cardUrl=url).json()["remote"]["breaker"] == "closed"
    assert auth_of(RemoteServer.objects.get()).credentials == SECRET
    assert change(alice, agent_id, auth=None).json()["remote"]["authScheme"] is None
    assert RemoteServer.objects.get().credentials == ""


def test_no_socket_becomes_a_remote_server(alice: Person, url: str) -> None:
    session_id = publish_far(alice, url).json()["sessionId"]
    Process.objects.create(id="p", host="h", pid=1)
    wanted = registration(alice, Session.objects.get(public_id=session_id))
    registered = register_agent(replace(wanted, routing_name="far"), process_id="p").registered
    assert registered.public_id != session_id
    assert registered.routing_name != "far"
    assert not Connection.objects.filter(session__public_id=session_id).exists()


def test_its_owner_deletes_it_for_good(alice: Person, url: str) -> None:
    body = publish_far(alice, url).json()
    path = f"/api/v1/sessions/{body['sessionId']}?hard=true"
    assert api(alice.session).delete(path).status_code == 200
    assert not RemoteServer.objects.exists()


def test_credentials_are_sealed_anew(alice: Person, url: str, settings: Any) -> None:
    publish_far(alice, url, auth=AUTH)
    before = RemoteServer.objects.get().credentials
    settings.WEBHOOK_KEYS = ["k" * 40]
    call_command("rotate_webhook_keys")
    settings.SECRET_KEY = "another-secret-key-altogether-of-this-test"
    after = RemoteServer.objects.get()
    assert after.credentials != before
    assert auth_of(after).credentials == SECRET


def test_credentials_that_cannot_be_read_are_asked_for_anew(alice: Person, url: str) -> None:
    agent_id = publish_far(alice, url, auth=AUTH).json()["id"]
    RemoteServer.objects.update(credentials="unreadable")
    said = "the credentials cannot be read any more: give them anew"
    assert said in change(alice, agent_id, cardUrl=url).json()["message"]
    fields = {"card_url": url, "auth": "keep", "action": "save"}
    page = browser(alice.session).post(f"/desk/agents/{agent_id}/remote", fields)
    assert (page.status_code, said in page.content.decode()) == (400, True)


def test_the_desk_looks_at_the_card_first(alice: Person, url: str) -> None:
    client = browser(alice.session)
    shown = client.post("/desk/remote", {**FIELDS, "card_url": url, "action": "check", "slug": "mine"})
    page = shown.content.decode()
    assert shown.status_code == 200
    assert "The card: Raw" in page
    assert 'value="Raw"' in page
    assert 'value="mine"' in page
    assert not RemoteServer.objects.exists()
    typed = {**FIELDS, "name": "Raw", "card_url": url, "auth_scheme": "Bearer", "credentials": SECRET}
    assert client.post("/desk/remote", {**typed, "action": "save"}).status_code == 302
    agent = Agent.objects.get()
    assert (agent.handle, agent.status) == ("alice/raw", "published")
    for path in (f"/desk/agents/{agent.pk}", f"/desk/agents/{agent.pk}/remote", "/desk"):
        answer = client.get(path)
        assert answer.status_code == 200
        assert SECRET not in answer.content.decode()


def test_a_look_at_the_card_keeps_the_modes_that_were_typed(alice: Person, url: str) -> None:
    for modes in (["text/plain", "image/png"], []):
        typed = {**FIELDS, "card_url": url, "action": "check", "input_modes": "\r\n".join(modes)}
        page = browser(alice.session).post("/desk/remote", typed).content.decode()
        [shown] = re.findall(r'<textarea name="input_modes"[^>]*>([^<]*)</textarea>', page)
        assert shown.split() == modes


def test_the_desk_says_what_is_wrong_and_echoes_no_credentials(alice: Person, url: str) -> None:
    client = browser(alice.session)
    typed = {**FIELDS, "name": "x", "auth_scheme": "Bearer", "credentials": SECRET}
    for card_url, said in (("", "required"), ("ftp://x", "want a URL"), (f"{url}/no.json", "HTTP 404")):
        for action in ("check", "save"):
            answer = client.post("/desk/remote", {**typed, "card_url": card_url, "action": action})
            assert answer.status_code == 400
            assert said in answer.content.decode()
            assert SECRET not in answer.content.decode()
    publish_far(alice, url)
    taken = client.post("/desk/remote", {**typed, "card_url": url, "slug": "far", "action": "save"})
    assert taken.status_code == 409
    assert RemoteServer.objects.count() == 1


def test_the_desk_moves_a_server(alice: Person, url: str) -> None:
    agent_id = publish_far(alice, url, auth=AUTH).json()["id"]
    client, path = browser(alice.session), f"/desk/agents/{agent_id}/remote"
    fields = {"card_url": url, "auth": "keep", "auth_scheme": "", "credentials": ""}
    assert "The card: Raw" in client.post(path, {**fields, "action": "check"}).content.decode()
    unclear = {**fields, "auth_scheme": "Bearer", "credentials": "new-word"}
    for wrong in (unclear, {**unclear, "auth": "none"}, {**fields, "auth": "new"}):
        answer = client.post(path, {**wrong, "action": "save"})
        assert answer.status_code == 400
        assert auth_of(RemoteServer.objects.get()).credentials == SECRET
    assert client.post(path, {**unclear, "auth": "new", "action": "save"}).status_code == 302
    assert auth_of(RemoteServer.objects.get()).credentials == "new-word"
    away = {**fields, "card_url": url.replace("127.0.0.1", "localhost")}
    assert "another host" in client.post(path, {**away, "action": "save"}).content.decode()
    assert client.post(path, {**away, "auth": "none", "action": "save"}).status_code == 302
    row = RemoteServer.objects.get()
    assert (row.card_url.startswith("http://localhost"), row.credentials) == (True, "")


def test_a_server_is_its_owners_alone(alice: Person, url: str) -> None:
    agent_id = publish_far(alice, url).json()["id"]
    bob, path = person("bob"), f"/desk/agents/{agent_id}/remote"
    assert browser(bob.session).get(path).status_code == 404
    assert browser(bob.session).post(path, {"card_url": url, "auth": "none"}).status_code == 404
    assert browser().get(path).status_code == 302
    session_agent = make_agent(alice.user)
    assert browser(alice.session).get(f"/desk/agents/{session_agent.pk}/remote").status_code == 404
    assert change(bob, agent_id, cardUrl=url).status_code == 404


def test_staff_see_servers_without_credentials(alice: Person, url: str) -> None:
    publish_far(alice, url, auth=AUTH)
    boss = person("boss", is_staff=True, is_superuser=True)
    row = RemoteServer.objects.get()
    for path in ("/admin/agents/remoteserver/", f"/admin/agents/remoteserver/{row.pk}/change/"):
        page = browser(boss.session).get(path)
        assert page.status_code == 200, path
        assert row.credentials not in page.content.decode()
