"""Rows of the hostile-input table (`wire/a2a.md` section 6): whatever a client sends gets the answer given there.

The hub checks rows 1 to 10 and 12 to 16 before it chooses a dialect: malformed/test_nasty_v1.py has their cases.
The rows of the transport are in test_nasty_transport.py.
"""

import json
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
import pytest_asyncio

from lab.agents import Echo, online
from lab.callers import Json, bearer, envelope, get_task, question, rpc_path, web
from lab.hub_process import HubProcess

pytestmark = pytest.mark.asyncio(loop_scope="session")  # as the agent
INVALID_PARAMS, NO_TASK = -32602, -32001


class Target:
    """An agent's endpoint, and a caller's token."""

    def __init__(self, url: str, agent: Echo, token: str, client: httpx.AsyncClient) -> None:
        self.url, self.agent, self.token, self.client = url, agent, token, client

    async def post(self, body: bytes | str) -> Json:
        """The JSON of the answer to these very bytes."""
        content = body if isinstance(body, bytes) else body.encode()
        headers = bearer(self.token) | {"Content-Type": "application/json"}
        response = await self.client.post(rpc_path(self.agent.handle), content=content, headers=headers)
        assert response.status_code == 200, response.text
        answer: Json = response.json()
        assert ("result" in answer) != ("error" in answer)
        return answer

    async def refuse(self, body: bytes | str, code: int, rpc_id: Any = None) -> None:
        """Check that these bytes get that error, and that nothing reaches the agent."""
        seen = len(self.agent.prompts)
        answer = await self.post(body)
        assert "error" in answer, answer
        assert answer["error"]["code"] == code, answer
        assert (answer["id"], type(answer["id"])) == (rpc_id, type(rpc_id)), answer
        assert len(self.agent.prompts) == seen

    async def refuse_params(self, params: Any, *, method: str = "SendMessage", naming: str = "") -> None:
        seen = len(self.agent.prompts)
        answer = await self.post(json.dumps(envelope(method, params, 7)))
        assert answer.get("error", {}).get("code") == INVALID_PARAMS, answer
        assert answer["id"] == 7
        assert naming in answer["error"]["message"]
        assert len(self.agent.prompts) == seen


# Of the session, as the hub is: else this module would be a group of its own, with a hub of its own.
@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def target(embedded_hub: HubProcess) -> AsyncIterator[Target]:
    """One agent for all tests: nearly all of them are refused before it is asked."""
    async with online(embedded_hub, Echo, owner="attacked") as agent, web(embedded_hub.url) as client:
        yield Target(embedded_hub.url, agent, embedded_hub.mint("alice", "session"), client)


def sending(**changes: Any) -> str:
    """A sound SendMessage with some members of its envelope replaced, or taken out by `...`."""
    body = envelope("SendMessage", question("hello"), 7) | changes
    return json.dumps({name: value for name, value in body.items() if value is not ...})


def message(**changes: Any) -> Json:
    """Sound params with some members of the message replaced, or taken out by `...`."""
    changed = question("hello")["message"] | changes
    return {"message": {name: value for name, value in changed.items() if value is not ...}}


async def test_rows_4_6_and_8_what_is_odd_and_sound_is_served_with_its_id(target: Target) -> None:
    marked = b"\xef\xbb\xbf" + sending().encode()
    for body, rpc_id in ((marked, 7), (sending(id=None), None), (sending(id=""), "")):
        answer = await target.post(body)
        assert (answer["id"], answer["result"]["status"]["state"]) == (rpc_id, "COMPLETED")


async def test_row_11_params_must_be_an_object(target: Target) -> None:
    for method in ("SendMessage", "SendStreamingMessage", "GetTask"):
        for params in ([], [question("x")], "x", None, ..., 5):
            await target.refuse(sending(method=method, params=params), INVALID_PARAMS, 7)


BAD_PARTS = [{}, {"video": "x"}, {"text": "a", "url": "b"}, {"text": "a", "data": {}}, {"raw": "YQ==", "url": "b"}]
WRONG_TYPES = [{"text": 5}, {"text": None}, {"text": ["a"]}, {"raw": "not base64!"}, {"raw": "YQ"}, {"raw": 5}]
WITHOUT_TEXT = [[{"text": ""}], [{"text": " \n"}], [{"url": "https://x.example"}], [{"data": 1}]]


async def test_rows_17_and_18_a_message_holds_sound_parts(target: Target) -> None:
    for parts in ([], ..., None, "hello", {}, {"text": "x"}):
        await target.refuse_params(message(parts=parts))
    for part in BAD_PARTS:
        await target.refuse_params(message(parts=[{"text": "hello"}, part]), naming="message.parts[1]")
    for part in WRONG_TYPES:
        await target.refuse_params(message(parts=[{"text": "hello"}, part]))
    for parts in WITHOUT_TEXT:
        await target.refuse_params(message(parts=parts), naming="message.parts")
    for metadata in ("x", 5, [], None):
        await target.refuse_params(message(metadata=metadata))
        await target.refuse_params(message(parts=[{"text": "hello", "metadata": metadata}]))


async def test_rows_19_and_20_a_message_needs_the_role_of_a_user_and_a_fair_id(target: Target) -> None:
    for role in ("ROLE_AGENT", "user", "agent", "", None, {}):
        await target.refuse_params(message(role=role), naming="message.role: want ROLE_USER")
    await target.refuse_params(message(role=...), naming="role")
    for message_id in ("", ..., None, 5, "m" * 10_000):
        await target.refuse_params(message(messageId=message_id))


TASK_IDS = ["../x", "..%2fx", "task-" + "x" * 10_000, "", "task-\u00fc", "/etc/passwd", "task-' OR 1=1 --", "*"]


async def test_row_24_an_odd_task_id_is_simply_not_found(target: Target) -> None:
    for task_id in TASK_IDS:
        found = await get_task(target.url, target.agent.handle, task_id, target.token)
        assert found["error"] == {"code": NO_TASK, "message": "task not found"}, task_id
    for task_id in (..., None, 5, {}, ["task-x"]):
        await target.refuse_params({} if task_id is ... else {"id": task_id}, method="GetTask")
