"""A client of `a2a-v1` for the fault suite: a socket that is closed at the end of its block."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any, Self
from urllib.parse import urlencode

from websockets.asyncio.client import ClientConnection, connect
from websockets.typing import Subprotocol

from lab.frames import Json

SIGNED_IN_WITHIN_S = 30.0


class SignInRefused(ConnectionError):
    """The gateway does not take this client, or not its token."""


class GatewaySocket:
    """One connection. `seat`: the agent whose seat it takes; empty: it has none.

    Raises on entry what `websockets.connect` raises, and SignInRefused. A frame that comes before the answer to
    the sign-in is dropped, as by clients that expect that answer first.
    """

    def __init__(self, url: str, token: str, seat: str = "") -> None:
        named = {"token": token} | ({"agentId": seat} if seat else {})
        self._url = f"{url.replace('http', 'ws', 1).rstrip('/')}/gateway?{urlencode(named)}"
        self._socket: ClientConnection | None = None

    async def __aenter__(self) -> Self:
        self._socket = await connect(
            self._url, subprotocols=[Subprotocol("a2a-v1")], compression=None, proxy=None,
            open_timeout=SIGNED_IN_WITHIN_S, close_timeout=1, ping_interval=None,
        )  # fmt: skip
        try:
            async with asyncio.timeout(SIGNED_IN_WITHIN_S):
                async for frame in self.frames():
                    if frame["type"] == "auth-response" and frame["content"]["status"] == "authenticated":
                        return self
                    if frame["type"] == "error":
                        raise SignInRefused(str(frame["content"]))
        except BaseException:
            await self._socket.close()
            raise
        raise EOFError

    async def __aexit__(self, *failure: object) -> None:
        await self.socket.close()

    @property
    def socket(self) -> ClientConnection:
        """The open socket."""
        assert self._socket is not None, "not connected"
        return self._socket

    async def send(self, type_name: str, **members: Any) -> None:
        """Send one frame."""
        await self.socket.send(json.dumps({"type": type_name} | members))

    async def send_message(self, agent: str, text: str, message_id: str, **metadata: Any) -> None:
        """Send a message; its id is the correlation id, too."""
        about = {"correlationId": message_id} | metadata
        content = {"role": "user", "content": text}
        await self.send("message", agent=agent, id=message_id, content=content, metadata=about)

    async def frames(self) -> AsyncIterator[Json]:
        """The frames that come, until the connection ends. Pings are answered.

        Raises:
            ConnectionClosed: the connection was lost, or is at its end.
        """
        while True:
            frame: Json = json.loads(await self.socket.recv())
            if frame["type"] == "ping":
                await self.send("pong")
            yield frame

    async def answer_to(self, correlation_id: str) -> Json:
        """The message, response or error with that correlation id."""
        async for frame in self.frames():
            about = frame.get("metadata", {}).get("correlationId")
            if about == correlation_id and frame["type"] in ("message", "response", "error"):
                return frame
        raise EOFError
