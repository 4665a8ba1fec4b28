"""Clients in use give up after 5 s of silence; the hub is never silent that long (see also test_real_speed)."""

import json
import time

import httpx
import pytest

from a2a_bridge.service.streams import KEEPALIVE_S
from lab.agents import Echo, Slow, TaskPeer, online
from lab.callers import TLS, Json, bearer, envelope, open_stream, question, reply_text, rpc_path
from lab.hub_process import HubProcess
from lab.waiting import on_hub
from tests.openclaw.caller import message

SILENCE_S = on_hub(KEEPALIVE_S, at_least_s=0.75)
THINKS_S = 2.7 * SILENCE_S  # longer than two silences, also when a busy machine delays the second


def steps(step: str) -> str:
    """Something to do for TaskPeer every third of a silence, for longer than two of them."""
    return " | ".join([f"rest {SILENCE_S / 3:.3f} | {step}"] * 8)


async def test_a_slow_answer_begins_with_spaces_and_is_json_all_the_same(hub: HubProcess, alice: str) -> None:
    body = envelope("SendMessage", question("hello"))
    began = time.monotonic()
    async with (
        online(hub, Slow, delay_s=THINKS_S) as agent,
        httpx.AsyncClient(trust_env=False, verify=TLS) as client,
    ):
        response = await client.post(hub.url + rpc_path(agent.handle), json=body, headers=bearer(alice))
    assert response.status_code == 200
    assert response.headers["content-type"].startswith("application/json")
    assert "content-length" not in response.headers
    spaces = len(response.text) - len(response.text.lstrip(" "))
    assert 2 <= spaces <= (time.monotonic() - began) / SILENCE_S
    assert reply_text(json.loads(response.text)["result"]) == "echo: hello"


async def test_a_quick_answer_has_a_length_and_no_padding(hub: HubProcess, alice: str) -> None:
    body = envelope("SendMessage", question("hello"))
    async with online(hub, Echo) as agent, httpx.AsyncClient(trust_env=False, verify=TLS) as client:
        for _ in range(5):  # on a busy machine one may take as long as a silence
            began = time.monotonic()
            response = await client.post(hub.url + rpc_path(agent.handle), json=body, headers=bearer(alice))
            if time.monotonic() - began < SILENCE_S:
                break
    assert response.text.startswith("{")
    assert int(response.headers["content-length"]) == len(response.content)


async def test_a_silent_stream_carries_comments_until_its_end(hub: HubProcess, alice: str) -> None:
    began = time.monotonic()
    async with (
        online(hub, Slow, delay_s=THINKS_S) as agent,
        open_stream(hub.url, agent.handle, "hello", alice) as answer,
    ):
        first = await answer.next_line()
        assert (await answer.next_line()).startswith(":")
        last = [task async for task in answer.tasks()][-1]
    assert json.loads(first.removeprefix("data: "))["task"]["status"]["state"] == "WORKING"
    assert 2 <= 1 + len(answer.comments) <= (time.monotonic() - began) / SILENCE_S
    assert reply_text(last) == "echo: hello"


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("message/stream", {"message": message(steps("say a"))}),
        ("SendStreamingMessage", question(steps("text a1 b"))),
    ],
    ids=["words of a reply that is no task", "artifacts in the hub's own dialect"],
)
async def test_what_makes_no_frame_ends_no_silence(hub: HubProcess, alice: str, method: str, params: Json) -> None:
    """Something comes all the time, and nothing of it is shown."""
    began = time.monotonic()
    async with online(hub, TaskPeer) as agent, httpx.AsyncClient(trust_env=False, verify=TLS) as client:
        body, url = envelope(method, params), hub.url + rpc_path(agent.handle)
        async with client.stream("POST", url, json=body, headers=bearer(alice)) as response:
            lines = [line async for line in response.aiter_lines() if line]
    comments = [line for line in lines if line.startswith(":")]
    assert comments == [": keep-alive"] * len(comments)
    assert 2 <= len(comments) <= (time.monotonic() - began) / SILENCE_S
    assert lines[-1].startswith("data: ")
