"""The cards this process has seen, fetched anew when they are old or were of no use."""

import asyncio
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor

from agents.links.remote.access import Auth
from agents.links.remote.card import BadCard, Card, fetch_card
from agents.links.remote.failures import Unreachable
from agents.ports import Clock

FRESH_S = 300.0
STALE_S = 86_400.0  # a card that cannot be fetched does not stop calls that work
KEPT = 1_000
FETCHED_AT_ONCE = 4

Key = tuple[int, str, str]


class Cards:
    """By server and URL, so that a changed URL is another card."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._known: OrderedDict[Key, tuple[Card, float]] = OrderedDict()
        self._fetchers = ThreadPoolExecutor(FETCHED_AT_ONCE, thread_name_prefix="card")

    async def get(self, server_id: int, url: str, auth: Auth) -> Card:
        """The card of a server.

        Raises:
            Unreachable: there is none; nothing was asked.
        """
        key = (server_id, url, auth.scheme)
        card, at = self._known.get(key, (None, 0.0))
        age = self._clock() - at
        if card is not None and age < FRESH_S:
            return card
        try:
            fresh = await asyncio.get_running_loop().run_in_executor(self._fetchers, fetch_card, url, auth)
        except BadCard as bad:
            if card is not None and age < STALE_S:
                return card
            raise Unreachable(f"its card is of no use: {bad}") from None
        self._known[key] = (fresh, self._clock())
        self._known.move_to_end(key)
        if len(self._known) > KEPT:
            self._known.popitem(last=False)
        return fresh

    def doubt(self, server_id: int) -> None:
        """A call by this server's card failed: fetch it anew before the next."""
        for key, (card, _) in self._known.items():
            if key[0] == server_id:
                self._known[key] = (card, self._clock() - FRESH_S)

    def close(self) -> None:
        """Fetch nothing more."""
        self._fetchers.shutdown(wait=False, cancel_futures=True)
