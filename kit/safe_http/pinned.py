"""Connections of httpcore2 to addresses that were checked before."""

import asyncio
import socket
import ssl
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, TypeVar, cast

import httpcore2

MAX_RECEIVED_BYTES = 65_536  # bytes that one call reads from TLS
Result = TypeVar("Result")


class PinnedBackend(httpcore2.AsyncNetworkBackend):
    """Connects to the given addresses, whatever host it is asked for; TLS still checks the host's name.

    `deadline`: for the connection and TLS, by the loop's clock. `on_send`: called before the first byte is sent.
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
        """Connect to the first address that answers."""
        failure: OSError = ConnectionError("no address")
        loop = asyncio.get_running_loop()
        for tried, address in enumerate(self._addresses):
            # Each address gets a share of the time, so that an address that does not answer leaves time for the
            # next.
            share_s = (self._deadline - loop.time()) / (len(self._addresses) - tried)
            try:
                async with asyncio.timeout(share_s):
                    return PinnedStream(await _connect(address, port), self._deadline, self._note_sending)
            except OSError as refused:  # OSError includes TimeoutError
                failure = refused
        raise failure

    def _note_sending(self) -> None:
        if not self.has_sent:
            self.has_sent = True
            self._on_send()


class PinnedStream(httpcore2.AsyncNetworkStream):
    """A connected socket; TLS, if any, begins before the first byte of the request.

    The socket has no transport of asyncio: when a server responds and closes before it has read the whole request,
    a transport drops what it received as soon as a write fails.
    """

    def __init__(self, connected: socket.socket, deadline: float, on_send: Callable[[], None]) -> None:
        self._socket = connected
        self._deadline = deadline
        self._on_send = on_send
        self._tls: ssl.SSLObject | None = None
        self._received, self._to_send = ssl.MemoryBIO(), ssl.MemoryBIO()  # of TLS

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        """The received bytes; empty at the end."""
        if self._tls is None:
            return await asyncio.get_running_loop().sock_recv(self._socket, max_bytes)
        try:
            return await self._finish(partial(self._tls.read, max_bytes))
        except (ssl.SSLEOFError, ssl.SSLZeroReturnError):
            return b""

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        """Send all bytes. A response that arrives before the whole request was sent can still be read."""
        self._on_send()
        try:
            if self._tls is None:
                await asyncio.get_running_loop().sock_sendall(self._socket, buffer)
                return
            rest = memoryview(buffer)
            while rest:  # TLS sends one record at a time
                rest = rest[await self._finish(partial(self._tls.write, rest)) :]
        except (BrokenPipeError, ConnectionResetError) as closed:
            raise httpcore2.WriteError(str(closed)) from closed

    async def aclose(self) -> None:
        """Close the socket at once."""
        self._socket.close()

    async def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore2.AsyncNetworkStream:
        """Begin TLS on this stream; the certificate must be valid for the host of the URL."""
        self._tls = ssl_context.wrap_bio(self._received, self._to_send, server_hostname=server_hostname)
        try:
            async with asyncio.timeout_at(self._deadline):
                await self._finish(self._tls.do_handshake)
        except BaseException:
            self._socket.close()
            raise
        return self

    def get_extra_info(self, info: str) -> Any:
        """Returns None: httpcore2 asks only for facts that it needs to keep a connection, and here each connection
        serves one request.
        """
        return None

    async def _finish(self, step: Callable[[], Result]) -> Result:
        """Run a step of TLS until it needs nothing more from the server."""
        loop = asyncio.get_running_loop()
        while True:
            result, failure = None, None
            try:
                result = step()
            # SSLError includes SSLWantReadError; after a failure TLS may have an alert to send.
            except ssl.SSLError as one:
                failure = one
            if self._to_send.pending:  # even an empty `send` fails once the server has closed the connection
                await loop.sock_sendall(self._socket, self._to_send.read())
            if failure is None:
                return cast(Result, result)
            if not isinstance(failure, ssl.SSLWantReadError):
                raise failure
            received = await loop.sock_recv(self._socket, MAX_RECEIVED_BYTES)
            self._received.write(received) if received else self._received.write_eof()


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
