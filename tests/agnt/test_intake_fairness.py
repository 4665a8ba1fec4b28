"""Searches that take long: they hold no lock for long, and the other networks are served meanwhile."""

import asyncio
import string
from collections.abc import Sequence
from dataclasses import replace

import pytest

from accounts.models import User
from agnt.models import ApiKey, KeyUsage, Venue
from agnt.service.intake.runner import MAX_WAITING
from agnt.service.keys import MintedKey, mint_key
from kit.async_db import db_call
from tests.agnt.endpoint import Hub
from tests.agnt.wire import envelope, error_of, result_of

pytestmark = pytest.mark.django_db(transaction=True)

VENUES = 10_000
SEARCHES = 40
LETTERS = " ".join(string.ascii_lowercase[:15])


def own(login: str, venues: Sequence[str]) -> MintedKey:
    """A key of a network with venues of these descriptions."""
    key = mint_key(User.objects.create(login=login), "k", tier=ApiKey.Tier.PRO, scope=ApiKey.Scope.FULL)
    Venue.objects.bulk_create(
        Venue(network=key.key.network, slug=f"v{number}", name="v", description=text)
        for number, text in enumerate(venues)
    )
    return key


async def test_a_network_with_slow_searches_does_not_hold_up_another() -> None:
    busy, quiet = await db_call(own)("busy", [LETTERS] * VENUES), await db_call(own)("quiet", ["by the sea"])
    hub = Hub()
    for key in (busy, quiet):  # their indexes are loaded
        result_of(await hub.post(key, envelope("network.ping", {})))
    # Each venue has all of it but the last word, by which no search is one that is known already.
    slow = [{"query": f"{LETTERS} none{number}"} for number in range(SEARCHES)]
    sent = [envelope("booking.search", one, ttl_ms=15_000) for one in slow]
    searches = [asyncio.create_task(hub.post(busy, one)) for one in sent]
    await asyncio.sleep(0.05)
    for _ in range(2):
        result_of(await hub.post(quiet, envelope("network.ping", {})))
    left = sum(not one.done() for one in searches)
    for one in await asyncio.gather(*searches):
        result_of(one)
    assert left, "the other network was answered after all searches"
    used = await db_call(lambda: KeyUsage.objects.get(key=busy.key).calls)()
    assert used == len(sent) + 1
    await hub.close()


async def test_keys_that_are_none_keep_no_network_out() -> None:
    key, hub = await db_call(own)("quiet", ["by the sea"]), Hub()
    result_of(await hub.post(key, envelope()))
    unknown = [replace(key, token=f"agnt_live_{number:032}") for number in range(MAX_WAITING + 20)]
    flood = [asyncio.create_task(hub.post(one, envelope(ttl_ms=15_000))) for one in unknown]
    await asyncio.sleep(0.05)
    result_of(await hub.post(key, envelope()))
    assert {error_of(await one) for one in flood} <= {"unauthorized", "internal_error", "ttl_exceeded"}
    await hub.close()
