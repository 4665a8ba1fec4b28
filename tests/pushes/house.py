"""A caller of A2A 1.0 whose receivers are told, and what receivers check."""

import hashlib
import json
from dataclasses import dataclass
from typing import Any

import httpx
from joserfc import jwt
from joserfc.jwk import KeySet

from tests.callers import Json, bearer, rpc_path
from tests.hub_process import HubProcess
from tests.receivers import Received, Receiver
from tests.waiting import eventually

SETTINGS = {"WEBHOOK_ALLOW_PRIVATE": 1}
SIGNATURE = "x-a2a-notification-signature"
DONE = "TASK_STATE_COMPLETED"


@dataclass
class Client:
    """Speaks 1.0 over JSON-RPC to one agent, as whoever `token` says."""

    url: str
    handle: str
    token: str

    async def answer(self, method: str, params: Any, **headers: str) -> Json:
        """The whole envelope."""
        sent = bearer(self.token) | {"A2A-Version": "1.0"} | headers
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        async with httpx.AsyncClient(base_url=self.url, trust_env=False, timeout=60) as http:
            response = await http.post(rpc_path(self.handle), json=body, headers=sent)
        assert response.status_code == 200, response.text
        answer: Json = response.json()
        return answer

    async def call(self, method: str, **params: Any) -> Any:
        """The result."""
        answer = await self.answer(method, params)
        assert "result" in answer, answer
        return answer["result"]

    async def error(self, method: str, **params: Any) -> Json:
        """The error."""
        answer = await self.answer(method, params)
        assert "error" in answer, answer
        error: Json = answer["error"]
        return error

    async def send(self, text: str, push: Json | None = None, *, waits: bool = False, **message: Any) -> Json:
        """Ask; the task."""
        task: Json = (await self.call("SendMessage", **asking(text, push, waits=waits, **message)))["task"]
        return task

    async def add(self, task_id: str, url: str, **fields: Any) -> Json:
        """Keep an address."""
        config: Json = await self.call("CreateTaskPushNotificationConfig", taskId=task_id, url=url, **fields)
        return config

    async def ended(self, task_id: str) -> Json:
        """The task once it has ended."""

        async def look() -> Json | None:
            task: Json = await self.call("GetTask", id=task_id)
            return task if task["status"]["state"] not in ("TASK_STATE_SUBMITTED", "TASK_STATE_WORKING") else None

        return await eventually(look, f"{task_id} ends", within_s=15)


def asking(text: str, push: Json | None = None, *, waits: bool = False, **message: Any) -> Json:
    """The params of SendMessage."""
    configuration: Json = {"returnImmediately": not waits}
    if push is not None:
        configuration["taskPushNotificationConfig"] = push
    said = {"messageId": f"m-{text[:40]}", "role": "ROLE_USER", "parts": [{"text": text}], **message}
    return {"message": said, "configuration": configuration}


def client(hub: HubProcess, peer: Any, who: str = "alice", *, at: int = 0) -> Client:
    """A caller of that peer's agent."""
    return Client(hub.urls[at], peer.handle, hub.mint(who, "session"))


async def heard(receiver: Receiver, count: int, *, within_s: float = 20) -> list[Json]:
    """The bodies that came, once there are so many."""

    async def enough() -> bool:
        return len(receiver.received) >= count

    await eventually(enough, f"{count} pushes, not {bodies(receiver)}", within_s=within_s)
    return bodies(receiver)


def bodies(receiver: Receiver) -> list[Json]:
    return [json.loads(one.body) for one in receiver.received]


def states(told: list[Json]) -> list[str]:
    """What each push says, shortly: a state, or the name of an artifact."""
    return [
        one["statusUpdate"]["status"]["state"].removeprefix("TASK_STATE_")
        if "statusUpdate" in one
        else one["artifactUpdate"]["artifact"]["artifactId"]
        for one in told
    ]


def check_signed(one: Received, keys: Json, url: str) -> Json:
    """The signature is the hub's, for this receiver and this body; its claims."""
    claims = jwt.decode(one.headers[SIGNATURE], KeySet.import_key_set(keys), algorithms=["ES256"]).claims
    assert claims["request_body_sha256"] == hashlib.sha256(one.body).hexdigest()
    assert claims["aud"] == url
    return dict(claims)
