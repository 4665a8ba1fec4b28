"""A remote card that changed waits for its owner; the hub asks by the approved one, or not at all."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest
from joserfc.jwk import ECKey

from agents.links.remote.approval import (
    NotWaiting,
    approve_card,
    compare_with_approved,
    find_changed_card,
    keep_card,
)
from agents.links.remote.card import NO_AUTH, fetch_card, make_auth, read_card
from agents.links.remote.card_content import MAX_SHOWN, MemberChange, find_changes
from agents.links.remote.publishing import look_again, move
from agents.links.remote.server_state import open_breaker_at_once
from agents.models import Agent, RemoteCard, RemoteServer
from agents.models.choices import Outcome
from agents.models.session import is_online
from kit.async_db import db_call
from lab.waiting import eventually
from tests.native.rows import Person, api, browser, make_session, person
from tests.remote.caller import Caller, publish_far, server_of, spent_today
from tests.remote.cards import serving_card
from tests.remote.servers import Asked, Changing, Json, card_03, card_10, offering, raw_server

HERE = "https://far.example/card.json"


WAYS = [("JSONRPC", "1.0", "/one"), ("HTTP+JSON", "1.0", "/one/message:send"), ("JSONRPC", "0.3", "/one")]


@pytest.mark.parametrize(("binding", "version", "called"), WAYS)
async def test_a_changed_card_waits_while_the_approved_one_is_asked_by(
    caller: Caller, binding: str, version: str, called: str
) -> None:
    changing = Changing(offering("/one", binding, version))
    async with raw_server(changing.answer) as far:
        agent = await caller.publish(f"{far.url}/card.json")
        changing.card = offering("/one", binding, version, description="Better than ever.")
        caller.doubt_cards()
        assert (await caller.ask(agent, "hello")).text == "fine"
        assert changing.paths == [called]
        server = await server_of(agent)
        assert (server.card_changed_at is None, server.card_refusal) == (False, "")
        changed = await db_call(find_changed_card)(server)
        assert changed is not None
        assert changed.is_asked
        assert changed.changes.shown == [MemberChange("description", None, '"Better than ever."')]


async def test_a_card_with_another_address_stops_asks_until_its_owner_approves(caller: Caller) -> None:
    changing = Changing(offering("/one"))
    async with raw_server(changing.answer) as far:
        agent = await caller.publish(f"{far.url}/card.json")
        changing.card = offering("/two")
        caller.doubt_cards()
        refused = await caller.ask(agent, "hello")
        assert (refused.outcome, refused.reason) == (Outcome.FAILED, "not_delivered")
        assert changing.paths == []
        assert not await db_call(is_online)(agent.session_id)
        assert await spent_today(agent) == 0
        server = await server_of(agent)
        assert "approve" in server.last_failure
        changed = await db_call(find_changed_card)(server)
        assert changed is not None
        assert not changed.is_asked
        await db_call(approve_card)(server, changed.digest)
        assert (await caller.ask(agent, "hello")).text == "fine"
        assert changing.paths == ["/two"]
        assert (await server_of(agent)).card_changed_at is None


def test_calls_that_are_refused_at_once_open_a_breaker_once(alice: Person) -> None:
    server = RemoteServer.objects.create(session=make_session(alice.user, "far"), card_url=HERE)
    for tried, opens in ((False, 1), (False, 1), (True, 2)):
        open_breaker_at_once(server.pk, HERE, "moved", tried=tried)
        server.refresh_from_db()
        assert (server.opens, server.last_failure) == (opens, "moved")


@pytest.mark.parametrize("needs_signature", [False, True])
async def test_a_card_of_the_old_place_says_nothing_of_the_new_one(caller: Caller, needs_signature: bool) -> None:
    """The server moves while its card is fetched."""
    changing = Changing(offering("/one"))

    async def moves(asked: Asked, writer: asyncio.StreamWriter) -> None:
        if caller.later_s and asked.path == "/card.json":
            await RemoteServer.objects.aupdate(card_url=HERE)
        await changing.answer(asked, writer)

    async with raw_server(moves) as far:
        agent = await caller.publish(f"{far.url}/card.json")
        if needs_signature:
            await RemoteServer.objects.aupdate(card_keys=[ECKey.generate_key("P-256").as_dict(private=False)])
        changing.card = offering("/two")
        caller.doubt_cards()
        assert (await caller.ask(agent, "hello")).reason == "not_delivered"
        assert changing.paths == []
        server = await server_of(agent)
        assert (server.card_url, server.card_refusal, server.retry_at) == (HERE, "", None)


def test_a_refusal_of_the_old_place_opens_no_breaker_of_the_new_one(alice: Person) -> None:
    server = RemoteServer.objects.create(session=make_session(alice.user, "far"), card_url=HERE)
    open_breaker_at_once(server.pk, "https://far.example/before.json", "moved", tried=True)
    server.refresh_from_db()
    assert (server.opens, server.retry_at) == (0, None)


async def test_an_owner_may_keep_the_old_card(caller: Caller) -> None:
    changing = Changing(offering("/one"))
    async with raw_server(changing.answer) as far:
        agent = await caller.publish(f"{far.url}/card.json")
        changing.card = offering("/two")
        server, digest = await _compared(agent, far.url)
        await db_call(keep_card)(server, digest)
        with pytest.raises(NotWaiting):
            await db_call(approve_card)(server, digest)
        for _ in range(2):
            caller.doubt_cards()
            assert (await caller.ask(agent, "hello")).text == "fine"
        assert changing.paths == ["/one", "/one"]
        assert await db_call(find_changed_card)(await server_of(agent)) is None
        changing.card = offering("/three")
        caller.doubt_cards()
        assert (await caller.ask(agent, "hello")).reason == "not_delivered"


async def test_a_card_that_changes_back_waits_no_more(caller: Caller) -> None:
    changing = Changing(offering("/one"))
    async with raw_server(changing.answer) as far:
        agent = await caller.publish(f"{far.url}/card.json")
        changing.card = offering("/two")
        server, digest = await _compared(agent, far.url)
        assert server.card_refusal
        assert not await db_call(is_online)(agent.session_id)
        changing.card = offering("/one")
        await eventually(lambda: db_call(is_online)(agent.session_id), "half-open")
        assert (
            await caller.ask(agent, "hello")
        ).text == "fine"  # it was refused: the card is fetched for each ask
        server = await server_of(agent)
        assert (server.card_changed_at, server.card_refusal) == (None, "")
        with pytest.raises(NotWaiting):
            await db_call(approve_card)(server, digest)


async def test_credentials_do_not_follow_an_approved_card_to_another_host(caller: Caller) -> None:
    """The card was approved without credentials; it changed when the owner gave some for the card's own host."""
    changing = Changing(card_10())
    async with raw_server(changing.answer) as far:
        changing.card = offering(f"{far.url}/one".replace("127.0.0.1", "localhost"))
        agent = await caller.publish(f"{far.url}/card.json")
        assert (await caller.ask(agent, "hello")).text == "fine"
        here, there = offering("/one")["supportedInterfaces"], changing.card["supportedInterfaces"]
        changing.card = {**changing.card, "supportedInterfaces": [*here, *there]}
        server = await server_of(agent)
        place = await db_call(look_again)(server, None, make_auth("Bearer", "s3cret-word"))
        await db_call(move)(server, place)
        server = await server_of(agent)
        assert (server.card_changed_at is None, server.card_refusal) == (False, "")
        assert (await caller.ask(agent, "hello")).reason == "not_delivered"
        assert changing.paths == ["/one"]
        failure = (await server_of(agent)).last_failure
        assert failure.endswith("another host: remove the credentials, or approve a card on this host")


