"""Serves sockets of the dialect by the consumer of `a2a-v1`; `hub.asgi` calls this.

With the setting GATEWAY_PROTOTYPE a client that connects to `/a2a` without a subprotocol speaks the dialect.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qs, quote

from gateway.wire.frame_types import is_agent_name
from gateway.wire.prototype_dialect import PrototypeDialect
from kit.asgi import Message, Receive, Scope, Send, headers_of
from kit.sockets import find_set_heartbeat

PATH = "/a2a"
AGENT_HEADER = "x-agent-id"


def speaks_prototype(scope: Scope) -> bool:
    """True if the client of an upgrade speaks the dialect."""
    return scope["path"] == PATH and not scope["subprotocols"]


async def serve_prototype(
    consumer: Callable[[Scope, Receive, Send], Awaitable[None]], scope: Scope, receive: Receive, send: Send
) -> None:
    """Serve a socket of the dialect by the consumer of `a2a-v1`."""
    named, query = headers_of(scope).get(AGENT_HEADER, ""), scope.get("query_string", b"")
    if named and b"agentId=" not in query:
        query = b"&".join(filter(None, [query, b"agentId=" + quote(named, safe="").encode()]))
    scope["query_string"] = b""  # the scope lives as long as the socket, and would keep a token
    port = (scope.get("server") or ("", 0))[1]
    dialect = PrototypeDialect(lambda: datetime.now(UTC), port or 0, _find_name(query))
    socket = TranslatedSocket(dialect, receive, send)
    try:
        await consumer({**scope, "query_string": query}, socket.receive, socket.send)
    finally:
        socket.end()


class TranslatedSocket:
    """Translates the messages between the server and the consumer.

    `set_heartbeat`: the server's, see `kit.sockets`.
    """

    def __init__(self, dialect: PrototypeDialect, receive: Receive, send: Send) -> None:
        self._dialect = dialect
        self._receive = receive
        self._send = send
        self.set_heartbeat = find_set_heartbeat(send)
        self._receiving: asyncio.Future[Message] | None = None
        self._has_further: asyncio.Future[None] | None = None

    async def receive(self) -> Message:
        """The client's next message in `a2a-v1`, or a frame that the dialect sends for the client."""
        while not self._dialect.further:
            self._receiving = self._receiving or asyncio.ensure_future(self._receive())
            self._has_further = asyncio.get_running_loop().create_future()
            waited: list[asyncio.Future[Any]] = [self._receiving, self._has_further]
            await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
            if self._receiving.done():
                message, self._receiving = self._receiving.result(), None
                text = message.get("text") if message["type"] == "websocket.receive" else None
                return message if text is None else {**message, "text": self._dialect.read(text)}
        return {"type": "websocket.receive", "text": self._dialect.further.popleft()}

    async def send(self, message: Mapping[str, Any]) -> None:
        """Send a message of the consumer in the dialect."""
        if message["type"] != "websocket.send":
            await self._send(message)
            if message["type"] == "websocket.accept":
                await self._send({"type": "websocket.send", "text": self._dialect.welcome()})
            return
        for text in self._dialect.write(message["text"]):
            await self._send({**message, "text": text})
        if self._dialect.further and self._has_further is not None and not self._has_further.done():
            self._has_further.set_result(None)

    def end(self) -> None:
        """Stop reading from the client."""
        if self._receiving is not None:
            self._receiving.cancel()


def _find_name(query: bytes) -> str:
    """The agent that an address names; empty if there is none, or if the consumer refuses the name."""
    try:
        found = parse_qs(query.decode("latin-1"), max_num_fields=50).get("agentId", [""])[0]
    except ValueError:
        return ""
    return found if is_agent_name(found) else ""
