"""A client of `a2a-v1`, and an agent with a seat.

A stand-in for the reference client of the protocol's specification, which is JavaScript and in no registry. It
offers the subprotocol and sends the same frames.
"""

import asyncio
import itertools
import json
from collections.abc import Callable
from typing import Any, Self
from urllib.parse import urlencode

import httpx
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed
from websockets.typing import Subprotocol

from lab.callers import bearer, web
from lab.frames import Json
from lab.hub_process import HubProcess

WITHIN_S = 15
_numbers = itertools.count(1)


class GatewayClient:
    """Keeps every frame; `find` waits for one."""

    def __init__(self, url: str, token: str = "", *, path: str = "/gateway", **query: object) -> None:
        given = {"token": token, **query} if token else query
        self.url = url.replace("http", "ws", 1) + path + (f"?{urlencode(given)}" if given else "")
        self.frames: list[Json] = []
        self._changed = asyncio.Condition()
        self._socket: ClientConnection | None = None
        self._reading: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._socket = await connect(self.url, subprotocols=[Subprotocol("a2a-v1")], compression=None)
        self._reading = asyncio.create_task(self._read(self._socket))
        return self

    async def __aexit__(self, *failure: object) -> None:
        assert self._reading is not None
        await self.socket.close()
        await self._reading

    @property
    def socket(self) -> ClientConnection:
        assert self._socket is not None, "not connected"
        return self._socket

    async def send(self, type_name: str, content: Json | None = None, **more: Any) -> None:
        frame = {"type": type_name, **({} if content is None else {"content": content}), **more}
        await self.socket.send(json.dumps(frame))

    async def find(self, type_name: str, is_it: Callable[[Json], bool] = lambda frame: True) -> Json:
        """The first frame of a type that fits; waits for it."""
        return await self.find_any(lambda frame: frame["type"] == type_name and is_it(frame))

    async def find_any(self, is_it: Callable[[Json], bool], *, after: int = 0) -> Json:
        """The first frame that fits, behind the first `after` ones; waits for it."""

        def found() -> Json | None:
            return next(filter(is_it, self.frames[after:]), None)

        async with asyncio.timeout(WITHIN_S), self._changed:
            while (frame := found()) is None:
                assert self._reading is not None
                assert not self._reading.done(), f"closed with {self.socket.close_code}: {self.frames}"
                await self._changed.wait()
        return frame

    async def closed(self) -> int | None:
        """The code that the gateway closed with."""
        assert self._reading is not None
        async with asyncio.timeout(WITHIN_S):
            await asyncio.shield(self._reading)  # all frames that came before are read then
        return self.socket.close_code

    async def shake_hands(self, **capabilities: object) -> Json:
        """Advertise; the acknowledgement."""
        before = len(self.frames)
        advertised = {"supportedMessageTypes": ["message", "status", "error"], "version": "1.0.0"} | capabilities
        await self.send("handshake", {"action": "advertise", "capabilities": advertised})
        return await self.find("handshake", lambda frame: self.frames.index(frame) >= before)

    async def discover(self) -> dict[str, str]:
        """The agents that discovery lists, each with its status."""
        correlation_id = f"corr-{next(_numbers)}"
        await self.send("discovery", {"action": "list"}, metadata={"correlationId": correlation_id})
        about = {"correlationId": correlation_id}
        listed = await self.find("discovery", lambda frame: frame.get("metadata") == about)
        return {one["name"]: one["status"] for one in listed["content"]["agents"]}

    async def send_message(
        self, agent: str, text: str | Json, role: str = "user", session: str = "", **metadata: object
    ) -> Json:
        """Send a message that wants a response; its reply, or the error that has its id."""
        correlation_id = f"corr-{next(_numbers)}"
        wanted = {**metadata, "requiresResponse": True, "correlationId": correlation_id}
        content = {"role": role, "content": text}
        more = {"sessionId": session} if session else {}
        await self.send("message", content, agent=agent, id=f"msg-{correlation_id}", metadata=wanted, **more)
        return await self.reply(correlation_id)

    async def request(self, service: str, **params: object) -> Json:
        """Ask for a service of the gateway; the content of its response."""
        about = {"correlationId": f"corr-{next(_numbers)}"}
        await self.send("request", {"service": service, "params": params}, metadata=about)
        response = await self.find("response", lambda frame: frame.get("metadata") == about)
        content: Json = response["content"]
        return content

    async def reply(self, correlation_id: str, type_name: str = "message") -> Json:
        """The message, or frame of another type, or the error with that correlation id."""

        def has_id(frame: Json) -> bool:
            return frame.get("metadata", {}).get("correlationId") == correlation_id

        tasks = [asyncio.create_task(self.find(name, has_id)) for name in (type_name, "error")]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            return done.pop().result()
        finally:
            for task in tasks:
                task.cancel()

    async def answer(self, message: Json) -> None:
        """What the client does with a message that it is sent."""

    async def _read(self, socket: ClientConnection) -> None:
        try:
            async for text in socket:
                frame = json.loads(text)
                async with self._changed:
                    self.frames.append(frame)
                    self._changed.notify_all()
                if frame["type"] in {"message", "request"}:
                    await self.answer(frame)
        except ConnectionClosed:
            pass
        finally:
            async with self._changed:
                self._changed.notify_all()


class EchoSeat(GatewayClient):
    """An agent that answers each message that wants a response with its text."""

    async def answer(self, message: Json) -> None:
        metadata = message["metadata"]
        if message["type"] == "message" and metadata.get("requiresResponse"):
            reply = {"role": "agent", "content": message["content"]["content"]}
            if isinstance(reply["content"], str):
                reply["content"] = f"echo: {reply['content']}"
            about = {"correlationId": metadata["correlationId"]}
            await self.send("message", reply, agent=message["from"], metadata=about)


class SilentSeat(GatewayClient):
    """An agent that reads its messages and answers none."""


async def publish(hub: HubProcess, owner: str, name: str, **details: object) -> str:
    """Publish the session of a seat over REST; its handle."""
    headers = bearer(hub.mint(owner, "session"))
    async with web(hub.url) as client:
        body = {
            "sessionId": await session_id(client, headers, name),
            "name": name,
            "status": "published",
        } | details
        made = await client.post("/api/v1/agents", json=body, headers=headers)
        assert made.status_code == 201, made.text
    return str(made.json()["handle"]).removeprefix("@")


async def session_id(client: httpx.AsyncClient, headers: dict[str, str], name: str) -> str:
    """The public id of the session that a seat is."""
    listed = (await client.get("/api/v1/sessions", headers=headers)).json()["items"]
    (session,) = [one for one in listed if one["routingName"] == f"@{name}"]
    return str(session["id"])


def code_of(frame: Json) -> tuple[int, str]:
    """The code and the reason of an error."""
    return frame["content"]["code"], frame["content"].get("reason", "")
