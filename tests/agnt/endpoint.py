"""The endpoint of AGNT in this process, with venues that answer as a test says."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable

import httpx
import pytest

from accounts.open_requests import OpenRequests
from agnt.endpoint.http import AgntEndpoint, StatusReports
from agnt.service.figures import AgntCounts
from agnt.service.intake.intake import Intake
from agnt.service.intake.runner import EnvelopeRunner
from agnt.service.keys import MintedKey
from agnt.service.networks import VenueAsk
from agnt.wire.payloads import AgntBookingOrder, AgntConfirmOrder
from clawbridge.agnt.fields import EnvelopeRefused
from kit.asgi import HttpRequest, Receive, Scope, Send
from lab.callers import bearer
from lab.frames import Json
from lab.waiting import eventually
from tests.agnt.wire import PATH

Answering = Callable[[], Awaitable[Json]]


class Venues:
    """Venues that answer as a test says. `asked`: the slug of each one that was asked; `asks`: what it was asked.

    `fails`: what they answer to a cancellation, while it is set.
    """

    def __init__(self) -> None:
        self.answering: dict[str, Answering] = {}
        self.asked: list[str] = []
        self.asks: list[VenueAsk] = []
        self.fails: EnvelopeRefused | None = None

    async def ask(self, asked: VenueAsk, deadline: float) -> Json:
        venue, envelope = asked.venue, asked.envelope
        self.asked.append(venue.slug)
        self.asks.append(asked)
        if isinstance(asked.order, AgntBookingOrder):
            if self.fails:
                raise self.fails
            return {"status": "cancelled"}
        if isinstance(asked.order, AgntConfirmOrder):
            return await self.answering[venue.slug]() if venue.slug in self.answering else {}
        return {"agent": venue.agent_name, "intent": envelope.intent, "payload": envelope.payload}

    async def until_asked(self) -> None:

        async def is_asked() -> bool:
            return bool(self.asked)

        await eventually(is_asked, "a venue is asked")


def held(release: asyncio.Event) -> Answering:
    """Confirms once its test lets go of it."""

    async def answer() -> Json:
        await release.wait()
        return {}

    return answer


async def asleep() -> Json:
    """Does not answer in time."""
    await asyncio.sleep(60)
    raise AssertionError


class Hub:
    """The endpoint of one process with its own venues."""

    def __init__(self, runner: EnvelopeRunner | None = None) -> None:
        self.venues, self.callers = Venues(), OpenRequests()
        self.counts = AgntCounts()
        self.runner = runner or EnvelopeRunner(Intake(), self.venues.ask, self.counts, self.callers)
        endpoint = AgntEndpoint(self.runner, StatusReports(), is_https=False)

        async def application(scope: Scope, receive: Receive, send: Send) -> None:
            await endpoint(HttpRequest(scope, receive), send)

        self.client = httpx.AsyncClient(transport=httpx.ASGITransport(application), base_url="http://hub")

    async def post(self, key: MintedKey, sent: Json) -> httpx.Response:
        headers = bearer(key.token) | {"Content-Type": "application/json"}
        return await self.client.post(PATH, content=json.dumps(sent), headers=headers)

    async def close(self) -> None:
        await self.client.aclose()
        await self.runner.close()


@pytest.fixture
async def hub(key: MintedKey) -> AsyncIterator[Hub]:
    """A hub with the network of that key."""
    made = Hub()
    yield made
    await made.close()
