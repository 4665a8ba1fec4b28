"""`GET /a2a/v1/status`: what it says of the hub, to a key of its network, and how often it looks."""

import asyncio

import msgspec
import pytest

from accounts.authn import digest
from accounts.models import User
from agnt.endpoint.http import CACHED_FOR_S, StatusReports
from agnt.models import Breaker
from agnt.service.keys import MintedKey
from kit.async_db import db_call
from kit.clock import approximate_now
from lab.frames import Json
from tests.agnt.network_rows import make_key, make_venue

pytestmark = pytest.mark.django_db(transaction=True)


class Reports:
    """The reports of one process, whose clock a test moves. `key`: asks with it."""

    def __init__(self, key: MintedKey | None = None) -> None:
        self.now_s = 100.0
        self._key = key
        self._reports = StatusReports(lambda: self.now_s)

    async def read(self) -> tuple[int, Json]:
        """The status and the body of the next report that looks at the database."""
        self.now_s += CACHED_FOR_S
        return await self.read_at_once()

    async def read_at_once(self) -> tuple[int, Json]:
        """Of a report in the same second."""
        reports, key = self._reports, self._key
        answer = await (reports.report_network(digest(key.token)) if key else reports.report_hub())
        body: Json = msgspec.json.decode(answer.body)
        assert body.pop("time").endswith("Z")
        return answer.status, body


def body(status: str, breaker: str) -> Json:
    return {"status": status, "protocol": "openclaw/a2a/v1", "network_version": "1.0", "breaker": breaker}


OK = (200, body("ok", "closed"))
DEGRADED = (503, body("degraded", "open"))


@pytest.fixture
def key() -> MintedKey:
    owner = User.objects.create(login="keeper")
    make_venue(owner)
    return make_key(owner)


@pytest.fixture
def other() -> MintedKey:
    owner = User.objects.create(login="other")
    make_venue(owner)
    return make_key(owner)


async def open_breaker(key: MintedKey, ago_s: float, **fields: object) -> None:
    at = approximate_now().timestamp() - ago_s
    await db_call(Breaker.objects.update_or_create)(
        network=key.key.network, **{"venue": None, **fields}, defaults={"opened_at_s": at, "openings": 1}
    )


async def test_an_open_breaker_of_a_network_is_degraded_until_it_may_be_probed(key: MintedKey) -> None:
    reports = Reports(key)
    assert await reports.read() == OK
    await open_breaker(key, ago_s=10)
    assert await reports.read_at_once() == OK
    assert await reports.read() == DEGRADED
    await open_breaker(key, ago_s=301)
    assert await reports.read() == (200, body("ok", "half_open"))
    await db_call(Breaker.objects.update)(opened_at_s=None)
    assert await reports.read() == OK


async def test_the_breaker_of_a_network_is_told_to_its_own_keys_alone(key: MintedKey, other: MintedKey) -> None:
    await open_breaker(key, ago_s=10)
    assert [await Reports(one).read() for one in (key, other, None)] == [DEGRADED, OK, OK]


async def test_the_hub_is_degraded_when_the_breakers_of_all_networks_with_venues_are_open(
    key: MintedKey, other: MintedKey
) -> None:
    await db_call(make_key)(await db_call(User.objects.create)(login="without venues"))
    reports = Reports()
    await open_breaker(key, ago_s=10)
    assert await reports.read() == OK
    await open_breaker(other, ago_s=10)
    assert await reports.read_at_once() == OK
    assert await reports.read() == DEGRADED
    await open_breaker(other, ago_s=301)
    assert await reports.read() == OK


async def test_a_hub_without_venues_is_not_degraded() -> None:
    assert await Reports().read() == OK


async def test_an_open_breaker_of_one_venue_is_not_degraded(key: MintedKey) -> None:
    venue = await db_call(key.key.network.venues.get)()
    await open_breaker(key, ago_s=10, venue=venue)
    assert [await Reports(one).read() for one in (key, None)] == [OK, OK]


async def test_requests_at_once_are_one_look_at_the_database() -> None:
    looks: list[float] = []

    def clock() -> float:
        looks.append(0.0)
        return looks[-1]

    reports = StatusReports(clock)
    answers = await asyncio.gather(*(reports.report_hub() for _ in range(20)))
    assert {one.status for one in answers} == {200}
    assert len(looks) == 1
