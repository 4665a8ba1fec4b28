"""Publishes a remote server as an agent, and moves it: shared by REST, the desk and the admin."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db import transaction

from accounts.models import User
from agents import limits
from agents.core import directory
from agents.core.directory import CallerBudgets
from agents.core.registration import make_free_name
from agents.links.remote.approval import card_source_of, compare_with_approved, write_approved
from agents.links.remote.card import Auth, BadAuth, ServerCard, auth_of, find_card, may_have_credentials, seal
from agents.links.remote.server_state import close_breaker, forget_names, write_reachable
from agents.models import RemoteServer, Session
from agents.models.choices import CHANNEL_LINK
from agents.models.remote import REMOTE_LINK
from agents.transcript.pieces import Json
from kit.clock import db_now
from kit.names import make_slug


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """A server as its owner names it. `keys`: one of them signs its card; without any, no signature is checked.

    `switches`: the settings that are on or off (`SWITCHES`), by column.
    """

    card: ServerCard
    auth: Auth
    keys: Sequence[Json]
    switches: Mapping[str, bool]

    @property
    def columns(self) -> dict[str, Any]:
        """The columns of a `RemoteServer`."""
        return {
            "card_url": self.card.url,
            "auth_scheme": self.auth.scheme,
            "credentials": seal(self.auth),
            "card_keys": list(self.keys),
            **self.switches,
        }


def find_server(card_url: str, auth: Auth, keys: Sequence[Json], switches: Mapping[str, bool]) -> ServerSettings:
    """A server as its owner names it, with the card that it shows now. `switches`: others stay as they are.

    Raises:
        BadCard: there is none the hub can use.
    """
    return ServerSettings(find_card(card_url, auth, keys), auth, keys, switches)


@transaction.atomic
def publish_remote(
    owner: User,
    wanted: ServerSettings,
    details: Mapping[str, Any],
    *,
    slug: str | None = None,
    allowed: Sequence[User] | None = None,
    budgets: CallerBudgets | None = None,
) -> directory.Published:
    """Make an agent of a server, with a session of its own; its card is approved. See `directory.publish_agent`.

    Raises:
        directory.BadSlug, directory.HandleTaken, QuotaExceeded: nothing was written.
    """
    limits.SESSIONS.check(owner.pk)
    card = wanted.card
    session = Session(owner=owner, link=REMOTE_LINK, reachable_from=db_now(), **card_source_of(card))
    session.routing_name = make_free_name(session, make_slug(slug or card.name) or "remote")
    session.save()
    server = RemoteServer.objects.create(session=session, **wanted.columns)
    write_approved(server.pk, card)
    slug = slug or make_slug(card.name) or None
    return directory.publish_agent(owner, session, details, slug=slug, allowed=allowed, budgets=budgets)


def look_again(
    server: RemoteServer,
    card_url: str | None,
    auth: Auth | None,
    keys: Sequence[Json] | None = None,
    switches: Mapping[str, bool] | None = None,
) -> ServerSettings:
    """The settings of a server that is to move, with its card; None: as it is.

    Credentials are never shown, and so never sent to a host they were not given for.

    Raises:
        BadAuth: they were given for another host.
        BadCard: there is no card the hub can use.
        accounts.sealing.SecretUnreadable: its credentials cannot be read.
    """
    url = card_url or server.card_url
    if auth is None:
        auth = auth_of(server)
        if auth.scheme and not may_have_credentials(server.card_url, url):
            raise BadAuth("the card is on another host: give the credentials for it, or none")
    keys = server.card_keys if keys is None else keys
    return find_server(url, auth, keys, switches or {})


@transaction.atomic
def move(server: RemoteServer, wanted: ServerSettings) -> None:
    """Call the server by these settings from now on, and close its breaker.

    If the URL is another one, the card is approved, and the old server's names are forgotten. If the URL is the
    same, a changed card still waits for the owner (`agents.links.remote.approval`).
    """
    locked = Session.objects.select_for_update(no_key=True).filter(pk=server.session_id)
    locked.values_list("pk").first()
    RemoteServer.objects.filter(pk=server.pk).update(card_refusal="", **wanted.columns)
    close_breaker(server.pk)
    if server.card_url != wanted.card.url:
        forget_names(server.pk)
        write_approved(server.pk, wanted.card)
        Session.objects.filter(pk=server.session_id).update(**card_source_of(wanted.card))
    else:
        compare_with_approved(server.pk, wanted.card)


def name_links_of_old_sessions() -> None:
    """Give sessions their link where a process of the release before published them after the migration.

    This function goes after the next release.
    """
    unnamed = RemoteServer.objects.filter(session__link=CHANNEL_LINK)
    for server_id, session_id in unnamed.values_list("pk", "session_id"):
        Session.objects.filter(pk=session_id).update(link=REMOTE_LINK)
        write_reachable(server_id)
