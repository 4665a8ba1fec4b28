"""A client of a gateway of `a2a-v1`: asks agents, takes messages, proposes and votes.

async with GatewayClient("http://127.0.0.1:8787", token, name="alpha") as client:
    print(await client.ask("coder", "What is left to do?"))
    async for frame in client:
        ...
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping
from typing import Any, Self
from urllib.parse import urlencode

from websockets.asyncio.client import ClientConnection
from websockets.exceptions import ConnectionClosed

from clawbridge.connect import gateway_frames
from clawbridge.connect.agent import gateway_url
from clawbridge.connect.connection import CLOSE_WAIT_S, OPEN_WAIT_S, open_socket
from clawbridge.connect.frames import UnreadableFrame, read_object
from clawbridge.connect.gateway_frames import ConnectionState, GatewayError, GatewayFrame, Json

logger = logging.getLogger(__name__)

REPLY_WAIT_S = 30.0
MAX_WAITING_FRAMES = 1_000
"""Frames that were not taken yet. A program that takes none loses those that come after them."""

LOST = GatewayError(1003, "CONNECTION_RESET", "the connection to the gateway ended")
NO_REPLIES = frozenset(
    {"event", "proposal", "vote", "decision", "status"}
)  # frames of these types may carry the id of a reply, and are no replies


class GatewayClient:
    """A connection to the gateway. `async for` yields frames that answer nothing, in the order of their arrival.

    Args:
        url: the hub's address, or that of the gateway's socket (`ws://…`).
        token: a token of the hub; empty for a gateway that wants none.
        name: the agent whose seat to take, with a channel token; without one it is a client that is no agent.
        wait_s: how long a question waits for its reply.
    """

    def __init__(self, url: str, token: str = "", *, name: str = "", wait_s: float = REPLY_WAIT_S) -> None:
        asked = {"agentId": name, "timeout": int(wait_s * 1000)} if name else {"timeout": int(wait_s * 1000)}
        self._url = f"{gateway_url(url)}?{urlencode(asked)}"
        self._token = token
        self._wait_s = wait_s
        self._socket: ClientConnection | None = None
        self._is_connecting = False
        self._reading: asyncio.Task[None] | None = None
        self._replies: dict[str, asyncio.Future[GatewayFrame]] = {}
        self._frames: asyncio.Queue[GatewayFrame | None] = asyncio.Queue()
        self._acknowledged: asyncio.Future[GatewayFrame] | None = None
        self._refusal: GatewayError | None = None
        self.agents: list[str] = []

    async def __aenter__(self) -> Self:
        self._is_connecting = True
        try:
            self._socket = await open_socket(self._url, self._token, gateway_frames.SUBPROTOCOL)
        finally:
            self._is_connecting = False
        self._acknowledged = asyncio.get_running_loop().create_future()
        self._reading = asyncio.create_task(self._read(self._socket))
        try:
            await self._send_text(gateway_frames.handshake())
            async with asyncio.timeout(OPEN_WAIT_S):
                acknowledged = await self._acknowledged
        except BaseException:
            await self.__aexit__()
            raise
        self.agents = [one for one in acknowledged.content.get("availableAgents", []) if isinstance(one, str)]
        return self

    async def __aexit__(self, *failure: object) -> None:
        if self._socket is not None and self._reading is not None:
            await self._socket.close()
            self._reading.cancel()
            await asyncio.wait({self._reading})

    async def __aiter__(self) -> AsyncIterator[GatewayFrame]:
        while (frame := await self._frames.get()) is not None:
            yield frame
        self._frames.put_nowait(None)

    @property
    def state(self) -> ConnectionState:
        """The state of the connection; CLOSED before there is one."""
        if self._socket is not None:
            return ConnectionState(int(self._socket.state))
        return ConnectionState.CONNECTING if self._is_connecting else ConnectionState.CLOSED

    async def ask(self, agent: str, content: str | Json, **metadata: Any) -> str | Json:
        """Send a message and wait for the reply.

        Raises:
            GatewayError: no reply came; its `reason` is `response_timeout` when the agent did not answer.
        """
        metadata = {**metadata, "requiresResponse": True}
        said: str | Json = (
            await self._request("message", {"role": "user", "content": content}, agent=agent, metadata=metadata)
        ).content.get("content", "")
        return said

    async def tell(self, agent: str, content: str | Json, **metadata: Any) -> None:
        """Send a message that wants no reply. An error about it is a frame of `async for`."""
        await self.send("message", {"role": "agent", "content": content}, agent=agent, metadata=metadata)

    async def request(self, service: str, params: Mapping[str, Any] | None = None, *, agent: str = "") -> Any:
        """Ask a service of the gateway, such as `agents.list`, or one of an agent; its result.

        Raises:
            GatewayError: the service refused.
        """
        frame = await self._request("request", {"service": service, "params": dict(params or {})}, agent=agent)
        return frame.content.get("result")

    async def subscribe(self, channel: str, *agents: str) -> None:
        """Take the frames of a channel, such as `agent:status`."""
        await self._request("subscribe", {"channel": channel} | ({"agents": list(agents)} if agents else {}))

    async def propose(self, proposal: str, reasoning: str = "", *, deadline_ms: int | None = None) -> str:
        """Put a proposal to the vote; its id. The decision comes as a frame of type `decision`."""
        key = gateway_frames.new_id("proposal")
        content: Json = {"proposal": proposal, "reasoning": reasoning}
        content |= {} if deadline_ms is None else {"deadline": deadline_ms}
        await self._request("proposal", content, metadata={"correlationId": key})
        return key

    async def vote(self, proposal: GatewayFrame, choice: str, reasoning: str = "") -> None:
        """Vote on a proposal that was received."""
        await self._send_text(gateway_frames.vote(proposal, choice, reasoning))

    async def reply(self, message: GatewayFrame, content: str | Json) -> None:
        """Answer a message."""
        await self._send_text(gateway_frames.reply(message, content))

    async def fail(self, message: GatewayFrame, reason: str) -> None:
        """Send an error as the response to a message."""
        await self._send_text(gateway_frames.failure(message, reason))

    async def send(self, type_name: str, content: Mapping[str, Any], **fields: Any) -> None:
        """Send any frame.

        Raises:
            GatewayError: the connection has ended.
        """
        await self._send_text(gateway_frames.encode(type_name, content, **fields))

    async def _request(
        self, type_name: str, content: Mapping[str, Any], *, metadata: Json | None = None, **fields: Any
    ) -> GatewayFrame:
        key = (metadata or {}).get("correlationId") or gateway_frames.new_id("corr")
        reply: asyncio.Future[GatewayFrame] = asyncio.get_running_loop().create_future()
        self._replies[key] = reply
        try:
            await self.send(type_name, content, metadata={**(metadata or {}), "correlationId": key}, **fields)
            wait_s = max(self._wait_s, float((metadata or {}).get("ttl", 0)))
            async with asyncio.timeout(wait_s + OPEN_WAIT_S):  # the gateway answers within `wait_s`
                frame = await reply
        finally:
            self._replies.pop(key, None)
        if (error := frame.error) is not None:
            raise error
        return frame

    @property
    def _is_acknowledged(self) -> bool:
        return self._acknowledged is not None and self._acknowledged.done()

    def _find_waiting(self, frame: GatewayFrame) -> asyncio.Future[GatewayFrame] | None:
        waiting = self._replies.get(frame.correlation_id)
        return None if waiting is None or waiting.done() or frame.type in NO_REPLIES else waiting

    async def _send_text(self, text: str) -> None:
        if self._socket is None or self._reading is None:
            raise RuntimeError("not connected: use `async with`")
        try:
            await self._socket.send(text)
        except ConnectionClosed:
            await asyncio.wait({self._reading}, timeout=CLOSE_WAIT_S)  # the gateway may still read the reason
            raise self._refusal or LOST from None

    async def _read(self, socket: ClientConnection) -> None:
        try:
            async for raw in socket:
                try:
                    await self._take(socket, gateway_frames.read_frame(read_object(raw)))
                except UnreadableFrame as bad:
                    logger.warning("a frame of the gateway was ignored: %s", bad)
        except ConnectionClosed:
            pass
        finally:
            self._frames.put_nowait(None)
            for waiting in (*self._replies.values(), self._acknowledged):
                if waiting is not None and not waiting.done():
                    waiting.set_exception(self._refusal or LOST)
                    waiting.exception()  # asyncio logs exceptions that no code reads

    async def _take(self, socket: ClientConnection, frame: GatewayFrame) -> None:
        if frame.type == "ping":
            await socket.send(gateway_frames.encode("pong", {}))
        elif frame.type in {"auth-response", "pong"}:
            return
        elif frame.type == "handshake" and self._acknowledged is not None and not self._is_acknowledged:
            self._acknowledged.set_result(frame)
        elif (waiting := self._find_waiting(frame)) is not None:
            waiting.set_result(frame)
        elif frame.type == "error" and not frame.correlation_id and not self._is_acknowledged:
            self._refusal = frame.error
        elif self._frames.qsize() >= MAX_WAITING_FRAMES:
            logger.warning("a frame of type %s was dropped: %d wait", frame.type, MAX_WAITING_FRAMES)
        else:
            self._frames.put_nowait(frame)
