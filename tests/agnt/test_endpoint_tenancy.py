"""The key of one network and the venues of another: for the key they are not there."""

import uuid

from lab.callers import bearer
from lab.frames import Json
from lab.hub_process import HubProcess
from tests.agnt.wire import add_venue, count, error_of, mint, network_id, new_login, program, result_of
from tests.channel.agents import sql

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
