"""`Agent` as a library: an asyncio program that is itself the agent."""

import asyncio
import gc
from itertools import islice

import pytest
from websockets.asyncio.client import connect
from websockets.asyncio.server import serve

from clawbridge.connect import Agent, AnswerFailed, Ending, echo
from clawbridge.connect.agent import delays_s
from clawbridge.connect.connection import HubConnection
from clawbridge.connect.replies import MAX_CHUNK_CHARS, Chunks

TOKEN = "ck_live_test"


async def test_it_tells_when_it_is_online_and_stops_when_told(hub):
    welcomes = asyncio.Queue()
    agent = Agent(hub=hub.url, token=TOKEN, answer=echo, streams=False, on_welcome=welcomes.put_nowait)
    run = asyncio.create_task(agent.run())
    visit = await hub.welcome(name="demo")
    assert (await welcomes.get()).routing_name == "demo"
    await visit.ask("hi")
    assert (await visit.receive())["payload"] == {"chatId": "c1", "text": "hi"}
    await agent.stop()
    assert await run is Ending.STOPPED
    assert (visit.socket.close_code, visit.socket.close_reason) == (1000, "stop")


async def test_cancelling_it_closes_the_answer_and_the_socket(hub):
    events = asyncio.Queue()

    async def answer(question):
        try:
            yield "begun"
            await asyncio.sleep(60)
        finally:
            await asyncio.sleep(0)
            events.put_nowait("closed")

    run = asyncio.create_task(Agent(hub=hub.url, token=TOKEN, answer=answer).run())
    visit = await hub.welcome()
    await visit.ask("hi")
    assert (await visit.receive())["payload"]["text"] == "begun"
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run
    assert events.get_nowait() == "closed"
    assert visit.socket.close_code == 1000


async def test_two_open_questions_of_one_chat_id_are_both_answered(library):
    both_begun, failures = asyncio.Barrier(2), []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: failures.append(context))

    async def answer(question):
        await both_begun.wait()
        yield question.text

    visit = await library(answer, streams=False)
    for text in ("first", "second"):
        await visit.ask(text)
    assert {(await visit.receive())["payload"]["text"] for _ in range(2)} == {"first", "second"}
    gc.collect()  # reports the exception of a task that no other waits for
    assert not failures


async def test_a_refusal_that_came_before_the_registration_is_read():
    async def refuse(socket):
        await socket.send('{"type": "error", "code": "auth_failed", "message": "no live channel token"}')
        await socket.close(1008)

    async with serve(refuse, "127.0.0.1", 0) as server, asyncio.timeout(10):
        port = server.sockets[0].getsockname()[1]
        socket = await connect(f"ws://127.0.0.1:{port}")
        await socket.wait_closed()
        options = {"answer": echo, "streams": False, "silence_s": 5, "on_welcome": lambda welcome: None}
        assert await HubConnection(socket, **options).serve("{}") is Ending.REFUSED


async def test_stopping_before_the_hub_answers_is_quick():
    agent = Agent(hub="http://127.0.0.1:1", token=TOKEN, answer=echo)
    run = asyncio.create_task(agent.run())
    await asyncio.sleep(0)
    await agent.stop()
    assert await run is Ending.STOPPED


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (AnswerFailed("no idea"), "so far\nno idea"),
        (RuntimeError("secret"), "so far\nthe agent failed to answer"),
    ],
)
async def test_a_failed_answer_ends_in_words(library, error, expected):
    async def answer(question):
        yield "so far"
        raise error

    visit = await library(answer)
    assert await visit.answer("hi") == expected


async def test_a_silent_hub_is_left_and_visited_again(hub):
    agent = Agent(hub=hub.url, token=TOKEN, answer=echo, silence_s=0.2)
    run = asyncio.create_task(agent.run())
    await hub.welcome()
    assert (await (await hub.next_visit()).receive())["type"] == "register"
    await agent.stop()
    await run


async def test_a_hub_that_cannot_be_reached_is_tried_again():
    tries = asyncio.Queue()

    def hang_up(reader, writer):
        tries.put_nowait("try")
        writer.close()

    async with await asyncio.start_server(hang_up, "127.0.0.1") as server:
        port = server.sockets[0].getsockname()[1]
        agent = Agent(hub=f"http://127.0.0.1:{port}", token=TOKEN, answer=echo)
        run = asyncio.create_task(agent.run())
        for _ in range(2):
            async with asyncio.timeout(30):
                await tries.get()
        await agent.stop()
        assert await run is Ending.STOPPED


async def test_at_most_twenty_questions_are_answered_at_once(library):
    begun, go_on = asyncio.Queue(), asyncio.Event()

    async def answer(question):
        begun.put_nowait(question.chat_id)
        await go_on.wait()
        yield "ok"

    visit = await library(answer, streams=False)
    for number in range(25):
        await visit.ask("hi", f"c{number}")
    await visit.send(type="ping", ts="now")
    assert await visit.receive() == {"type": "pong", "ts": "now"}
    assert begun.qsize() == 20
    go_on.set()
    replied = {(await visit.receive())["payload"]["chatId"] for _ in range(25)}
    assert replied == {f"c{number}" for number in range(25)}


def test_the_waits_grow_to_a_minute_and_vary_by_a_fifth():
    assert list(islice(delays_s(lambda: 0.0), 8)) == [1, 2, 5, 15, 30, 60, 60, 60]
    assert next(delays_s(lambda: 1.0)) == 1.2


def test_any_reply_of_a_megabyte_fits_in_1000_chunks():
    chunks, taken = Chunks(), 0
    for _ in range(1_000_000):
        chunks.add("x")
        if chunks.is_full or chunks.linger_s is not None:
            assert len(chunks.take()) <= MAX_CHUNK_CHARS
            taken += 1
    assert taken + 1 < 1000
