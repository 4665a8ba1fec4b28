"""HTTP clients that connect only to public addresses, which they check first, within a deadline."""

import asyncio
import os
import ssl
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from functools import cache

import httpcore2

from kit.durations import seconds
from kit.safe_http.pinned import PinnedBackend
from kit.safe_http.target import (
    AllowedUrl,
    NotSent,
    Resolve,
    TargetRules,
    addresses_of,
    read_target,
    system_resolver,
)

MAX_ANSWER_BYTES = 65_536
TOTAL_S = seconds(10.0, at_least_s=5.0)
CHECK_WITHIN_S = 4.0  # less than the 5 s after which the user's program gives up
CONNECT_WITHIN_S = 10.0
RESOLVERS = 8


class Unanswered(Exception):
    """The server sent no whole answer.

    The request may have arrived; the text may be shown to the user who gave the URL.
    """


class TooMuch(Unanswered):
    """The answer is longer than its reader accepts."""


class IncomingAnswer:
    """An answer whose headers have been received. `headers`: names in lower case."""

    def __init__(self, response: httpcore2.Response) -> None:
        self._response = response
        self.status: int = response.status
        self.headers: Mapping[str, str] = {
            name.decode("latin-1").lower(): value.decode("latin-1") for name, value in response.headers
        }

    async def pieces(self, max_bytes: int) -> AsyncGenerator[bytes, None]:
        """Yield the body as it arrives, never decompressed.

        Raises:
            TooMuch: it holds more than `max_bytes`.
            Unanswered: the connection ended before the body did.
        """
        left = max_bytes
        with _as_unanswered():
            async for piece in self._response.aiter_stream():
                left -= len(piece)
                if left < 0:
                    raise TooMuch(f"the answer is over {max_bytes} bytes")
                yield piece

    async def read(self, max_bytes: int) -> bytes:
        """The whole body. See `pieces`."""
        return b"".join([piece async for piece in self.pieces(max_bytes)])


class StreamingHttp:
    """Sends single requests: resolves the name once, connects to the checked address, follows no redirect, uses no
    proxy.

    Resolving, connecting and TLS take at most `connect_within_s`. The answer has no time limit of its own: the
    caller sets one.
    """

    def __init__(
        self,
        rules: TargetRules,
        *,
        resolve: Resolve = system_resolver,
        tls: ssl.SSLContext | None = None,
        connect_within_s: float = CONNECT_WITHIN_S,
    ) -> None:
        self._rules = rules
        self._resolve = resolve
        self._tls = tls
        self._connect_within_s = connect_within_s
        self._resolvers = ThreadPoolExecutor(RESOLVERS, thread_name_prefix="resolve")

    @asynccontextmanager
    async def stream(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str],
        body: bytes = b"",
        on_send: Callable[[], None] = lambda: None,
    ) -> AsyncIterator[IncomingAnswer]:
        """Send one request; yields its answer for the block. Calls `on_send` before it sends the first byte.

        Raises:
            NotSent: nothing was sent: the URL is not allowed, or the connection was refused.
            Unanswered: the request may have arrived, but no valid answer was received.
        """
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._connect_within_s
        target = read_target(url, self._rules)
        try:
            async with asyncio.timeout_at(deadline):
                addresses = await loop.run_in_executor(self._resolvers, self._addresses, target)
        except TimeoutError:
            raise NotSent(f"{target.host} could not be looked up in time") from None
        backend = PinnedBackend(addresses, deadline, on_send)
        async with AsyncExitStack() as stack:
            try:
                with _as_unanswered():
                    asked = _request(backend, method, target, headers, body, self._tls)
                    response = await stack.enter_async_context(asked)
            except Unanswered as failure:
                if backend.has_sent:
                    raise
                raise NotSent(str(failure)) from None
            yield IncomingAnswer(response)

    def close(self) -> None:
        """Stop looking up names."""
        self._resolvers.shutdown(wait=False, cancel_futures=True)

    def _addresses(self, target: AllowedUrl) -> list[str]:
        return addresses_of(target, self._rules, self._resolve, within_s=self._connect_within_s)


