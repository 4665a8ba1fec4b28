"""Like `client`, for streamed responses on an event loop."""

import asyncio
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager

import httpcore2

from kit.safe_http.async_pinned import AsyncPinnedBackend
from kit.safe_http.client import Unanswered, as_parsed, default_tls
from kit.safe_http.target import NotSent, Resolve, Target, TargetRules, addresses_of, read_target, system_resolver

CONNECT_WITHIN_S = 10.0
RESOLVERS = 8


class TooMuch(Unanswered):
    """The answer is longer than its reader takes."""


class Incoming:
    """An answer whose head has come. `headers`: names in lower case."""

    def __init__(self, response: httpcore2.Response) -> None:
        self._response = response
        self.status: int = response.status
        self.headers: Mapping[str, str] = {
            name.decode("latin-1").lower(): value.decode("latin-1") for name, value in response.headers
        }

    async def pieces(self, max_bytes: int) -> AsyncGenerator[bytes, None]:
        """The body as it comes, never decompressed.

        Raises:
            TooMuch: it holds more than `max_bytes`.
            Unanswered: it broke off.
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
    """Sends single requests under the rules of `SafeHttp`: one look-up, checked and pinned; no redirect, no proxy.

    Looking up, connecting and TLS take at most `connect_within_s`. The answer has no limit of time of its own:
    its reader sets one around it.
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
    ) -> AsyncIterator[Incoming]:
        """One request; its answer while the block lasts. `on_send` is called before the first byte leaves.

        Raises:
            NotSent: nothing was sent: the URL is not allowed, or the connection was refused.
            Unanswered: it may have arrived, but no sound answer came.
        """
        backend, target = await self._reach(url, on_send)
        context = (self._tls or default_tls()) if target.url.scheme == "https" else None
        fields: list[tuple[str | bytes, str | bytes]] = [("Host", target.url.netloc), *headers.items()]
        async with AsyncExitStack() as stack:
            try:
                with _as_unanswered():
                    # A pool for each request: a kept connection would lead to an
                    # address that was checked for another one.
                    pool = httpcore2.AsyncConnectionPool(
                        ssl_context=context, max_connections=1, network_backend=backend
                    )
                    await stack.enter_async_context(pool)
                    asked = pool.stream(method, as_parsed(target), headers=fields, content=body)
                    response = await stack.enter_async_context(asked)
            except Unanswered as failure:
                if backend.has_sent:
                    raise
                raise NotSent(str(failure)) from None
            yield Incoming(response)

    def close(self) -> None:
        """Look up nothing more."""
        self._resolvers.shutdown(wait=False, cancel_futures=True)

    async def _reach(self, url: str, on_send: Callable[[], None]) -> tuple[AsyncPinnedBackend, Target]:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._connect_within_s
        target = read_target(url, self._rules)
        try:
            async with asyncio.timeout_at(deadline):
                addresses = await loop.run_in_executor(self._resolvers, self._addresses, target)
        except TimeoutError:
            raise NotSent(f"{target.host} could not be looked up in time") from None
        return AsyncPinnedBackend(addresses, deadline, on_send), target

    def _addresses(self, target: Target) -> list[str]:
        return addresses_of(target, self._rules, self._resolve, within_s=self._connect_within_s)


@contextmanager
def _as_unanswered() -> Iterator[None]:
    """Network failures as texts that may be shown to the user who gave the URL."""
    try:
        yield
    except TimeoutError:
        raise Unanswered("it takes no connection") from None
    except ssl.SSLCertVerificationError as bad:
        raise Unanswered(f"the certificate is not good: {bad.verify_message}") from None
    except ssl.SSLError:
        raise Unanswered("TLS failed") from None
    except OSError as failure:
        raise Unanswered(f"the connection failed: {failure.strerror or 'it broke'}") from None
    except (httpcore2.NetworkError, httpcore2.ProtocolError):
        raise Unanswered("the answer is not HTTP, or broke off") from None
