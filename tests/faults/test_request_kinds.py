"""What callers of the fault suite make of answers that are none."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
import pytest

from lab.callers import web
from lab.faults.request_kinds import REQUEST_KINDS, AskRequest, ask
from tests.listening import listening

QUESTION = AskRequest("bob/a", "token", "n1 what did I say?", "m-1")


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


@pytest.mark.parametrize("kind", REQUEST_KINDS)
async def test_a_failure_that_is_no_json_keeps_its_status(kind: str) -> None:
    said = b"HTTP/1.1 500 Oops\r\nContent-Type: text/plain\r\nContent-Length: 8\r\n\r\nServer E"
    async with serving(said) as url, web(url) as client:
        answer = await ask(client, kind, QUESTION)
    assert (answer.outcome, answer.status) == ("refused", 500)


@pytest.mark.parametrize("kind", REQUEST_KINDS)
async def test_an_answer_that_breaks_off_is_broken(kind: str) -> None:
    async with serving(b"HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\n{") as url, web(url) as client:
        answer = await ask(client, kind, QUESTION)
    assert (answer.outcome, answer.status) == ("broken", 0)


async def test_who_cannot_connect_in_time_has_sent_nothing(unused_tcp_port: int) -> None:
    address = ("127.0.0.1", unused_tcp_port)
    with socket.create_server(address, backlog=0), socket.create_connection(address):
        async with web(f"http://127.0.0.1:{unused_tcp_port}") as client:
            client.timeout = httpx.Timeout(30, connect=0.3)  # the kernel accepts one, and no program does
            answer = await ask(client, "v1", QUESTION)
    assert answer.outcome == "unsent"
    assert "Timeout" in answer.text