async def test_a_server_without_an_approved_card_takes_the_first(caller: Caller) -> None:
    """One that was published before the hub kept cards."""
    changing = Changing(offering("/one"))
    async with raw_server(changing.answer) as far:
        agent = await caller.publish(f"{far.url}/card.json")
        await RemoteCard.objects.all().adelete()
        await RemoteServer.objects.aupdate(card_digest="")
        changing.card = offering("/two")
        assert (await caller.ask(agent, "hello")).text == "fine"
        assert changing.paths == ["/two"]
        assert (await RemoteCard.objects.aget()).approved["supportedInterfaces"][0]["url"] == "/two"


def _reversed(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _reversed(value[name]) for name in reversed(value)}
    return value


def _counting(count: int) -> Json:
    return {"extensions": [{"uri": "urn:x", "params": {"queriesToday": count}}]}


SAME: dict[str, Callable[[Json], Json]] = {
    "order of members": _reversed,
    "signatures": lambda card: {**card, "signatures": [{"protected": "e30", "signature": "AA"}]},
    "a member of the server's own": lambda card: {**card, "_clawborrator": {"queriesToday": 5}},
    "an empty member": lambda card: {**card, "description": "", "provider": {}},
    "params of an extension": lambda card: {**card, "capabilities": {**card["capabilities"], **_counting(2)}},
}


