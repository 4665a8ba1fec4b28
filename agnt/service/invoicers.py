"""The interface of invoicers, which take bills; the choice of one; and the default one, which writes CSV files."""

import os
import tempfile
import uuid
from collections.abc import Callable, Iterator
from datetime import date, datetime, timedelta
from importlib import import_module
from pathlib import Path
from typing import Protocol

from msgspec import Struct

from agnt import settings
from kit.clock import iso
from kit.csv_text import csv_lines
from kit.money import CENT, decimal_usd

KEYS = uuid.UUID("b0f4b7a5-4f6e-4f6a-9a2b-6a0f0f6d6c11")
HEADER = ("bill", "network", "customer", "day", "booking_id", "at", "amount_usd")
WITHOUT_STRIPE = "STRIPE_API_KEY is set, and Stripe's library is missing: pip install 'clawbridge-hub[stripe]'"


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


def make_invoicer() -> Invoicer:
    """Make the invoicer: Stripe's if STRIPE_API_KEY is set, else one that writes files below DATA_DIR.

    Raises:
        InvoicerDown: Stripe's library is not installed.
    """
    if not settings.STRIPE_API_KEY:
        return CsvInvoicer(settings.INVOICES_DIR)
    try:
        # The library is large: the hub imports it only where it is used.
        module = import_module("agnt.service.stripe_meter")
    except ModuleNotFoundError as missing:
        if missing.name != "stripe":
            raise
        raise InvoicerDown(WITHOUT_STRIPE) from None
    chosen: Invoicer = module.StripeInvoicer(
        settings.STRIPE_API_KEY, url=settings.STRIPE_API_URL, meter=settings.STRIPE_METER
    )
    return chosen


class CsvInvoicer:
    """See `Invoicer`. A bill has one file: a bill that is sent again takes the place of the first."""

    remembers: timedelta | None = None

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def send(self, bill: Bill) -> str:
        """See `Invoicer`; the path of the file below the folder."""
        name = f"{bill.day.isoformat()}/{bill.idempotency_key}.csv"
        try:
            _write_whole(self._folder / name, csv_lines(_rows(bill)))
        except OSError as failure:
            raise InvoicerDown(f"no file could be written: {failure.strerror}") from failure
        return name


def _rows(bill: Bill) -> Iterator[tuple[str | int, ...]]:
    yield HEADER
    head = (bill.number, bill.network, bill.customer, bill.day.isoformat())
    for line in bill.read_lines():
        yield (*head, line.booking_id, iso(line.at), decimal_usd(line.amount_cents * CENT))


def _write_whole(path: Path, lines: Iterator[str]) -> None:
    """Write a file atomically: a reader finds the whole file or none, after a power failure too."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=path.stem, suffix=".part", dir=path.parent)
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="") as file:
            file.writelines(lines)
            file.flush()
            os.fsync(file.fileno())
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
