"""Single requests from a thread, each with one deadline over every byte."""

import asyncio
import ssl
from collections.abc import Mapping
from dataclasses import dataclass

from kit.durations import seconds
from kit.safe_http.streaming import NotConnected, StreamingHttp, Unanswered
from kit.safe_http.target import Resolve, TargetRules, system_resolver

MAX_ANSWER_BYTES = 65_536
TOTAL_S = seconds(10.0, at_least_s=5.0)
CHECK_WITHIN_S = 4.0  # the user who gave the address waits, and gives up after 5 s


@dataclass(frozen=True, slots=True)
class ReceivedAnswer:
    """What came back. `body` is the beginning of it, as it was sent; `is_cut` when there was more."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    is_cut: bool


class SafeHttp:
    """Sends requests by `StreamingHttp` from threads without an event loop; threads may share a client.

    Names, TLS, sending and receiving share one deadline of `total_s` seconds.
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
        self._streaming = StreamingHttp(rules, resolve=resolve, tls=tls, connect_within_s=total_s)
        self._total_s = total_s
        self._check_within_s = min(total_s, check_within_s)

    def check(self, url: str) -> None:
        """Look at a URL as sending would now.

        Raises:
            NotSent: it is not allowed.
        """
        self._streaming.check(url, self._check_within_s)

    def send(self, method: str, url: str, *, headers: Mapping[str, str], body: bytes = b"") -> ReceivedAnswer:
        """One request and the answer to it, whatever its status.

        Raises:
            NotSent: the URL is not allowed; nothing was sent.
            Unanswered: it may have arrived, but no sound answer came in time.
        """
        return asyncio.run(self._send(method, url, headers, body))

    async def _send(self, method: str, url: str, headers: Mapping[str, str], body: bytes) -> ReceivedAnswer:
        try:
            async with (
                asyncio.timeout(self._total_s),
                self._streaming.stream(method, url, headers=headers, body=body) as incoming,
            ):
                read, is_cut = await incoming.beginning(MAX_ANSWER_BYTES)
                return ReceivedAnswer(incoming.status, incoming.headers, read, is_cut)
        except TimeoutError:
            raise Unanswered(f"no whole answer within {self._total_s:g} s") from None
        except NotConnected as failure:
            raise Unanswered(str(failure)) from None
