"""What costs the hub much, or is refused, is slowed down: large bodies of one client, and refusals by a limit."""

import asyncio
import time
from collections.abc import Callable, Coroutine, Mapping
from typing import Any

import pytest

from kit.asgi import (
    LARGE_BODIES_A_SECOND,
    LARGE_BODY_BYTES,
    REFUSED_AFTER_S,
    HttpRequest,
    Message,
    RequestRefused,
    Send,
    respond_refused,
)
from kit.sockets import send_refusal
from openai_api.surface.answers import ChatAnswer
from openai_api.surface.forms import ChatWire

Refuse = Callable[[Send, int], Coroutine[Any, Any, None]]
BODY = b" " * (LARGE_BODIES_A_SECOND * 9 // 10)


def request_of(token: str, body: bytes) -> HttpRequest:
    async def receive() -> Message:
        return {"type": "http.request", "body": body, "more_body": False}

    headers = [(b"authorization", token.encode()), (b"content-type", b"application/json")]
    return HttpRequest({"type": "http", "method": "POST", "path": "/", "headers": headers}, receive)


async def read_s(token: str, body: bytes = BODY) -> float:
    """Seconds until the body was read."""
    began = time.monotonic()
    assert len(await request_of(token, body).read_checked(("POST",))) == len(body)
    return time.monotonic() - began


async def test_large_bodies_of_one_token_wait_for_each_other_and_no_others_wait() -> None:
    assert await read_s("Bearer large") + await read_s("Bearer large") < 0.5
    third = asyncio.create_task(read_s("Bearer large"))
    await asyncio.sleep(0)
    assert await read_s("Bearer other") < 0.5
    assert await read_s("Bearer large", b" " * LARGE_BODY_BYTES) < 0.5
    assert not third.done()
    assert await third >= 0.5


async def refuse_request(send: Send, status: int) -> None:
    await respond_refused(send, RequestRefused(status, "code", "text"))


async def refuse_socket(send: Send, status: int) -> None:
    await send_refusal(send, status, "code", "text")


async def refuse_chat(send: Send, status: int) -> None:
    request = request_of("", b"")
    answer = ChatAnswer(request.receive, send, ChatWire("https://hub.example"), [])
    await answer.fail(RequestRefused(status, "code", "text"))


@pytest.mark.parametrize("refuse", [refuse_request, refuse_socket, refuse_chat])
@pytest.mark.parametrize(("status", "is_late"), [(429, True), (404, False)])
async def test_a_refusal_by_a_limit_is_sent_later(refuse: Refuse, *, status: int, is_late: bool) -> None:
    async def send(message: Mapping[str, Any]) -> None:
        sent.append(message["type"])

    sent: list[str] = []
    began = time.monotonic()
    await refuse(send, status)
    assert len(sent) == 2
    assert (time.monotonic() - began >= REFUSED_AFTER_S * 0.9) is is_late
