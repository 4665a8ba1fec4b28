"""Permission requests of an agent reach the caller of its turn, in each dialect, if the owner allows that."""

import json
import re
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Any
from uuid import uuid4

import pytest

from lab.callers import Json, bearer, envelope, rpc_path, web
from lab.hub_process import HubProcess
from lab.waiting import eventually
from tests.channel.agents import Agent, agent, sql
from tests.channel.test_permission_relay import resolve

RELAYED = {"callerApprovals": True}
OPTIONS = ["approve", "deny"]
ASKED = {"type": "approval_request", "tool": "Bash", "description": "rm -r build", "options": OPTIONS}


class Careful(Agent):
    """Asks permission for what it is asked, and says what came of it."""

    async def answer(self, prompt: Json) -> None:
        chat_id = prompt["chatId"]
        await self.chunk(chat_id, "let me see. ")
        asked = {"requestId": f"r-{chat_id}", "tool": "Bash", "inputPreview": "rm -r build"}
        await self.send(type="permission_request", chatId=chat_id, **asked)
        count = len(self.prompts)
        decided = await self.heard("permission_response", count=max(count, 1))
        await self.chunk(chat_id, decided["decision"], done=True)


class Client:
    """A caller of one dialect."""

    def __init__(self, hub: HubProcess, handle: str, dialect: str, *, at: int = 0, login: str = "alice") -> None:
        self.url, self.handle, self.dialect = hub.urls[at], handle, dialect
        self.token = hub.mint(login, "session")
        self.is_old = dialect == "0.3"

    def message(self, parts: Iterable[Json]) -> Json:
        """A new message of the caller's, as the dialect writes it."""
        kinds = [{"kind": next(iter(part))} | part if self.is_old else part for part in parts]
        return {"messageId": uuid4().hex, "role": "user" if self.is_old else "ROLE_USER", "parts": kinds}

    async def rpc(self, method: str, params: Json) -> Json:
        headers = bearer(self.token) | ({"A2A-Version": "1.0"} if self.dialect == "1.0" else {})
        async with web(self.url) as http:
            answer = await http.post(rpc_path(self.handle), json=envelope(method, params), headers=headers)
        answered: Json = answer.json()
        return answered

    async def send(self, *parts: Json, **message: Any) -> Json:
        """The task, as its dialect shows it, of a message; or the error."""
        method = "message/send" if self.is_old else "SendMessage"
        answer = await self.rpc(method, {"message": self.message(parts) | message})
        result: Json = answer if "error" in answer else answer["result"]
        return dict(result.get("task", result))

    async def stream(self, *parts: Json, **message: Any) -> list[Json]:
        """The tasks and events of a message's stream."""
        method = "message/stream" if self.is_old else "SendStreamingMessage"
        body = envelope(method, {"message": self.message(parts) | message})
        headers = bearer(self.token) | ({} if self.is_old else {"A2A-Version": "1.0"})
        async with web(self.url) as http:
            answer = await http.post(rpc_path(self.handle), json=body, headers=headers)
        frames = [json.loads(line[6:])["result"] for line in answer.text.splitlines() if line.startswith("data: ")]
        return frames if self.is_old else [next(iter(frame.values())) for frame in frames]


def state(task: Json) -> str:
    assert "status" in task, task
    return str(task["status"]["state"]).removeprefix("TASK_STATE_").replace("-", "_").upper()


def asked_in(task: Json) -> Json:
    """The data of the request, whose text says the same."""
    parts = task["status"]["message"]["parts"]
    assert "rm -r build" in parts[0]["text"]
    assert parts[0]["text"].endswith("Answer approve or deny.")
    data: Json
    [data] = [part["data"] for part in parts if "data" in part]
    return data


@asynccontextmanager
async def careful(hub: HubProcess, fields: Json = RELAYED) -> AsyncIterator[Careful]:
    async with agent(hub, "owner", Careful, at=-1, fields=fields) as peer:
        yield peer


