"""A relay is transparent in 0.3: a caller gets what the official server 0.3.26 answers to a direct question."""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from lab.callers import bearer, rpc_path
from lab.hub_process import HubProcess
from tests.remote.older_turns import Json, Turn, play, server_03
from tests.sdks.environments import Missing

# What the server's card says, and whether the caller asks for a stream; the deep one has a half of each other.
WAYS = [("streams", True), ("answers", False), pytest.param("streams", False, marks=pytest.mark.deep)]
pytestmark = pytest.mark.parametrize("near", ["embedded"], indirect=True)


@dataclass(frozen=True)
class Relay:
    """The server, and a hub that publishes it twice: as one that streams, and as one that does not."""

    hub: HubProcess
    far_url: str

    async def both(self, card: str, turns: list[Turn], *, streams: bool) -> tuple[list[Any], list[Any]]:
        """The answers to a caller directly, and through the hub."""
        url = self.hub.url + rpc_path(f"owner03/{card}")
        token = self.hub.mint("alice", "session")
        return await asyncio.gather(
            play(f"{self.far_url}/{card}", turns, streams=streams),
            play(url, turns, streams=streams, token=token),
        )


@pytest.fixture(scope="module")
def relay(near: HubProcess, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Relay]:
    """One server and one hub for all tests."""
    log: Path = tmp_path_factory.mktemp("server-03") / "log"
    try:
        with server_03(log) as far_url, httpx.Client(base_url=near.url, timeout=30) as http:
            for card in ("streams", "answers"):
                place = {"cardUrl": f"{far_url}/{card}/card.json"}
                body = {"name": "Far", "slug": card, "status": "published", "remote": place}
                made = http.post("/api/v1/agents", json=body, headers=bearer(near.mint("owner03", "session")))
                assert made.status_code == 201, made.text
            yield Relay(near, far_url)
    except Missing as missing:
        pytest.skip(str(missing))


def text(words: str, **more: Any) -> Json:
    return {"kind": "text", "text": words, **more}


def data(value: Json) -> Json:
    return {"kind": "data", "data": value}


def state(name: str, *parts: Json | str, **message: Any) -> Json:
    """A status-update, with a message if there are parts."""
    status: Json = {"state": name}
    if parts:
        said = [text(part) if isinstance(part, str) else part for part in parts]
        status["message"] = {"parts": said, **message}
    return {"status": status, "final": name != "working"}


def made(artifact_id: str, *parts: Json | str, append: bool = False, last: bool = False, **artifact: Any) -> Json:
    """An artifact-update."""
    said = [text(part) if isinstance(part, str) else part for part in parts]
    return {
        "artifact": {"artifactId": artifact_id, "parts": said, **artifact},
        "append": append,
        "lastChunk": last,
    }


BYTES = {"kind": "file", "file": {"bytes": "YWJj", "name": "a.bin", "mimeType": "application/octet-stream"}}
URI = {"kind": "file", "file": {"uri": "https://files.example/a", "name": "a.png", "mimeType": "image/png"}}
DONE = state("completed")
RICH: Json = {
    "parts": [text("hi", metadata={"a": 1}), data({"k": 1}), BYTES],
    "metadata": {"m": 1},
    "extensions": ["https://extensions.example/x"],
}
TURNS: dict[str, list[Turn]] = {
    "a message": [[{"message": {"parts": [text("hi")]}}]],
    "a message of all kinds": [[{"message": RICH}]],
    "words": [[state("working"), state("completed", "done")]],
    "words of all kinds": [[state("completed", "see", data({"k": 1}), URI, metadata={"m": 1})]],
    "an artifact": [[state("working"), made("a", "one", name="n", description="d", last=True), DONE]],
    "an artifact that no event closes": [[made("a", "one"), DONE]],
    "an artifact and words": [[state("working"), made("a", "one"), state("completed", "done")]],
    "chunks": [[made("a", "1 "), made("a", "2 ", append=True), made("a", "3", append=True, last=True), DONE]],
    "two artifacts": [[made("a", "one", last=True), made("b", "two", last=True), DONE]],
    "a replaced artifact": [[made("a", "draft"), made("a", "final"), DONE]],
    "data": [[made("d", data({"pages": 2})), DONE]],
    "files": [[made("f", BYTES, URI), DONE]],
    "an artifact with metadata": [[made("a", text("x", metadata={"p": 1}), metadata={"m": 1}), DONE]],
    "an artifact with extensions": [[made("a", "x", extensions=["https://extensions.example/x"]), DONE]],
    "notes": [[state("working", "reading"), state("working", "thinking"), made("a", "one"), DONE]],
    "notes and words": [[state("working", "reading"), state("working", "thinking"), state("completed", "done")]],
    "a note of all kinds": [[state("working", "see", data({"k": 1}), metadata={"m": 1}), made("a", "one"), DONE]],
    "metadata of a state": [
        [
            state("working", "m") | {"metadata": {"s": 1}},
            state("working") | {"metadata": {"t": 1}},
            made("a", "x"),
            DONE | {"metadata": {"e": [1]}},
        ]
    ],
    "metadata of a failure": [[state("failed", "broke") | {"metadata": {"code": 7}}]],
    "metadata of a question": [
        [state("input-required", "which?") | {"metadata": {"form": 1}}],
        [state("completed", "ok")],
    ],
    "empty texts": [[made("a", ""), state("completed", "")]],
    "a failure": [[state("working"), state("failed", "out of paper")]],
    "a failure with data": [[state("failed", "broke", data({"code": 7}), metadata={"m": 1})]],
    "a failure after a part of the reply": [[made("a", "one "), state("failed", "broke")]],
    "a refusal": [[state("rejected", "not on Sundays")]],
    "a cancel of its own": [[state("working"), state("canceled", "stopped")]],
    "a question back": [[state("input-required", "which?")], [made("a", "red"), DONE]],
    "a question back with data": [
        [state("input-required", "which?", data({"form": [1]}))],
        [state("completed", "ok")],
    ],
    "a sign-in": [[state("auth-required", "sign in")], [state("completed", "ok")]],
}


@pytest.mark.parametrize(("card", "streams"), WAYS)
@pytest.mark.parametrize("turns", TURNS.values(), ids=TURNS)
async def test_a_turn_is_the_same_through_the_hub(
    relay: Relay, turns: list[Turn], card: str, streams: bool
) -> None:
    direct, through = await relay.both(card, turns, streams=streams)
    assert through == direct


SILENT = {
    "completed": "The agent completed without a user-visible reply.",
    "failed": "the remote agent failed",
    "rejected": "the remote agent refused the question",
    "canceled": "the remote agent canceled the task",
}


@pytest.mark.parametrize(("card", "streams"), WAYS)
@pytest.mark.parametrize("end", SILENT)
async def test_the_hub_adds_a_sentence_to_an_end_without_a_message(
    relay: Relay, end: str, card: str, streams: bool
) -> None:
    direct, through = await relay.both(card, [[state(end)]], streams=streams)
    assert direct[-1]["status"] == {"state": end}
    said = {"kind": "message", "role": "agent", "parts": [text(SILENT[end])]}
    assert through[-1]["status"] == {"state": end, "message": said}
