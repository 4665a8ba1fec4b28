"""Venues whose agents are connected to a hub, or that listen themselves."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from django.test import override_settings

from agnt.models import Venue
from agnt.service.keys import derive_venue_secrets
from hub.data_dir import keep_secret_key
from lab import frames
from lab.agents import publish
from lab.channel_agent import ChannelAgent
from lab.frames import Json
from lab.hub_process import HubProcess
from tests.agnt.lookalike import respond
from tests.agnt.wire import Key, Program, add_venue, count, mint, network_id, new_login, note_change, program
from tests.channel.agents import sql

CONFIRMED: Json = {"status": "confirmed"}
NOTHING_COUNTED = {"failures": 0, "is_open": False, "openings": 0}  # by a breaker
Answer = Callable[["VenueAgent", Json], Any]


class VenueAgent(ChannelAgent):
    """Answers orders as `script` says, each entry once, the last one again and again; cancellations by `cancels`.

    `prompts`: without the cancellations.
    """

    def __init__(self, *args: Any, script: list[Answer] | None = None, **options: Any) -> None:
        super().__init__(*args, features=["cancel"], **options)
        self.script = script or [data(CONFIRMED)]
        self.cancels = data({"status": "cancelled"})

    @property
    def prompts(self) -> list[Json]:
        return [one for one in super().prompts if not is_cancellation(one)]

    async def answer(self, prompt: Json) -> None:
        if is_cancellation(prompt):
            await self.cancels(self, prompt)
            return
        step = self.script.pop(0) if len(self.script) > 1 else self.script[0]
        await step(self, prompt)

    async def send_data(self, chat_id: str, *values: Any, artifact_id: str = "a", **more: Any) -> None:
        """An artifact with a data part of each of these values."""
        parts = [{"data": value} for value in values]
        event = frames.chat_event("task_artifact", chatId=chat_id, artifactId=artifact_id, parts=parts, **more)
        await self.send(**event)

    async def end(self, chat_id: str) -> None:
        """End a reply that has no text."""
        await self.chunk(chat_id, "", done=True)


def envelope_in(prompt: Json) -> Json:
    """The envelope of a prompt: its one data part."""
    [found] = [part["data"] for part in prompt["parts"] if "data" in part]
    envelope: Json = found
    return envelope


def is_cancellation(prompt: Json) -> bool:
    """True if a prompt tells a venue to cancel."""
    return any(part.get("data", {}).get("intent") == "booking.cancel" for part in prompt.get("parts", ()))


def data(*values: Any) -> Answer:

    async def answer(agent: VenueAgent, prompt: Json) -> None:
        await agent.send_data(prompt["chatId"], *values)
        await agent.end(prompt["chatId"])

    return answer


def held(release: asyncio.Event) -> Answer:
    """Confirms once its test lets go of it."""

    async def answer(agent: VenueAgent, prompt: Json) -> None:
        await release.wait()
        await data(CONFIRMED)(agent, prompt)

    return answer


def response(payload: Json, **fields: Any) -> Answer:

    async def answer(agent: VenueAgent, prompt: Json) -> None:
        await data(respond(envelope_in(prompt), payload) | fields)(agent, prompt)

    return answer


def state(name: str, words: str = "") -> Answer:
    """Ends its task in this state."""

    async def answer(agent: VenueAgent, prompt: Json) -> None:
        await agent.send(**frames.chat_event("task_status", chatId=prompt["chatId"], state=name, text=words))

    return answer


async def silent(agent: VenueAgent, prompt: Json) -> None:
    """Never answers."""


async def leaves(agent: VenueAgent, prompt: Json) -> None:
    """Drops its connection instead."""
    agent.drop()


async def twice(agent: VenueAgent, prompt: Json) -> None:
    """Answers, and then answers otherwise."""
    await data(CONFIRMED | {"note": "first"})(agent, prompt)
    await data({"status": "slot_unavailable"})(agent, prompt)


def secret_of(hub: HubProcess, venue_id: str) -> bytes:
    """The secret that a hub signs with for a venue."""
    with override_settings(SECRET_KEY=keep_secret_key(Path(hub.home.env["DATA_DIR"]))):
        return derive_venue_secrets(Venue(public_id=venue_id)).newest


@dataclass
class Keeper:
    """The owner of a network on a hub, with a key of the tier pro."""

    hub: HubProcess
    login: str = field(default_factory=new_login)
    key: Key = field(init=False)

    def __post_init__(self) -> None:
        self.key = mint(self.hub, self.login)

    @asynccontextmanager
    async def venue(self, slug: str, *script: Answer, at: int = 0, **columns: Any) -> AsyncIterator[VenueAgent]:
        """A venue with an agent that is connected to one of the processes."""
        token = self.hub.mint(self.login, "channel")
        async with VenueAgent(self.hub.urls[at], token, script=list(script)) as agent:
            assert agent.session_id is not None
            agent.agent = await publish(
                self.hub, self.hub.mint(self.login, "session"), agent.session_id, slug, access="private"
            )
            found = sql(self.hub, "SELECT id FROM agents_agent WHERE handle = ?", f"{self.login}/{slug}")
            add_venue(self.hub, self.login, slug, agent_id=found[0][0], agent_name=f"agent-{slug}", **columns)
            yield agent

    def breaker(self, slug: str = "") -> Json:
        """The row of the breaker of a venue, or of the network."""
        statement = (
            "SELECT b.failures, b.opened_at_s, b.openings FROM agnt_breaker b LEFT JOIN agnt_venue v"
            " ON v.id = b.venue_id WHERE b.network_id = ? AND coalesce(v.slug, '') = ?"
        )
        rows = sql(self.hub, statement, network_id(self.hub, self.login), slug)
        failures, opened_at_s, openings = rows[0] if rows else ("[]", None, 0)
        known = json.loads(failures) if isinstance(failures, str) else failures
        return {"failures": len(known), "is_open": opened_at_s is not None, "openings": openings}

    def age_breakers(self, seconds: float) -> None:
        """Have every breaker of the hub be open for so much longer."""
        open_ones = "UPDATE agnt_breaker SET opened_at_s = opened_at_s - ? WHERE opened_at_s IS NOT NULL"
        sql(self.hub, open_ones, seconds)

    def add_url(self, slug: str, url: str) -> None:
        add_venue(self.hub, self.login, slug, url=url, agent_name=f"agent-{slug}")

    def revoke_first_key(self) -> None:
        """Revoke `key`."""
        first = "(SELECT MIN(credential_id) FROM agnt_apikey WHERE network_id = ?)"
        statement = f"UPDATE accounts_credential SET revoked_at = created_at WHERE id = {first}"
        sql(self.hub, statement, network_id(self.hub, self.login))

    def remove(self, slug: str) -> None:
        sql(self.hub, "UPDATE agents_agent SET status = 'draft' WHERE handle = ?", f"{self.login}/{slug}")
        note_change(self.hub, self.login)

    def bookings(self) -> tuple[int, int]:
        return count(self.hub, self.login, "agnt_booking"), count(self.hub, self.login, "agnt_usageevent")


@pytest.fixture
def keeper(embedded_hub: HubProcess) -> Keeper:
    """The owner of a network of its own."""
    return Keeper(embedded_hub)


@pytest.fixture
def private_keeper(private_hub: HubProcess) -> Keeper:
    """One of a hub that may call this machine."""
    return Keeper(private_hub)


@pytest.fixture
async def asker(keeper: Keeper) -> AsyncIterator[Program]:
    """A program with a key of that network."""
    asking = program(keeper.hub, keeper.key)
    yield asking
    await asking.client.aclose()
