"""Requests of Django get their turn by account, one thread each, or by address."""

import asyncio
from collections.abc import Callable

import pytest

from hub.limits import REQUESTS
from hub.request_turns import (
    BUSY_S,
    MOST_USED_S,
    OF_ADDRESS,
    OF_NEW_TOKENS,
    OVERUSED_S,
    SHARE,
    RequestTurn,
    RequestTurns,
)
from kit.asgi import ClientLeft, Message, Receive, RequestRefused, Scope

ALICE, BOB = 1, 2
LONG_S = 1.3


def scope_of(token: str = "", address: str = "192.0.2.1") -> Scope:
    headers = [(b"authorization", f"Bearer {token}".encode())] if token else []
    return {"type": "http", "headers": headers, "client": (address, 4711)}


async def stay() -> Message:
    await asyncio.Event().wait()
    raise AssertionError


async def leave() -> Message:
    return {"type": "http.disconnect"}


class Visits:
    """Requests of several accounts, with a clock that the test moves."""

    def __init__(self, share_percent: int = 0) -> None:
        self.now_s = 0.0
        self.turns = RequestTurns(share_percent, clock=lambda: self.now_s)

    async def sign_in(self, token: str, user_id: int) -> None:
        """Serve a first request, by which the hub learns whose token it is."""
        self.turns.end(await self.turns.begin(scope_of(token), stay), 0.0, user_id)

    async def begin(self, token: str, receive: Receive = stay) -> RequestTurn:
        return await self.turns.begin(scope_of(token), receive)

    async def begin_many(self, number: int, token: str) -> list[RequestTurn]:
        return [await self.begin(token) for _ in range(number)]


@pytest.fixture
async def visits() -> Visits:
    visits = Visits()
    await visits.sign_in("alice", ALICE)
    await visits.sign_in("alice-too", ALICE)
    await visits.sign_in("bob", BOB)
    return visits


async def waits(start: Callable[[], asyncio.Task[RequestTurn]]) -> asyncio.Task[RequestTurn]:
    """A request that was started, and that waits."""
    task = start()
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert not task.done()
    return task


async def test_an_account_has_one_thread_for_all_its_tokens_and_others_are_served(visits: Visits) -> None:
    running = await visits.begin("alice")
    waiting = await waits(lambda: asyncio.create_task(visits.begin("alice-too")))
    await visits.begin("bob")
    visits.turns.end(running)
    await waiting


async def test_an_account_that_computes_much_has_a_nicer_thread_until_it_has_rested(visits: Visits) -> None:
    turn = await visits.begin("alice")
    assert not turn.is_busy
    visits.turns.end(turn, LONG_S)
    turn = await visits.begin("alice")
    assert turn.is_busy
    visits.now_s += (MOST_USED_S - BUSY_S) / SHARE + 1
    visits.turns.end(turn)
    assert not (await visits.begin("alice")).is_busy


async def test_an_address_that_computes_much_has_fewer_threads_until_it_has_rested(visits: Visits) -> None:
    for turn in await visits.begin_many(OF_ADDRESS.threads, ""):
        visits.turns.end(turn, LONG_S)
    running = await visits.begin_many(OF_ADDRESS.threads_while_busy, "")
    waiting = await waits(lambda: asyncio.create_task(visits.begin("")))
    visits.now_s += (MOST_USED_S - BUSY_S) / SHARE + 1
    visits.turns.end(running[0])
    await waiting
    await visits.begin_many(OF_ADDRESS.threads - len(running), "")


async def test_an_account_that_used_more_than_its_share_waits_until_it_has_rested() -> None:
    visits, short_s = Visits(share_percent=50), 0.1
    await visits.sign_in("alice", ALICE)
    await visits.sign_in("bob", BOB)
    visits.turns.end(await visits.begin("alice"), OVERUSED_S + short_s * 0.5)
    waiting = await waits(lambda: asyncio.create_task(visits.begin("alice")))
    await visits.begin("bob")
    visits.now_s += short_s * 1.01
    async with asyncio.timeout(10 * short_s):  # its own timer looks again
        visits.turns.end(await waiting)
    await visits.begin("alice")


async def test_requests_of_an_address_wait_for_no_share() -> None:
    visits = Visits(share_percent=50)
    visits.turns.end(await visits.begin(""), MOST_USED_S)
    await visits.begin("")


async def test_short_requests_make_no_account_busy(visits: Visits) -> None:
    for _ in range(1_000):
        visits.turns.end(await visits.begin("alice"), 0.002)
        visits.now_s += 0.01
    assert not (await visits.begin("alice")).is_busy


