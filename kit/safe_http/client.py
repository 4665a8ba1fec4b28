"""A client that cannot be sent where it should not go: to a checked address, one deadline over every byte."""

import socket
import ssl
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import httpcore2

from kit.durations import seconds
from kit.safe_http.target import NotSent, Resolve, Target, TargetRules, addresses_of, read_target, system_resolver

MAX_ANSWER_BYTES = 65_536
TOTAL_S = seconds(10.0, at_least_s=5.0)
CHECK_WITHIN_S = 4.0  # the user who gave the address waits, and gives up after 5 s


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
    """A socket whose every operation ends at the deadline, also when the peer sends byte by byte."""

    def __init__(self, connected: socket.socket, deadline: Deadline) -> None:
        self._socket = connected
        self._deadline = deadline

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        """The received bytes; empty at the end."""
        self._socket.settimeout(self._deadline.left_s())
        return self._socket.recv(max_bytes)

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        """Send all of it. A response that arrives before the whole request was sent is still read."""
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


class Unanswered(Exception):
    """No whole answer came. The request may have arrived; the text may be shown to the user who gave the URL."""


@dataclass(frozen=True, slots=True)
class ReceivedAnswer:
    """The received answer. `body` is the beginning of it, as it was sent; `is_cut` when there was more."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    is_cut: bool


class SafeHttp:
    """Sends single requests: resolves the name once, connects to the checked address, follows no redirect, uses no
    proxy.

    Names, TLS, sending and receiving share one deadline of `total_s` seconds. Threads may share a client.
    """

    def __init__(
        self,
        rules: TargetRules,
        *,
        resolve: Resolve = system_resolver,
        tls: ssl.SSLContext | None = None,
        total_s: float = TOTAL_S,
        check_within_s: float = CHECK_WITHIN_S,
    ) -> None:
        self._rules = rules
        self._resolve = resolve
        self._tls = tls
        self._total_s = total_s
        self._check_within_s = min(total_s, check_within_s)

    def check(self, url: str) -> None:
        """Look at a URL as sending would now.

        Raises:
            NotSent: it is not allowed.
        """
        target = read_target(url, self._rules)
        try:
            self._addresses(target, Deadline(self._check_within_s))
        except TimeoutError:
            raise NotSent(f"{target.host} could not be looked up in time") from None

    def send(self, method: str, url: str, *, headers: Mapping[str, str], body: bytes = b"") -> ReceivedAnswer:
        """One request and the answer to it, whatever its status.

        Raises:
            NotSent: the URL is not allowed; nothing was sent.
            Unanswered: it may have arrived, but no sound answer came in time.
        """
        deadline = Deadline(self._total_s)
        target = read_target(url, self._rules)
        try:
            return self._exchange(method, target, headers, body, deadline)
        except TimeoutError:
            raise Unanswered(f"no whole answer within {self._total_s:g} s") from None
        except ssl.SSLCertVerificationError as bad:
            raise Unanswered(f"the certificate is not good: {bad.verify_message}") from None
        except ssl.SSLError:
            raise Unanswered("TLS failed") from None
        except OSError as failure:
            raise Unanswered(f"the connection failed: {failure.strerror or 'it broke'}") from None
        except (httpcore2.NetworkError, httpcore2.ProtocolError):
            raise Unanswered("the answer is not HTTP") from None

    def _exchange(
        self, method: str, target: Target, headers: Mapping[str, str], body: bytes, deadline: Deadline
    ) -> ReceivedAnswer:
        backend = PinnedBackend(self._addresses(target, deadline), deadline)
        context = (self._tls or default_tls()) if target.url.scheme == "https" else None
        fields: list[tuple[str | bytes, str | bytes]] = [("Host", target.url.netloc), *headers.items()]
        with (
            httpcore2.ConnectionPool(ssl_context=context, max_connections=1, network_backend=backend) as pool,
            pool.stream(method, as_parsed(target), headers=fields, content=body) as response,
        ):
            read, is_cut = _beginning(response)
            shown = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in response.headers}
            return ReceivedAnswer(response.status, shown, read, is_cut)

    def _addresses(self, target: Target, deadline: Deadline) -> list[str]:
        return addresses_of(target, self._rules, self._resolve, within_s=deadline.left_s())


def as_parsed(target: Target) -> httpcore2.URL:
    """The same parts, not parsed a second time by another parser."""
    url = target.url
    return httpcore2.URL(scheme=url.raw_scheme, host=url.raw_host, port=target.port, target=url.raw_path)


def _beginning(response: httpcore2.Response) -> tuple[bytes, bool]:
    """At most 64 KiB of a body, never decompressed, and whether there was more."""
    read = b""
    for chunk in response.iter_stream():
        read += chunk
        if len(read) > MAX_ANSWER_BYTES:
            return read[:MAX_ANSWER_BYTES], True
    return read, False


@cache
def default_tls() -> ssl.SSLContext:
    """The system's certificate authorities, read once."""
    return ssl.create_default_context()
