"""The usage of a turn reaches its caller in every dialect, and its owner's audit."""

from typing import Any

import httpx

from lab.agents import TaskPeer, online
from lab.callers import Json, bearer, envelope, inbound, question, rpc_path, web
from lab.hub_process import HubProcess
from tests.v1.caller import Caller, message

USED = {"inputTokens": 1200, "outputTokens": 80, "costUsd": 0.042}


class Paid(TaskPeer):
    """Answers at a price: `chunks`, `ask`, `fail`, `direct`, or a whole reply."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **{"features": ["direct_message"]} | options)

    async def answer(self, prompt: Json) -> None:
        chat_id, asked = prompt["chatId"], prompt["text"]
        if asked == "chunks":
            await self.chunk(chat_id, "so ")
            await self._event("reply_chunk", chatId=chat_id, text="it is", done=True, usage=USED)
        elif asked == "ask":
            await self.status(chat_id, "input_required", text="which?", usage={"costUsd": 0.01})
        elif asked == "free":
            await self.reply(chat_id, "so it is")
        elif asked == "wrong":
            await self._event("reply", chatId=chat_id, text="so", usage={"costUsd": -1})
            await self.reply(chat_id, "so it is")
        else:
            await self._event("reply", chatId=chat_id, text="so it is", direct=asked == "direct", usage=USED)

    async def _event(self, kind: str, **payload: Any) -> None:
        await self.send(type="chat_event", eventType=kind, payload=payload, ts=None)


async def test_a_task_and_its_last_update_say_what_the_turn_used(hub: HubProcess, alice: str) -> None:
    async with online(hub, Paid, at=-1) as agent:
        caller = Caller(hub.url, agent.handle, alice)
        task = (await caller.call("SendMessage", {"message": message("whole"), "metadata": {"mine": 1}}))["task"]
        assert task["metadata"] == {"mine": 1, "usage": USED}
        assert (await caller.get(task["id"]))["metadata"]["usage"] == USED
        events = await caller.stream("chunks")
        assert events[-1].content["metadata"] == {"usage": USED}
        assert [event for event in events[:-1] if "metadata" in event.content] == []
        direct = (await caller.call("SendMessage", {"message": message("direct")}))["message"]
        assert direct["metadata"] == {"usage": USED}
        for version in ("", "0.3"):
            answer = await ask(hub, agent.handle, alice, version)
            assert answer.json()["result"]["metadata"] == {"usage": USED}


async def ask(hub: HubProcess, handle: str, token: str, version: str) -> httpx.Response:
    """The question `whole` in a dialect; "" is the hub's own."""
    method, params = "SendMessage", question("whole")
    if version == "1.0":
        params = {"message": message("whole")}
    elif version == "0.3":
        method = "message/send"
        said = {"kind": "message", "role": "user", "parts": [{"kind": "text", "text": "whole"}]}
        params = {"message": said | {"messageId": "old-1"}}
    headers = bearer(token) | ({"A2A-Version": version} if version else {})
    async with web(hub.url) as client:
        return await client.post(rpc_path(handle), json=envelope(method, params), headers=headers)


async def test_each_turn_of_a_task_has_its_own_usage_and_the_audit_has_all(hub: HubProcess, alice: str) -> None:
    async with online(hub, Paid) as agent:
        caller = Caller(hub.url, agent.handle, alice)
        task = await caller.send("ask")
        assert task["metadata"]["usage"] == {"costUsd": 0.01}
        again = await caller.send("free", taskId=task["id"])
        assert again["status"]["state"] == "TASK_STATE_COMPLETED"
        assert "metadata" not in again
        await caller.send("whole")
        log = await inbound(hub.url, agent.agent["id"], hub.mint("owner", "session"))
        asked_back = {"inputTokens": None, "outputTokens": None, "costUsd": 0.01}
        assert [one["usage"] for one in log["recent"]] == [USED, None, asked_back]
        assert (log["summary"]["costUsd"], log["summary"]["costReported"]) == (0.052, 2)


async def test_once_the_day_cost_its_limit_questions_are_refused_everywhere(hub: HubProcess, alice: str) -> None:
    async with online(hub, Paid, agent={"dailyCostLimitUsd": 0.05}) as agent:
        caller = Caller(hub.urls[-1], agent.handle, alice)
        await caller.send("whole")
        await caller.send("chunks")
        text = f"agent @{agent.handle} reached its cost limit of today, free again at 00:00 UTC"
        for version in ("", "0.3", "1.0"):
            assert text in (await ask(hub, agent.handle, alice, version)).text
        prompt = {"text": f"@{agent.handle} hi"}
        async with TaskPeer(hub.url, hub.mint("alice", "channel")) as mine, web(hub.url) as client:
            path = f"/api/v1/sessions/{mine.session_id}/prompt"
            refused = await client.post(path, json=prompt, headers=bearer(alice))
        assert (refused.status_code, refused.json()["error"]) == (429, "budget_exhausted")
        assert len(agent.prompts) == 2


async def test_a_wrong_usage_is_refused_and_the_prompt_stays_open(hub: HubProcess, alice: str) -> None:
    async with online(hub, Paid) as agent:
        task = await Caller(hub.url, agent.handle, alice).send("wrong")
        assert "metadata" not in task
        error = await agent.heard("error")
        assert error["code"] == "bad_frame"
        assert "usage.costUsd" in error["message"]
