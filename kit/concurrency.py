"""Limits on what runs at once, per account and per process: long responses, streams, sockets.

A slot belongs to a request. A view takes it; the server releases it when the request is over, however it ends.
"""

import ipaddress
import threading
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any

from kit.asgi import RequestRefused, retry_after

SLOTS_KEY = "clawbridge.slots"  # in the ASGI scope: the function that takes a slot for the request
RETRY_AFTER_S = 5
DOWNLOADS = "downloads"
CARD_LOOKUPS = "card look-ups"


class TooManyAtOnce(RequestRefused):
    """The account or the process has reached its limit of such requests.

    The hub did nothing; the text is public.
    """

    def __init__(self, kind: str, most: int, *, is_of_account: bool) -> None:
        who = "you have" if is_of_account else "the hub has"
        text = f"{who} {most} {kind} under way, which is the most: try again when one has ended"
        status, code = (429, "rate_limited") if is_of_account else (503, "unavailable")
        super().__init__(status, code, text, retry_after(RETRY_AFTER_S))


class ConcurrencyLimit:
    """Counts and limits running requests of one kind, per account and per process. 0: no limit. Thread-safe.

    `refuse`: makes the error for an account that has reached its limit; without it, that is TooManyAtOnce.
    """

    def __init__(
        self,
        kind: str,
        *,
        per_account: int,
        per_process: int = 0,
        refuse: Callable[[int], Exception] | None = None,
    ) -> None:
        self._kind = kind
        self._refuse = refuse or partial(TooManyAtOnce, kind, is_of_account=True)
        self._per_account = per_account
        self._per_process = per_process
        self._running: Counter[Hashable] = Counter()
        self._lock = threading.Lock()

    def enter(self, account_id: Hashable) -> None:
        """Count one more request of the account.

        Raises:
            TooManyAtOnce, or the error of `refuse`: a limit is reached; nothing was counted.
        """
        with self._lock:
            if self._per_account and self._running[account_id] >= self._per_account:
                raise self._refuse(self._per_account)
            if self._per_process and self._running.total() >= self._per_process:
                raise TooManyAtOnce(self._kind, self._per_process, is_of_account=False)
            self._running[account_id] += 1

    def leave(self, account_id: Hashable) -> None:
        """Count one request of the account less."""
        with self._lock:
            self._running[account_id] -= 1
            if not self._running[account_id]:
                del self._running[account_id]

    @contextmanager
    def hold(self, account_id: Hashable) -> Iterator[None]:
        """Count one more request of the account while the block lasts; see `enter`."""
        self.enter(account_id)
        try:
            yield
        finally:
            self.leave(account_id)

    @property
    def total(self) -> int:
        """The number of requests that run now."""
        return self._running.total()

    def running(self) -> Mapping[Hashable, int]:
        """The numbers of requests that run now, by account."""
        with self._lock:
            return dict(self._running)


def take_slot(request: Any, kind: str, account_id: int) -> None:
    """Take a slot for a Django or REST request; outside of an ASGI server there are no limits.

    Raises:
        TooManyAtOnce: no slot is free.
    """
    take: Callable[[str, int], None] | None = getattr(request, "scope", {}).get(SLOTS_KEY)
    if take is not None:
        take(kind, account_id)


def network_of(address: str) -> str:
    """The key by which to count a client: its IPv4 address, or its IPv6 /64, because one client may have a whole
    /64.
    """
    try:
        ip = ipaddress.ip_address(address)
    except ValueError:
        return "unknown"
    return str(ipaddress.ip_network((ip, 64), strict=False)) if ip.version == 6 else str(ip)
