"""Callers of the fault suite read answers that are none."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
import pytest

from lab.agents import Echo, online
from lab.callers import web
from lab.faults.request_kinds import REQUEST_KINDS, ask
from lab.faults.requests import LoadRequest
from lab.hub_process import HubProcess
from tests.listening import listening

QUESTION = LoadRequest("bob/a", "token", "n1 what did I say?", "m-1")


@asynccontextmanager
async def serving(answer: bytes) -> AsyncIterator[str]:
    """A server that says the same whatever it is asked, and hangs up."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        await writer.drain()
        writer.close()

    async with listening(serve) as port:
        yield f"http://127.0.0.1:{port}"


async def test_every_kind_reads_the_reply_of_an_agent_and_why_there_is_none(
    embedded_hub: HubProcess, subtests: pytest.Subtests
) -> None:
    token = embedded_hub.mint("alice", "session")
    async with web(embedded_hub.url) as client:
        async with online(embedded_hub, Echo) as agent:
            for number, kind in enumerate(REQUEST_KINDS):
                with subtests.test(kind=kind):
                    question = LoadRequest(agent.handle, token, f"n{number} what?", f"m-{number}")
                    answer = await ask(client, kind, question)
                    assert (answer.outcome, answer.text) == ("completed", f"echo: {question.text}")
        for number, kind in enumerate(REQUEST_KINDS):
            with subtests.test(kind=kind):
                question = LoadRequest(agent.handle, token, f"n{number} again?", f"again-{number}")
                answer = await ask(client, kind, question)
                assert (answer.outcome, "offline" in answer.text) == ("failed", True), answer
            with subtests.test(kind=kind, token="none"):
                stranger = LoadRequest(agent.handle, "cw_sess_" + "0" * 32, "n what?", f"strange-{number}")
                answer = await ask(client, kind, stranger)
                assert answer.outcome == "refused", answer


async def test_an_answer_that_is_no_json_keeps_its_status_and_one_that_breaks_off_is_broken() -> None:
    failure = b"HTTP/1.1 500 Oops\r\nContent-Type: text/plain\r\nContent-Length: 8\r\n\r\nServer E"
    cut_off = b"HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\n{"
    for said, outcome, status in ((failure, "refused", 500), (cut_off, "broken", 0)):
        async with serving(said) as url, web(url) as client:
            for kind in REQUEST_KINDS:
                answer = await ask(client, kind, QUESTION)
                assert (answer.outcome, answer.status) == (outcome, status), kind


async def test_who_cannot_connect_in_time_has_sent_nothing(unused_tcp_port: int) -> None:
    address = ("127.0.0.1", unused_tcp_port)
    with socket.create_server(address, backlog=0), socket.create_connection(address):
        async with web(f"http://127.0.0.1:{unused_tcp_port}") as client:
            client.timeout = httpx.Timeout(30, connect=0.3)  # the kernel accepts one, and no program does
            answer = await ask(client, "v1", QUESTION)
    assert answer.outcome == "unsent"
    assert "Timeout" in answer.text
