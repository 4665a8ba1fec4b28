"""The hub calls a remote server as its owner-approved card says; a changed card waits for the owner.

Until the owner decides, the hub calls by the approved card, unless the changed card no longer offers the interface
that the hub calls (docs/adr/0075). `Cards` holds the approved cards by which this process calls. A server's own
card is fetched again when that is long ago.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import transaction

from agents.core.ports import Clock
from agents.links.remote.card import (
    Auth,
    BadCard,
    ServerCard,
    UnsignedCard,
    card_of,
    fetch_card,
    may_have_credentials,
)
from agents.links.remote.card_content import CardChanges, find_changes
from agents.links.remote.events import CardRefused, ServerMoved, ServerUnreachable
from agents.links.remote.server_state import close_breaker, forget_names, open_breaker_at_once
from agents.models import RemoteCard, RemoteServer, Session
from agents.models.remote import MAX_FAILURE_CHARS
from kit.async_db import db_call
from kit.clock import db_now
from kit.newest import NewestEntries
from kit.safe_http import parse_url

FRESH_S = 300.0
STALE_S = 86_400.0  # calls that work go on if the card cannot be fetched
CARDS_KEPT = 1_000
FETCHED_AT_ONCE = 4
MOVED_MEANWHILE = "its owner moved or deleted the server while the hub fetched its card: ask again"
MOVED = "its card no longer offers the interface that its owner approved: the owner has to approve the change"


class NotWaiting(Exception):
    """The changed card that was decided about is not the one that waits."""


@dataclass(frozen=True, slots=True)
class CardVerdict:
    """The decision on a fetched card: the card to call by, or the reason why the server is not called."""

    card: ServerCard
    refusal: str


@dataclass(frozen=True, slots=True)
class ChangedCard:
    """A card that waits for the owner's decision. `is_asked`: the hub calls by the approved card meanwhile."""

    digest: str
    since: datetime
    changes: CardChanges
    is_asked: bool


@transaction.atomic
def compare_with_approved(server_id: int, fetched: ServerCard) -> CardVerdict | None:
    """Compare a card that was fetched with the approved one, and keep it for the owner if it changed.

    The first card of a server without an approved one is approved. None: the server is gone, or was moved while
    this card was fetched.
    """
    # Locked until the end: processes that fetch the card at once compare one after the other.
    server = _lock(server_id)
    if server is None or server.card_url != fetched.url:
        return None
    if not server.card_digest:
        write_approved(server_id, fetched)
        return CardVerdict(fetched, "")
    if server.card_digest == fetched.digest:
        _set_waiting_card(server, None, "")
        return CardVerdict(fetched, "")
    kept = RemoteCard.objects.get(server=server)
    approved = card_of(server.card_url, kept.approved)
    if fetched.digest == kept.kept_digest:
        _set_waiting_card(server, None, "")
        return CardVerdict(approved, "")
    refusal = "" if approved.interface in fetched.offers else MOVED
    if kept.waiting_digest != fetched.digest:
        RemoteCard.objects.filter(pk=kept.pk).update(waiting=fetched.content, waiting_digest=fetched.digest)
        _set_waiting_card(server, db_now(), refusal)
    elif server.card_refusal != refusal:
        _set_waiting_card(server, server.card_changed_at, refusal)
    return CardVerdict(approved, refusal)


def record_card_refusal(server_id: int, card_url: str, words: str) -> bool:
    """Store the reason why a server is not asked until its card is good again. A newer card may wait meanwhile.

    False: the server is gone, or was moved from this URL. The function makes one UPDATE, so the row is not locked
    before. The breaker stays as it is: the link opens it for the call that `CardRefused` ends.
    """
    found = RemoteServer.objects.filter(pk=server_id, card_url=card_url)
    return bool(found.update(card_refusal=words[:MAX_FAILURE_CHARS]))


def write_approved(server_id: int, card: ServerCard) -> None:
    """Approve a card: the hub calls the server by it from now on, and no other card waits."""
    fresh = {"approved": card.content, **_NONE_WAITS, "kept_digest": ""}
    RemoteCard.objects.update_or_create(server_id=server_id, defaults=fresh)
    RemoteServer.objects.filter(pk=server_id).update(
        card_digest=card.digest, card_changed_at=None, card_refusal=""
    )


def find_changed_card(server: RemoteServer) -> ChangedCard | None:
    """The card that waits for the owner of a server, and its differences from the approved one."""
    kept = RemoteCard.objects.filter(server=server, waiting__isnull=False).first()
    if kept is None or server.card_changed_at is None:
        return None
    return ChangedCard(
        digest=kept.waiting_digest,
        since=server.card_changed_at,
        changes=find_changes(kept.approved, kept.waiting),
        is_asked=not server.card_refusal,
    )


@transaction.atomic
def approve_card(server: RemoteServer, digest: str) -> None:
    """Call the server by the changed card of this digest from now on.

    Raises:
        NotWaiting: another one waits, or none; nothing was changed.
    """
    kept = _locked(server, digest)
    card, before = card_of(server.card_url, kept.waiting or {}), card_of(server.card_url, kept.approved)
    # Ids of tasks and contexts were given by the server behind the old interface.
    if card.interface != before.interface:
        forget_names(server.pk)
    Session.objects.filter(pk=server.session_id).update(**card_source_of(card))
    write_approved(server.pk, card)
    close_breaker(server.pk)


