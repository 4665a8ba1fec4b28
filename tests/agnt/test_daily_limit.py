"""The daily limit of a key at midnight, by a clock that the test moves: days are those of UTC."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any

import httpx
import pytest

from accounts.models import User
from accounts.open_requests import OpenRequests
from agnt.models import ApiKey, KeyUsage
from agnt.service.figures import AgntCounts
from agnt.service.intake.intake import Intake
from agnt.service.intake.runner import EnvelopeRunner
from agnt.service.keys import MintedKey, mint_key
from kit.async_db import db_call
from tests.agnt.endpoint import Hub, Venues
from tests.agnt.wire import envelope, error_of

pytestmark = pytest.mark.django_db(transaction=True)

BEFORE_MIDNIGHT = datetime(2026, 4, 12, 23, 59, 59, tzinfo=UTC)
MIDNIGHT = datetime(2026, 4, 13, tzinfo=UTC)
BALI = timezone(timedelta(hours=8))
DAY_S = 86_400


@dataclass
class MovedClock:
    now: datetime = BEFORE_MIDNIGHT

    def __call__(self) -> datetime:
        return self.now


@pytest.fixture
def key() -> MintedKey:
    """A key that may send 100 envelopes a day."""
    return mint_key(User.objects.create(login="keeper"), "k", tier=ApiKey.Tier.FREE)


@pytest.fixture
def clock() -> MovedClock:
    return MovedClock()


@pytest.fixture
async def hub(clock: MovedClock) -> AsyncIterator[Hub]:
    """A hub whose days are those of the clock."""
    made = Hub(EnvelopeRunner(Intake(now=clock), Venues(), AgntCounts(), OpenRequests()))
    yield made
    await made.close()


async def ping(hub: Hub, key: MintedKey, **fields: Any) -> httpx.Response:
    return await hub.post(key, envelope("network.ping", **{"timestamp": None, **fields}))


def rate_of(answer: httpx.Response) -> tuple[int, int, int]:
    """Limit, calls that are left, and the Unix seconds of the next day."""
    limit, left, reset = (int(answer.headers[f"x-ratelimit-{name}"]) for name in ("limit", "remaining", "reset"))
    return limit, left, reset


async def calls_of(key: MintedKey) -> dict[date, int]:
    rows = KeyUsage.objects.filter(key=key.key).order_by("day").values_list("day", "calls")
    return await db_call(lambda: dict(rows))()


async def test_the_101st_call_of_a_free_key_is_refused_until_midnight(
    hub: Hub, key: MintedKey, clock: MovedClock
) -> None:
    reset = int(MIDNIGHT.timestamp())
    first = await ping(hub, key)
    assert (first.status_code, rate_of(first)) == (200, (100, 99, reset))
    await db_call(lambda: KeyUsage.objects.update(calls=99))()
    last = await ping(hub, key)
    assert (last.status_code, rate_of(last)) == (200, (100, 0, reset))
    refused = await ping(hub, key)
    assert (refused.status_code, error_of(refused), rate_of(refused)) == (429, "rate_limited", (100, 0, reset))
    error = refused.json()["payload"]["error"]
    assert (refused.headers["retry-after"], error["retry_after_s"], error["retryable"]) == ("1", 1, True)
    clock.now = MIDNIGHT
    fresh = await ping(hub, key)
    assert (fresh.status_code, rate_of(fresh)) == (200, (100, 99, reset + DAY_S))
    assert await calls_of(key) == {BEFORE_MIDNIGHT.date(): 101, MIDNIGHT.date(): 1}


async def test_midnight_in_another_time_zone_begins_no_day(hub: Hub, key: MintedKey, clock: MovedClock) -> None:
    day = date(2026, 4, 13)
    await db_call(lambda: KeyUsage.objects.create(key=key.key, day=day, calls=99))()
    in_utc, in_bali = datetime(2026, 4, 13, 15, 59, 59, tzinfo=UTC), datetime(2026, 4, 14, tzinfo=BALI)
    reset = int(MIDNIGHT.timestamp()) + DAY_S
    clock.now = in_utc
    last = await ping(hub, key, timestamp="2026-04-13T23:59:59+08:00")
    assert (last.status_code, rate_of(last)) == (200, (100, 0, reset))
    clock.now = in_bali
    refused = await ping(hub, key, timestamp="2026-04-14T00:00:00+08:00")
    assert (refused.status_code, error_of(refused), rate_of(refused)) == (429, "rate_limited", (100, 0, reset))
    assert refused.headers["retry-after"] == str(8 * 3600)
    clock.now = datetime(2026, 4, 14, 8, tzinfo=BALI)
    fresh = await ping(hub, key, timestamp="2026-04-14T08:00:00+08:00")
    assert (fresh.status_code, rate_of(fresh)) == (200, (100, 99, reset + DAY_S))
    assert await calls_of(key) == {day: 101, date(2026, 4, 14): 1}
