"""Tests of this process once more, on PostgreSQL: those of locks, of SQL written by hand, and of money.

The others are deep: REST and pages are the same code on both databases, `tenancy` asks every call and page on
PostgreSQL, and `webhooks` delivers there. Tests that start a hub choose its database themselves.
"""

import pytest

from lab.hub_storage import DistributedStorages
from tests.nested import NESTED, pass_on_postgresql

pytestmark = NESTED

LOCKED = ("breakers", "daily_limit", "bookings", "cancellations", "events", "invoicing", "metering")
DEEP = {  # a Redis number of its own
    "venues": (527, ("api_venues", "api_venue_files")),
    "keys-and-bookings": (528, ("api_keys", "api_network", "admin")),
    "pages": (529, ("pages", "venue_pages", "key_pages")),
    "bills-and-events": (498, ("invoicers", "webhook_events", "key_webhooks")),
}


def files_of(names: tuple[str, ...]) -> list[str]:
    return [f"tests/agnt/test_{name}.py" for name in names]


def test_locks_limits_and_bills_are_the_same_on_postgresql(distributed_storages: DistributedStorages) -> None:
    pass_on_postgresql(distributed_storages, 499, "-m", "not slow", *files_of(LOCKED))


def test_searches_find_the_same_on_postgresql(distributed_storages: DistributedStorages) -> None:
    pass_on_postgresql(distributed_storages, 530, *files_of(("venue_search",)), "tests/native/test_search.py")


@pytest.mark.deep
@pytest.mark.parametrize("part", DEEP)
def test_rest_pages_and_events_are_the_same_on_postgresql(
    distributed_storages: DistributedStorages, part: str
) -> None:
    redis, names = DEEP[part]
    pass_on_postgresql(distributed_storages, redis, "-m", "not distributed", *files_of(names))
