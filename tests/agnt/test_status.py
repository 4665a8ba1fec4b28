"""`GET /a2a/v1/status`: what it says of the breakers of networks, and how often it looks."""

import asyncio

import msgspec
import pytest

from accounts.models import User
from agnt.models import Breaker, Network
from agnt.networks import get_or_create_network
from agnt.status import LOOK_EVERY_S, StatusReports
from kit.async_db import db_call
from kit.clock import approximate_now
from lab.frames import Json
from tests.agnt.network_rows import make_venue

pytestmark = pytest.mark.django_db(transaction=True)


class Reports:
    """The reports of one process, whose clock a test moves."""

    def __init__(self) -> None:
        self.now_s = 100.0
        self._reports = StatusReports(lambda: self.now_s)

    async def read(self) -> tuple[int, Json]:
        """The status and the body of the next report that looks at the database."""
        self.now_s += LOOK_EVERY_S
        return await self.read_at_once()

    async def read_at_once(self) -> tuple[int, Json]:
        """Of a report in the same second."""
        answer = await self._reports.make()
        body: Json = msgspec.json.decode(answer.body)
        assert body.pop("time").endswith("Z")
        return answer.status, body


def body(status: str, breaker: str) -> Json:
    return {"status": status, "protocol": "openclaw/a2a/v1", "network_version": "1.0", "breaker": breaker}


@pytest.fixture
def network() -> Network:
    return get_or_create_network(User.objects.create(login="keeper"))


async def open_breaker(network: Network, ago_s: float, **fields: object) -> None:
    at = approximate_now().timestamp() - ago_s
    await db_call(Breaker.objects.update_or_create)(
        network=network, **{"venue": None, **fields}, defaults={"opened_at_s": at, "openings": 1}
    )


async def test_an_open_breaker_of_a_network_is_degraded_until_it_may_be_probed(network: Network) -> None:
    reports = Reports()
    assert await reports.read() == (200, body("ok", "closed"))
    await open_breaker(network, ago_s=10)
    assert await reports.read_at_once() == (200, body("ok", "closed"))
    assert await reports.read() == (503, body("degraded", "open"))
    await open_breaker(network, ago_s=301)
    assert await reports.read() == (200, body("ok", "half_open"))
    await db_call(Breaker.objects.update)(opened_at_s=None)
    assert await reports.read() == (200, body("ok", "closed"))


async def test_an_open_breaker_of_one_venue_is_not_degraded(network: Network) -> None:
    venue = await db_call(make_venue)(network.owner)
    await open_breaker(network, ago_s=10, venue=venue)
    assert await Reports().read() == (200, body("ok", "closed"))


async def test_requests_at_once_are_one_look_at_the_database() -> None:
    looks: list[float] = []

    def clock() -> float:
        looks.append(0.0)
        return looks[-1]

    reports = StatusReports(clock)
    answers = await asyncio.gather(*(reports.make() for _ in range(20)))
    assert {one.status for one in answers} == {200}
    assert len(looks) == 1
