"""The official SDK's own server as an agent, over both bindings."""

import pytest

from agents.core.errors import Denied
from agents.models import RemoteName
from agents.models.choices import Outcome
from agents.transcript.pieces import ArtifactPiece, Part, StatusNote
from lab.waiting import eventually
from tests.remote.caller import Caller, spent_today, turn_of
from tests.remote.servers import has_come, sdk_server

WAYS = [("JSONRPC", True), ("JSONRPC", False), ("HTTP+JSON", True), ("HTTP+JSON", False)]
BINDINGS = ["JSONRPC", "HTTP+JSON"]


@pytest.mark.parametrize(("binding", "streams"), WAYS)
async def test_it_answers_like_any_agent(caller: Caller, binding: str, streams: bool) -> None:
    async with sdk_server(binding, streams=streams) as far:
        agent = await caller.publish(far.card_url)
        settled = await caller.ask(agent, "hello there")
        assert (settled.outcome, settled.reason, settled.text) == (Outcome.COMPLETED, "", "echo: hello there")
        assert far.seen.texts == ["hello there"]
        assert await spent_today(agent) == 1
        running = await caller.start(agent, "file please")
        assert (await running.settled).outcome == Outcome.COMPLETED
        [piece] = running.pieces
        assert isinstance(piece, ArtifactPiece)
        assert (piece.artifact_id, piece.name, piece.append) == ("file", "a file", False)
        assert (piece.parts[0].raw, piece.parts[0].filename) == ("YWJj", "a.bin")
        assert (await caller.ask(agent, "status please")).text == "said by the status"
        failed = await caller.ask(agent, "fail please")
        assert (failed.outcome, failed.reason, failed.text) == (Outcome.FAILED, "agent_failed", "out of paper")
        rejected = await caller.ask(agent, "reject please")
        assert (rejected.reason, rejected.text) == ("rejected", "not on Sundays")
        if streams:
            running = await caller.start(agent, "stream please")
            assert (await running.settled).text == "0 1 2 3 "
            assert [piece.parts for piece in running.pieces] == [(Part(text=f"{n} "),) for n in range(4)]  # type: ignore[union-attr]


async def test_notes_come_while_it_works(caller: Caller) -> None:
    async with sdk_server() as far:
        running = await caller.start(await caller.publish(far.card_url), "note please")
        assert (await running.settled).text == "echo: note please"
        note, reply = running.pieces
        assert note == StatusNote("half way")
        assert isinstance(reply, ArtifactPiece)
        assert (reply.name, reply.parts) == ("reply", (Part(text="echo: note please"),))


@pytest.mark.parametrize(("binding", "streams"), WAYS)
async def test_a_follow_up_continues_the_remote_task(caller: Caller, binding: str, streams: bool) -> None:
    async with sdk_server(binding, streams=streams) as far:
        agent = await caller.publish(far.card_url)
        ours = {"context_id": "our-context", "task_id": "our-task"}
        asked = await caller.ask(agent, "ask me", **ours)
        assert (asked.outcome, asked.reason, asked.text) == (Outcome.COMPLETED, "input_required", "which one?")
        again = await caller.ask(agent, "ask again", **ours)
        assert (again.reason, again.text) == ("input_required", "which one?")
        answered = await caller.ask(agent, "the red one", **ours)
        assert (answered.reason, answered.text) == ("", "echo: the red one")
        assert len(set(far.seen.tasks)) == 1
        assert len(set(far.seen.contexts)) == 1
        later = await caller.ask(agent, "and now", context_id="our-context", task_id="our-next")
        assert later.text == "echo: and now"
        assert len(set(far.seen.tasks)) == 2
        assert len(set(far.seen.contexts)) == 1


async def test_names_are_each_callers_own(caller: Caller) -> None:
    async with sdk_server() as far:
        agent = await caller.publish(far.card_url)
        ours = {"context_id": "same-for-both", "task_id": "same-task"}
        await caller.ask(agent, "ask me", **ours)
        await caller.ask(agent, "mine now", login="mallory", **ours)
        assert len(set(far.seen.contexts)) == 2
        assert len(set(far.seen.tasks)) == 2
        assert await RemoteName.objects.filter(kind="task").acount() == 1


@pytest.mark.parametrize("binding", BINDINGS)
async def test_a_cancel_reaches_it_and_frees_the_claim(caller: Caller, binding: str) -> None:
    async with sdk_server(binding) as far:
        agent = await caller.publish(far.card_url)
        running = await caller.start(agent, "hold on")
        await eventually(lambda: has_come(far.seen.texts), "it holds")
        with pytest.raises(Denied):
            await caller.start(agent, "too many", login="bob")
        assert caller.dispatcher.cancel(running.ask.chat_id)
        assert (await running.settled).reason == "canceled"
        await eventually(lambda: has_come(far.seen.canceled), "the cancel")
        await eventually(lambda: _is_released(running), "the claim is free", within_s=15)
        assert far.seen.canceled == far.seen.tasks
        assert (await caller.ask(agent, "my turn", login="bob")).text == "echo: my turn"


async def test_what_takes_too_long_is_canceled_there(caller: Caller) -> None:
    async with sdk_server() as far:
        running = await caller.start(await caller.publish(far.card_url), "hold on", wait_s=1)
        assert (await running.settled).reason == "timeout"
        await eventually(lambda: has_come(far.seen.canceled), "the cancel")
        await eventually(lambda: _is_released(running), "the claim is free")


async def test_budget_and_cap_are_those_of_any_agent(caller: Caller) -> None:
    async with sdk_server() as far:
        agent = await caller.publish(far.card_url, daily_budget=1)
        await caller.ask(agent, "one")
        with pytest.raises(Denied) as refused:
            await caller.ask(agent, "two")
        assert refused.value.reason == "budget_exhausted"
        assert far.seen.texts == ["one"]


async def _is_released(running: object) -> bool:
    return (await turn_of(running)).released_at is not None  # type: ignore[arg-type]
