"""Bookings, their events, charges and bills once more, on PostgreSQL."""

from lab.hub_storage import DistributedStorages
from tests.nested import NESTED, pass_on_postgresql

pytestmark = NESTED

AGAIN = [f"test_{one}.py" for one in ("bookings", "invoicing", "invoicers", "metering", "webhook_events")]


def test_bookings_are_billed_the_same_on_postgresql(distributed_storages: DistributedStorages) -> None:
    files = [f"tests/agnt/{name}" for name in AGAIN]
    pass_on_postgresql(distributed_storages, 498, "-m", "not distributed", *files)
