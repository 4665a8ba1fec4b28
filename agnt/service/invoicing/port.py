"""The interface of an invoicer, which the bills of customers are sent to."""

import uuid
from collections.abc import Callable, Iterator
from datetime import date, datetime, timedelta
from typing import Protocol

from msgspec import Struct

KEYS = uuid.UUID("b0f4b7a5-4f6e-4f6a-9a2b-6a0f0f6d6c11")


class BillLine(Struct, frozen=True):
    """One charge. `booking_id`: its public id."""

    booking_id: str
    at: datetime
    amount_cents: int


class Bill(Struct, frozen=True, kw_only=True):
    """The amount that one customer of a network pays for one UTC day; the same in every attempt to send it.

    `network`: a name of the network that no other has, on any hub. `read_lines`: reads its charges, oldest first.
    """

    number: int
    network: str
    customer: str
    day: date
    total_cents: int
    read_lines: Callable[[], Iterator[BillLine]]

    @property
    def idempotency_key(self) -> str:
        """The same text for the same network, customer and day: a UUID."""
        return str(uuid.uuid5(KEYS, f"{self.network}\n{self.customer}\n{self.day.isoformat()}"))


class BillRefused(Exception):
    """The invoicer did not take this bill; another may succeed. The text may be logged."""


class InvoicerDown(Exception):
    """The invoicer cannot be reached, or did not say whether it took the bill. The text may be logged."""


class Invoicer(Protocol):
    """Takes bills. A bill that is sent again with the same key counts once.

    `remembers`: for how long it knows a bill again; None: always.
    """

    remembers: timedelta | None

    def send(self, bill: Bill) -> str:
        """Send a bill; return the id that the invoicer gave it, at most 128 characters.

        Raises:
            BillRefused: it was not taken.
            InvoicerDown: it may have been taken.
        """