@transaction.atomic
def keep_card(server: RemoteServer, digest: str) -> None:
    """Go on by the approved card, also while the server shows the changed one of this digest.

    Raises:
        NotWaiting: another one waits, or none; nothing was changed.
    """
    kept = _locked(server, digest)
    RemoteCard.objects.filter(pk=kept.pk).update(**_NONE_WAITS, kept_digest=digest)
    RemoteServer.objects.filter(pk=server.pk).update(card_changed_at=None, card_refusal="")
    close_breaker(server.pk)


CARD_DECISIONS: dict[str, Callable[[RemoteServer, str], None]] = {"approve": approve_card, "keep": keep_card}


def card_source_of(card: ServerCard) -> dict[str, str]:
    """The columns of a session that say where its server is and which protocol it speaks."""
    way = card.interface
    host = parse_url(card.url).netloc.decode("ascii")
    return {"host": host[:255], "channel_version": f"A2A {way.version} over {way.binding}"[:64]}


_NONE_WAITS: dict[str, Any] = {"waiting": None, "waiting_digest": ""}


def _set_waiting_card(server: RemoteServer, since: datetime | None, refusal: str) -> None:
    """Store since when a changed card waits (None: no card), and why the server is not asked (empty: it is asked).

    The caller holds the server's row. A refusal where there was none opens the breaker.
    """
    if since is None and server.card_changed_at is not None:
        RemoteCard.objects.filter(server=server).update(**_NONE_WAITS)
    if (server.card_changed_at, server.card_refusal) != (since, refusal):
        RemoteServer.objects.filter(pk=server.pk).update(card_changed_at=since, card_refusal=refusal)
    if refusal and not server.card_refusal:
        open_breaker_at_once(server.pk, server.card_url, refusal, tried=False)


def _lock(server_id: int) -> RemoteServer | None:
    """Lock a server until the transaction ends; None: the server is gone.

    The session is locked first, as everywhere, because a refusal is written to it.
    """
    session = RemoteServer.objects.filter(pk=server_id).values("session_id")
    Session.objects.select_for_update(no_key=True).filter(pk__in=session).values_list("pk").first()
    return RemoteServer.objects.select_for_update(no_key=True).filter(pk=server_id).first()


def _locked(server: RemoteServer, digest: str) -> RemoteCard:
    """Lock a server; returns its cards, of which the changed one has this digest."""
    _lock(server.pk)
    kept = RemoteCard.objects.filter(server=server, waiting__isnull=False, waiting_digest=digest).first()
    if kept is None:
        raise NotWaiting
    return kept


class Cards:
    """Cards by server, URL, auth scheme and approved digest; a newly approved card is a new entry."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._known = NewestEntries[tuple[int, str, str, str], tuple[ServerCard, float]](CARDS_KEPT)
        self._fetchers = ThreadPoolExecutor(FETCHED_AT_ONCE, thread_name_prefix="card")

    async def get(self, server: RemoteServer, auth: Auth) -> ServerCard:
        """The card to call a server by.

        Raises:
            Unreachable: the hub has no card for the call; nothing was sent.
        """
        key = (server.pk, server.card_url, auth.scheme, server.card_digest)
        # While the card is refused, no cached card is used: each call that the breaker lets through fetches the
        # card.
        card, at = (None, 0.0) if server.card_refusal else self._known.get(key, (None, 0.0))
        age = self._clock() - at
        if card is not None and age < FRESH_S:
            return card
        fetching = asyncio.get_running_loop().run_in_executor
        try:
            fetched = await fetching(self._fetchers, fetch_card, server.card_url, auth, server.card_keys)
        except UnsignedCard as unsigned:
            if not await db_call(record_card_refusal)(server.pk, server.card_url, str(unsigned)):
                raise ServerMoved(MOVED_MEANWHILE) from None
            raise CardRefused(str(unsigned)) from None
        except BadCard as bad:
            if card is not None and age < STALE_S:
                return card
            raise ServerUnreachable(f"its card is of no use: {bad}") from None
        verdict = await db_call(compare_with_approved)(server.pk, fetched)
        if verdict is None:
            raise ServerMoved(MOVED_MEANWHILE)
        if verdict.refusal:
            raise CardRefused(verdict.refusal)
        if auth.scheme and not may_have_credentials(server.card_url, verdict.card.interface.url):
            raise CardRefused(
                "the approved card names another host: remove the credentials, or approve a card on this host"
            )
        self._known[(*key[:3], verdict.card.digest)] = (verdict.card, self._clock())
        return verdict.card

    def mark_stale(self, server_id: int) -> None:
        """Fetch this server's card again before the next call, because a call by it failed."""
        for key, (card, _) in list(self._known.items()):
            if key[0] == server_id:
                self._known[key] = (card, self._clock() - FRESH_S)

    def close(self) -> None:
        """Stop fetching cards."""
        self._fetchers.shutdown(wait=False, cancel_futures=True)
