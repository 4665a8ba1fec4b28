"""The hub calls a remote server as its owner-approved card says; a changed card waits for the owner.

While it waits the hub goes on by the approved card, unless the changed one no longer offers the interface that the
hub calls (docs/adr/0075).
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import transaction

from agents.links.remote.breaker import close, open_at_once
from agents.links.remote.card import Card, card_of
from agents.links.remote.changes import Changes, find_changes
from agents.links.remote.names import forget
from agents.models import RemoteCard, RemoteServer, Session
from agents.models.remote import MAX_FAILURE_CHARS
from kit.clock import db_now
from kit.safe_http import parse_url

MOVED = "its card no longer offers the interface that its owner approved: the owner has to approve the change"


class NotWaiting(Exception):
    """The changed card that was decided about is not the one that waits."""


@dataclass(frozen=True, slots=True)
class CardVerdict:
    """What became of a fetched card: the card to call by, or why nothing is asked."""

    card: Card
    refusal: str


@dataclass(frozen=True, slots=True)
class ChangedCard:
    """A card that waits for its owner's decision. `is_asked`: by the approved one, meanwhile."""

    digest: str
    since: datetime
    changes: Changes
    is_asked: bool


@transaction.atomic
def compare_with_approved(server_id: int, fetched: Card) -> CardVerdict | None:
    """Compare a card that was fetched with the approved one, and keep it for the owner if it changed.

    The first card of a server without an approved one is approved. None: the server is gone, or was moved while
    this card was fetched.
    """
    # Locked until the end: processes that fetch the card at once compare one after the other.
    # The session first, as everywhere: a refusal is written to it.
    Session.objects.select_for_update(no_key=True).filter(
        pk__in=RemoteServer.objects.filter(pk=server_id).values("session_id")
    ).values_list("pk").first()
    server = RemoteServer.objects.select_for_update(no_key=True).filter(pk=server_id).first()
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
    """Write down why nothing is asked of a server, until its card is good again. Another may wait meanwhile.

    False: the server is gone, or was moved from this URL. It is one UPDATE, so the row is not locked before. The
    breaker stays as it is: the link opens it for the call that `CardRefused` ends.
    """
    found = RemoteServer.objects.filter(pk=server_id, card_url=card_url)
    return bool(found.update(card_refusal=words[:MAX_FAILURE_CHARS]))


def write_approved(server_id: int, card: Card) -> None:
    """From now on the hub calls the server as this card says; none waits."""
    fresh = {"approved": card.content, **_NONE_WAITS, "kept_digest": ""}
    RemoteCard.objects.update_or_create(server_id=server_id, defaults=fresh)
    RemoteServer.objects.filter(pk=server_id).update(
        card_digest=card.digest, card_changed_at=None, card_refusal=""
    )


def find_changed_card(server: RemoteServer) -> ChangedCard | None:
    """The card that waits for the owner of a server, and what differs."""
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
        forget(server.pk)
    Session.objects.filter(pk=server.session_id).update(**place_of(card))
    write_approved(server.pk, card)
    close(server.pk)


@transaction.atomic
def keep_card(server: RemoteServer, digest: str) -> None:
    """Go on by the approved card, also while the server shows the changed one of this digest.

    Raises:
        NotWaiting: another one waits, or none; nothing was changed.
    """
    kept = _locked(server, digest)
    RemoteCard.objects.filter(pk=kept.pk).update(**_NONE_WAITS, kept_digest=digest)
    RemoteServer.objects.filter(pk=server.pk).update(card_changed_at=None, card_refusal="")
    close(server.pk)


CARD_DECISIONS: dict[str, Callable[[RemoteServer, str], None]] = {"approve": approve_card, "keep": keep_card}


def place_of(card: Card) -> dict[str, str]:
    """A session as lists show it: where it is, and what it speaks."""
    way = card.interface
    host = parse_url(card.url).netloc.decode("ascii")
    return {"host": host[:255], "channel_version": f"A2A {way.version} over {way.binding}"[:64]}


_NONE_WAITS: dict[str, Any] = {"waiting": None, "waiting_digest": ""}


def _set_waiting_card(server: RemoteServer, since: datetime | None, refusal: str) -> None:
    """Write down since when a changed card waits (None: none does), and why nothing is asked (empty: it is asked).

    The caller holds the server's row. A refusal where there was none opens the breaker.
    """
    if since is None and server.card_changed_at is not None:
        RemoteCard.objects.filter(server=server).update(**_NONE_WAITS)
    if (server.card_changed_at, server.card_refusal) != (since, refusal):
        RemoteServer.objects.filter(pk=server.pk).update(card_changed_at=since, card_refusal=refusal)
    if refusal and not server.card_refusal:
        open_at_once(server.pk, server.card_url, refusal, tried=False)


def _locked(server: RemoteServer, digest: str) -> RemoteCard:
    """The cards of a server while the session and the server are locked, in this order."""
    Session.objects.select_for_update(no_key=True).filter(pk=server.session_id).values_list("pk").first()
    RemoteServer.objects.select_for_update(no_key=True).filter(pk=server.pk).values_list("pk").first()
    kept = RemoteCard.objects.filter(server=server, waiting__isnull=False, waiting_digest=digest).first()
    if kept is None:
        raise NotWaiting
    return kept
