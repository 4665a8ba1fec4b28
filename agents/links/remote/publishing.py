"""Publishing a remote server as an agent, and moving it: what REST, the desk and the admin share."""

from collections.abc import Mapping, Sequence
from typing import Any

from django.db import transaction

from accounts.models import User
from agents import publishing
from agents.granting import CallerBudgets
from agents.links.remote.access import Auth, BadAuth, auth_of, may_have_credentials, seal
from agents.links.remote.card import Card, find_card
from agents.links.remote.names import forget
from agents.models import RemoteServer, Session
from agents.session_rows import check_sessions, free_name, slug_of
from kit.safe_http import parse_url


@transaction.atomic
def publish_remote(
    owner: User,
    card: Card,
    auth: Auth,
    details: Mapping[str, Any],
    *,
    slug: str | None = None,
    allowed: Sequence[User] | None = None,
    budgets: CallerBudgets | None = None,
) -> publishing.Published:
    """Make an agent of the server of a card, with a session of its own. See `agents.publishing.publish`.

    Raises:
        publishing.BadSlug, publishing.Taken, QuotaExceeded: nothing was written.
    """
    check_sessions(owner.pk)
    session = Session(owner=owner, **_place(card))
    session.routing_name = free_name(session, slug_of(slug or card.name) or "remote")
    session.save()
    RemoteServer.objects.create(
        session=session, card_url=card.url, auth_scheme=auth.scheme, credentials=seal(auth)
    )
    slug = slug or slug_of(card.name) or None
    return publishing.publish(owner, session, details, slug=slug, allowed=allowed, budgets=budgets)


def look_again(server: RemoteServer, card_url: str | None, auth: Auth | None) -> tuple[Card, Auth]:
    """The card of a server that is to move; None: as it is.

    Credentials are never shown, and so never sent to a host they were not given for.

    Raises:
        BadAuth: they were given for another host.
        BadCard: there is no card the hub can use.
        kit.sealing.Unreadable: its credentials cannot be read.
    """
    url = card_url or server.card_url
    if auth is None:
        auth = auth_of(server)
        if auth.scheme and not may_have_credentials(server.card_url, url):
            raise BadAuth("the card is on another host: give the credentials for it, or none")
    return find_card(url, auth), auth


@transaction.atomic
def move(server: RemoteServer, card: Card, auth: Auth) -> None:
    """Call this card from now on; its breaker is closed, and what the old one called things is forgotten."""
    if server.card_url != card.url:
        forget(server.pk)
    Session.objects.filter(pk=server.session_id).update(**_place(card))
    fresh = {"card_url": card.url, "auth_scheme": auth.scheme, "credentials": seal(auth)}
    RemoteServer.objects.filter(pk=server.pk).update(retry_at=None, opens=0, last_failure="", **fresh)


def _place(card: Card) -> dict[str, str]:
    """A session as lists show it: where it is, and what it speaks."""
    way = card.interface
    host = parse_url(card.url).netloc.decode("ascii")
    return {"host": host[:255], "channel_version": f"A2A {way.version} over {way.binding}"[:64]}
