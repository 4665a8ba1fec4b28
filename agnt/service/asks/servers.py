"""Asks the servers of venues, each at its URL: by addresses that were checked and pinned, and with strict JSON."""

import time
from collections.abc import Mapping
from typing import Any

from agents.links.remote.card import target_rules
from agnt.models import Venue
from agnt.service.asks.replies import blame_venue
from agnt.service.keys import derive_venue_secrets
from clawbridge.agnt import Ask, CallFailed, Client, Endpoint, HttpAnswer, NoAnswer
from clawbridge.agnt.errors import Json
from kit import strict_json
from kit.safe_http import NotPublic, NotSent, StreamingHttp, TooMuch, Unanswered

NO_PAUSE = float("inf")  # before a second try: there is none, the caller repeats its envelope


class GuardedTransport:
    """A `Transport` under the rules of a `StreamingHttp`, whose owner closes it."""

    def __init__(self, http: StreamingHttp) -> None:
        self._http = http

    async def post(self, url: str, headers: Mapping[str, str], body: bytes, *, max_bytes: int) -> HttpAnswer:
        """See `Transport`."""
        sent = {**headers, "Content-Length": str(len(body))}
        try:
            async with self._http.stream("POST", url, headers=sent, body=body) as incoming:
                return HttpAnswer(incoming.status, incoming.headers, await incoming.read(max_bytes))
        except NotSent as refused:
            raise NoAnswer(str(refused), was_sent=False, retryable=not isinstance(refused, NotPublic)) from None
        except TooMuch as much:
            raise NoAnswer(str(much), was_sent=True, retryable=False) from None
        except Unanswered as failure:
            raise NoAnswer(str(failure), was_sent=True) from None


class VenueServers:
    """Asks servers by the client of AGNT, as the operator's settings allow."""

    def __init__(self) -> None:
        self._http = StreamingHttp(target_rules())
        # Without breakers of its own: every ask has passed the stored ones.
        self._client = Client(GuardedTransport(self._http), None, parse=parse_strictly, first_pause_s=NO_PAUSE)

    async def ask(self, venue: Venue, ask: Ask, deadline: float) -> Json:
        """The payload of a server's answer to an envelope.

        Raises:
            VenueFailed: there is none.
        """
        endpoint = Endpoint(venue.url, secret=derive_venue_secrets(venue).signing)
        try:
            within_s = max(0.0, deadline - time.monotonic())
            return (await self._client.ask(endpoint, ask, within_s=within_s)).payload
        except CallFailed as failed:
            raise blame_venue(failed) from None

    def close(self) -> None:
        """Look up nothing more."""
        self._http.close()


def parse_strictly(body: bytes) -> Any:
    """The value of an answer's body, for `Client`.

    Raises:
        ValueError: it is not JSON that a sound program sends.
    """
    try:
        return strict_json.read(body)
    except strict_json.UnreadableText as unreadable:
        raise ValueError(str(unreadable)) from None
