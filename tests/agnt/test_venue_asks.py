"""Bookings at venues that have an agent: what it is asked, what its answers become, and what is counted."""

import asyncio
import json
import time
from itertools import islice

import pytest

from clawbridge.agnt.signing import SigningKeys, verify_payload
from lab.callers import bearer, web
from lab.frames import Json
from lab.waiting import eventually
from tests.agnt import venues
from tests.agnt.venues import (
    CONFIRMED,
    NOTHING_COUNTED,
    Answer,
    Keeper,
    VenueAgent,
    data,
    envelope_in,
    held,
    leaves,
    response,
    secret_of,
    silent,
    state,
    twice,
)
from tests.agnt.wire import SENDER, Program, envelope, error_of, network_id, result_of
from tests.channel.agents import sql

ORDER: Json = {"slot_id": "s-1", "time": "19:30", "party_size": 4, "user_note": "window ☕"}
ONE_FAILURE = {"failures": 1, "is_open": False, "openings": 0}
keeper, asker = venues.keeper, venues.asker


async def test_the_agent_gets_the_envelope_as_text_and_as_a_signed_data_part(
    keeper: Keeper, asker: Program
) -> None:
    async with keeper.venue("la-brisa", data(CONFIRMED | {"slot_time": "19:45", "note": "by the sea"})) as agent:
        sent = envelope("booking.confirm", {"venue_id": "la-brisa", **ORDER}, agent_context={"secret": "no"})
        answer = await asker.post(sent)
        booked = result_of(answer)
        [prompt] = agent.prompts
    given = envelope_in(prompt)
    assert (given["from"], given["to"], given["intent"]) == (SENDER, "agent-la-brisa", "booking.confirm")
    assert given["timestamp"] == sent["timestamp"]
    assert 0 < given["ttl_ms"] <= 5000
    assert given["agent_context"] == {}
    order = {name: value for name, value in given["payload"].items() if not name.startswith("_")}
    assert order == {
        "booking_id": booked["booking_id"],
        "venue_id": booked["venue"]["venue_id"],
        "slot_id": "s-1",
        "slot_time": "19:30",
        "party_size": 4,
        "user_note": "window ☕",
    }
    secret = secret_of(keeper.hub, booked["venue"]["venue_id"])
    assert verify_payload(given["payload"], keys=SigningKeys(secret), sender=SENDER, now_s=time.time())
    for words in ("La Brisa", SENDER, "window ☕", '"status": "confirmed"'):
        assert words in prompt["text"]
    assert (booked["status"], booked["slot_id"], booked["slot_time"]) == ("pending", "s-1", "19:45")
    assert (booked["party_size"], booked["note"]) == (4, "by the sea")
    assert keeper.bookings() == (1, 1)
    assert keeper.breaker("la-brisa") == NOTHING_COUNTED
    # The turn runs as the service user of the network.
    rows = sql(
        keeper.hub,
        "SELECT t.surface, u.is_service, t.outcome, t.agent_id FROM agents_turn t"
        " JOIN accounts_user u ON u.id = t.caller_id JOIN agents_session s ON s.id = t.session_id"
        " WHERE s.owner_id = (SELECT id FROM accounts_user WHERE login = ?)",
        keeper.login,
    )
    assert [(one[0], bool(one[1]), one[2], one[3]) for one in rows] == [("agnt", True, "completed", None)]


async def test_the_first_answer_confirms(keeper: Keeper, asker: Program) -> None:
    async with keeper.venue("v", twice):
        booked = result_of(await asker.confirm("v", **ORDER))
    assert (booked["slot_time"], booked["party_size"]) == ("19:30", 4)
    assert keeper.bookings() == (1, 1)
    assert keeper.breaker("v") == NOTHING_COUNTED


NO_TABLE = {"status": "error", "error": {"code": "slot_unavailable", "message": "no table by the sea"}}


@pytest.mark.parametrize(
    "script",
    [
        pytest.param(state("failed", "no"), id="fails"),
        pytest.param(state("input_required", "which one?"), id="asks-back"),
        pytest.param(leaves, id="leaves"),
    ],
)
async def test_what_does_not_confirm(keeper: Keeper, asker: Program, script: Answer) -> None:
    async with keeper.venue("v", script) as agent:
        assert error_of(await asker.confirm("v", **ORDER)) == "venue_unreachable"
        assert keeper.bookings() == (0, 0)
        assert len(agent.prompts) == 1
    assert keeper.breaker("v") == ONE_FAILURE


async def test_the_caller_reads_the_venues_own_words(keeper: Keeper, asker: Program) -> None:
    refusing = (
        (response(NO_TABLE), "no table by the sea", 0),
        (state("rejected", "not on Mondays"), "not on Mondays", 0),
        (data({"status": "rate_limited", "retry_after_s": 90, "reason": "the kitchen rests"}), "kitchen", 90),
        (data({"status": "rate_limited"}), "takes no orders now", 60),
    )
    async with keeper.venue("v", *[script for script, _, _ in refusing]):
        for _, words, wait_s in refusing:
            answer = await asker.confirm("v", **ORDER)
            assert error_of(answer) == ("rate_limited" if wait_s else "slot_unavailable")
            assert answer.status_code == (429 if wait_s else 409)
            assert words in answer.json()["payload"]["error"]["message"]
            assert answer.headers.get("retry-after", "0") == str(wait_s)
    assert keeper.bookings() == (0, 0)
    assert keeper.breaker("v") == NOTHING_COUNTED


