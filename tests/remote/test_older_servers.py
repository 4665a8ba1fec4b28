"""A server of A2A 0.3, by hand: methods with slashes, parts with kinds."""

import asyncio
from datetime import timedelta
from typing import Any

from agents.links.remote.link import NO_TASK
from agents.links.remote.server_state import MAX_CONTEXTS
from agents.models import RemoteName, RemoteServer
from agents.models.choices import Outcome
from agents.transcript.pieces import ArtifactPiece, LastWords, Part, StatusNote
from lab.waiting import eventually
from tests.remote.caller import Caller, server_of
from tests.remote.servers import SSE_HEAD, Asked, Remote, card_03, frame, in_full, raw_server


class Older:
    """Asks for input once in each task, then is done; `hold` waits for its cancel."""

    def __init__(self) -> None:
        self.calls: list[dict[str, Any]] = []
        self.canceled = asyncio.Event()

    async def answer(self, asked: Asked, writer: asyncio.StreamWriter) -> None:
        call = asked.json
        self.calls.append(call)
        method, params = call["method"], call["params"]
        if method == "tasks/cancel":
            self.canceled.set()
            writer.write(in_full(asked, self._task("canceled")))
        elif method == "tasks/get":
            writer.write(in_full(asked, self._task("input-required")))
        elif method == "message/send":
            writer.write(in_full(asked, self._task("completed", artifacts=[self._artifact("in one")])))
        else:
            await self._stream(asked, params["message"], writer)

    async def _stream(self, asked: Asked, message: dict[str, Any], writer: asyncio.StreamWriter) -> None:
        word = message["parts"][0].get("text", "")
        if word == "direct":
            said = {
                "kind": "message",
                "role": "agent",
                "messageId": "m",
                "parts": [{"kind": "text", "text": "hi"}],
            }
            writer.write(SSE_HEAD + frame(asked, said))
            return
        writer.write(SSE_HEAD + frame(asked, self._task("working")))
        if word == "hold":
            await writer.drain()
            await asyncio.wait_for(self.canceled.wait(), 20)
            writer.write(frame(asked, self._status("canceled", final=True)))
        elif "taskId" in message:
            writer.write(frame(asked, self._event(self._artifact("all right"))))
            file = {"kind": "file", "file": {"bytes": "YWJj", "name": "a.bin", "mimeType": "x/y"}}
            writer.write(frame(asked, self._event({"artifactId": "f", "parts": [file]})))
            writer.write(frame(asked, self._status("completed", final=True)))
        else:
            writer.write(frame(asked, self._status("working", "thinking")))
            writer.write(frame(asked, self._status("input-required", "which one?", final=True)))

    def _task(self, state: str, **more: Any) -> dict[str, Any]:
        return {"kind": "task", "id": "t/1", "contextId": "c1", "status": {"state": state}, **more}

    def _status(self, state: str, words: str = "", *, final: bool = False) -> dict[str, Any]:
        status: dict[str, Any] = {"state": state}
        if words:
            parts = [{"kind": "text", "text": words}]
            status["message"] = {"kind": "message", "role": "agent", "messageId": "m", "parts": parts}
        return {"kind": "status-update", "taskId": "t/1", "contextId": "c1", "status": status, "final": final}

    def _artifact(self, words: str) -> dict[str, Any]:
        return {"artifactId": "a", "parts": [{"kind": "text", "text": words}]}

    def _event(self, artifact: dict[str, Any]) -> dict[str, Any]:
        return {"kind": "artifact-update", "taskId": "t/1", "contextId": "c1", "artifact": artifact}


async def test_a_conversation_in_its_words(caller: Caller) -> None:
    older = Older()
    async with raw_server(older.answer, card=card_03()) as far:
        agent = await caller.publish(far.card_url)
        ours = {"context_id": "our-context", "task_id": "our-task", "message_id": "asked-1"}
        running = await caller.start(agent, "begin", **ours)  # type: ignore[arg-type]
        asked = await running.settled
        assert (asked.reason, asked.text) == ("input_required", "which one?")
        assert running.pieces == [StatusNote("thinking"), LastWords((Part(text="which one?"),))]
        running = await caller.start(agent, "the red one", **ours)  # type: ignore[arg-type]
        assert (await running.settled).text == "all right"
        text, piece = running.pieces
        assert isinstance(text, ArtifactPiece)
        assert (text.artifact_id, text.parts) == ("a", (Part(text="all right"),))
        assert isinstance(piece, ArtifactPiece)
        assert piece.parts == (Part(raw="YWJj", filename="a.bin", media_type="x/y"),)
        first, looked, second = older.calls
        assert looked["method"] == "tasks/get"
        assert first["params"]["message"] == {
            "kind": "message",
            "messageId": first["params"]["message"]["messageId"],
            "role": "user",
            "parts": [{"kind": "text", "text": "begin"}],
            "metadata": {"clawbridge": {"messageId": "asked-1"}},
        }
        said = second["params"]["message"]
        assert (said["taskId"], said["contextId"]) == ("t/1", "c1")


