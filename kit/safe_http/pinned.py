"""The way to a checked address: one deadline over every byte, and no name looked up again."""

import socket
import ssl
import time
from collections.abc import Iterable, Sequence
from typing import Any

import httpcore2


class Deadline:
    """A moment of the monotonic clock."""

    def __init__(self, within_s: float) -> None:
        self._at = time.monotonic() + within_s

    def left_s(self) -> float:
        """How long still; always above zero.

        Raises:
            TimeoutError: it has passed.
        """
        left = self._at - time.monotonic()
        if left <= 0:
            raise TimeoutError
        return left


class PinnedBackend(httpcore2.NetworkBackend):
    """Connects to the given addresses, whatever host it is asked for; TLS still checks the host's name."""

    def __init__(self, addresses: Sequence[str], deadline: Deadline) -> None:
        self._addresses = addresses
        self._deadline = deadline

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore2.NetworkStream:
        """A stream to the first address that answers."""
        failure: OSError = ConnectionError("no address")
        for index, address in enumerate(self._addresses):
            share_s = self._deadline.left_s() / (
                len(self._addresses) - index
            )  # a dead one leaves time for the next
            try:
                connected = socket.create_connection((address, port), timeout=share_s)
            except OSError as refused:
                failure = refused
            else:
                connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                return DeadlineStream(connected, self._deadline)
        raise failure


class DeadlineStream(httpcore2.NetworkStream):
    """A socket whose every operation ends at the deadline: who drips byte by byte gains no time."""

    def __init__(self, connected: socket.socket, deadline: Deadline) -> None:
        self._socket = connected
        self._deadline = deadline

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        """What has come; empty at the end."""
        self._socket.settimeout(self._deadline.left_s())
        return self._socket.recv(max_bytes)

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        """All of it. Who answers before reading it all still has his answer read."""
        rest = memoryview(buffer)
        while rest:
            self._socket.settimeout(self._deadline.left_s())
            try:
                rest = rest[self._socket.send(rest) :]
            except (BrokenPipeError, ConnectionResetError) as closed:
                raise httpcore2.WriteError(str(closed)) from closed

    def close(self) -> None:
        """At once."""
        self._socket.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore2.NetworkStream:
        """The same stream, encrypted; the certificate must be for the host of the URL."""
        self._socket.settimeout(self._deadline.left_s())
        try:
            wrapped = ssl_context.wrap_socket(self._socket, server_hostname=server_hostname)
        except BaseException:
            self.close()
            raise
        return DeadlineStream(wrapped, self._deadline)

    def get_extra_info(self, info: str) -> Any:
        """The engine asks for nothing it needs: one request, then the socket is closed."""
        return None
