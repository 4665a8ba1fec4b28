"""The endpoint of AGNT in this process, with venues that answer as a test says."""

import json
from collections.abc import Awaitable, Callable

import httpx

from accounts.open_requests import OpenRequests
from agnt.endpoint import AgntEndpoint
from agnt.envelope import Envelope
from agnt.intake import Intake
from agnt.keys import MintedKey
from agnt.metrics import AgntCounts
from agnt.payloads import Confirm
from agnt.ports import NetworkRef, VenueAnswer, VenueRef
from agnt.runner import EnvelopeRunner
from agnt.status import StatusReports
from agnt.venue_index import VenueIndexes
from kit.asgi import HttpRequest, Receive, Scope, Send
from lab.callers import bearer
from lab.frames import Json
from tests.agnt.wire import PATH

Answering = Callable[[], Awaitable[VenueAnswer]]


class Venues:
    """Venues that answer as a test says. `asked`: the slug of each one that was asked."""

    def __init__(self) -> None:
        self.answering: dict[str, Answering] = {}
        self.asked: list[str] = []

    async def confirm(
        self, network: NetworkRef, venue: VenueRef, order: Confirm, envelope: Envelope, deadline: float
    ) -> VenueAnswer:
        self.asked.append(venue.slug)
        return await self.answering[venue.slug]() if venue.slug in self.answering else VenueAnswer()

    async def ask(
        self, network: NetworkRef, venue: VenueRef, intent: str, payload: Json, envelope: Envelope, deadline: float
    ) -> Json:
        self.asked.append(venue.slug)
        return {"agent": venue.agent_name, "intent": intent, "payload": payload}


class Hub:
    """The endpoint of one process with its own venues."""

    def __init__(self, runner: EnvelopeRunner | None = None) -> None:
        self.venues, self.callers, indexes = Venues(), OpenRequests(), VenueIndexes()
        self.counts = AgntCounts()
        made = runner or EnvelopeRunner(Intake(indexes), indexes, self.venues, self.counts, self.callers)
        self.runner = made
        endpoint = AgntEndpoint(self.runner, StatusReports(), is_https=False)

        async def application(scope: Scope, receive: Receive, send: Send) -> None:
            await endpoint(HttpRequest(scope, receive), send)

        self.client = httpx.AsyncClient(transport=httpx.ASGITransport(application), base_url="http://hub")

    async def post(self, key: MintedKey, sent: Json) -> httpx.Response:
        headers = bearer(key.token) | {"Content-Type": "application/json"}
        return await self.client.post(PATH, content=json.dumps(sent), headers=headers)
