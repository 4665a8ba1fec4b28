"""What docs/howto/offer-venues.md tells owners and programs to do works, as it is written there."""

import asyncio
import json
import os
import re
import subprocess
from typing import Any

from lab import ROOT
from lab.hub_process import HubProcess
from tests.agnt.wire import new_login

WITHIN_S = 30
PAGE = (ROOT / "docs" / "howto" / "offer-venues.md").read_text()
ADD, MINT, SEARCH, BOOK, LIST, CONFIRM, CHANGE, REVOKE = re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)


def run(command: str, **variables: str) -> Any:
    """What a command of the page prints."""
    environment = {"PATH": os.environ["PATH"], **variables}
    done = subprocess.run(
        ["sh", "-ec", command], env=environment, capture_output=True, text=True, timeout=WITHIN_S
    )
    assert done.returncode == 0, (command, done.stdout, done.stderr)
    return json.loads(done.stdout) if done.stdout else None


def follow(hub: HubProcess) -> None:
    """The page from its beginning to its end."""
    owner = {"HUB": hub.url, "TOKEN": hub.mint(new_login(), "session")}
    assert run(ADD, **owner)["slug"] == "la-brisa"
    key = run(MINT, **owner)
    program = {"HUB": hub.url, "AGNT_KEY": key["key"]}
    [found] = run(SEARCH, **program)["payload"]["results"]
    assert found["agent_id"] == "la_brisa"
    made = run(BOOK, **program)["payload"]
    assert (made["status"], made["slot_time"], made["party_size"]) == ("pending", "19:30", 2)
    [booking] = run(LIST, **owner)["items"]
    assert (booking["id"], booking["chargedUsd"]) == (made["booking_id"], "0.25")
    assert run(CONFIRM, **owner, BOOKING=booking["id"])["status"] == "confirmed"
    changed = run(CHANGE, **owner, KEY_ID=key["id"])
    assert (changed["tier"], changed["scope"], changed["senders"]) == ("free", "query", ["trips_1"])
    assert run(SEARCH, **program)["payload"]["count"] == 1
    refused = run(BOOK.replace("-sf", "-s"), **program)
    assert refused["payload"]["error"]["code"] == "tier_required"
    assert run(REVOKE, **owner, KEY_ID=key["id"]) is None
    assert run(SEARCH.replace("-sf", "-s"), **program)["payload"]["error"]["code"] == "unauthorized"


async def test_the_page_offers_a_venue(embedded_hub: HubProcess) -> None:
    await asyncio.to_thread(follow, embedded_hub)