def test_what_is_no_change() -> None:
    for card in (card_10(), card_03()):
        card = {**card, "capabilities": {**card["capabilities"], **_counting(1)}}
        for name, same in SAME.items():
            assert read_card(HERE, same(card)).digest == read_card(HERE, card).digest, name


def test_what_is_a_change() -> None:
    for card in (card_03(), {**card_10(), "securitySchemes": {"b": {"mtlsSecurityScheme": {"description": "d"}}}}):
        for more in ({"version": "2"}, {"skills": [{"id": "s"}]}, {"securitySchemes": {"b": {"x": 1}}}):
            assert read_card(HERE, {**card, **more}).digest != read_card(HERE, card).digest, more


def test_changes_name_members_and_hide_nothing() -> None:
    before = {"name": "a", "skills": [{"id": "s", "name": "x"}, {"id": "t"}], "tags": ["1", "2"], "gone": None}
    after = {"name": "a\u202eb", "skills": [{"id": "t"}, {"id": "s", "name": "y"}], "tags": ["1"], "odd key": 1}
    assert find_changes(before, after).shown == [
        MemberChange("name", '"a"', '"a\\u202eb"'),
        MemberChange("skills (order)", '["s", "t"]', '["t", "s"]'),
        MemberChange('skills["s"].name', '"x"', '"y"'),
        MemberChange("tags[1]", '"2"', None),
        MemberChange("gone", "null", None),
        MemberChange('["odd key"]', None, "1"),
    ]
    assert find_changes({"a": True, "b": 1}, {"a": 1, "b": 1.0}).shown == [MemberChange("a", "true", "1")]
    many = find_changes({}, {str(number): "x" * 1000 for number in range(MAX_SHOWN + 7)})
    assert (len(many.shown), many.more) == (MAX_SHOWN, 7)
    assert all(len(one.after or "") <= 400 for one in many.shown)


# By REST and on the desk.


def _changed(alice: Person, card: Json) -> tuple[int, str]:
    """An agent of hers whose server shows another card now; the agent and the address."""
    with serving_card(card_10()) as url:
        agent = publish_far(alice, url).json()
    server = RemoteServer.objects.get()
    shown = json.loads(json.dumps(card).replace("{url}", url))
    assert compare_with_approved(server.pk, read_card(server.card_url, shown)) is not None
    return agent["id"], url


