"""A server that fails in a row is left alone, by every process, and tried again by one call."""

import asyncio

import pytest

from agents.core.errors import Denied, Offline
from agents.models import Agent
from agents.models.choices import Outcome
from agents.models.session import is_online
from kit.async_db import db_call
from lab.waiting import eventually
from tests.remote.caller import Caller, server_of
from tests.remote.servers import SSE_HEAD, Asked, as_http, frame, raw_server

SAID = {"message": {"role": "ROLE_AGENT", "parts": [{"text": "fine"}]}}


class Moody:
    """Fails while it is `ill`; `slow` answers when told."""

    def __init__(self) -> None:
        self.is_ill = True
        self.calls = 0
        self.go: asyncio.Event | None = None

    async def answer(self, asked: Asked, writer: asyncio.StreamWriter) -> None:
        self.calls += 1
        if self.go is not None:
            await asyncio.wait_for(self.go.wait(), 20)
        writer.write(as_http(b"", status="503 Ill") if self.is_ill else SSE_HEAD + frame(asked, SAID))


async def test_it_opens_after_five_failures_and_closes_when_it_answers(caller: Caller) -> None:
    moody = Moody()
    async with raw_server(moody.answer) as far:
        agent = await caller.publish(far.card_url)
        for _ in range(5):
            assert await _is_online(agent)
            assert (await caller.ask(agent, "hello")).reason == "agent_failed"
        assert not await _is_online(agent)
        with pytest.raises(Offline):
            await caller.start(agent, "hello")
        assert moody.calls == 5
        server = await server_of(agent)
        assert server.opens == 1
        assert server.last_failure == "the remote agent answered with HTTP 503"
        await eventually(lambda: _is_online(agent), "half-open")
        await caller.ask(agent, "the trial fails")
        again = await server_of(agent)
        assert (again.opens, moody.calls) == (2, 6)
        assert not await _is_online(agent)
        moody.is_ill = False
        await eventually(lambda: _is_online(agent), "half-open")
        assert (await caller.ask(agent, "the trial works")).text == "fine"
        await eventually(lambda: _is_closed(agent), "closed")
        assert (await caller.ask(agent, "hello")).outcome == Outcome.COMPLETED


async def test_one_call_tries_while_the_others_wait(caller: Caller) -> None:
    moody = Moody()
    async with raw_server(moody.answer) as far:
        agent = await caller.publish(far.card_url)
        for _ in range(5):
            await caller.ask(agent, "hello")
        await eventually(lambda: _is_online(agent), "half-open")
        moody.is_ill, moody.go, before = False, asyncio.Event(), moody.calls
        started = [await _try(caller, agent) for _ in range(3)]
        await eventually(lambda: _more_calls(moody, before), "the trial")
        moody.go.set()
        ends = [await running.settled for running in started if running is not None]  # type: ignore[attr-defined]
        assert [end.text for end in ends if end.outcome == Outcome.COMPLETED] == ["fine"]
        assert {end.reason for end in ends if end.outcome == Outcome.FAILED} <= {"not_delivered"}
        assert moody.calls == before + 1


async def test_what_an_agent_declines_is_no_failure_of_its_server(caller: Caller) -> None:
    async def answer(asked: Asked, writer: asyncio.StreamWriter) -> None:
        writer.write(as_http(b"{}", status="401 No"))

    async with raw_server(answer) as far:
        agent = await caller.publish(far.card_url)
        for _ in range(7):
            settled = await caller.ask(agent, "hello")
            assert "credentials" in settled.text
        assert await _is_online(agent)


async def test_no_server_there_counts_too(caller: Caller) -> None:
    async with raw_server(Moody().answer) as far:
        agent = await caller.publish(far.card_url)
    for _ in range(5):
        assert (await caller.ask(agent, "hello")).reason == "not_delivered"
    with pytest.raises(Offline):
        await caller.start(agent, "hello")


async def _try(caller: Caller, agent: Agent) -> object:
    try:
        return await caller.start(agent, "hello")
    except Denied:
        return None


async def _is_online(agent: Agent) -> bool:
    return await db_call(is_online)(agent.session_id)


async def _is_closed(agent: Agent) -> bool:
    return (await server_of(agent)).retry_at is None


async def _more_calls(moody: Moody, before: int) -> bool:
    return moody.calls > before
