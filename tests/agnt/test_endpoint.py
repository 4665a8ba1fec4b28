"""`POST /a2a/v1`: the four intents from rows, the validation table, and the order of its checks."""

import uuid
from datetime import datetime

import pytest

from clawbridge.agnt.fields import MEANINGS, ErrorCode
from lab.callers import bearer, web
from lab.frames import Json
from lab.hub_process import HubProcess
from tests.agnt.wire import (
    SENDER,
    Key,
    Program,
    add_venue,
    count,
    envelope,
    error_of,
    mint,
    network_id,
    new_login,
    note_change,
    program,
    result_of,
    stamp,
)
from tests.channel.agents import sql


@pytest.fixture(scope="module")
def keeper(embedded_hub: HubProcess) -> str:
    """An owner with a network of three venues, one of them inactive."""
    login = new_login()
    mint(embedded_hub, login)
    add_venue(embedded_hub, login, "la-brisa", priority_rank=5, description="Sunset dinner by the sea")
    add_venue(embedded_hub, login, "warung-100", category="warung", area="50%_off", referral_fee_pct=7.5)
    add_venue(embedded_hub, login, "closed", is_active=False)
    return login


async def test_a_ping_is_answered_by_an_envelope(asker: Program) -> None:
    context = {"trace": ["ü", 7.5, None, -0.0, 1e-7, {"deep": {"er": 10**30}}], "a" * 60: [[[[]]]]}
    answer = await asker.send("network.ping", {"whatever": 1}, agent_context=context)
    body = answer.json()
    assert result_of(answer) == {
        "status": "ok",
        "active_venues": 2,
        "tier": "pro",
        "agent_id": SENDER,
        "network_version": "1.0",
    }
    assert (body["protocol"], body["from"], body["to"]) == ("openclaw/a2a/v1", "network:agnt", SENDER)
    assert (body["intent"], body["agent_context"]) == ("network.ping", context)
    assert 0 < body["ttl_ms"] <= 5000
    assert datetime.fromisoformat(body["timestamp"]).tzinfo is not None
    assert body["timestamp"].endswith("Z")
    assert answer.headers["x-ratelimit-limit"] == "10000"
    assert "x-a2a-error" not in answer.headers


async def test_venues_are_listed_in_their_order(asker: Program) -> None:
    listed = result_of(await asker.send("venue.list"))
    assert [one["slug"] for one in listed["venues"]] == ["la-brisa", "warung-100"]
    assert listed["count"] == 2
    first = listed["venues"][0]
    assert first.keys() == {
        *("venue_id", "slug", "agent_id", "name", "category"),
        *("area", "city", "tags", "price_range", "referral_fee_pct"),
    }
    assert (first["tags"], first["referral_fee_pct"]) == (["sea"], 7)
    assert listed["venues"][1]["referral_fee_pct"] == 7.5
    assert result_of(await asker.send("venue.list", {"limit": 1, "category": "warung"}))["count"] == 1
    assert result_of(await asker.send("venue.list", {"location": "Canggu\tBadung"}))["count"] == 0


async def test_a_search_finds_words_and_says_how_long_it_holds(asker: Program) -> None:
    found = result_of(await asker.send("booking.search", {"query": "DINNER sunset", "location": "canggu"}))
    assert ([one["slug"] for one in found["results"]], found["count"], found["fee_pct"]) == (["la-brisa"], 1, 7)
    again = result_of(await asker.send("booking.search", {"query": "DINNER sunset", "location": "canggu"}))
    assert again["expires_at"] == found["expires_at"]
    assert result_of(await asker.send("booking.search", {"query": "nothing-like-it"}))["results"] == []
    assert result_of(await asker.send("booking.search", {}))["count"] == 2


async def test_a_change_of_a_venue_is_seen_at_once(embedded_hub: HubProcess, asker: Program, keeper: str) -> None:
    venue_id = add_venue(embedded_hub, keeper, "pop-up", category="pop-up")
    listed = result_of(await asker.send("venue.list", {"category": "pop-up"}))
    assert [one["venue_id"] for one in listed["venues"]] == [venue_id]
    sql(embedded_hub, "UPDATE agnt_venue SET is_active = ? WHERE slug = 'pop-up'", False)
    note_change(embedded_hub, keeper)
    assert result_of(await asker.send("venue.list", {"category": "pop-up"}))["count"] == 0
    assert error_of(await asker.confirm("pop-up")) == "venue_not_found"


