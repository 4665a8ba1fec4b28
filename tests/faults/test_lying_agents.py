"""Agents that answer what they were not asked: none of it reaches a caller."""

import asyncio

from lab.agents import Echo, SpeaksWhenEvicted, Stall, TaskPeer, TwoAnswers, online
from lab.callers import failed_text, get_task, reply_text, send, stream
from lab.channel_agent import ChannelAgent
from lab.hub_process import HubProcess
from lab.waiting import eventually


async def check_refused(agent: ChannelAgent, errors_before: int) -> None:
    """The agent hears a non-fatal error and stays connected."""
    error = await agent.heard("error", count=errors_before + 1)
    assert error["code"] not in ("auth_failed", "token_revoked")
    assert not agent.closed.is_set()


async def test_a_reply_under_anothers_chat_id_is_dropped(hub: HubProcess, alice: str) -> None:
    """On the grown hub the liar is at another process, on the embedded one at the same."""
    async with online(hub, Stall) as honest, online(hub, Echo, at=-1) as liar:
        asking = asyncio.create_task(send(hub.urls[-1], honest.handle, "hello", alice))
        chat_id = (await honest.heard("prompt"))["chatId"]
        await liar.reply(chat_id, "a lie")
        await check_refused(liar, 0)
        await liar.chunk(chat_id, "a lie in pieces", done=True)
        await check_refused(liar, 1)
        await honest.reply(chat_id, "the truth")
        assert reply_text(await asking) == "the truth"


async def test_a_status_and_an_artifact_under_anothers_chat_id_are_dropped(hub: HubProcess, alice: str) -> None:
    async with online(hub, TaskPeer) as honest, online(hub, TaskPeer, at=-1) as liar:
        asking = asyncio.create_task(send(hub.urls[-1], honest.handle, "hold | say the truth", alice))
        chat_id = (await honest.heard("prompt"))["chatId"]
        for number, state in enumerate(["working", "input_required", "failed", "completed"]):
            await liar.status(chat_id, state, text="a lie")
            await check_refused(liar, number)
        await liar.artifact(chat_id, "a1", {"text": "a lie"})
        await check_refused(liar, 4)
        assert {frame["code"] for frame in liar.frames if frame["type"] == "error"} == {"unknown_chat"}
        honest.release.set()
        assert reply_text(await asking) == "the truth"


async def test_what_is_malformed_is_refused_and_the_reply_goes_on(hub: HubProcess, alice: str) -> None:
    async with online(hub, TaskPeer, at=-1) as agent:
        asking = asyncio.create_task(send(hub.url, agent.handle, "hold | say the reply", alice))
        chat_id = (await agent.heard("prompt"))["chatId"]
        await agent.status(chat_id, "working", text="\0")
        await agent.status(chat_id, "canceled", text="mine")
        await agent.status(chat_id, "working", text="\ud800")
        await agent.artifact(chat_id, "reply-1", {"text": "as if it were the hub's"})
        await agent.artifact(chat_id, "a1", {"raw": "no base64!"})
        await agent.artifact(chat_id, "a1", {"url": "file:///etc/passwd"})
        await agent.artifact(chat_id, "never-begun", {"text": "x"}, append=True)
        await check_refused(agent, 6)
        assert {frame["code"] for frame in agent.frames if frame["type"] == "error"} == {"bad_frame"}
        agent.release.set()
        assert reply_text(await asking) == "the reply"


async def test_a_flood_of_notes_fails_its_turn_and_no_others(hub: HubProcess, alice: str, bob: str) -> None:
    async with online(hub, TaskPeer, at=-1) as agent:
        asking = asyncio.create_task(send(hub.url, agent.handle, "hold | say too much", alice))
        chat_id = (await agent.heard("prompt"))["chatId"]
        for number in range(1001):
            await agent.status(chat_id, "working", text=f"note {number}")
        assert failed_text(await asking) == "agent reply was over the size limit"
        assert (await agent.heard("error"))["code"] == "reply_too_large"
        agent.release.set()

        async def served() -> bool:
            task = await send(hub.url, agent.handle, "mine?", bob)
            return bool(task["status"]["state"] == "COMPLETED")

        await eventually(served, "the claim is free")


async def test_of_two_answers_the_first_stands(hub: HubProcess, alice: str) -> None:
    """The second is a follow-up; a chunk after the answer is refused."""
    async with online(hub, TwoAnswers) as agent:
        for url in hub.urls:
            task = await send(url, agent.handle, "hello", alice)
            assert reply_text(task) == "the first answer"
            await agent.heard("error")
            assert (await get_task(url, agent.handle, task["id"], alice))["result"] == task
            tasks = await stream(url, agent.handle, "hello", alice)
            assert [one["status"]["state"] for one in tasks] == ["WORKING", "COMPLETED"]
            assert reply_text(tasks[-1]) == "the first answer"
            agent.frames = [frame for frame in agent.frames if frame["type"] != "error"]


async def test_a_reply_on_an_evicted_socket_is_dropped(hub: HubProcess, alice: str) -> None:
    async with online(hub, SpeaksWhenEvicted) as old:
        asking = asyncio.create_task(send(hub.urls[-1], old.handle, "hello", alice))
        await old.heard("prompt")
        async with Echo(hub.urls[-1], hub.mint("owner", "channel"), session_id=old.session_id, pid=77_777) as new:
            assert failed_text(await asking) == "agent channel offline"
            await old.closed.wait()
            assert reply_text(await send(hub.url, old.handle, "again", alice)) == "echo: again"
            assert [prompt["text"] for prompt in new.prompts] == ["again"]


async def test_the_new_socket_cannot_answer_what_the_old_one_was_asked(hub: HubProcess, alice: str) -> None:
    async with online(hub, Stall) as old:
        asking = asyncio.create_task(send(hub.url, old.handle, "hello", alice))
        chat_id = (await old.heard("prompt"))["chatId"]
        async with Echo(hub.urls[-1], hub.mint("owner", "channel"), session_id=old.session_id, pid=88_888) as new:
            await new.reply(chat_id, "taken over")
            await check_refused(new, 0)
            assert failed_text(await asking) == "agent channel offline"


async def test_a_guessed_chat_id_is_refused(embedded_hub: HubProcess) -> None:
    async with online(embedded_hub, Echo) as agent:
        for number, chat_id in enumerate(("", "guess", "x" * 128, "x" * 5000, "../", "\u0000")):
            await agent.reply(chat_id, "hello?")
            await check_refused(agent, number)
