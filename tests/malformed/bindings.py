"""An agent asked in A2A 1.0 over either binding, with whatever body."""

import json
from typing import Any

import httpx

from lab.agents import TaskPeer
from lab.callers import Json, bearer, envelope, question, rpc_path
from tests.http_json import V1, refusal
from tests.malformed.valid_requests import PATHS


class BindingClient:
    """One agent asked in A2A 1.0 over one binding."""

    def __init__(self, binding: str, agent: TaskPeer, token: str, client: httpx.AsyncClient) -> None:
        self.is_rpc, self.agent, self.client = binding == "JSON-RPC", agent, client
        self.headers = bearer(token) | V1 | {"Content-Type": "application/json"}
        self._seen = len(agent.prompts)

    @property
    def reached(self) -> int:
        """The number of questions that reached the agent since this client was made."""
        return len(self.agent.prompts) - self._seen

    def wrap(self, params: str, method: str = "SendMessage") -> str:
        """A body around params that are JSON already."""
        return f'{{"jsonrpc":"2.0","id":7,"method":"{method}","params":{params}}}' if self.is_rpc else params

    async def post(self, body: bytes | str, **headers: str) -> httpx.Response:
        """These very bytes as SendMessage."""
        content = body if isinstance(body, bytes) else body.encode()
        sent = self.headers | {name.replace("_", "-"): value for name, value in headers.items()}
        path = rpc_path(self.agent.handle) + ("" if self.is_rpc else "/message:send")
        return await self.client.post(path, content=content, headers=sent)

    async def call(self, method: str, params: Any) -> httpx.Response:
        """A call whose params are an object."""
        if self.is_rpc:
            body = envelope(method, params, 7)
            return await self.client.post(rpc_path(self.agent.handle), json=body, headers=self.headers)
        verb, path = PATHS[method]
        names = {name: value for name, value in params.items() if f"{{{name}}}" in path}
        rest: Json = {name: value for name, value in params.items() if name not in names}
        options: Json = {"json": rest} if verb == "POST" else {"params": rest}
        url = f"{rpc_path(self.agent.handle)}/{path.format_map(names)}"
        return await self.client.request(verb, url, headers=self.headers, **options)

    async def ask(self, params: Json) -> Json:
        """SendMessage; the task."""
        task: Json = self.result(await self.call("SendMessage", params))["task"]
        return task

    def result(self, response: httpx.Response) -> Json:
        assert response.status_code == 200, response.text
        answer: Json = response.json()
        if not self.is_rpc:
            return answer
        assert "result" in answer, answer
        assert answer["id"] == 7
        result: Json = answer["result"]
        return result

    def refused(self, response: httpx.Response, reason: str, status: int = 400, rpc_id: Any = 7) -> Json:
        """The error, if it is that one."""
        if not self.is_rpc:
            return refusal(response, status, reason)
        answer: Json = response.json()
        assert (answer["id"], type(answer["id"])) == (rpc_id, type(rpc_id)), answer
        assert answer["error"]["data"][0]["reason"] == reason, answer
        error: Json = answer["error"]
        return error

    async def refuse(self, body: bytes | str, reason: str, rpc_id: Any = 7, *, over_http: str = "") -> None:
        """Check that these bytes get that error, and that nothing reaches the agent."""
        seen = self.reached
        self.refused(await self.post(body), reason if self.is_rpc else over_http or reason, rpc_id=rpc_id)
        assert self.reached == seen

    async def refuse_message(self, naming: str = "", **changes: Any) -> None:
        """Such a message gets INVALID_PARAMS."""
        body = json.dumps(message(**changes))
        error = self.refused(await self.post(self.wrap(body)), "INVALID_PARAMS")
        assert naming in error["message"]
        assert self.reached == 0


def message(**changes: Any) -> Json:
    """Sound params with some members of the message replaced, or taken out by `...`."""
    changed = question("hello")["message"] | changes
    return {"message": {name: value for name, value in changed.items() if value is not ...}}


def sending(**changes: Any) -> str:
    """A sound envelope with some members replaced, or taken out by `...`."""
    body = envelope("SendMessage", question("hello"), 7) | changes
    return json.dumps({name: value for name, value in body.items() if value is not ...})