async def test_a_confirmation_by_slug_or_uuid_books_and_charges_once(
    embedded_hub: HubProcess, asker: Program, keeper: str
) -> None:
    venue = result_of(await asker.send("venue.list", {"limit": 1}))["venues"][0]
    for named in ("LA-BRISA", venue["venue_id"]):
        before = count(embedded_hub, keeper, "agnt_booking")
        made = result_of(await asker.confirm(named, time="19:30", party_size=2, user_note="window", slot_id="s-1"))
        assert (made["status"], made["slot_time"], made["party_size"]) == ("pending", "19:30", 2)
        assert made["venue"] == venue
        assert count(embedded_hub, keeper, "agnt_booking") == before + 1
        assert count(embedded_hub, keeper, "agnt_usageevent", "amount_cents = 25") == before + 1
    logged = "SELECT source, sender, recipient, intent, status, http_status FROM agnt_interaction"
    logged += " WHERE booking_id = (SELECT max(id) FROM agnt_booking)"
    assert sql(embedded_hub, logged) == [("external_agent", SENDER, "network:agnt", "booking.confirm", "ok", 200)]


async def test_a_lenient_network_drops_unknown_keys_and_logs_their_names(embedded_hub: HubProcess) -> None:
    login = new_login()
    asking = program(embedded_hub, mint(embedded_hub, login))
    add_venue(embedded_hub, login, "warung")
    lenient = "UPDATE agnt_network SET is_strict = ? WHERE id = ?"
    sql(embedded_hub, lenient, False, network_id(embedded_hub, login))
    assert result_of(await asking.send("venue.list", {"colour": "blue"}))["count"] == 1
    answer = await asking.send("booking.confirm", {"venue_id": "warung"}, timestamp=None)
    assert result_of(answer)["status"] == "pending"
    assert count(embedded_hub, login, "agnt_interaction", "CAST(metadata AS text) LIKE '%colour%'") == 1
    assert count(embedded_hub, login, "agnt_interaction", "CAST(metadata AS text) LIKE '%blue%'") == 0
    await asking.client.aclose()


async def test_no_key_is_one_answer(embedded_hub: HubProcess, key: Key) -> None:
    session = embedded_hub.mint("alice", "session")
    tokens = ["agnt_live_" + "0" * 32, session, key.token[:-1], key.token + "0", "agnt_live_"]
    headers = [bearer(token) for token in tokens]
    headers += [{"Authorization": given} for given in (f"Basic {key.token}", key.token, "Bearer")]
    headers += [{"X-API-Key": key.token}, {"Cookie": f"cw_session={session}"}, {}]
    seen = set()
    async with web(embedded_hub.url) as client:
        for one in headers:
            answer = await client.post("/a2a/v1", json=envelope(timestamp=None), headers=one)
            assert answer.status_code == 401, one
            assert answer.headers["www-authenticate"] == "Bearer"
            assert error_of(answer) == "unauthorized"
            assert "x-ratelimit-limit" not in answer.headers
            seen.add(str(answer.json()["payload"]))
    assert len(seen) == 1


async def test_the_order_of_the_checks(embedded_hub: HubProcess, keeper: str, subtests: pytest.Subtests) -> None:
    """Each envelope has two flaws; the one that comes first in section 2 answers."""
    free = mint(embedded_hub, keeper, "free", "query", senders=["someone_else"])
    pro = mint(embedded_hub, keeper, "pro", "query", senders=["someone_else"])
    none = Key("agnt_live_" + "1" * 32, "0" * 64, "")
    confirm = {"intent": "booking.confirm"}
    steps: list[tuple[Key, Json, str]] = [
        (none, {"body": b"{" * 300_000}, "payload_too_large"),  # size before JSON
        (none, {"body": b"{"}, "invalid_envelope"),  # JSON before the key
        (none, {"from_": ""}, "unauthorized"),  # the key before the envelope
        (free, {"from_": "", "protocol": "agp/1"}, "invalid_envelope"),
        (free, {"protocol": "agp/1", "ttl_ms": 0}, "unsupported_protocol"),
        (free, {"ttl_ms": 0, "intent_": "x.y"}, "invalid_envelope"),
        (free, {"intent_": "x.y"}, "unknown_intent"),  # the intent before the sender
        (free, confirm, "tier_required"),  # the tier before scope and sender
        (pro, confirm, "scope_denied"),
        (pro, {"payload_": {"_sig": "00"}}, "scope_denied"),  # the sender before the signature
    ]
    async with web(embedded_hub.url) as client:
        for key, fields, code in steps:
            asking, given = Program(client, key), dict(fields)
            if "body" in given:
                answer = await asking.post(given["body"])
            else:
                answer = await asking.send(given.pop("intent", "network.ping"), **given)
            with subtests.test(fields=fields, code=code):
                status = 400 if given.get("body") == b"{" else MEANINGS[ErrorCode(code)].status
                assert (error_of(answer), answer.status_code) == (code, status)
                error = answer.json()["payload"]["error"]
                assert error["retryable"] is False
                assert error.get("supported") == (["openclaw/a2a/v1"] if code == "unsupported_protocol" else None)
                assert code != "invalid_envelope" or "body" in fields or error["fields"]
    old = stamp(seconds=400)
    async with web(embedded_hub.url) as client:
        asking = Program(client, mint(embedded_hub, keeper))
        # The signature before the age, the age before the payload, the payload before the venue.
        assert error_of(await asking.send(payload={"_sig": "00"}, timestamp=old)) == "invalid_signature"
        assert error_of(await asking.send("venue.list", {"limit": 0}, timestamp=old)) == "timestamp_expired"
        assert error_of(await asking.confirm("no-such-venue", party_size=0)) == "invalid_envelope"
        assert error_of(await asking.confirm("no-such-venue")) == "venue_not_found"


