"""A caller of A2A 1.0 whose receivers are told, and what receivers check."""

import hashlib
import json
from typing import Any

from joserfc import jwt
from joserfc.jwk import KeySet

from lab.callers import Json
from lab.hub_process import HubProcess
from lab.receivers import Received, Receiver
from lab.waiting import eventually
from tests.v1.caller import Caller

SETTINGS = {"WEBHOOK_ALLOW_PRIVATE": 1}
SIGNATURE = "x-a2a-notification-signature"
CREATE = "CreateTaskPushNotificationConfig"
GET = "GetTaskPushNotificationConfig"
LIST = "ListTaskPushNotificationConfigs"
DELETE = "DeleteTaskPushNotificationConfig"


class Client(Caller):
    """A caller of one agent who wants to be told."""

    async def asked(self, text: str, push: Json | None = None, **members: Any) -> Json:
        """Ask without waiting; the task."""
        configuration: Json = {"returnImmediately": True}
        return await self.send(
            text, configuration | ({"taskPushNotificationConfig": push} if push else {}), **members
        )

    async def add(self, task: Json, url: str, **fields: Any) -> Json:
        return await self.call(CREATE, {"taskId": task["id"], "url": url, **fields})

    async def addresses(self, task: Json, **page: Any) -> Json:
        """The answer to ListTaskPushNotificationConfigs."""
        return await self.call(LIST, {"taskId": task["id"], **page})


def client(hub: HubProcess, peer: Any, who: str = "alice", *, at: int = 0) -> Client:
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
    """The content of each push, in short: a state, or the name of an artifact."""
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