@pytest.mark.parametrize("dialect", ["1.0", "0.3", "hub"])
async def test_a_caller_approves_and_the_same_task_goes_on(embedded_hub: HubProcess, dialect: str) -> None:
    hub = embedded_hub
    async with careful(hub) as peer:
        caller = Client(hub, peer.handle, dialect)
        task = await caller.send({"text": "clean up"})
        assert state(task) == "INPUT_REQUIRED"
        asked = asked_in(task)
        assert asked | {"requestId": ""} == ASKED | {"requestId": ""}
        verdict: Json = {"text": "approve"}
        if dialect != "hub":
            verdict = {"data": {"requestId": asked["requestId"], "decision": "approve", "message": "go on"}}
        done = await caller.send(verdict, taskId=task["id"])
        assert (done["id"], state(done)) == (task["id"], "COMPLETED")
        assert re.search("let me see. .*allow", str(done))
        heard = await peer.heard("permission_response")
        assert (heard["decision"], heard["message"]) == ("allow", "go on" if dialect != "hub" else None)
        decided = sql(
            hub,
            "SELECT p.status, u.login FROM agents_permissionrequest p JOIN accounts_user u ON u.id = p.resolver_id"
            " WHERE p.request_id = ?",
            asked["requestId"],
        )
        assert decided == [("allowed", "alice")]
        assert len(peer.prompts) == 1


async def test_a_verdict_must_be_one_and_a_foreign_task_is_absent(embedded_hub: HubProcess) -> None:
    hub = embedded_hub
    async with careful(hub) as peer:
        caller = Client(hub, peer.handle, "1.0")
        task = await caller.send({"text": "clean up"})
        for wrong in (
            {"text": "perhaps"},
            {"data": {"decision": "maybe"}},
            {"data": {"decision": ["approve"]}},
            {"data": {"decision": "approve", "requestId": "r-other"}},
            {"data": {"decision": "deny", "message": 7}},
        ):
            answer = await caller.send(wrong, taskId=task["id"])
            assert answer["error"]["code"] == -32602, answer
        foreign = await Client(hub, peer.handle, "1.0", login="bob").send({"text": "approve"}, taskId=task["id"])
        assert foreign["error"]["code"] == -32001
        done = await caller.send({"text": " Deny. "}, taskId=task["id"])
        assert state(done) == "COMPLETED"
        assert (await peer.heard("permission_response"))["decision"] == "deny"


async def test_the_owners_verdict_resumes_the_task_and_the_callers_is_too_late(hub: HubProcess) -> None:
    async with careful(hub) as peer:
        caller = Client(hub, peer.handle, "1.0")
        task = await caller.send({"text": "clean up"})
        request_id = asked_in(task)["requestId"]
        assert (await resolve(hub, "owner", peer, request_id)).status_code == 200

        async def done() -> Json | None:
            found = (await caller.rpc("GetTask", {"id": task["id"]}))["result"]
            return found if state(found) == "COMPLETED" else None

        assert "Approved: Bash" in str(await eventually(done, "the task goes on"))
        late = await caller.send({"text": "deny"}, taskId=task["id"])
        assert late["error"]["code"] == -32004


async def test_a_cancel_ends_the_turn_that_waits(hub: HubProcess) -> None:
    async with careful(hub) as peer:
        caller = Client(hub, peer.handle, "1.0", at=-1)
        task = await caller.send({"text": "clean up"})
        canceled = (await caller.rpc("CancelTask", {"id": task["id"]}))["result"]
        assert state(canceled) == "CANCELED"
        answer = await caller.send({"text": "approve"}, taskId=task["id"])
        assert answer["error"]["code"] == -32004
        ended = sql(hub, "SELECT reason FROM agents_turn WHERE task_id = ?", task["id"])
        assert ended == [("canceled",)]


@pytest.mark.parametrize("dialect", ["1.0", "0.3"])
async def test_a_stream_ends_with_the_request_and_the_verdict_opens_the_next(
    embedded_hub: HubProcess, dialect: str
) -> None:
    async with careful(embedded_hub) as peer:
        caller = Client(embedded_hub, peer.handle, dialect)
        first = await caller.stream({"text": "clean up"})
        task_id = first[-1]["taskId"]
        assert state(first[-1]) == "INPUT_REQUIRED"
        assert asked_in(first[-1])["tool"] == "Bash"
        then = await caller.stream({"text": "approve"}, taskId=task_id)
        assert state(then[-1]) == "COMPLETED"
        assert "INPUT_REQUIRED" not in [state(one) for one in then if "status" in one]