async def test_a_listed_agent_that_nothing_answers_for_is_unreachable(embedded_hub: HubProcess) -> None:
    login = new_login()
    asking = program(embedded_hub, mint(embedded_hub, login))
    add_venue(embedded_hub, login, "cafe", agent_name="cafe_agent")
    add_venue(embedded_hub, login, "bar", agent_name="bar_agent")
    answer = await asking.send(to="cafe_agent")
    assert (error_of(answer), answer.status_code) == ("venue_unreachable", 502)
    named = result_of(await asking.send("booking.confirm", {"venue_id": "cafe"}, to="cafe_agent"))
    assert named["venue"]["agent_id"] == "cafe_agent"
    answer = await asking.send("booking.confirm", {"venue_id": "cafe"}, to="bar_agent")
    assert (error_of(answer), answer.status_code) == ("invalid_envelope", 422)
    await asking.client.aclose()


ROWS = ("agnt_booking", "agnt_usageevent", "agnt_seenenvelope", "agnt_interaction")


async def test_venues_of_another_network_are_as_absent_as_those_that_are_not(embedded_hub: HubProcess) -> None:
    hub, host, guest = embedded_hub, new_login(), new_login()
    mint(hub, host)
    theirs = add_venue(hub, host, "theirs", agent_name="their_agent")
    add_venue(hub, host, "same", name="Same of the host")
    asking = program(hub, mint(hub, guest, "enterprise", "full"))
    own = add_venue(hub, guest, "same", name="Same of the guest")
    absent: list[tuple[str, Json, str]] = [
        ("booking.confirm", {"venue_id": "theirs"}, "network:agnt"),
        ("booking.confirm", {"venue_id": theirs}, "network:agnt"),
        ("booking.confirm", {"venue_id": str(uuid.uuid4())}, "network:agnt"),
        ("booking.confirm", {"venue_id": theirs}, "their_agent"),
        ("booking.search", {}, "their_agent"),
        ("booking.search", {}, "no_such_agent"),
    ]
    said: dict[tuple[str, bool], set[str]] = {}
    for intent, payload, to in absent:
        answer = await asking.send(intent, payload, to=to)
        assert (answer.status_code, error_of(answer)) == (404, "venue_not_found"), (intent, payload, to)
        by_agent = to != "network:agnt"
        said.setdefault((intent, by_agent), set()).add(answer.json()["payload"]["error"]["message"])
    assert [len(messages) for messages in said.values()] == [1, 1, 1], said
    assert result_of(await asking.send())["active_venues"] == 1
    for intent, found in (("venue.list", "venues"), ("booking.search", "results")):
        assert [one["venue_id"] for one in result_of(await asking.send(intent))[found]] == [own]
    listed = await asking.client.get("/network/venues", headers=bearer(asking.key.token))
    assert [one["venue_id"] for one in listed.json()["venues"]] == [own]
    assert [count(hub, host, table) for table in ROWS] == [0, 0, 0, 0]
    assert result_of(await asking.confirm("same"))["venue"]["venue_id"] == own
    rows = sql(hub, "SELECT network_id FROM agnt_booking WHERE network_id IN (?, ?)",
        network_id(hub, host), network_id(hub, guest))  # fmt: skip
    assert rows == [(network_id(hub, guest),)]
    await asking.client.aclose()
