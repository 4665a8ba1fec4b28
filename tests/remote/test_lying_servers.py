"""Servers that lie, flood, drip and redirect: the turn ends, with words, and nothing else happens."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from agents.models.choices import Outcome
from agents.transcript.pieces import ArtifactPiece, Part
from tests.remote.caller import Caller, spent_today
from tests.remote.servers import SSE_HEAD, Answer, Asked, as_http, frame, in_full, raw_server

TASK = {"id": "t1", "contextId": "c1"}
WORKING = {"task": {**TASK, "status": {"state": "TASK_STATE_WORKING"}}}
DONE = {"statusUpdate": {"taskId": "t1", "contextId": "c1", "status": {"state": "TASK_STATE_COMPLETED"}}}


def text(words: str, artifact: str = "a", **more: Any) -> dict[str, Any]:
    """An artifact of text, as an event."""
    shown = {"artifactId": artifact, "parts": [{"text": words}]}
    return {"artifactUpdate": {"taskId": "t1", "contextId": "c1", "artifact": shown, **more}}


def streaming(*results: Any) -> Answer:
    """Streams these events, then ends."""

    async def answer(asked: Asked, writer: asyncio.StreamWriter) -> None:
        writer.write(SSE_HEAD + b"".join(frame(asked, result) for result in results))

    return answer


def saying(raw: bytes) -> Answer:
    """Answers in these bytes."""

    async def answer(asked: Asked, writer: asyncio.StreamWriter) -> None:
        writer.write(raw)

    return answer


def event(raw: bytes) -> Answer:
    """Streams one event of these bytes."""
    return saying(SSE_HEAD + b"data: " + raw + b"\n\n")


def deep(levels: int) -> bytes:
    return b"[" * levels + b"]" * levels


LIES: dict[str, tuple[Answer, str]] = {
    "no event of A2A": (streaming({"nothing": {}}), "no event of A2A"),
    "two events in one": (streaming({**WORKING, **DONE}), "no event of A2A"),
    "a list": (streaming([WORKING]), "no event of A2A"),
    "a null": (streaming(None), "no event of A2A"),
    "half a frame": (saying(SSE_HEAD + b'data: {"jsonrpc": "2.0", "id"'), "ended without an answer"),
    "half of JSON": (event(b'{"jsonrpc": "2.0", "id": '), "not sound JSON"),
    "no JSON": (event(b"hello"), "not sound JSON"),
    "not UTF-8": (event(b'{"a": "\xff"}'), "not sound JSON"),
    "a NUL": (event(b'{"jsonrpc": "2.0", "id": "clawbridge", "result": {"a": "\\u0000"}}'), "not sound JSON"),
    "a lone surrogate": (event(b'{"a": "\\ud800"}'), "not sound JSON"),
    "a key twice": (event(b'{"a": 1, "a": 2}'), "not sound JSON"),
    "deep nesting": (event(deep(5000)), "not sound JSON"),
    "a huge number": (event(b'{"a": ' + b"9" * 10_000 + b"}"), "not sound JSON"),
    "another request's answer": (event(b'{"jsonrpc": "2.0", "id": 7, "result": {}}'), "another request"),
    "another task": (
        streaming(WORKING, {"statusUpdate": {**DONE["statusUpdate"], "taskId": "t2"}}),
        "another task",
    ),
    "endless ids": (streaming({"task": {"id": "x" * 300, "status": {"state": "working"}}}), "ids are over"),
    "no such state": (streaming({"task": {**TASK, "status": {"state": "TASK_STATE_HAPPY"}}}), "does not know"),
    "a part of two kinds": (
        streaming({"message": {"parts": [{"text": "a", "url": "b"}], "role": "ROLE_AGENT"}}),
        "part without content, or with several",
    ),
    "text that is a number": (streaming({"message": {"parts": [{"text": 5}]}}), "not as A2A writes it"),
    "an error": (
        event(b'{"jsonrpc": "2.0", "id": "clawbridge", "error": {"code": -32603, "message": "it broke"}}'),
        "error -32603: it broke",
    ),
    "an error that is none": (event(b'{"jsonrpc": "2.0", "id": 1, "error": "no"}'), "error 0"),
    "HTML": (saying(as_http(b"<p>hello", "text/html")), "text/html, which is not A2A"),
    "no type": (saying(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"), "no type"),
    "compressed": (saying(as_http(b"\x1f\x8b\x08", "application/json")), "not sound JSON"),
    "unauthorized": (saying(as_http(b"{}", status="401 No")), "does not accept the hub's credentials"),
    "not found": (saying(as_http(b"{}", status="404 No")), "HTTP 404"),
    "broken": (saying(as_http(b"x" * 1000, "text/plain", status="500 No")), "HTTP 500"),
    "a line without end": (saying(SSE_HEAD + b"data: " + b"x" * 5_000_000), "event over"),
    "an event without end": (saying(SSE_HEAD + (b"data: " + b"x" * 1000 + b"\n") * 5000), "event over"),
    "a long answer": (saying(as_http(b" " * 17_000_000)), "too long"),
    "a redirect": (
        saying(as_http(b"", status="307 Go", more="Location: http://127.0.0.1:1/\r\n")),
        "follows no redirect",
    ),
}


async def test_a_lie_ends_the_turn_with_words(caller: Caller, subtests: pytest.Subtests) -> None:
    for lie, (answer, words) in LIES.items():
        async with raw_server(answer) as far:
            settled = await caller.ask(await caller.publish(far.card_url), "hello")
        with subtests.test(lie=lie):
            assert (settled.outcome, settled.reason) == (Outcome.FAILED, "agent_failed")
            assert words in settled.text
            assert len(far.seen.requests) == 1


async def test_what_is_not_http_is_a_lost_channel(caller: Caller) -> None:
    for raw in (b"", b"HTTP/1.1 200 OK\r\n", b"hello\r\n\r\n", b"\x00" * 100):
        async with raw_server(saying(raw)) as far:
            settled = await caller.ask(await caller.publish(far.card_url), "hello")
        assert (settled.outcome, settled.reason) == (Outcome.FAILED, "channel_lost"), raw


async def test_an_endless_stream_ends_with_the_wait(caller: Caller) -> None:
    ended = asyncio.Event()

    async def answer(asked: Asked, writer: asyncio.StreamWriter) -> None:
        writer.write(SSE_HEAD + frame(asked, WORKING))
        try:
            while True:
                writer.write(b": still here\n\nevent: x\nid: 1\r\n\r\n")
                await writer.drain()
                await asyncio.sleep(0.01)
        finally:
            ended.set()

    async with raw_server(_once(answer)) as far:
        settled = await caller.ask(await caller.publish(far.card_url), "hello", wait_s=1)
        assert settled.reason == "timeout"
        await asyncio.wait_for(ended.wait(), 10)


async def test_a_flood_of_text_is_too_large(caller: Caller) -> None:
    flood = [text("x" * 100_000, append=number > 0) for number in range(12)]
    async with raw_server(streaming(WORKING, *flood, DONE)) as far:
        settled = await caller.ask(await caller.publish(far.card_url), "hello")
        assert settled.reason == "reply_too_large"


async def test_a_word_at_a_time_stays_within_the_pieces(caller: Caller) -> None:
    words = [text(f"{number} ", append=number > 0) for number in range(5000)]
    async with raw_server(streaming(WORKING, *words, DONE)) as far:
        running = await caller.start(await caller.publish(far.card_url), "hello")
        settled = await running.settled
        assert settled.text == "".join(f"{number} " for number in range(5000))
        assert len(running.pieces) < 1000


async def test_a_head_that_drips_ends_with_the_wait(caller: Caller) -> None:
    async def answer(asked: Asked, writer: asyncio.StreamWriter) -> None:
        for letter in SSE_HEAD * 1000:
            writer.write(bytes([letter]))
            await writer.drain()
            await asyncio.sleep(0.05)

    async with raw_server(answer) as far:
        settled = await caller.ask(await caller.publish(far.card_url), "hello", wait_s=1)
        assert settled.reason == "timeout"


async def test_a_stream_that_breaks_is_looked_up(caller: Caller) -> None:
    async def answer(asked: Asked, writer: asyncio.StreamWriter) -> None:
        if asked.json["method"] == "SendStreamingMessage":
            writer.write(SSE_HEAD + frame(asked, WORKING) + frame(asked, text("half ")))
            return
        artifact = {"artifactId": "a", "parts": [{"text": "half and whole"}]}
        done = {**TASK, "status": {"state": "TASK_STATE_COMPLETED"}, "artifacts": [artifact]}
        writer.write(in_full(asked, done))

    async with raw_server(answer) as far:
        running = await caller.start(await caller.publish(far.card_url), "hello")
        settled = await running.settled
        assert (settled.outcome, settled.text) == (Outcome.COMPLETED, "half and whole")
        assert running.pieces == [
            ArtifactPiece("a", (Part(text="half "),), lead=""),
            ArtifactPiece("a", (Part(text="half and whole"),), last_chunk=True, lead="\n\n"),
        ]


async def test_artifact_ids_stay_unless_they_are_empty_or_too_long(caller: Caller) -> None:
    odd = ["reply-1", "a/b", "x" * 100, "", "x" * 300, "fine.1"]
    events = [
        {
            "artifactUpdate": {
                "taskId": "t1",
                "artifact": {"artifactId": one, "parts": [{"data": {"n": number}}]},
            }
        }
        for number, one in enumerate(odd)
    ]
    async with raw_server(streaming(WORKING, *events, DONE)) as far:
        running = await caller.start(await caller.publish(far.card_url), "hello")
        assert (await running.settled).outcome == Outcome.COMPLETED
        assert [piece.artifact_id for piece in running.pieces] == [  # type: ignore[union-attr]
            "reply-1",
            "a/b",
            "x" * 100,
            "remote-4",
            "remote-5",
            "fine.1",
        ]


async def test_what_could_not_be_sent_is_given_back(caller: Caller) -> None:
    async with raw_server(streaming()) as far:
        agent = await caller.publish(far.card_url)
    settled = await caller.ask(agent, "hello")
    assert (settled.outcome, settled.reason) == (Outcome.FAILED, "not_delivered")
    assert await spent_today(agent) == 0


def _once(answer: Callable[[Asked, asyncio.StreamWriter], Awaitable[None]]) -> Answer:
    """Streams to the question; whatever else it is asked, it knows nothing of."""

    async def chosen(asked: Asked, writer: asyncio.StreamWriter) -> None:
        if asked.json["method"] == "SendStreamingMessage":
            await answer(asked, writer)
        else:
            writer.write(as_http(json.dumps({"jsonrpc": "2.0", "id": 1, "error": {"code": -32001}}).encode()))

    return chosen