def test_an_owner_decides_by_rest(alice: Person) -> None:
    agent_id, _ = _changed(alice, {**card_10(), "version": "2<b>"})
    path = f"/api/v1/agents/{agent_id}/card-change"
    bob = person("bob")
    assert api(bob.session).get(path).status_code == 404
    client = api(alice.session)
    shown = client.get(path).json()
    assert (shown["asked"], shown["more"]) == (True, 0)
    assert shown["changes"] == [{"path": "version", "before": '"1"', "after": '"2<b>"'}]
    assert client.get("/api/v1/agents?mine=true").json()["items"][0]["remote"]["cardChangedAt"] == shown["since"]
    stale = {"digest": "0" * 64, "decision": "approve"}
    assert client.post(path, stale, format="json").status_code == 409
    assert client.post(path, {**stale, "decision": "burn"}, format="json").status_code == 400
    decided = {"digest": shown["digest"], "decision": "approve"}
    assert api(bob.session).post(path, decided, format="json").status_code == 404
    answer = client.post(path, decided, format="json")
    assert answer.status_code == 200, answer.content
    assert answer.json()["remote"]["cardChangedAt"] is None
    assert RemoteServer.objects.get().card_digest == shown["digest"]
    assert client.get(path).status_code == 404
    assert client.post(path, decided, format="json").status_code == 404


def test_the_desk_shows_what_changed_and_takes_the_decision(alice: Person) -> None:
    agent_id, _ = _changed(alice, {**card_10(), "version": "2<b>"})
    client, path = browser(alice.session), f"/desk/agents/{agent_id}/remote"
    for shown in ("/desk", f"/desk/agents/{agent_id}"):
        assert "card changed" in client.get(shown).content.decode()
    page = client.get(path).content.decode()
    assert "&quot;2&lt;b&gt;&quot;" in page
    digest = RemoteCard.objects.get().waiting_digest
    assert f'value="{digest}"' in page
    assert 'id="change"' in page
    for other in ("0", ""):
        assert client.post(path, {"action": "approve", "digest": other}).status_code == 302
    assert RemoteServer.objects.get().card_changed_at is not None
    assert client.post(path, {"action": "keep", "digest": digest}).status_code == 302
    assert RemoteServer.objects.get().card_changed_at is None
    approved = RemoteServer.objects.get().card_digest
    for other in (digest, ""):  # nothing waits by now
        assert client.post(path, {"action": "approve", "digest": other}).status_code == 302
    assert RemoteServer.objects.get().card_digest == approved
    assert 'id="change"' not in client.get(path).content.decode()


def test_the_desk_shows_why_nothing_is_sent(alice: Person) -> None:
    agent_id, _ = _changed(alice, card_10("HTTP+JSON"))
    client, path = browser(alice.session), f"/desk/agents/{agent_id}/remote"
    says = "Until you decide, the hub sends nothing to this server</strong>: "
    assert f"{says}its card no longer offers the interface" in client.get(path).content.decode()
    RemoteServer.objects.update(card_refusal="the card is not signed")
    page = client.get(path).content.decode()
    assert f"{says}the card is not signed." in page
    assert "csrfmiddlewaretoken" in page.split('id="change"')[1].split("</form>")[0]


def test_saving_a_server_does_not_approve_its_changed_card(alice: Person) -> None:
    with serving_card({**card_10(), "version": "2"}) as url:
        agent = publish_far(alice, url).json()
        approved = "0" * 64
        RemoteServer.objects.update(card_digest=approved)
        fields = {"card_url": url, "auth": "keep", "auth_scheme": "", "credentials": "", "action": "save"}
        client, path = browser(alice.session), f"/desk/agents/{agent['id']}/remote"
        assert client.post(path, fields).headers["Location"] == path
        assert RemoteServer.objects.get().card_digest == approved
        change = {"remote": {"cardUrl": url}}
        answer = api(alice.session).patch(f"/api/v1/agents/{agent['id']}", change, format="json")
        assert answer.json()["remote"]["cardChangedAt"] is not None


async def _compared(agent: Agent, url: str) -> tuple[RemoteServer, str]:
    """The server of an agent after a look at the card, and the digest of the card that waits."""
    server = await server_of(agent)
    card = await asyncio.to_thread(fetch_card, f"{url}/card.json", NO_AUTH)
    await db_call(compare_with_approved)(server.pk, card)
    return await server_of(agent), card.digest
