"""Sends asks: past the breakers, and again with growing pauses while they may succeed, until the time is up."""

import asyncio
import random
import time
from collections.abc import Callable, Mapping
from typing import Protocol

from clawbridge.agnt.answers import MAX_ANSWER_BYTES, Answer, HttpAnswer, NoAnswer, Parse, parse_json, read_answer
from clawbridge.agnt.asks import Ask, AskRequest, CallFailed, Endpoint, build_request
from clawbridge.agnt.breakers import Blame, Breakers, CircuitOpen, blame_late
from clawbridge.agnt.fields import MAX_TTL_MS, ErrorCode
from clawbridge.agnt.serving import SeenSignatures

WITHIN_S = 30.0
MAX_WITHIN_S = 240.0  # the other side takes a signature for 300 s
FIRST_PAUSE_S = 0.5
LONGEST_PAUSE_S = 8.0
JITTER = 0.2  # the random part of a pause, so that clients do not all retry at once
AFTER_TTL_S = 1.0  # leaves the other side time to answer with `ttl_exceeded`
MIN_TRY_S = 0.2  # a try with less time would only count as a failure
_random = random.SystemRandom()


class Transport(Protocol):
    """Sends single requests. A transport follows no redirect, and has no limit of time: the caller cancels it."""

    async def post(self, url: str, headers: Mapping[str, str], body: bytes, *, max_bytes: int) -> HttpAnswer:
        """The answer to a POST.

        Raises:
            NoAnswer: there is none, or its body is over `max_bytes`.
        """
        ...


class Client:
    """Asks networks and venues over HTTP.

    Args:
        transport: sends single requests.
        breakers: refuse asks to a venue that failed too often, and all asks when several did; None: no ask is
            refused.
        parse: reads the JSON of answers; raises ValueError.
        clock: Unix seconds, for signatures.
        first_pause_s: before the second try; each later pause is twice as long, up to 8 s.
    """

    def __init__(
        self,
        transport: Transport,
        breakers: Breakers | None,
        *,
        parse: Parse = parse_json,
        clock: Callable[[], float] = time.time,
        first_pause_s: float = FIRST_PAUSE_S,
    ) -> None:
        self._transport = transport
        self._breakers = breakers
        self._parse = parse
        self._clock = clock
        self._first_pause_s = first_pause_s
        self._signatures = SeenSignatures()

    async def ask(self, endpoint: Endpoint, ask: Ask, *, within_s: float = WITHIN_S) -> Answer:
        """The answer to an ask. The same bytes are sent again after an error that may pass.

        Args:
            endpoint: where to send it.
            ask: what to ask.
            within_s: the time for all tries and the pauses between them, up to 240 s.

        Raises:
            CallFailed: there is none. `was_sent`: at least one try may have arrived.
        """
        until = asyncio.get_running_loop().time() + min(within_s, MAX_WITHIN_S)
        request = self._sign(endpoint, ask)
        pause_s, was_sent = self._first_pause_s, False
        while True:
            try:
                return await self._try(endpoint.url, ask, request, until)
            except CallFailed as failed:
                was_sent = failed.was_sent = was_sent or failed.was_sent
                wait_s = max(pause_s * (1 + JITTER * _random.random()), failed.retry_after_s)
                if not failed.retryable or asyncio.get_running_loop().time() + wait_s + MIN_TRY_S > until:
                    raise
            await asyncio.sleep(wait_s)
            pause_s = min(2 * pause_s, LONGEST_PAUSE_S)

    def _sign(self, endpoint: Endpoint, ask: Ask) -> AskRequest:
        """The request of an ask, signed as `SeenSignatures.sign_once` says."""
        return self._signatures.sign_once(
            ask,
            self._clock(),
            lambda at_s: build_request(ask, endpoint, at_s=at_s),
            lambda request: request.signature,
        )

    async def _try(self, url: str, ask: Ask, request: AskRequest, until: float) -> Answer:
        if self._breakers is None:
            return await self._send(url, ask, request, until)
        try:
            permit = await self._breakers.enter(ask.to)
        except CircuitOpen as refused:
            raise CallFailed(
                ErrorCode.CIRCUIT_OPEN,
                str(refused),
                retryable=True,
                retry_after_s=refused.retry_after_s,
                was_sent=False,
            ) from None
        try:
            answer = await self._send(url, ask, request, until)
        except CallFailed as failed:
            await self._breakers.leave(ask.to, permit, failed.blame)
            raise
        await self._breakers.leave(ask.to, permit, Blame.NONE)
        return answer

    async def _send(self, url: str, ask: Ask, request: AskRequest, until: float) -> Answer:
        now = asyncio.get_running_loop().time
        began_at = now()
        end_at = min(until, began_at + min(ask.ttl_ms, MAX_TTL_MS) / 1000 + AFTER_TTL_S)
        try:
            async with asyncio.timeout_at(end_at):
                got = await self._transport.post(url, request.headers, request.body, max_bytes=MAX_ANSWER_BYTES)
        except TimeoutError:
            blame = blame_late(end_at - began_at, now() - end_at)
            message = "no answer came in time"
            raise CallFailed(ErrorCode.TTL_EXCEEDED, message, retryable=True, blame=blame) from None
        except NoAnswer as none:
            raise CallFailed(
                ErrorCode.VENUE_UNREACHABLE,
                str(none),
                retryable=none.retryable,
                was_sent=none.was_sent,
                blame=Blame.NETWORK if none.retryable else Blame.VENUE,
            ) from None
        try:
            return read_answer(got, ask, self._parse)
        except CallFailed as failed:
            # The other side's time was up: its deadline is the `ttl_ms` of the ask.
            if failed.code == ErrorCode.TTL_EXCEEDED:
                failed.blame = blame_late(now() - began_at)
            raise
