"""Cancellations that a venue gets: ofthat are no booking, and of bookings that were cancelled; and by whom."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import pytest

from accounts.models import User
from agnt.limits import UNSETTLED_ORDERS
from agnt.models import ApiKey, Booking, Cancellation, Venue
from agnt.service.bookings import change_status
from agnt.service.cancellations import REPEATED_FOR, RETRY_AFTER_S, CancellationOutbox
from agnt.service.keys import MintedKey, change_key, mint_key
from agnt.service.venues.editing import delete_venue
from clawbridge.agnt.fields import EnvelopeRefused, ErrorCode
from kit.async_db import db_call
from kit.clock import db_now
from kit.outbox import Sender
from lab.frames import Json
from lab.waiting import eventually
from tests.agnt import endpoint
from tests.agnt.endpoint import Hub, asleep, held
from tests.agnt.wire import envelope, error_of, result_of, stamp

pytestmark = pytest.mark.django_db(transaction=True)
hub = endpoint.hub
State, Reason = Cancellation.State, Cancellation.Reason
Scope = ApiKey.Scope


@pytest.fixture
def key() -> MintedKey:
    """A key of a network with a venue that is asked, and one that is not."""
    made = mint_key(User.objects.create(login="keeper"), "k", tier=ApiKey.Tier.PRO, scope=Scope.BOOKING)
    Venue.objects.create(network=made.key.network, slug="asked", name="asked", url="https://asked.example/a2a")
    Venue.objects.create(network=made.key.network, slug="rows", name="rows")
    return made


def confirm(slug: str = "asked", **fields: Any) -> Json:
    payload = {"venue_id": slug, "time": "19:30", "party_size": 2}
    return envelope("booking.confirm", payload, **{"ttl_ms": 1_000} | fields)


def about(booking_id: str, intent: str = "booking.status") -> Json:
    return envelope(intent, {"booking_id": booking_id})


async def fails() -> Json:
    failed = EnvelopeRefused(ErrorCode.VENUE_UNREACHABLE, "nonsense")
    failed.may_be_booked = True
    raise failed


async def declines() -> Json:
    raise EnvelopeRefused(ErrorCode.SLOT_UNAVAILABLE, "full")


async def is_not_asked() -> Json:
    raise EnvelopeRefused(ErrorCode.CIRCUIT_OPEN, "the venue failed too often", retry_after_s=300)


async def accepts() -> Json:
    return {"status": "confirmed", "booking_id": "T-104", "table": 4}


async def owed() -> list[Cancellation]:
    """All cancellations, the oldest first."""
    return await db_call(lambda: list(Cancellation.objects.order_by("pk")))()


async def send(hub: Hub, *, is_due: bool = True) -> None:
    """Send what is due; with `is_due` everything is."""

    def run() -> None:
        if is_due:
            waiting = Cancellation.objects.filter(state__in=Cancellation.UNSETTLED)
            waiting.update(next_attempt_at=db_now() - timedelta(seconds=1))
        Sender(CancellationOutbox(hub.venues.ask, loop)).run()

    loop = asyncio.get_running_loop()
    await db_call(run)()


async def is_owed() -> bool:
    return [one.state for one in await owed()] == [State.OWED]


async def revoke(hub: Hub, key: MintedKey) -> None:
    hub.callers.dismiss({key.key.credential_id})


Happening = Callable[[Hub, MintedKey], Awaitable[None]]
UNKNOWN_ENDS: dict[str, tuple[Callable[[], Awaitable[Json]], Happening | None, ErrorCode, Reason]] = {
    "no answer in time": (asleep, None, ErrorCode.TTL_EXCEEDED, Reason.NO_ANSWER),
    "an answer of no use": (fails, None, ErrorCode.VENUE_UNREACHABLE, Reason.NO_ANSWER),
    "the key is revoked": (asleep, revoke, ErrorCode.UNAUTHORIZED, Reason.KEY_REVOKED),
}


async def test_an_order_that_a_venue_may_hold_is_cancelled(
    hub: Hub, key: MintedKey, subtests: pytest.Subtests
) -> None:
    for name, (answering, happening, code, reason) in UNKNOWN_ENDS.items():
        with subtests.test(name):
            await db_call(Cancellation.objects.all().delete)()
            hub.venues.answering["asked"], hub.venues.asked = answering, []
            asking = asyncio.create_task(hub.post(key, confirm()))
            await hub.venues.until_asked()
            if happening:
                await happening(hub, key)
            assert error_of(await asking) == code
            await eventually(is_owed, "the end of the ask is written")  # which the caller does not wait for
            assert [one.reason for one in await owed()] == [reason]
            await send(hub, is_due=False)
            assert await is_owed()  # the venue may still work on the order
            await send(hub)
            order, cancel = hub.venues.asks[-2:]
            assert cancel.envelope.intent == "booking.cancel"
            assert cancel.envelope.sender.endswith(":keeper")
            assert cancel.envelope.payload == {
                "booking_id": str(order.order_id),
                "venue_id": str(order.venue.public_id),
                "slot_time": "19:30",
                "party_size": 2,
                "reason": reason.label,
            }
            [row] = await owed()
            assert (row.state, row.attempts, row.next_attempt_at) == (State.TOLD, 1, None)


async def test_a_venue_that_accepts_or_declines_is_told_nothing(hub: Hub, key: MintedKey) -> None:
    hub.venues.answering["asked"] = declines
    assert error_of(await hub.post(key, confirm())) == "slot_unavailable"
    assert await owed() == []
    hub.venues.answering["asked"] = accepts
    booked = result_of(await hub.post(key, confirm()))
    assert await owed() == []
    assert booked["booking_id"] == str(hub.venues.asks[-1].order_id)
    assert booked["venue_booking_id"] == "T-104"
    assert booked["venue_reply"] == {"status": "confirmed", "booking_id": "T-104", "table": 4}


async def test_a_repeated_event_is_the_same_order_until_the_venue_was_told(hub: Hub, key: MintedKey) -> None:
    hub.venues.answering["asked"] = fails
    sent = confirm()
    for _ in range(2):
        assert error_of(await hub.post(key, sent)) == "venue_unreachable"
    first, second = hub.venues.asks
    assert (first.order_id, first.asked_at) == (second.order_id, sent["timestamp"])
    assert second.asked_at == first.asked_at
    await send(hub)
    hub.venues.answering["asked"] = accepts
    booked = result_of(await hub.post(key, sent))
    third = hub.venues.asks[-1]
    assert booked["booking_id"] == str(third.order_id)
    assert third.order_id != first.order_id
    assert third.asked_at not in ("", first.asked_at)
    assert [one.state for one in await owed()] == [State.TOLD]


async def test_an_event_that_is_repeated_for_long_is_a_new_order_and_the_first_is_cancelled(
    hub: Hub, key: MintedKey
) -> None:
    hub.venues.answering["asked"] = fails
    sent = confirm()
    error_of(await hub.post(key, sent))
    await db_call(
        lambda: Cancellation.objects.update(created_at=db_now() - REPEATED_FOR, next_attempt_at=db_now())
    )()
    error_of(await hub.post(key, sent))
    first, second = hub.venues.asks
    assert (second.order_id != first.order_id, second.asked_at != first.asked_at) == (True, True)
    await send(hub, is_due=False)
    assert [one.public_id for one in await owed() if one.state == State.TOLD] == [first.order_id]


async def test_no_later_answer_to_an_order_ends_what_its_first_ask_may_have_reserved(
    hub: Hub, key: MintedKey
) -> None:
    for answering in (declines, is_not_asked):
        await db_call(Cancellation.objects.all().delete)()
        sent = confirm()
        for each in (fails, answering):
            hub.venues.answering["asked"] = each
            error_of(await hub.post(key, sent))
        assert await is_owed()


async def test_an_event_that_comes_with_another_order_is_another_order(hub: Hub, key: MintedKey) -> None:
    hub.venues.answering["asked"] = fails
    sent = confirm()
    error_of(await hub.post(key, sent))
    hub.venues.answering["asked"] = accepts
    result_of(await hub.post(key, sent | {"payload": {"venue_id": "asked", "time": "21:00", "party_size": 8}}))
    first, second = hub.venues.asks
    assert (first.order_id, first.asked_at) != (second.order_id, second.asked_at)
    assert [one.public_id for one in await owed()] == [first.order_id]
    assert await is_owed()


async def test_an_order_whose_process_died_is_cancelled_once_it_is_due(hub: Hub, key: MintedKey) -> None:
    hub.venues.answering["asked"] = asleep
    asking = asyncio.create_task(hub.post(key, confirm(ttl_ms=15_000)))
    await hub.venues.until_asked()
    await send(hub, is_due=False)
    [row] = await owed()
    assert (row.state, row.attempts) == (State.ASKING, 0)
    await send(hub)
    assert [one.state for one in await owed()] == [State.TOLD]
    asking.cancel()
    await asyncio.gather(asking, return_exceptions=True)


async def test_an_answer_after_the_venue_was_told_is_no_booking(hub: Hub, key: MintedKey) -> None:
    release = asyncio.Event()
    hub.venues.answering["asked"] = held(release)
    asking = asyncio.create_task(hub.post(key, confirm(ttl_ms=15_000)))
    await hub.venues.until_asked()
    await send(hub)
    release.set()
    assert error_of(await asking) == "ttl_exceeded"
    assert await db_call(Booking.objects.count)() == 0
    assert [one.state for one in await owed()] == [State.TOLD]


async def test_orders_without_an_end_are_bounded_for_each_customer_of_a_venue(hub: Hub, key: MintedKey) -> None:
    def fill() -> None:
        venue = Venue.objects.get(slug="asked")
        of_venue = {"network": key.key.network, "venue": venue, "customer": key.key.customer, "state": State.OWED}
        due = {"next_attempt_at": db_now() + timedelta(hours=1)}
        Cancellation.objects.bulk_create(Cancellation(**of_venue, **due) for _ in range(UNSETTLED_ORDERS.most))

    await db_call(fill)()
    hub.venues.answering["asked"] = accepts
    refused = await hub.post(key, confirm())
    assert (error_of(refused), refused.headers["retry-after"]) == ("rate_limited", "30")
    assert hub.venues.asked == []
    owner = key.key.network.owner
    other = await db_call(mint_key)(owner, "k", tier=ApiKey.Tier.PRO, scope=Scope.BOOKING, customer="other")
    result_of(await hub.post(other, confirm()))
    await send(hub)
    result_of(await hub.post(key, confirm()))


async def test_a_venue_stays_while_it_is_to_be_told(hub: Hub, key: MintedKey) -> None:
    hub.venues.answering["asked"] = fails
    await hub.post(key, confirm())
    venue = await db_call(Venue.objects.select_related("network").get)(slug="asked")
    assert not await db_call(delete_venue)(venue)
    await send(hub)
    assert await db_call(delete_venue)(venue)


async def test_a_cancellation_is_repeated_until_it_is_acknowledged(hub: Hub, key: MintedKey) -> None:
    hub.venues.answering["asked"] = fails
    await hub.post(key, confirm())
    hub.venues.fails = EnvelopeRefused(ErrorCode.VENUE_UNREACHABLE, "not reached")
    hub.venues.fails.about = {"rule": "the reply: status: want one of cancelled, not_found"}
    await send(hub)
    [row] = await owed()
    assert (row.state, row.attempts) == (State.OWED, 1)
    assert row.last_error == hub.venues.fails.about["rule"]
    assert row.next_attempt_at
    await db_call(lambda: Cancellation.objects.update(attempts=len(RETRY_AFTER_S)))()
    await send(hub)
    [row] = await owed()
    assert (row.state, row.next_attempt_at) == (State.GIVEN_UP, None)


async def change(booking_id: str, status: Booking.Status) -> Booking:
    return await db_call(lambda: change_status(Booking.objects.get(public_id=booking_id), status))()


async def test_a_venue_is_told_when_the_owner_or_the_caller_cancels(hub: Hub, key: MintedKey) -> None:
    hub.venues.answering["asked"] = accepts
    by_owner, by_caller = [result_of(await hub.post(key, confirm()))["booking_id"] for _ in range(2)]
    not_asked = result_of(await hub.post(key, confirm("rows")))["booking_id"]
    for booking_id in (by_owner, not_asked):
        await change(booking_id, Booking.Status.CANCELLED)
    for _ in range(2):
        assert result_of(await hub.post(key, about(by_caller, "booking.cancel")))["status"] == "cancelled"
    rows = await owed()
    assert [(str(one.public_id), one.reason) for one in rows] == [
        (by_owner, Reason.OWNER),
        (by_caller, Reason.CALLER),
    ]
    await send(hub, is_due=False)
    told = [one.envelope.payload for one in hub.venues.asks if one.envelope.intent == "booking.cancel"]
    assert {one["booking_id"]: one["venue_booking_id"] for one in told} == {by_owner: "T-104", by_caller: "T-104"}


async def test_a_caller_reads_what_became_of_its_booking(hub: Hub, key: MintedKey) -> None:
    hub.venues.answering["asked"] = accepts
    sent = confirm()
    booked = result_of(await hub.post(key, sent))
    now = result_of(await hub.post(key, about(booked["booking_id"])))
    assert {name: now[name] for name in booked} == booked
    assert "present" not in result_of(await hub.post(key, sent))
    changed = await change(booked["booking_id"], Booking.Status.CONFIRMED)
    now = result_of(await hub.post(key, about(booked["booking_id"])))
    assert now["status"] == "confirmed"
    again = await hub.post(key, sent)
    assert again.headers["idempotent-replay"] == "true"
    assert result_of(again) == booked | {"present": {"status": "confirmed", "updated_at": now["updated_at"]}}
    await change(str(changed.public_id), Booking.Status.COMPLETED)
    assert error_of(await hub.post(key, about(booked["booking_id"], "booking.cancel"))) == "booking_ended"
    assert await owed() == []


async def test_a_booking_is_the_customers(hub: Hub, key: MintedKey, subtests: pytest.Subtests) -> None:
    booked = result_of(await hub.post(key, confirm("rows")))["booking_id"]
    owner, other_owner = key.key.network.owner, await db_call(User.objects.create)(login="other")
    mine, made = key.key.customer, {}
    for name, whose, scope, customer, code in (
        ("of the same customer", owner, Scope.BOOKING, mine, ""),
        ("of another customer", owner, Scope.BOOKING, "x", "booking_not_found"),
        ("of another network", other_owner, Scope.BOOKING, mine, "booking_not_found"),
        ("that only reads", owner, Scope.QUERY, mine, "scope_denied"),
    ):
        made[name] = await db_call(mint_key)(whose, "k", scope=scope, customer=customer)
        for intent in ("booking.status", "booking.cancel"):
            with subtests.test(name, intent=intent):
                answer = await hub.post(made[name], about(booked, intent))
                assert (error_of(answer) if code else result_of(answer)["booking_id"]) == (code or booked)
    await db_call(change_key)(key.key, customer="x")
    assert result_of(await hub.post(key, about(booked)))["booking_id"] == booked
    assert result_of(await hub.post(made["of the same customer"], about(booked)))["booking_id"] == booked
    assert error_of(await hub.post(made["of another customer"], about(booked))) == "booking_not_found"


async def test_orders_about_a_booking_go_to_the_network_and_name_it(hub: Hub, key: MintedKey) -> None:
    assert error_of(await hub.post(key, about("no-uuid"))) == "booking_not_found"
    assert error_of(await hub.post(key, envelope("booking.cancel", {}))) == "invalid_envelope"
    to_a_venue = about("x", "booking.cancel") | {"to": "asked", "timestamp": stamp()}
    assert error_of(await hub.post(key, to_a_venue)) == "invalid_envelope"