@dataclass(frozen=True, slots=True)
class ReceivedAnswer:
    """The received answer. `body`: its first bytes, not decompressed; `is_cut`: the server sent more."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    is_cut: bool


class SafeHttp:
    """Sends single requests from synchronous code under the rules of `StreamingHttp`.

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
        max_answer_bytes: int = MAX_ANSWER_BYTES,
    ) -> None:
        self._rules = rules
        self._resolve = resolve
        self._tls = tls
        self._total_s = total_s
        self._check_within_s = min(total_s, check_within_s)
        self._max_answer_bytes = max_answer_bytes

    def check(self, url: str) -> None:
        """Check a URL as `send` would.

        Raises:
            NotSent: the URL is not allowed.
        """
        target = read_target(url, self._rules)
        try:
            addresses_of(target, self._rules, self._resolve, within_s=self._check_within_s)
        except TimeoutError:
            raise NotSent(f"{target.host} could not be looked up in time") from None

    def send(self, method: str, url: str, *, headers: Mapping[str, str], body: bytes = b"") -> ReceivedAnswer:
        """Send one request; returns the answer of any status. Call this in a thread without an event loop.

        Raises:
            NotSent: the URL is not allowed; nothing was sent.
            Unanswered: the request may have arrived, but no valid answer was received in time.
        """
        deadline = time.monotonic() + self._total_s
        target = read_target(url, self._rules)
        with _as_unanswered(f"no whole answer within {self._total_s:g} s", "the answer is not HTTP"):
            addresses = addresses_of(target, self._rules, self._resolve, within_s=self._total_s)
            return asyncio.run(self._exchange(method, target, addresses, headers, body, deadline))

    async def _exchange(
        self,
        method: str,
        target: AllowedUrl,
        addresses: Sequence[str],
        headers: Mapping[str, str],
        body: bytes,
        deadline: float,
    ) -> ReceivedAnswer:
        within_s, read = deadline - time.monotonic(), b""
        backend = PinnedBackend(addresses, asyncio.get_running_loop().time() + within_s, lambda: None)
        async with asyncio.timeout(within_s):
            async with _request(backend, method, target, headers, body, self._tls) as response:
                answer, is_cut = IncomingAnswer(response), False
                async for piece in response.aiter_stream():
                    read += piece
                    if is_cut := len(read) > self._max_answer_bytes:
                        break
        return ReceivedAnswer(answer.status, answer.headers, read[: self._max_answer_bytes], is_cut)


@asynccontextmanager
async def _request(
    backend: PinnedBackend,
    method: str,
    target: AllowedUrl,
    headers: Mapping[str, str],
    body: bytes,
    tls: ssl.SSLContext | None,
) -> AsyncIterator[httpcore2.Response]:
    """Send one request; yields the response, and closes the connection at the end of the block."""
    url = target.url
    context = (tls or _default_tls()) if url.scheme == "https" else None
    # From the checked parts, because httpcore's own parser could read the URL differently.
    parsed = httpcore2.URL(scheme=url.raw_scheme, host=url.raw_host, port=target.port, target=url.raw_path)
    fields: list[tuple[str | bytes, str | bytes]] = [("Host", url.netloc), *headers.items()]
    # A pool for each request: a reused connection would lead to an address that was checked for another request.
    pool = httpcore2.AsyncConnectionPool(ssl_context=context, max_connections=1, network_backend=backend)
    async with pool, pool.stream(method, parsed, headers=fields, content=body) as response:
        yield response


@contextmanager
def _as_unanswered(
    late: str = "it takes no connection", broken: str = "the answer is not HTTP, or broke off"
) -> Iterator[None]:
    """Raise network failures as `Unanswered`, with texts that may be shown to the user who gave the URL."""
    try:
        yield
    except TimeoutError:
        raise Unanswered(late) from None
    except ssl.SSLCertVerificationError as bad:
        raise Unanswered(f"the certificate is not good: {bad.verify_message}") from None
    except ssl.SSLError:
        raise Unanswered("TLS failed") from None
    except OSError as failure:
        # Not the text of the failure: asyncio puts the looked-up address into it, which the user must not see.
        reason = os.strerror(failure.errno) if failure.errno else "it broke"
        raise Unanswered(f"the connection failed: {reason}") from None
    except (httpcore2.NetworkError, httpcore2.ProtocolError):
        raise Unanswered(broken) from None


@cache
def _default_tls() -> ssl.SSLContext:
    """The system's certificate authorities, read once."""
    return ssl.create_default_context()
