"""uvicorn's HTTP with its writes put together: head and body of an answer leave as one (docs/adr/0064).

uvloop gives each `write` to the system at once, and a packet over loopback costs more than the answer in it.
"""

import asyncio
from typing import Any, cast

from hub.patience import PatientHttp

MOST_BYTES = 16_384


class Corked:
    """A transport that writes once in each turn of the loop, or as soon as MOST_BYTES wait: so flow control holds.

    All but writing and closing is the transport's own.
    """

    __slots__ = ("_loop", "_size", "_transport", "_waiting")

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._waiting: list[bytes] = []
        self._size = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        """Keep it for the end of this turn of the loop."""
        if not self._waiting:
            self._loop.call_soon(self._flush)
        self._waiting.append(data)
        self._size += len(data)
        if self._size >= MOST_BYTES:
            self._flush()

    def close(self) -> None:
        """Write what waits, then close."""
        self._flush()
        self._transport.close()

    def _flush(self) -> None:
        if self._waiting:
            data, self._waiting, self._size = b"".join(self._waiting), [], 0
            self._transport.write(data)


class HubHttp(PatientHttp):
    """Its sockets, too, write through the cork: uvicorn hands the transport on when it upgrades."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """A client connected."""
        super().connection_made(cast(asyncio.Transport, Corked(transport, self.loop)))
