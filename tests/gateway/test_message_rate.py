"""Messages between agents of one owner are not limited like asks of strangers."""

import asyncio
import time
from collections.abc import Iterator

import pytest

from kit.account_pace import PUSH
from lab.hub_process import HubProcess
from lab.hub_storage import MakeStorage
from lab.waiting import eventually
from tests.gateway.client import EchoSeat, publish, team
from tests.gateway.test_channels import build_gateway

ASKS_A_MINUTE = 3
BURST = 200
FRAMES_TEXT = "at most 100 frames a second, 200 at once"
MESSAGES_TEXT = "at most 100 messages a second of one token, 200 at once"
SENT = 600
OPEN = 30


@pytest.fixture(scope="module")
def limited_hub(make_storage: MakeStorage) -> Iterator[HubProcess]:
    """A hub that takes three asks a minute of a caller."""
    hub = HubProcess.start(make_storage("embedded"), CALLER_RATE_PER_MINUTE=ASKS_A_MINUTE)
    yield hub
    hub.stop()


async def test_a_burst_of_messages_arrives_in_order_and_the_rest_must_wait(limited_hub: HubProcess) -> None:
    async with team(limited_hub, "bursting", "alpha", "beta") as (alpha, beta):
        for number in range(SENT):
            await alpha.tell("beta", "x", id=f"m-{number}")

        async def are_all_dealt_with() -> bool:
            return len(alpha.of("error")) + len(beta.of("message")) == SENT

        assert await eventually(are_all_dealt_with, "each message arrived or was refused")
        arrived = [int(one["id"].removeprefix("m-")) for one in beta.of("message")]
        assert arrived == sorted(arrived)
        assert arrived[:BURST] == list(range(BURST))
        refused = [one["content"] for one in alpha.of("error")]
        # The speed of the machine decides which limit is reached first, the connection's or the token's, or none.
        assert {(one["code"], one["retryAfterMs"] > 0) for one in refused} <= {(1005, True)}
        assert {one["message"] for one in refused} <= {FRAMES_TEXT, MESSAGES_TEXT}


async def test_many_messages_to_one_agent_are_open_at_once(limited_hub: HubProcess) -> None:
    async with team(limited_hub, "waiting", "alpha", "beta") as (alpha, beta):
        asked = [asyncio.create_task(alpha.send_message("beta", f"question {number}")) for number in range(OPEN)]

        async def have_all_arrived() -> bool:
            return len(beta.of("message")) == OPEN

        assert await eventually(have_all_arrived, "the agent has all messages")
        for message in beta.of("message"):
            await beta.respond(message)
        assert [one["content"]["content"] for one in await asyncio.gather(*asked)] == ["done"] * OPEN


async def test_a_push_counts_for_each_recipient() -> None:
    gateway = build_gateway(a_second=PUSH * 10)
    began = time.monotonic()
    await gateway.keep_pace(1, 10)
    await gateway.keep_pace(1, 3)
    await gateway.keep_pace(1, 1)
    assert 0.2 <= time.monotonic() - began < 5


async def test_a_message_to_the_agent_of_another_owner_is_an_ask_of_its_caller(limited_hub: HubProcess) -> None:
    async with team(limited_hub, "host", oracle=EchoSeat), team(limited_hub, "foreigner", "alpha") as (alpha,):
        handle = await publish(limited_hub, "host", "oracle")
        answers = [await alpha.send_message(f"@{handle}", "what?") for _ in range(ASKS_A_MINUTE + 1)]
        assert [one["type"] for one in answers] == ["message"] * ASKS_A_MINUTE + ["error"]
        assert answers[-1]["content"]["code"] == 1005
        assert answers[-1]["content"]["message"] == "you ask faster than a caller may in a minute"
        assert answers[-1]["content"]["retryAfterMs"] >= 1000