async def test_the_secret_of_a_venue_with_an_agent_changes_without_a_gap(keeper: Keeper, asker: Program) -> None:
    token = keeper.hub.mint(keeper.login, "session")
    async with keeper.venue("v") as agent, web(keeper.hub.url, headers=bearer(token)) as client:
        [venue] = (await client.get("/api/v1/network/venues")).json()["items"]
        path = f"/api/v1/network/venues/{venue['id']}/secret"
        first = (await client.get(path)).json()["secret"]
        second = (await client.post(path, json={"overlap": 3600})).json()["secret"]
        result_of(await asker.confirm("v"))
        third = (await client.post(path, json={"overlap": 0})).json()["secret"]
        result_of(await asker.confirm("v"))
    assert len({first, second, third}) == 3
    for prompt, secret in zip(agent.prompts, (first, third), strict=True):
        keys = SigningKeys(bytes.fromhex(secret))
        assert verify_payload(envelope_in(prompt)["payload"], keys=keys, sender=SENDER, now_s=time.time())


async def test_a_failed_ask_tells_the_owner_what_the_venue_said(keeper: Keeper, asker: Program) -> None:
    secret, said = "ab" * 32, "x" * 600
    answered = {"status": "maybe", "_sig": secret, "said": said}
    async with keeper.venue("v", data(answered), state("failed", "the oven is cold"), data(CONFIRMED)):
        for _ in range(2):
            assert error_of(await asker.confirm("v")) == "venue_unreachable"
        result_of(await asker.confirm("v"))
    assert error_of(await asker.confirm("none")) == "venue_not_found"
    async with web(keeper.hub.url, headers=bearer(keeper.hub.mint(keeper.login, "session"))) as client:
        shown = (await client.get("/api/v1/network/interactions")).json()["items"]
        [venue] = (await client.get("/api/v1/network/venues")).json()["items"]
        page = (await client.get(f"/desk/network/venues/{venue['id']}")).text
        log = (await client.get("/desk/network/log")).text
    refused, booked, failed, told = [one["metadata"] for one in shown]
    assert refused["reason"] == "this network has no such venue"
    assert "refused: this network has no such venue" in log
    assert "reason" not in booked
    assert failed["venue_said"] == "the oven is cold"
    assert "status: want one of pending, confirmed, declined" in told["rule"]
    assert told["venue_said"].startswith('{"status": "maybe"')
    assert len(told["venue_said"]) == 500
    assert secret not in told["venue_said"]
    for words in ("want one of pending, confirmed", "the oven is cold"):
        assert words in page
        assert words in log
    printed = "".join(log.read_text() for log in keeper.hub.logs.iterdir()).splitlines()
    lines = [line for line in printed if "agnt.venue_failed" in line and venue["id"] in line]
    assert len(lines) == 2
    for line in lines:
        assert "WARNING" in line
        assert secret not in line
    assert "want one of pending" in lines[0]
    assert "the oven is cold" in lines[1]


async def test_an_agent_that_never_answers_costs_the_ttl_and_is_told(keeper: Keeper, asker: Program) -> None:
    async with keeper.venue("v", silent, data(CONFIRMED)) as agent:
        began = time.monotonic()
        sent = envelope("booking.confirm", {"venue_id": "v"}, ttl_ms=7000)
        answer = await asker.post(sent)
        assert error_of(answer) == "ttl_exceeded"
        assert time.monotonic() - began >= 6.9
        assert keeper.bookings() == (0, 0)
        cancel = await agent.heard("cancel")
        assert cancel["chatId"] == agent.prompts[0]["chatId"]
        # The same envelope again is the same event for the venue, too.
        result_of(await asker.post(sent | {"ttl_ms": 5000}))
        assert [envelope_in(one)["timestamp"] for one in agent.prompts] == [sent["timestamp"]] * 2
    assert keeper.bookings() == (1, 1)


async def test_an_answer_that_comes_late_confirms_nothing(keeper: Keeper, asker: Program) -> None:
    release, has_answered = asyncio.Event(), asyncio.Event()

    async def late(agent: VenueAgent, prompt: Json) -> None:
        await held(release)(agent, prompt)
        has_answered.set()

    async with keeper.venue("v", late, data(CONFIRMED)) as agent:
        answer = await asker.send("booking.confirm", {"venue_id": "v"}, ttl_ms=500)
        assert error_of(answer) == "ttl_exceeded"
        release.set()
        await has_answered.wait()
        result_of(await asker.confirm("v"))  # its answer comes over the same socket, behind the late one
        assert len(agent.prompts) == 2
    assert keeper.bookings() == (1, 1)


