"""The rows of "Which address a client wants" (docs/reference/cards.md) for the official SDKs."""

import pytest

from lab.agents import Echo, online
from lab.callers import rpc_path
from lab.hub_process import HubProcess
from tests.sdks.clients import CLIENTS, SdkClient

WELL_KNOWN = ".well-known/agent-card.json"
CARDS = ("/agent-card.json", f"/{WELL_KNOWN}")


ONE_BINDING = [one for one in CLIENTS if one.binding is None]


def addresses_of(client: SdkClient) -> list[dict[str, str]]:
    """The addresses that a client may be given, and the paths of a card.

    JavaScript's drop the last segment without a slash; the card below `/v1/` is of 1.0 alone.
    """
    is_js = client.environment.startswith("js")
    below = ["/", *([] if is_js else [""]), "/core/", *(["/v1/"] if client.is_version_1 else []), *CARDS]
    return [{"below": one} for one in below] + [{"path": one.removeprefix("/") if is_js else one} for one in CARDS]


@pytest.mark.parametrize("client", ONE_BINDING, ids=str, indirect=True)
async def test_each_address_leads_an_sdk_to_the_agent(embedded_hub: HubProcess, client: SdkClient) -> None:
    """By JSON-RPC: each address has the same card, whatever binding is read in it (`test_card_addresses.py`)."""
    token = embedded_hub.mint("alice", "session")
    async with online(embedded_hub, Echo) as agent:
        for count, given in enumerate(addresses_of(client), 1):
            run = await client.watch(embedded_hub.url, agent.handle, token, "send", **given)
            assert "echo: hello" in str(run.has_not_raised().one("answer").value), given
            assert len(agent.prompts) == count, given


async def test_the_plugin_of_openclaw_is_given_the_hub_and_the_path_of_a_card(
    embedded_hub: HubProcess, client_03: SdkClient
) -> None:
    """The plugin uses @a2a-js/sdk 0.3 with both."""
    token = embedded_hub.mint("alice", "session")
    async with online(embedded_hub, Echo) as agent:
        up = "/".join([".."] * len(rpc_path(agent.handle).strip("/").split("/")))
        given = {"below": f"/{up}/", "path": rpc_path(agent.handle) + CARDS[1]}
        run = await client_03.watch(embedded_hub.url, agent.handle, token, "send", **given)
    assert "echo: hello" in str(run.has_not_raised().one("answer").value)
