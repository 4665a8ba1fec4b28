"""The steps of docs/howto/offer-venues.md and of the protocol's own page work as they are written there."""

import asyncio
import json
import os
import re
import subprocess
from typing import Any

from lab import ROOT
from lab.hub_process import HubProcess
from tests.agnt.wire import Key, new_login, stamp

WITHIN_S = 30
PAGE = (ROOT / "docs" / "howto" / "offer-venues.md").read_text()
ADD, MINT, SEARCH, BOOK, STATUS, CANCEL, LIST, CONFIRM, CHANGE, REVOKE, SECRET, ROTATE = re.findall(
    r"```sh\n(.*?)```", PAGE, re.DOTALL
)


def run(command: str, **variables: str) -> Any:
    environment = {"PATH": os.environ["PATH"], **variables}
    done = subprocess.run(
        ["sh", "-ec", command], env=environment, capture_output=True, text=True, timeout=WITHIN_S
    )
    assert done.returncode == 0, (command, done.stdout, done.stderr)
    return json.loads(done.stdout) if done.stdout else None


def follow(hub: HubProcess) -> None:
    """The page from its beginning to its end."""
    owner = {"HUB": hub.url, "TOKEN": hub.mint(new_login(), "session")}
    venue = run(ADD, **owner)
    assert venue["slug"] == "la-brisa"
    key = run(MINT, **owner)
    program = {"HUB": hub.url, "AGNT_KEY": key["key"]}
    [found] = run(SEARCH, **program)["payload"]["results"]
    assert found["agent_id"] == "la_brisa"
    made = run(BOOK, **program)["payload"]
    assert (made["status"], made["slot_time"], made["party_size"]) == ("pending", "19:30", 2)
    [booking] = run(LIST, **owner)["items"]
    assert (booking["id"], booking["chargedUsd"]) == (made["booking_id"], "0.25")
    assert run(CONFIRM, **owner, BOOKING=booking["id"])["status"] == "confirmed"
    for command, status in ((STATUS, "confirmed"), (CANCEL, "cancelled")):
        assert run(command, **program, BOOKING_ID=booking["id"])["payload"]["status"] == status
    changed = run(CHANGE, **owner, KEY_ID=key["id"])
    assert (changed["tier"], changed["scope"], changed["senders"]) == ("free", "query", ["trips_1"])
    assert run(SEARCH, **program)["payload"]["count"] == 1
    refused = run(BOOK.replace("-s --fail-with-body", "-s"), **program)
    assert refused["payload"]["error"]["code"] == "tier_required"
    secret = run(SECRET, **owner, VENUE=venue["id"])
    assert secret["previous"] is None
    assert run(ROTATE, **owner, VENUE=venue["id"])["previous"] == secret["secret"]
    assert run(REVOKE, **owner, KEY_ID=key["id"]) is None
    assert (
        run(SEARCH.replace("-s --fail-with-body", "-s"), **program)["payload"]["error"]["code"] == "unauthorized"
    )


async def test_the_page_offers_a_venue(embedded_hub: HubProcess) -> None:
    await asyncio.to_thread(follow, embedded_hub)


REFERENCE = (ROOT / "docs" / "reference" / "agnt.md").read_text()
[FIRST] = re.findall(r"\n\n(    curl .*\n(?:    .*\n)+)", REFERENCE)


async def test_the_first_call_of_the_reference_lists_venues(embedded_hub: HubProcess, key: Key) -> None:
    command = FIRST.replace("https://hub.example.org", embedded_hub.url).replace("agnt_live_…", key.token)
    assert (await asyncio.to_thread(run, command))["payload"]["count"] == 1


# The first call of the protocol's own page.

PRINTED_AT = "2026-04-12T12:00:00Z"
PRINTED = r"""curl -X POST https://api.agntdot.com/a2a/v1 \
-H "Authorization: Bearer agnt_live_YOUR_KEY" \
-H "Content-Type: application/json" \
-d '{
"protocol": "openclaw/a2a/v1",
"from": "my_agent_001",
"to": "network:agnt",
"intent": "network.ping",
"payload": {},
"ttl_ms": 5000,
"timestamp": "2026-04-12T12:00:00Z"
}'"""


def call(hub: HubProcess, token: str, at: str) -> Any:
    """The output of the command with this hub, key and time."""
    command = PRINTED.replace("https://api.agntdot.com", hub.url).replace("agnt_live_YOUR_KEY", token)
    command = command.replace(PRINTED_AT, at)
    return run(command)


async def test_the_printed_call_gets_what_the_page_says(embedded_hub: HubProcess, key: Key) -> None:
    answer = await asyncio.to_thread(call, embedded_hub, key.token, stamp())
    assert answer["payload"].items() >= {"active_venues": 1, "tier": "pro", "network_version": "1.0"}.items()
    assert (answer["from"], answer["to"]) == ("network:agnt", "my_agent_001")
    assert answer["protocol"] == "openclaw/a2a/v1"
    late = await asyncio.to_thread(call, embedded_hub, key.token, PRINTED_AT)
    assert late["payload"]["error"]["code"] == "timestamp_expired"
    assert "300 s" in late["payload"]["error"]["message"], late
