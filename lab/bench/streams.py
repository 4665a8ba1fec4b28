"""Streamed questions over plain sockets: how soon the first piece of a reply comes, and streams that stay open."""

import socket
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress

from lab.bench.targets import Target

FIRST_CHUNK = b'"echo: '
LAST = b"\r\n0\r\n\r\n"
WITHIN_S = 30


class StreamBroken(Exception):
    """The server closed the connection, or answered something else than this stream."""


def first_chunks_ms(target: Target, count: int) -> list[float]:
    """Ask `count` times, one after the other; how long each first chunk took."""
    templates = target.templates("SendStreamingMessage", "stream")
    with _connect(target) as connection:
        return [_first_chunk_ms(connection, templates[n % len(templates)].fill(n)) for n in range(count)]


@contextmanager
def open_streams(target: Target, count: int, *, streams_a_caller: int) -> Iterator[Sequence[socket.socket]]:
    """Hold streams whose agents never answer; inside, each has had its first event."""
    templates = target.templates("SendStreamingMessage", "hold")
    connections = []
    with ExitStack() as stack:
        for number in range(count):
            connection = stack.enter_context(_connect(target))
            connection.sendall(templates[number // streams_a_caller % len(templates)].fill(number))
            event = _read_until(connection, b'"state"', b"")
            if b"FAILED" in event:
                raise StreamBroken(event[-300:])
            connections.append(connection)
        yield connections


def count_alive(connections: Sequence[socket.socket], within_s: float) -> int:
    """How many streams say something within that time, and do not end; what they said before does not count."""
    for connection in connections:
        connection.settimeout(0)
        with suppress(BlockingIOError):
            while connection.recv(65536):
                pass
    deadline, alive = time.monotonic() + within_s, 0
    for connection in connections:
        connection.settimeout(max(0.01, deadline - time.monotonic()))
        with suppress(TimeoutError, ConnectionError):
            said = connection.recv(65536)
            alive += bool(said) and LAST not in said
    return alive


def _first_chunk_ms(connection: socket.socket, request: bytes) -> float:
    began = time.perf_counter()
    connection.sendall(request)
    answer = _read_until(connection, FIRST_CHUNK, b"")
    took_ms = (time.perf_counter() - began) * 1000
    if b'COMPLETED"' not in _read_until(connection, LAST, answer):
        raise StreamBroken(answer[-300:])
    return took_ms


def _read_until(connection: socket.socket, mark: bytes, read: bytes) -> bytes:
    deadline = time.monotonic() + WITHIN_S
    while mark not in read:
        if time.monotonic() > deadline:
            raise StreamBroken(read[-300:])
        more = connection.recv(65536)
        if not more or LAST in read:
            raise StreamBroken(read[-300:])
        read += more
    return read


def _connect(target: Target) -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", target.port), WITHIN_S)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection
