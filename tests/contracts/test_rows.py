"""Rows as the shapes of answers declare them."""

from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Annotated, Literal, NotRequired, TypedDict
from uuid import UUID

import pytest

from kit.describe import Time, Uuid
from kit.rows import Always, RowSource, show

NIL = UUID(int=0)


@dataclass
class Venue:
    public_id: UUID
    city: str


@dataclass
class Booking:
    public_id: UUID
    venue: Venue | None
    slot_id: str
    user_note: str
    created_at: datetime
    day: date
    ended_at: datetime | None = None
    tags: tuple[str, ...] = ()


class Shown(TypedDict):
    id: Annotated[Uuid, RowSource("public_id")]
    venueId: Annotated[Uuid | None, RowSource("venue.public_id")]
    venueCity: Annotated[str | None, RowSource("venue.city")]
    slotId: str | None
    userNote: str
    createdAt: Time
    endedAt: Time | None
    day: str
    price: str


class ShownWithTags(Shown):
    tags: tuple[str, ...]


class ShownInPart(TypedDict):
    slot: NotRequired[Annotated[str, RowSource("slot_id")]]
    userNote: NotRequired[str]


AT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
BOOKING = Booking(NIL, Venue(NIL, "Canggu"), "s1", "window", AT, AT.date())


def test_fields_are_attributes_and_those_of_other_rows() -> None:
    assert show(Shown, BOOKING, price="7.00") == {
        "id": str(NIL),
        "venueId": str(NIL),
        "venueCity": "Canggu",
        "slotId": "s1",
        "userNote": "window",
        "createdAt": "2026-01-02T03:04:05.000Z",
        "endedAt": None,
        "day": "2026-01-02",
        "price": "7.00",
    }


def test_a_row_that_is_absent_and_an_empty_text_are_null_where_the_field_may_be() -> None:
    shown = show(Shown, Booking(NIL, None, "", "", AT, AT.date()), price="")
    assert (shown["venueId"], shown["venueCity"], shown["slotId"]) == (None, None, None)
    assert (shown["userNote"], shown["price"]) == ("", "")


def test_an_empty_text_leaves_out_a_field_that_need_not_be_there() -> None:
    assert show(ShownInPart, BOOKING) == {"slot": "s1", "userNote": "window"}
    assert show(ShownInPart, Booking(NIL, None, "", "", AT, AT.date())) == {}


def test_a_shape_has_the_fields_of_the_shape_that_it_extends() -> None:
    assert show(ShownWithTags, BOOKING, price="")["tags"] == ()
    assert list(show(ShownWithTags, BOOKING, price=""))[:2] == ["id", "venueId"]


def test_a_field_that_is_neither_an_attribute_nor_given_is_an_error() -> None:
    with pytest.raises(AttributeError, match="price"):
        show(Shown, BOOKING)


class ShownVenue(TypedDict):
    id: Annotated[Uuid, RowSource("public_id")]
    city: str


class ShownWithVenue(TypedDict):
    ok: Literal[True]
    deletedAt: None
    shared: Annotated[bool, Always(False)]
    venue: ShownVenue | None
    place: Annotated[ShownVenue, RowSource("venue")]
    self: Annotated[list[ShownInPart], RowSource("alike")]
    usd: Annotated[float | None, RowSource("microusd", 1_000_000)]


@dataclass
class PricedBooking(Booking):
    microusd: int | None = None
    alike: tuple[object, ...] = ()


def test_rows_of_a_row_units_and_fields_of_one_value() -> None:
    booking = PricedBooking(NIL, Venue(NIL, "Canggu"), "s1", "", AT, AT.date(), microusd=2_500_000)
    booking.alike = (booking, {"slot": "kept as JSON"})
    venue = {"id": str(NIL), "city": "Canggu"}
    assert show(ShownWithVenue, booking) == {
        "ok": True,
        "deletedAt": None,
        "shared": False,
        "venue": venue,
        "place": venue,
        "self": [{"slot": "s1"}, {"slot": "kept as JSON"}],
        "usd": 2.5,
    }
    booking.venue = booking.microusd = None
    shown = show(ShownWithVenue, booking)
    assert (shown["venue"], shown["usd"]) == (None, None)
