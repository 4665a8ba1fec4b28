"""Servers on real ports that record what they receive and answer as a test wants."""

import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from lab.waiting import until


@dataclass(frozen=True)
class Received:
    """A request, with header names in lower case."""

    path: str
    headers: dict[str, str]
    body: bytes


@dataclass
class Receiver:
    """An HTTP server of a webhook's owner. `answer` gives the status for a request, and may take its time.

    `answer_body`: the body of each answer.
    """

    port: int
    received: list[Received] = field(default_factory=list)
    answer: Callable[[Received], int] = lambda _: 204
    answer_body: bytes = b""
    scheme: str = "http"

    @property
    def url(self) -> str:
        return f"{self.scheme}://127.0.0.1:{self.port}/hook"

    def heard(self, count: int, *, within_s: float = 30) -> list[Received]:
        """The requests, once there are that many."""
        until(
            lambda: len(self.received) >= count, f"{count} requests, not {len(self.received)}", within_s=within_s
        )
        return list(self.received)


class Handler(BaseHTTPRequestHandler):
    """Logs nothing, and answers as `answer` is called."""

    def answer(self, status: int, body: bytes = b"", **headers: str) -> None:
        """Send an answer; does nothing if the other side waits no longer."""
        with suppress(OSError):
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name.replace("_", "-"), value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    def log_message(self, *args: object) -> None:
        pass


@contextmanager
def serving_http(handler: type[Handler], tls: ssl.SSLContext | None = None) -> Iterator[int]:
    """A port of this machine where each request is answered in a thread of its own, until the block ends."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@contextmanager
def receiving(
    answer: Callable[[Received], int] | None = None, tls: ssl.SSLContext | None = None
) -> Iterator[Receiver]:
    """A receiver on a free port, until the block ends."""

    class ReceiverHandler(Handler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            one = Received(self.path, {name.lower(): value for name, value in self.headers.items()}, body)
            receiver.received.append(one)
            status = receiver.answer(one)
            moved = {"Location": receiver.url + "/elsewhere"} if 300 <= status < 400 else {}
            self.answer(status, receiver.answer_body, **moved)

    with serving_http(ReceiverHandler, tls) as port:
        receiver = Receiver(port, scheme="http" if tls is None else "https")
        if answer is not None:
            receiver.answer = answer
        yield receiver


@contextmanager
def talking(talk: Callable[[socket.socket], None]) -> Iterator[int]:
    """A port where each connection is answered byte by byte as `talk` says."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=_talk, args=(connection, talk), daemon=True).start()

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield listener.getsockname()[1]
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join()


def _talk(connection: socket.socket, talk: Callable[[socket.socket], None]) -> None:
    with connection, suppress(OSError):  # the other side left
        talk(connection)


class Canary:
    """Listens on every loopback address and counts connections."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("::", 0), family=socket.AF_INET6, dualstack_ipv6=True)
        self.port: int = self._listener.getsockname()[1]
        self.visits = 0
        self._thread = threading.Thread(target=self._count, daemon=True)
        self._thread.start()

    def _count(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self.visits += 1
            connection.close()

    def close(self) -> int:
        """Stop; how many connections came. A last connection of our own shows that none is waiting."""
        before = self.visits
        socket.create_connection(("127.0.0.1", self.port)).close()
        until(lambda: self.visits > before, "the canary counts", within_s=30)
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join()
        return self.visits - 1
