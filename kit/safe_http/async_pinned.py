"""Connects to checked addresses on an event loop: no second name lookup, and a callback before the first byte
is sent.
"""

import asyncio
import socket
import ssl
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import httpcore2


class AsyncPinnedBackend(httpcore2.AsyncNetworkBackend):
    """Connects to the given addresses, whatever host it is asked for; TLS still checks the host's name.

    `deadline`: of the loop's clock, for the connection and TLS.
    """

    def __init__(self, addresses: Sequence[str], deadline: float, on_send: Callable[[], None]) -> None:
        self._addresses = addresses
        self._deadline = deadline
        self._on_send = on_send
        self.has_sent = False

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        """A stream to the first address that answers."""
        failure: OSError = ConnectionError("no address")
        loop = asyncio.get_running_loop()
        for index, address in enumerate(self._addresses):
            now = loop.time()
            share_s = (self._deadline - now) / (
                len(self._addresses) - index
            )  # a dead one leaves time for the next
            try:
                async with asyncio.timeout_at(now + share_s):
                    connected = await _connect(address, port)
            except OSError as refused:  # TimeoutError is one
                failure = refused
            else:
                return AsyncPinnedStream(connected, self._deadline, self._sends)
        raise failure

    def _sends(self) -> None:
        if not self.has_sent:
            self.has_sent = True
            self._on_send()


class AsyncPinnedStream(httpcore2.AsyncNetworkStream):
    """A connected socket; TLS, if any, begins before the first byte of the request."""

    def __init__(self, connected: socket.socket, deadline: float, on_send: Callable[[], None]) -> None:
        self._socket = connected
        self._deadline = deadline
        self._on_send = on_send
        self._ends: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        """The received bytes; empty at the end."""
        reader, _ = await self._open()
        return await reader.read(max_bytes)

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        """Send all of it. A response that arrives before the whole request was sent is still read."""
        _, writer = await self._open()
        self._on_send()
        try:
            writer.write(buffer)
            await writer.drain()
        except (BrokenPipeError, ConnectionResetError) as closed:
            raise httpcore2.WriteError(str(closed)) from closed

    async def aclose(self) -> None:
        """At once."""
        if self._ends is None:
            self._socket.close()
        else:
            self._ends[1].transport.abort()

    async def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore2.AsyncNetworkStream:
        """The same stream, encrypted; the certificate must be for the host of the URL."""
        try:
            async with asyncio.timeout_at(self._deadline):
                await self._open(ssl=ssl_context, server_hostname=server_hostname)
        except BaseException:
            self._socket.close()
            raise
        return self

    def get_extra_info(self, info: str) -> Any:
        """The engine asks for nothing it needs: one request, then the socket is closed."""
        return None

    async def _open(self, **tls: Any) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        if self._ends is None:
            self._ends = await asyncio.open_connection(sock=self._socket, **tls)
        return self._ends


async def _connect(address: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    connecting = socket.socket(family, socket.SOCK_STREAM)
    try:
        connecting.setblocking(False)
        await asyncio.get_running_loop().sock_connect(connecting, (address, port))
    except BaseException:
        connecting.close()
        raise
    connecting.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connecting
