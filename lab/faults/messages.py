"""Teams whose agents send each other messages; each recipient is away half of the time, so messages wait."""

import asyncio
import itertools
import random
import secrets
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from websockets.exceptions import ConnectionClosed, InvalidHandshake

from lab.callers import Json
from lab.faults.gateway_socket import GatewaySocket
from lab.faults.oplog import OpLog

SENDER, RECIPIENT = "alpha", "beta"
THERE_S, AWAY_S = (0.5, 2.5), (0.5, 2.5)
BACK_AFTER_S = 0.5
PAUSE_S = (0.02, 0.2)
TTL_S = 3600
TOLD_WITHIN_S = 2.0
ANSWERED_WITHIN_S = 30.0
LEFT_WITHIN_S = 15.0
NOT_CONNECTED = (OSError, InvalidHandshake, ConnectionClosed, EOFError, TimeoutError)


@dataclass
class MessageTeam:
    """Two seats of one owner: the sender's, and the recipient's, which is taken and left again and again.

    `stays`: the recipient does not leave any more until `stop`. `token`: a channel token of the owner.
    """

    owner: str
    token: str
    urls: Sequence[str]
    log: OpLog
    stays: bool = False
    stops: bool = False
    has_seat: asyncio.Event = field(default_factory=asyncio.Event)
    _receiving: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Take the recipient's seat, and leave it again and again, until `stop`."""
        self._receiving = asyncio.get_running_loop().create_task(self._receive_on(), name=self.owner)

    async def stop(self) -> None:
        """Leave the recipient's seat for good, and read what came before; a second call does nothing."""
        self.stops = True
        if self._receiving is not None:
            await asyncio.wait({self._receiving}, timeout=LEFT_WITHIN_S)
            self._receiving.cancel()
            with suppress(asyncio.CancelledError):
                await self._receiving

    async def send_on(self, goes_on: Callable[[], bool]) -> None:
        """Send one message after the other, over one connection until it breaks."""
        await self.has_seat.wait()
        while goes_on():
            url = random.randrange(len(self.urls))
            try:
                async with GatewaySocket(self.urls[url], self.token, SENDER) as socket:
                    while goes_on():
                        await self._send(socket, url)
                        await asyncio.sleep(random.uniform(*PAUSE_S))
            except NOT_CONNECTED:
                await asyncio.sleep(BACK_AFTER_S)

    async def _send(self, socket: GatewaySocket, url: int) -> None:
        """Put a message into the inbox, or send one that may wait; log what the gateway said."""
        nonce, is_put = secrets.token_hex(8), random.random() < 0.5
        text = f"{nonce} what did I say?"
        began, began_in = time.monotonic(), self.log.fault
        outcome, said = "broken", ""
        try:
            if is_put:
                about = {"correlationId": nonce}
                params = {"agent": RECIPIENT, "content": text, "id": nonce}
                await socket.send("request", content={"service": "inbox.send", "params": params}, metadata=about)
            else:
                await socket.send_message(RECIPIENT, text, nonce, ttl=TTL_S)
            async with asyncio.timeout(ANSWERED_WITHIN_S if is_put else TOLD_WITHIN_S):
                outcome, said = await _outcome_of(socket, nonce)
        except TimeoutError:  # the gateway confirms no message that it sends at once
            outcome = "late" if is_put else "sent"
        finally:
            took_s = round(time.monotonic() - began, 3)
            sent: Json = {
                "owner": self.owner,
                "url": url,
                "is_put": is_put,
                "began_in": began_in,
                "took_s": took_s,
            }
            self.log.write("letter", nonce=nonce, outcome=outcome, text=said[:200], **sent)

    async def _receive_on(self) -> None:
        for number in itertools.takewhile(lambda _: not self.stops, itertools.count()):
            with suppress(*NOT_CONNECTED):
                async with GatewaySocket(random.choice(self.urls), self.token, RECIPIENT) as socket:
                    self.has_seat.set()
                    leaving = asyncio.get_running_loop().create_task(self._leave(socket))
                    try:
                        await self._receive(socket, number)
                    finally:
                        leaving.cancel()
            await asyncio.sleep(BACK_AFTER_S if self.stays else random.uniform(*AWAY_S))

    async def _leave(self, socket: GatewaySocket) -> None:
        """Close the connection after a while: what came before is still read."""
        until = time.monotonic() + random.uniform(*THERE_S)
        while not self.stops and (self.stays or time.monotonic() < until):
            await asyncio.sleep(0.1)
        await socket.socket.close()

    async def _receive(self, socket: GatewaySocket, number: int) -> None:
        async for frame in socket.frames():
            if frame["type"] == "message":
                nonce = str(frame["content"]["content"]).partition(" ")[0]
                self.log.write("received", nonce=nonce, owner=self.owner, socket=number, id=frame["id"])


async def _outcome_of(socket: GatewaySocket, nonce: str) -> tuple[str, str]:
    """`stored`, `sent` or `refused`, with the error."""
    async for frame in socket.frames():
        content: Json = frame.get("content") or {}
        if frame["type"] == "event" and content.get("messageId") == nonce:
            return ("stored" if frame["event"] == "message.queued" else "sent"), ""
        if frame.get("metadata", {}).get("correlationId") == nonce:
            error: Any = content if frame["type"] == "error" else content.get("error")
            return ("refused", f"{error['code']} {error.get('reason')}") if error else ("stored", "")
    raise EOFError