async def test_an_unknown_token_is_counted_by_the_address_of_its_client(visits: Visits) -> None:
    for number in range(OF_NEW_TOKENS.threads):
        await visits.begin(f"guessed-{number}")
    await waits(lambda: asyncio.create_task(visits.begin("guessed-once-more")))
    await visits.begin("alice")
    await visits.turns.begin(scope_of("guessed", address="192.0.2.2"), stay)


async def test_requests_that_waited_with_a_new_token_wait_for_its_user_once_the_user_is_known() -> None:
    visits = Visits(share_percent=25)
    first, second = await visits.begin_many(OF_NEW_TOKENS.threads, "alice")
    waiting = [await waits(lambda: asyncio.create_task(visits.begin("alice"))) for _ in range(3)]
    visits.turns.end(first, 0.0, ALICE)
    visits.turns.end(await waiting[0], OVERUSED_S + 1)
    visits.turns.end(second)
    await waits(lambda: waiting[1])
    await visits.begin("bob")


async def test_requests_without_a_token_have_more_threads_for_an_address(visits: Visits) -> None:
    await visits.begin_many(OF_ADDRESS.threads, "")
    await waits(lambda: asyncio.create_task(visits.begin("")))
    await visits.begin("alice")


async def test_a_request_that_waits_for_another_server_leaves_its_thread(visits: Visits) -> None:
    running = await visits.begin("alice")
    waiting = await waits(lambda: asyncio.create_task(visits.begin("alice")))
    visits.turns.release(running)
    await waiting
    more = await waits(lambda: asyncio.create_task(visits.begin("alice")))
    visits.turns.end(running)
    await asyncio.sleep(0)
    assert not more.done()
    more.cancel()


async def test_a_request_whose_client_left_is_not_served(visits: Visits) -> None:
    running = await visits.begin("alice")
    with pytest.raises(ClientLeft):
        await visits.begin("alice", leave)
    waiting = await waits(lambda: asyncio.create_task(visits.begin("alice")))
    visits.turns.end(running)
    await waiting


async def test_a_cancelled_request_leaves_its_turn_to_the_next(visits: Visits) -> None:
    running = await visits.begin("alice")
    first = await waits(lambda: asyncio.create_task(visits.begin("alice")))
    second = await waits(lambda: asyncio.create_task(visits.begin("alice")))
    visits.turns.end(running)
    first.cancel()
    await second
    with pytest.raises(asyncio.CancelledError):
        await first


async def test_too_many_requests_of_one_account_are_429(visits: Visits) -> None:
    waiting = [asyncio.create_task(visits.begin("alice")) for _ in range(REQUESTS.most)]
    await asyncio.sleep(0)
    with pytest.raises(RequestRefused, match="are under way") as refused:
        await visits.begin("alice")
    assert refused.value.status == 429
    await visits.begin("bob")
    for task in waiting:
        task.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)


async def test_a_call_for_an_account_takes_one_of_its_threads(visits: Visits) -> None:
    running = await visits.begin("alice")
    waiting = asyncio.create_task(visits.turns.call(ALICE, stay, divmod, 7, 2))
    await asyncio.sleep(0)
    assert await visits.turns.call(BOB, stay, divmod, 9, 2) == (4, 1)
    assert not waiting.done()
    visits.turns.end(running)
    assert await waiting == (3, 1)


async def test_a_slice_of_a_long_answer_is_a_turn_of_its_account(visits: Visits) -> None:
    async def read() -> tuple[str, float]:
        return "slice", LONG_S

    answered = await visits.begin("alice")
    visits.turns.end(answered)
    assert await visits.turns.read_slice(answered, read) == "slice"
    only = await visits.begin("alice-too")
    reading = asyncio.create_task(visits.turns.read_slice(answered, read))
    left = asyncio.create_task(visits.turns.read_slice(answered, read))
    await asyncio.sleep(0.01)
    assert [reading.done(), left.done()] == [False, False]
    left.cancel()
    visits.turns.end(only)
    assert await reading == "slice"
    await visits.begin("alice")


async def test_the_turn_of_a_slice_whose_client_left_lasts_until_its_thread_has_ended(visits: Visits) -> None:
    over: asyncio.Future[tuple[str, float]] = asyncio.get_running_loop().create_future()

    async def read() -> tuple[str, float]:
        return await over

    answered = await visits.begin("alice")
    visits.turns.end(answered)
    reading = asyncio.create_task(visits.turns.read_slice(answered, read))
    await asyncio.sleep(0)
    reading.cancel()
    waiting = await waits(lambda: asyncio.create_task(visits.begin("alice")))
    over.set_result(("slice", 0.0))
    await waiting
