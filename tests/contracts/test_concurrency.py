"""Limits on how many long requests run at once, and what such a request holds meanwhile."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django import http
from django.db import connection
from django.http import HttpResponseBase, StreamingHttpResponse
from django.urls import path

from accounts.models import User
from agents.links.remote.card import NO_AUTH, BadCard, fetch_card
from hub.bounded_django import Application, BoundedDjango, OneThreadHandler, RequestSlots
from hub.request_turns import OF_ADDRESS, RequestTurn, RequestTurns
from kit.asgi import HttpRequest, Message, Receive, Scope, Send
from kit.async_db import request_call, stream_slices
from kit.concurrency import SLOTS_KEY, ConcurrencyLimit, TooManyAtOnce
from lab.waiting import eventually
from tests.remote.cards import serving_card
from webhooks.service.sending import check_url

KIND = "downloads"
WITHIN_S = 30
SCOPE: Scope = {
    "type": "http", "method": "GET", "path": "/users", "query_string": b"", "headers": [(b"host", b"localhost")],
}  # fmt: skip
IDLE: list[bool] = []  # whether the thread of a request held no connection, each time that a test looked


def limit(per_account: int = 2, per_process: int = 3) -> ConcurrencyLimit:
    return ConcurrencyLimit(KIND, per_account=per_account, per_process=per_process)


def test_one_more_than_an_account_may_have_is_429() -> None:
    counted = limit()
    for _ in range(2):
        counted.enter(1)
    with pytest.raises(TooManyAtOnce, match="2 downloads") as refused:
        counted.enter(1)
    assert refused.value.status == 429
    counted.leave(1)
    counted.enter(1)
    assert counted.running() == {1: 2}


def test_one_more_than_the_process_may_have_is_503() -> None:
    counted = limit()
    for account_id in (1, 2, 3):
        counted.enter(account_id)
    with pytest.raises(TooManyAtOnce) as refused:
        counted.enter(4)
    assert refused.value.status == 503
    counted.leave(2)
    counted.enter(4)
    assert counted.running() == {1: 1, 3: 1, 4: 1}


def test_0_is_no_limit() -> None:
    counted = limit(0, 0)
    for _ in range(1000):
        counted.enter(1)


def test_a_view_that_outlives_its_request_takes_nothing() -> None:
    counted = limit()
    slots = RequestSlots({KIND: counted})
    slots.take(KIND, 1)
    slots.release()
    slots.take(KIND, 1)
    assert counted.running() == {}


def make_bounded(application: Application, load: Callable[[], None], counted: ConcurrencyLimit) -> BoundedDjango:
    return BoundedDjango(
        application,
        path_prefix="",
        max_body_bytes=1,
        max_upload_bytes=1,
        limits={KIND: counted},
        turns=RequestTurns(),
        load=load,
    )


async def serve(bounded: BoundedDjango) -> None:
    """Serve one request, and ignore the answer."""

    async def receive() -> Message:
        return {"type": "http.request"}

    async def send(message: object) -> None:
        raise AssertionError(message)

    scope = {"type": "http", "method": "GET", "path": "/", "headers": []}
    await bounded.serve(HttpRequest(scope, receive), send)


async def test_early_requests_share_one_import_of_the_pages_and_wait_for_it() -> None:
    loads, may_end, passed = list[bool](), threading.Event(), list[bool]()

    def load() -> None:
        loads.append(True)
        assert may_end.wait(WITHIN_S)

    async def application(scope: Scope, receive: Receive, send: Send) -> None:
        passed.append(may_end.is_set())

    bounded = make_bounded(application, load, limit())
    early = [asyncio.create_task(serve(bounded)) for _ in range(3)]

    async def has_begun() -> bool:
        return bool(loads)

    await eventually(has_begun, "the import begins")
    early[0].cancel()
    await asyncio.gather(early[0], return_exceptions=True)
    may_end.set()
    await asyncio.gather(*early[1:], serve(bounded))
    assert (loads, passed) == ([True], [True] * 3)


async def test_pages_whose_import_failed_are_imported_again() -> None:
    loads, passed = list[bool](), list[bool]()

    def load() -> None:
        loads.append(True)
        if len(loads) == 1:
            raise OSError

    async def application(scope: Scope, receive: Receive, send: Send) -> None:
        passed.append(True)

    bounded = make_bounded(application, load, limit())
    with pytest.raises(OSError):
        await serve(bounded)
    await serve(bounded)
    await serve(bounded)
    assert (len(loads), len(passed)) == (2, 2)


@pytest.mark.parametrize("end", ["returns", "fails", "is cancelled"])
async def test_a_request_gives_its_slot_back_however_it_ends(end: str) -> None:
    counted = limit()
    taken, continues_task = asyncio.Event(), asyncio.Event()

    async def application(scope: Scope, receive: Receive, send: Send) -> None:
        scope[SLOTS_KEY](KIND, 1)
        taken.set()
        await continues_task.wait()
        if end == "fails":
            raise ZeroDivisionError

    bounded = make_bounded(application, lambda: None, counted)
    request = asyncio.create_task(serve(bounded))
    await taken.wait()
    assert counted.running() == {1: 1}
    if end == "is cancelled":
        request.cancel()
    continues_task.set()
    await asyncio.gather(request, return_exceptions=True)
    assert counted.running() == {}


def stream_users(request: http.HttpRequest) -> HttpResponseBase:
    """A view that asks the database itself, and again for each part of its answer."""
    User.objects.count()
    IDLE.append(is_idle())

    def slices() -> Iterator[str]:
        for _ in range(3):
            yield str(User.objects.count())

    return StreamingHttpResponse(stream_slices(slices()))


def is_idle() -> bool:
    """True if this thread has no connection."""
    return connection.connection is None


urlpatterns = [path("users", stream_users)]


@pytest.mark.django_db(transaction=True)
async def test_a_long_answer_holds_no_connection_while_it_is_taken(settings: Any) -> None:
    """Neither the view's own, nor one of the thread that reads the slices."""
    settings.ROOT_URLCONF = __name__
    IDLE.clear()
    sent: list[Message] = []
    received = iter([{"type": "http.request", "body": b""}])

    async def receive() -> Message:
        return next(received, None) or await asyncio.Future()  # the client stays

    async def send(message: Message) -> None:
        sent.append(message)
        IDLE.append(await request_call(is_idle)())

    await OneThreadHandler(RequestTurns())(SCOPE, receive, send)
    assert b"".join(one.get("body", b"") for one in sent) == b"000"
    assert [False, *[True] * len(sent)] == IDLE


