"""Each kind of token at each surface: a token opens what its kind and scopes name, and nothing else."""

import json
from contextlib import suppress

import pytest
from websockets.exceptions import ConnectionClosed

from gateway.wire.protocol import MAX_AUTH_FAILURES
from lab.channel_agent import dial
from tests.gateway.client import GatewayClient
from tests.tenancy.surfaces import ASKERS, CHANNELS, READERS, SURFACES, UNLIMITED, SurfaceRequest
from tests.tenancy.test_channel_frames import REGISTER
from tests.tenancy.world import World

LIVE = ("olga", "root", "group", "agnt")  # how the names of the tokens of users with rights begin
OTHER_TEXTS = {"scim", "access", "refresh", "device code", "invitation", "webhook secret"}
ENDED = {"revoked", "expired", "sue"}


def tokens_of(tenants: World) -> dict[str, str]:
    """The texts that are tried, by name: one of each kind and scope, ended ones, and what is no token at all."""
    names = {name for name in tenants.tokens if name.startswith(LIVE)} | OTHER_TEXTS | ENDED
    links = {
        "link of a group": tenants.main["group_link"],
        "no token": "",
        "a made up token": f"cw_sess_{'0' * 32}",
    }
    return {name: tenants.tokens[name] for name in sorted(names)} | links


@pytest.mark.parametrize("surface", SURFACES, ids=[one.name for one in SURFACES])
def test_each_surface_takes_its_tokens_and_no_others(tenants: World, surface: SurfaceRequest) -> None:
    tokens, before = tokens_of(tenants), tenants.changes.mark()
    assert surface.opens <= tokens.keys()
    refused = {name: surface.send(tenants.web, tokens[name]) for name in tokens.keys() - surface.opens}
    assert {name: one for name, one in refused.items() if surface.is_open(one)} == {}
    assert tenants.changes.since(before).keys() <= {"agnt_keyusage"}, "a refused call of a key counts, and no more"
    opened = {name: surface.send(tenants.web, tokens[name]) for name in surface.opens}
    assert {name: one for name, one in opened.items() if not surface.is_open(one)} == {}


@pytest.mark.parametrize("path", ["/channel", "/cli"])
async def test_a_socket_takes_its_tokens_and_no_others(tenants: World, path: str) -> None:
    opens, before = {"/channel": CHANNELS, "/cli": UNLIMITED}[path], tenants.changes.mark()
    for name, token in tokens_of(tenants).items():
        if name in opens:
            continue
        socket = await dial(tenants.hub.url.replace("http", "ws", 1) + path, token or None)
        with suppress(ConnectionClosed):
            await socket.send(REGISTER)
        assert json.loads(await socket.recv())["code"] == "auth_failed", name
        await socket.wait_closed()
        assert socket.close_code == 1008, name
    tenants.changes.check_none(before)


async def test_the_gateway_takes_its_tokens_and_no_others(tenants: World) -> None:
    opens, before = READERS | ASKERS | CHANNELS | {"olga one agent", "olga seat"}, tenants.changes.mark()
    for name, token in tokens_of(tenants).items():
        if name in opens:
            continue
        async with GatewayClient(tenants.hub.url) as client:
            for _ in range(MAX_AUTH_FAILURES):  # the last one closes the connection
                await client.send("auth", {"token": token})
            assert await client.closed() in (1008, 4001), name
            assert not [one for one in client.frames if one.get("content", {}).get("status") == "authenticated"], (
                name
            )
    tenants.changes.check_none(before)
