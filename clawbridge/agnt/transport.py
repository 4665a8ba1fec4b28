"""Sends asks with `httpx2`, for programs that have it. The hub goes by `agnt.service.asks.routes`."""

from collections.abc import Mapping
from types import TracebackType
from typing import Self

import httpx2

from clawbridge.agnt.answers import HttpAnswer, NoAnswer

CONNECT_WITHIN_S = 10.0
LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
NOT_SENT = (
    httpx2.ConnectError,
    httpx2.ConnectTimeout,
    httpx2.PoolTimeout,
    httpx2.ProxyError,
    httpx2.UnsupportedProtocol,
)


class HttpxTransport:
    """A `Transport` that goes to https, or to loopback, until its block ends.

    Each request has a connection of its own: a server that answers twice would otherwise answer the next one, too.
    """

    def __init__(self) -> None:
        self._client = httpx2.AsyncClient(
            timeout=httpx2.Timeout(None, connect=CONNECT_WITHIN_S),
            limits=httpx2.Limits(max_keepalive_connections=0),
            follow_redirects=False,
        )

    async def __aenter__(self) -> Self:
        await self._client.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._client.__aexit__(kind, error, trace)

    async def post(self, url: str, headers: Mapping[str, str], body: bytes, *, max_bytes: int) -> HttpAnswer:
        """See `Transport`."""
        _check_url(url)
        try:
            async with self._client.stream("POST", url, headers=dict(headers), content=body) as response:
                read = bytearray()
                async for piece in response.aiter_raw():
                    read += piece
                    if len(read) > max_bytes:
                        raise NoAnswer(f"the answer is over {max_bytes} bytes", was_sent=True, retryable=False)
                shown = {name.lower(): value for name, value in response.headers.items()}
                return HttpAnswer(response.status_code, shown, bytes(read))
        except NOT_SENT as failure:
            raise NoAnswer(f"the connection failed: {failure}", was_sent=False) from None
        except (httpx2.HTTPError, httpx2.StreamError) as failure:
            raise NoAnswer(f"the answer is not HTTP, or broke off: {failure}", was_sent=True) from None


def _check_url(url: str) -> None:
    try:
        parsed = httpx2.URL(url)
    except (httpx2.InvalidURL, ValueError):
        raise NoAnswer("this is not a URL", was_sent=False, retryable=False) from None
    if parsed.scheme != "https" and not (parsed.scheme == "http" and parsed.host in LOOPBACK):
        raise NoAnswer("want an https address", was_sent=False, retryable=False)
