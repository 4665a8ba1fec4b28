"""The rows of "Which address a client wants" (docs/reference/cards.md) for the official SDKs."""

import pytest

from lab.agents import Echo, online
from lab.callers import rpc_path
from lab.hub_process import HubProcess
from tests.sdks.clients import CLIENTS, SdkClient

WELL_KNOWN = ".well-known/agent-card.json"
CARDS = ("/agent-card.json", f"/{WELL_KNOWN}")


def addresses_of(client: SdkClient) -> list[str]:
    """The addresses that a client may be given: JavaScript's drop the last segment without a slash, and the card
    below `/v1/` is of 1.0 alone.
    """
    without_slash = [] if client.environment.startswith("js") else [""]
    return ["/", *without_slash, "/core/", *(["/v1/"] if client.is_version_1 else []), *CARDS]


@pytest.mark.parametrize(
    ("client", "below"),
    [pytest.param(one, below, id=f"{one}-{below}") for one in CLIENTS for below in addresses_of(one)],
    indirect=["client"],
)
async def test_an_address_leads_an_sdk_to_the_agent(
    embedded_hub: HubProcess, client: SdkClient, below: str
) -> None:
    await check(embedded_hub, client, below=below)


@pytest.mark.parametrize("below", CARDS)
async def test_a_card_path_leads_an_sdk_to_the_agent(
    embedded_hub: HubProcess, client: SdkClient, below: str
) -> None:
    if client.environment.startswith("python"):
        await check(embedded_hub, client, path=below)
    else:
        await check(embedded_hub, client, path=below.removeprefix("/"))


async def test_the_plugin_of_openclaw_is_given_the_hub_and_the_path_of_a_card(
    embedded_hub: HubProcess, client_03: SdkClient
) -> None:
    """It uses @a2a-js/sdk 0.3 with both."""
    token = embedded_hub.mint("alice", "session")
    async with online(embedded_hub, Echo) as agent:
        up = "/".join([".."] * len(rpc_path(agent.handle).strip("/").split("/")))
        given = {"below": f"/{up}/", "path": rpc_path(agent.handle) + CARDS[1]}
        run = await client_03.watch(embedded_hub.url, agent.handle, token, "send", **given)
    assert "echo: hello" in str(run.has_not_raised().one("answer").value)


async def check(hub: HubProcess, client: SdkClient, **given: str) -> None:
    """It asks the agent, and gets what the agent says."""
    token = hub.mint("alice", "session")
    async with online(hub, Echo) as agent:
        run = await client.watch(hub.url, agent.handle, token, "send", **given)
        assert len(agent.prompts) == 1
    assert "echo: hello" in str(run.has_not_raised().one("answer").value)
