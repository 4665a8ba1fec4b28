"""Clients in use give up after 5 s of silence; the hub is never silent that long."""

import json
import time

import httpx
import pytest

from tests.callers import Json, bearer, envelope, open_stream, question, reply_text, rpc_path
from tests.hub_process import HubProcess
from tests.openclaw.caller import message
from tests.peers import Echo, Slow, TaskPeer, online

GIVES_UP_AFTER_S = 5
THINKS_S = 6.5


@pytest.mark.slow
async def test_a_slow_answer_begins_with_spaces_and_is_json_all_the_same(hub: HubProcess, alice: str) -> None:
    body = envelope("SendMessage", question("hello"))
    async with (
        online(hub, Slow, delay_s=THINKS_S) as agent,
        httpx.AsyncClient(timeout=GIVES_UP_AFTER_S, trust_env=False) as client,
    ):
        response = await client.post(hub.url + rpc_path(agent.handle), json=body, headers=bearer(alice))
    assert response.status_code == 200
    assert response.headers["content-type"].startswith("application/json")
    assert "content-length" not in response.headers
    assert response.text.startswith("  {")
    assert reply_text(json.loads(response.text)["result"]) == "echo: hello"


async def test_a_quick_answer_has_a_length_and_no_padding(hub: HubProcess, alice: str) -> None:
    body = envelope("SendMessage", question("hello"))
    async with online(hub, Echo) as agent, httpx.AsyncClient(trust_env=False) as client:
        response = await client.post(hub.url + rpc_path(agent.handle), json=body, headers=bearer(alice))
    assert response.text.startswith("{")
    assert int(response.headers["content-length"]) == len(response.content)


@pytest.mark.slow
async def test_a_silent_stream_carries_comments_until_its_end(hub: HubProcess, alice: str) -> None:
    async with (
        online(hub, Slow, delay_s=THINKS_S) as agent,
        open_stream(hub.url, agent.handle, "hello", alice) as answer,
    ):
        first = await answer.next_line()
        began = time.monotonic()
        assert (await answer.next_line()).startswith(":")
        assert time.monotonic() - began < GIVES_UP_AFTER_S
        last = [task async for task in answer.tasks()][-1]
    assert json.loads(first.removeprefix("data: "))["task"]["status"]["state"] == "WORKING"
    assert len(answer.comments) == 1
    assert reply_text(last) == "echo: hello"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("message/stream", {"message": message(" | ".join(["rest 1 | say a"] * 7))}),
        ("SendStreamingMessage", question(" | ".join(["rest 1 | text a1 b"] * 7))),
    ],
    ids=["words of a reply that is no task", "artifacts in the hub's own dialect"],
)
async def test_what_makes_no_frame_ends_no_silence(hub: HubProcess, alice: str, method: str, params: Json) -> None:
    """Something comes every second, and nothing of it is shown."""
    async with (
        online(hub, TaskPeer) as agent,
        httpx.AsyncClient(timeout=GIVES_UP_AFTER_S, trust_env=False) as client,
    ):
        body, url = envelope(method, params), hub.url + rpc_path(agent.handle)
        async with client.stream("POST", url, json=body, headers=bearer(alice)) as response:
            lines = [line async for line in response.aiter_lines() if line]
    assert [line for line in lines if line.startswith(":")] == [": keep-alive"] * 2
    assert lines[-1].startswith("data: ")