@pytest.mark.django_db(transaction=True)
async def test_each_slice_of_a_long_answer_waits_for_a_turn_of_its_account(settings: Any) -> None:
    settings.ROOT_URLCONF = __name__
    turns, taken, sent, began = RequestTurns(), list[RequestTurn](), list[Message](), asyncio.Event()
    received = iter([{"type": "http.request", "body": b""}])

    async def receive() -> Message:
        return next(received, None) or await asyncio.Future()  # the client stays

    async def send(message: Message) -> None:
        sent.append(message)
        if not taken:
            taken.extend([await turns.begin(SCOPE, receive) for _ in range(OF_ADDRESS.threads)])
            began.set()

    answering = asyncio.create_task(OneThreadHandler(turns)(SCOPE, receive, send))
    await began.wait()
    await asyncio.sleep(0.1)
    assert len(sent) == 1
    turns.end(taken[0])
    await answering
    assert b"".join(one.get("body", b"") for one in sent) == b"000"


@pytest.mark.django_db(transaction=True)
async def test_an_answer_is_read_no_further_when_its_client_leaves(settings: Any) -> None:
    settings.ROOT_URLCONF = __name__
    IDLE.clear()
    sent: list[Message] = []
    has_left = asyncio.Event()
    received = iter([{"type": "http.request", "body": b""}])

    async def receive() -> Message:
        if message := next(received, None):
            return message
        await has_left.wait()
        return {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        sent.append(message)
        if len(sent) == 2:
            has_left.set()
            await asyncio.Future()  # what it did not take stays in the buffers

    await asyncio.wait_for(OneThreadHandler(RequestTurns())(SCOPE, receive, send), WITHIN_S)
    assert [one.get("body") for one in sent] == [None, b"0"]


@pytest.mark.django_db(transaction=True)
def test_no_connection_is_held_while_another_server_is_waited_for() -> None:
    with serving_card() as url:
        User.objects.count()
        assert connection.connection is not None
        with pytest.raises(BadCard):
            fetch_card(f"{url}/nowhere", NO_AUTH)
        assert connection.connection is None
    User.objects.count()
    check_url("https://1.1.1.1/")
    assert connection.connection is None
