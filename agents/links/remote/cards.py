"""The approved cards by which this process calls; a server's own is fetched anew when that is long ago."""

import asyncio
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from agents.links.remote.access import Auth, may_have_credentials
from agents.links.remote.approval import compare_with_approved, record_card_refusal
from agents.links.remote.card import BadCard, Card, UnsignedCard, fetch_card
from agents.links.remote.failures import CardRefused, ServerMoved, Unreachable
from agents.pieces import Json
from agents.ports import Clock
from kit.async_db import db_call

FRESH_S = 300.0
STALE_S = 86_400.0  # a card that cannot be fetched does not stop calls that work
KEPT = 1_000
FETCHED_AT_ONCE = 4
MOVED_MEANWHILE = "its owner moved or deleted the server while the hub fetched its card: ask again"

Key = tuple[int, str, str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class CardPlace:
    """Where a server's card is. `digest`: of the approved one; `keys`: pinned ones.

    `is_refused`: the card that was fetched last kept the hub from asking.
    """

    server_id: int
    url: str
    auth: Auth
    digest: str
    is_refused: bool
    keys: tuple[Json, ...] = ()


class Cards:
    """Cards by server, URL, auth scheme and approved digest; a newly approved card is a new entry."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._known: OrderedDict[Key, tuple[Card, float]] = OrderedDict()
        self._fetchers = ThreadPoolExecutor(FETCHED_AT_ONCE, thread_name_prefix="card")

    async def get(self, place: CardPlace) -> Card:
        """The card to call a server by.

        Raises:
            Unreachable: there is none; nothing was asked.
        """
        key = (place.server_id, place.url, place.auth.scheme, place.digest)
        # While the card is refused, no kept card counts: each call that the
        # breaker lets through fetches it anew.
        card, at = (None, 0.0) if place.is_refused else self._known.get(key, (None, 0.0))
        age = self._clock() - at
        if card is not None and age < FRESH_S:
            return card
        try:
            fetched = await self._fetch(place)
        except UnsignedCard as unsigned:
            if not await db_call(record_card_refusal)(place.server_id, place.url, str(unsigned)):
                raise ServerMoved(MOVED_MEANWHILE) from None
            raise CardRefused(str(unsigned)) from None
        except BadCard as bad:
            if card is not None and age < STALE_S:
                return card
            raise Unreachable(f"its card is of no use: {bad}") from None
        return await self._approved(place, fetched)

    async def _fetch(self, place: CardPlace) -> Card:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._fetchers, fetch_card, place.url, place.auth, place.keys)

    async def _approved(self, place: CardPlace, fetched: Card) -> Card:
        verdict = await db_call(compare_with_approved)(place.server_id, fetched)
        if verdict is None:
            raise ServerMoved(MOVED_MEANWHILE)
        if verdict.refusal:
            raise CardRefused(verdict.refusal)
        if place.auth.scheme and not may_have_credentials(place.url, verdict.card.interface.url):
            raise CardRefused(
                "the approved card names another host: remove the credentials, or approve a card on this host"
            )
        key = (place.server_id, place.url, place.auth.scheme, verdict.card.digest)
        self._known[key] = (verdict.card, self._clock())
        self._known.move_to_end(key)
        if len(self._known) > KEPT:
            self._known.popitem(last=False)
        return verdict.card

    def doubt(self, server_id: int) -> None:
        """A call by this server's card failed: fetch it anew before the next."""
        for key, (card, _) in self._known.items():
            if key[0] == server_id:
                self._known[key] = (card, self._clock() - FRESH_S)

    def close(self) -> None:
        """Fetch nothing more."""
        self._fetchers.shutdown(wait=False, cancel_futures=True)
