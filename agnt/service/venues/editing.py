"""Creates, changes and deletes venues. Each change bumps `Network.venues_version` in the same transaction.

The row of the network is locked first, so that of two changes at once the second sees the names and the number
that the first left. Files of venues are in `agnt.service.venues.file` and `agnt.service.venues.importing`.
"""

from collections.abc import Collection, Mapping
from typing import Any

from django.db import transaction
from django.db.models import Q, QuerySet
from django.db.models.functions import Lower

from accounts.models import User
from agents.models import Agent
from agnt import limits
from agnt.models import Cancellation, Network, Venue
from agnt.models.venue import VENUE_WORDS, VenueQuerySet
from agnt.service.venues.fields import AGENT_OR_URL, NEEDED, BadVenue, Fields, check_fields
from kit.clock import db_now
from kit.full_text import search

NO_AGENT = "there is no such agent of yours"


class VenueTaken(Exception):
    """Another venue of the network has the slug or the agent name. `field`: the field of `Venue` whose value is
    taken.
    """

    def __init__(self, field: str, value: str) -> None:
        super().__init__(f"another venue has {value}")
        self.field = field


@transaction.atomic
def create_venue(network: Network, given: Fields) -> Venue:
    """Create a venue. `given`: fields of `Venue`, at least `slug` and `name`; `agent` comes from `find_agent`.

    Raises:
        BadVenue, VenueTaken: nothing was written.
        accounts.quotas.QuotaExceeded: the network has as many venues as one may.
    """
    if missing := [name for name in NEEDED if name not in given]:
        raise BadVenue(dict.fromkeys(missing, "a venue needs it"))
    venue = Venue(network=network, **check_fields(given))
    lock_network(network)
    # The lock on the network excludes other changes of its venues, as the lock on the account does elsewhere.
    limits.VENUES.check_number(limits.VENUES.count_used(network.owner_id))
    _check_names(venue)
    venue.save(force_insert=True)
    note_venue_change(network)
    return venue


@transaction.atomic
def change_venue(venue: Venue, given: Fields) -> bool:
    """Change some fields of a venue, in the row and in `venue`; False: the row is gone.

    Raises:
        BadVenue, VenueTaken: nothing was written.
    """
    fields, network = check_fields(given), venue.network
    lock_network(network)
    if not Venue.objects.filter(pk=venue.pk).exists():
        return False
    venue.refresh_from_db()
    changed = [name for name, value in fields.items() if getattr(venue, name) != value]
    if not changed:
        return True
    for name in changed:
        setattr(venue, name, fields[name])
    if venue.agent_id and venue.url:
        raise BadVenue({"url" if "url" in fields else "agent": AGENT_OR_URL})
    _check_names(venue)
    venue.updated_at = db_now()
    venue.save(update_fields=[*changed, "updated_at"])
    note_venue_change(network)
    return True


@transaction.atomic
def delete_venue(venue: Venue) -> bool:
    """Delete a venue; False: the hub deactivated it instead.

    The hub deactivates a venue while bookings name it, or cancellations for it are not yet settled.
    """
    lock_network(venue.network)
    # On PostgreSQL a booking that is being written holds a share of this lock: it is counted, or comes too late.
    if Venue.objects.select_for_update(of=("self",)).filter(pk=venue.pk).first() is None:
        return True
    note_venue_change(venue.network)
    unsettled = venue.cancellations.filter(state__in=Cancellation.UNSETTLED)
    if not venue.bookings.exists() and not unsettled.exists():
        venue.delete()
        return True
    venue.is_active, venue.updated_at = False, db_now()
    venue.save(update_fields=["is_active", "updated_at"])
    return False


@transaction.atomic
def set_venues_active(network: Network, venue_ids: Collection[int], *, is_active: bool) -> int:
    """Activate or deactivate some venues of a network; returns the number of venues that changed. `venue_ids`:
    primary keys.
    """
    lock_network(network)
    others = Venue.objects.filter(network=network, pk__in=venue_ids, is_active=not is_active)
    if changed := others.update(is_active=is_active, updated_at=db_now()):
        note_venue_change(network)
    return changed


def list_venues(owner: User) -> QuerySet[Venue]:
    """The venues of an owner's network with their agents, in the order of `VenueQuerySet.in_order`."""
    return Venue.objects.filter(network__owner=owner).select_related("agent", "network").in_order()


def find_venues(
    owner: User, *, words: str = "", category: str = "", location: str = "", is_active: bool | None = None
) -> QuerySet[Venue]:
    """The venues of `list_venues` that fit the conditions, by relevance if words are given.

    `words`: as envelopes search for them (`kit.full_text`). `category`: the whole category.
    `location`: a part of the area or the city. Empty, or None: no condition. Case does not count.
    """
    found = list_venues(owner)
    if category:
        found = found.filter(category__iexact=category)
    if location:
        found = found.filter(Q(area__icontains=location) | Q(city__icontains=location))
    if is_active is not None:
        found = found.filter(is_active=is_active)
    return search(found, VENUE_WORDS, words, *VenueQuerySet.ORDER)


def find_agent(owner: User, handle: str) -> Agent | None:
    """The agent with a handle, as a venue of this owner may have it; None for an empty handle.

    Raises:
        BadVenue: the owner has no such agent.
    """
    found = find_agents(owner, [handle]).get(handle) if handle else None
    if handle and found is None:
        raise BadVenue({"agent": NO_AGENT})
    return found


def find_agents(owner: User, handles: Collection[str]) -> Mapping[str, Agent]:
    """The agents with these handles that venues of this owner may have: the owner's own. Keys: the given handles.

    Bookings ask an agent past its access and budgets (`agnt.service.asks.routes`): another owner's is never asked.
    """
    keys = {handle: handle.strip().removeprefix("@").lower() for handle in handles if handle.isprintable()}
    rows = Agent.objects.owned_by(owner).kept().filter(handle_key__in=set(keys.values()))
    by_key = {agent.handle_key: agent for agent in rows}
    return {handle: by_key[key] for handle, key in keys.items() if key in by_key}


def lock_network(network: Network) -> None:
    """Lock the row of a network until the transaction ends. The hub writes bookings of the network meanwhile."""
    list(Network.objects.select_for_update(no_key=True).filter(pk=network.pk).values_list("pk"))


def note_venue_change(network: Network) -> None:
    """Make every process read a network's venues anew. The caller is in the transaction that changes a venue."""
    Network.objects.filter(pk=network.pk).note_venue_change()


def _check_names(venue: Venue) -> None:
    others: QuerySet[Venue, Any] = Venue.objects.filter(network_id=venue.network_id).exclude(pk=venue.pk)
    if others.alias(slug_key=Lower("slug")).filter(slug_key=venue.slug.lower()).exists():
        raise VenueTaken("slug", venue.slug)
    if venue.agent_name and others.filter(agent_name=venue.agent_name).exists():
        raise VenueTaken("agent_name", venue.agent_name)
