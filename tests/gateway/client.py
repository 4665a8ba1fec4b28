"""A client of `a2a-v1`, agents with a seat, and teams of them.

A stand-in for the reference client of the protocol's specification, which is JavaScript and in no registry: the
client offers the subprotocol and sends the same frames.
"""

import asyncio
import itertools
import json
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, Self
from urllib.parse import urlencode

import httpx
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed
from websockets.typing import Subprotocol

from gateway.service.team_rules import READ_EVERY_S
from lab.callers import bearer, web
from lab.frames import Json
from lab.hub_process import HubProcess
from lab.waiting import eventually

WITHIN_S = 15
PUSHED = ("proposal", "vote")  # also sent to others, with the same id
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

        try:
            async with asyncio.timeout(WITHIN_S), self._changed:
                while (frame := found()) is None:
                    assert self._reading is not None
                    assert not self._reading.done(), f"closed with {self.socket.close_code}: {self.frames}"
                    await self._changed.wait()
        except TimeoutError:
            raise AssertionError(f"no such frame came within {WITHIN_S} s: {self.frames}") from None
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

    async def ask(self, type_name: str, content: Json | None = None, **more: Any) -> Json:
        """Send a frame with a correlation id, its own unless `metadata` has one; the answer, or the error."""
        metadata = {"correlationId": f"corr-{next(_numbers)}"} | more.pop("metadata", {})
        before = len(self.frames)
        await self.send(type_name, content, metadata=metadata, **more)
        return await self.reply(metadata["correlationId"], "" if type_name in PUSHED else type_name, after=before)

    async def reply(self, correlation_id: str, type_name: str = "message", *, after: int = 0) -> Json:
        """The frame of that type, or the response, or the error, with that correlation id."""

        def is_it(frame: Json) -> bool:
            is_about_it = frame.get("metadata", {}).get("correlationId") == correlation_id
            return is_about_it and frame["type"] in (type_name, "response", "error")

        return await self.find_any(is_it, after=after)

    async def discover(self) -> dict[str, str]:
        """The agents that discovery lists, each with its status."""
        listed = await self.ask("discovery", {"action": "list"})
        return {one["name"]: one["status"] for one in listed["content"]["agents"]}

    async def sees(self, agent: str, status: str) -> None:
        """Wait until discovery lists an agent with a status."""

        async def is_listed() -> bool:
            return (await self.discover()).get(agent) == status

        await eventually(is_listed, f"{agent} is {status}")

    async def send_message(
        self, agent: str, text: str | Json, role: str = "user", session: str = "", **metadata: object
    ) -> Json:
        """Send a message that wants a response; its reply, or the error that has its id."""
        correlation_id = f"corr-{next(_numbers)}"
        wanted = {**metadata, "requiresResponse": True, "correlationId": correlation_id}
        more = {"sessionId": session} if session else {}
        content = {"role": role, "content": text}
        return await self.ask("message", content, agent=agent, id=f"msg-{correlation_id}", metadata=wanted, **more)

    async def tell(self, agent: str, text: object, *, role: str = "agent", **more: Any) -> None:
        """Send a message that wants no response."""
        await self.send("message", {"role": role, "content": text}, agent=agent, **more)

    async def respond(self, message: Json, result: object = "done") -> None:
        """Answer a message that wants a response."""
        about = {"correlationId": message["metadata"]["correlationId"]}
        await self.send("response", {"result": result}, metadata=about)

    async def request(self, service: str, **params: object) -> Json:
        """Ask for a service of the gateway; the result, or the content of the error."""
        content: Json = (await self.ask("request", {"service": service, "params": params}))["content"]
        return content.get("result", content)

    async def propose(self, key: str, text: str = "Write it in Rust", **content: Any) -> Json:
        """Propose; what acknowledges it, or the error."""
        about = {"requiresResponse": True, "correlationId": key}
        found = (await self.ask("proposal", {"proposal": text, **content}, metadata=about))["content"]
        return found.get("result", found)

    async def vote(self, key: str, vote: str, **content: Any) -> Json:
        """Vote; what acknowledges it, or the error."""
        given = {"proposalId": key, "vote": vote, **content}
        found = (await self.ask("vote", given, metadata={"correlationId": key}))["content"]
        return found.get("result", found)

    async def decision(self, key: str) -> Json:
        """The content of the decision on a proposal."""
        found = await self.find("decision", lambda frame: frame["content"]["proposalId"] == key)
        return dict(found["content"])

    def of(self, *types: str) -> list[Json]:
        """The frames of these types that came."""
        return [one for one in self.frames if one["type"] in types]

    def count(self, type_name: str, key: str) -> int:
        """The number of frames of a type about a proposal that came."""
        return sum(one["content"].get("proposalId") == key for one in self.of(type_name))

    async def settle(self) -> None:
        """Wait until the gateway has answered a ping: what it sent before has come."""
        before = len(self.frames)
        await self.send("ping")
        await self.find_any(lambda frame: frame["type"] == "pong", after=before)

    async def answer(self, message: Json) -> None:
        """Answer a message that came; this client answers none."""

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
    """An agent that answers each message that wants a response with its text; entered once it has its seat."""

    async def __aenter__(self) -> Self:
        await super().__aenter__()
        await self.find("auth-response")
        return self

    async def answer(self, message: Json) -> None:
        metadata = message["metadata"]
        if message["type"] == "message" and metadata.get("requiresResponse"):
            reply = {"role": "agent", "content": message["content"]["content"]}
            if isinstance(reply["content"], str):
                reply["content"] = f"echo: {reply['content']}"
            about = {"correlationId": metadata["correlationId"]}
            await self.send("message", reply, agent=message["from"], metadata=about)


@asynccontextmanager
async def seat(url: str, token: str, name: str, kind: type[GatewayClient] = GatewayClient) -> AsyncIterator[Any]:
    """A seat that is taken."""
    async with kind(url, token, agentId=name) as client:
        await client.find("auth-response")
        yield client


@asynccontextmanager
async def team(
    hub: HubProcess, owner: str, *names: str, **kinds: type[GatewayClient]
) -> AsyncIterator[list[GatewayClient]]:
    """Seats of the agents of an owner, spread over the processes of a hub; `name=kind` for other clients."""
    token = hub.mint(owner, "channel")
    async with AsyncExitStack() as stack:
        yield [
            await stack.enter_async_context(seat(hub.urls[number % len(hub.urls)], token, name, kind))
            for number, (name, kind) in enumerate((dict.fromkeys(names, GatewayClient) | kinds).items())
        ]


def owner_of(hub: HubProcess, login: str) -> GatewayClient:
    """A client without a seat, with a session of a user."""
    return GatewayClient(hub.urls[0], hub.mint(login, "session"))


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


async def change_policy(hub: HubProcess, owner: str, **rules: object) -> None:
    """Change the rules of a team over REST, and wait until they count."""
    async with web(hub.url, headers=bearer(hub.mint(owner, "session"))) as rest:
        answer = await rest.patch("/api/v1/team/policy", json=rules)
    assert answer.status_code == 200, answer.text
    await asyncio.sleep(1.2 * READ_EVERY_S)


def code_of(frame: Json) -> tuple[int, str]:
    """The code and the reason of an error, or of a response that holds one; else 0."""
    content = frame["content"]
    error = content if "code" in content else content.get("error") or {}
    return error.get("code", 0), error.get("reason", "")


def in_ms(seconds: float) -> int:
    """A moment in so many seconds, as the protocol writes it."""
    return int((time.time() + seconds) * 1000)