async def test_an_agent_that_is_offline(keeper: Keeper, asker: Program) -> None:
    async with keeper.venue("v"):
        pass
    await eventually(lambda: _fails_at_once(asker, "v"), "the hub saw that the agent left")
    assert keeper.breaker("v")["failures"] == 1


async def _fails_at_once(asker: Program, venue: str) -> bool:
    answer = await asker.send("booking.confirm", {"venue_id": venue}, ttl_ms=3000)
    return answer.status_code == 502 and error_of(answer) == "venue_unreachable"


async def test_an_agent_that_another_caller_holds_is_no_failure(keeper: Keeper, asker: Program) -> None:
    async with keeper.venue("v", silent, data(CONFIRMED)) as agent:
        owner = keeper.hub.mint(keeper.login, "session")
        async with web(keeper.hub.url, headers=bearer(owner)) as client:
            asked = await client.post(f"/api/v1/sessions/{agent.session_id}/prompt", json={"text": "hello"})
            assert asked.status_code < 300, asked.text
            await agent.heard("prompt")
            assert error_of(await asker.confirm("v")) == "venue_unreachable"
        assert len(agent.prompts) == 1
        assert keeper.breaker("v") == NOTHING_COUNTED


async def test_an_agent_that_is_not_published_is_not_asked(keeper: Keeper, asker: Program) -> None:
    async with keeper.venue("v") as agent:
        keeper.remove("v")
        assert error_of(await asker.confirm("v")) == "venue_unreachable"
        assert agent.prompts == []
    assert keeper.breaker("v") == NOTHING_COUNTED


async def test_an_agent_of_another_owner_is_not_asked(keeper: Keeper, asker: Program) -> None:
    other = Keeper(keeper.hub)
    async with other.venue("v") as agent:
        ids = [network_id(keeper.hub, login) for login in (keeper.login, other.login)]
        sql(keeper.hub, "UPDATE agnt_venue SET network_id = ? WHERE slug = 'v' AND network_id = ?", *ids)
        assert error_of(await asker.confirm("v")) == "venue_unreachable"
        assert agent.prompts == []


async def test_an_envelope_to_an_agent_is_answered_by_it(keeper: Keeper, asker: Program) -> None:
    menu = {"dishes": ["ikan bakar", "café"], "status": "ok"}
    async with keeper.venue("v", response(menu)) as agent:
        answer = await asker.send("booking.search", {"query": "fish"}, to="agent-v", agent_context={"memory": [1]})
        assert result_of(answer) == menu
        assert answer.json()["agent_context"] == {"memory": [1]}
        given = envelope_in(agent.prompts[0])
    assert (given["intent"], given["agent_context"]) == ("booking.search", {"memory": [1]})
    assert given["payload"]["query"] == "fish"
    assert keeper.bookings() == (0, 0)


async def test_twenty_envelopes_at_once_and_no_more(keeper: Keeper, asker: Program) -> None:
    release = asyncio.Event()
    async with keeper.venue("v", held(release)) as agent:
        sent = [
            asyncio.create_task(asker.send("booking.confirm", {"venue_id": "v"}, ttl_ms=15_000)) for _ in range(25)
        ]
        refused = [await one for one in islice(asyncio.as_completed(sent), 5)]
        assert [one.status_code for one in refused] == [502] * 5
        release.set()
        assert sorted(one.status_code for one in await asyncio.gather(*sent)) == [200] * 20 + [502] * 5
        assert len(agent.prompts) == 20
    assert keeper.bookings() == (20, 20)
    assert keeper.breaker("v") == NOTHING_COUNTED


async def test_the_owner_reads_the_envelope_and_its_answer_on_the_page_of_the_ask(
    keeper: Keeper, asker: Program
) -> None:
    async with keeper.venue("shown", data(CONFIRMED)) as agent:
        sent = envelope(
            "booking.confirm", {"venue_id": "shown", **ORDER}, agent_context={"secret": "of-the-program"}
        )
        result_of(await asker.post(sent))
        [prompt] = agent.prompts
    read = {
        "path": f"/api/v1/questions/{prompt['chatId']}",
        "headers": bearer(keeper.hub.mint(keeper.login, "session")),
    }
    async with web(keeper.hub.url) as client:

        async def look() -> Json | None:
            found: Json = (await client.get(read["path"], headers=read["headers"])).json()
            return found if found["exchanges"] else None

        shown = await eventually(look, "the exchange is written")
        stranger = await client.get(read["path"], headers=bearer(keeper.hub.mint("stranger", "session")))
    assert stranger.status_code == 404
    [exchange] = shown["exchanges"]
    assert (exchange["protocol"], exchange["path"], exchange["status"]) == ("AGNT", "/a2a/v1", 200)
    assert json.loads(exchange["requestBody"])["intent"] == "booking.confirm"
    assert json.loads(exchange["responseBody"])["payload"]["status"] == "pending"
    assert "of-the-program" not in str(exchange)