async def test_parts_go_out_in_its_form(caller: Caller) -> None:
    older = Older()
    parts = [
        Part(text="look"),
        Part(data=[1, 2]),
        Part(url="https://x.example/a", media_type="a/b"),
        Part(raw="YQ==", filename="n", metadata={"k": 1}),
    ]
    async with raw_server(older.answer, card=card_03()) as far:
        await caller.ask(await caller.publish(far.card_url), "look", parts=parts)
    assert older.calls[0]["params"]["message"]["parts"] == [
        {"kind": "text", "text": "look"},
        {"kind": "data", "data": {"value": [1, 2]}, "metadata": {"data_part_compat": True}},
        {"kind": "file", "file": {"uri": "https://x.example/a", "mimeType": "a/b"}},
        {"kind": "file", "file": {"bytes": "YQ==", "name": "n"}, "metadata": {"k": 1}},
    ]


async def test_one_answer_and_a_direct_message(caller: Caller) -> None:
    for streams in (True, False):
        async with raw_server(Older().answer, card=card_03(streams=streams)) as far:
            running = await caller.start(await caller.publish(far.card_url), "direct")
            settled = await running.settled
            assert (settled.outcome, settled.text) == (Outcome.COMPLETED, "hi" if streams else "in one")
            assert running.is_direct is streams


async def test_a_cancel_reaches_it(caller: Caller) -> None:
    older = Older()
    async with raw_server(older.answer, card=card_03()) as far:
        running = await caller.start(await caller.publish(far.card_url), "hold")
        await eventually(lambda: _called(older, "message/stream"), "it holds")
        caller.dispatcher.cancel(running.ask.chat_id)
        assert (await running.settled).reason == "canceled"
        await asyncio.wait_for(older.canceled.wait(), 10)


async def test_what_the_hub_sends_with_each_call(caller: Caller) -> None:
    trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    async with raw_server(Older().answer, card=card_03()) as far:
        await caller.ask(await caller.publish(far.card_url), "direct", traceparent=trace)
        headers = _first(far)
        assert headers["traceparent"] == trace
        assert headers["a2a-version"] == "0.3"
        assert headers["host"] == far.url.removeprefix("http://")
        assert "authorization" not in headers


async def _called(older: Older, method: str) -> bool:
    return any(call["method"] == method for call in older.calls)


def _first(far: Remote) -> dict[str, str]:
    headers: dict[str, str] = far.seen.requests[0]["headers"]
    return headers


async def test_the_names_of_the_conversations_used_last_are_kept(caller: Caller) -> None:
    async with raw_server(Older().answer, card=card_03()) as far:
        agent = await caller.publish(far.card_url)
        await caller.ask(agent, "hello", context_id="one")
        one = await RemoteName.objects.aget(ours="one")
        await RemoteName.objects.abulk_create(
            RemoteName(
                server_id=one.server_id,
                caller_id=one.caller_id,
                kind=one.kind,
                ours=f"older-{number}",
                theirs="theirs",
                used_at=one.used_at - timedelta(seconds=number),
            )
            for number in range(1, MAX_CONTEXTS)
        )
        await caller.ask(agent, "hello", context_id="last")
    kept = {one async for one in RemoteName.objects.values_list("ours", flat=True)}
    assert len(kept) == MAX_CONTEXTS
    assert kept >= {"one", "last", f"older-{MAX_CONTEXTS - 2}"}
    assert f"older-{MAX_CONTEXTS - 1}" not in kept


async def test_where_a_task_is_required_a_message_is_no_answer(caller: Caller) -> None:
    async with raw_server(Older().answer, card=card_03()) as far:
        agent = await caller.publish(far.card_url)
        await RemoteServer.objects.filter(session_id=agent.session_id).aupdate(requires_task=True)
        refused = await caller.ask(agent, "direct")
        answered = await caller.ask(agent, "hello")
        row = await server_of(agent)
    assert (refused.outcome, refused.reason) == (Outcome.FAILED, "agent_failed")
    assert refused.text == NO_TASK
    assert answered.outcome is Outcome.COMPLETED
    assert (row.retry_at, row.last_failure) == (None, "")
