"""A user whom the identity provider deactivates or deletes: sessions, tokens, sockets and open streams end."""

import asyncio
import time

import pytest

from lab.agents import Echo, Stall, online
from lab.callers import bearer, open_stream, web
from lab.hub_process import HubProcess
from lab.hub_storage import manage
from tests.signin.test_revocation import WITHIN_S, check_closed, mint_channel, read_on

PATCH = {"schemas": ["urn:ietf:params:scim:api:messages:2.0:PatchOp"]}


@pytest.mark.parametrize("how", ["deactivate", "delete"])
async def test_all_that_is_open_ends_within_seconds(hub: HubProcess, how: str) -> None:
    """On the grown hub at another process than that which the identity provider calls."""
    scim = bearer(manage(hub._env, "scim_token").strip())
    login = f"scim-{how}"
    async with web(hub.urls[-1]) as client:
        made = await client.post("/scim/v2/Users", json={"userName": login}, headers=scim)
        assert made.status_code == 201, made.text
        session = hub.mint_again(login, "session")
        _, token = await mint_channel(hub, session)
        async with (
            Echo(hub.urls[0], token) as own,
            online(hub, Stall) as agent,
            open_stream(hub.urls[0], agent.handle, "wait", session) as stream,
        ):
            await stream.next_line()
            address = f"/scim/v2/Users/{made.json()['id']}"
            if how == "delete":
                assert (await client.delete(address, headers=scim)).status_code == 204
            else:
                off = PATCH | {"Operations": [{"op": "replace", "value": {"active": False}}]}
                assert (await client.patch(address, json=off, headers=scim)).status_code == 200
            since = time.monotonic()
            assert (await client.get("/api/v1/me", headers=bearer(session))).status_code == 401
            with pytest.raises(EOFError):
                await asyncio.wait_for(read_on(stream), WITHIN_S)
            await check_closed(own, since)
            assert time.monotonic() - since < WITHIN_S
