"""Networks of owners, each with the service user that asks the agents of its venues."""

import re
from collections.abc import Callable, Coroutine, Mapping
from typing import Any
from uuid import UUID

from django.db import transaction
from msgspec import Struct, field

from accounts.models import User
from accounts.quotas import lock_owner
from agnt.models import Network, Venue
from agnt.wire.envelope import Envelope
from agnt.wire.payloads import Order
from clawbridge.agnt.fields import Json
from kit.ids import random_hex, time_ordered

SERVICE_PREFIX = "agnt-"
MAX_ADDRESS_CHARS = 63  # the name of a hop has at most 128: these, a colon, and a login of at most 64
_NOT_OF_NAMES = re.compile(r"[^A-Za-z0-9_.-]+")


class NetworkRef(Struct, frozen=True, kw_only=True):
    """A network, its owner, and the user as whom the hub asks the agents of its venues."""

    network_id: int
    owner_id: int
    owner_login: str
    service_user_id: int


class VenueAsk(Struct, frozen=True, kw_only=True):
    """An envelope that a venue is to answer. `order`: the checked payload.

    `order_id`: of an order, and of the booking that is made of it. `asked_at`: its timestamp at the venue.
    `chat_id`: of the turn that asks an agent of the hub.
    """

    network: NetworkRef
    envelope: Envelope
    venue: Venue
    order: Order
    order_id: UUID | None = None
    asked_at: str = ""
    chat_id: str = field(default_factory=time_ordered)


# The payload with which a venue confirms or cancels a booking, or its agent answers another envelope. The second
# argument is the deadline, of the monotonic clock; the caller cancels what takes longer. Raises EnvelopeRefused:
# `circuit_open`, `venue_unreachable`, `ttl_exceeded`, `routing_loop`; of a booking also `slot_unavailable`,
# `rate_limited`. `may_be_booked` says whether the venue may act all the same.
AskVenue = Callable[[VenueAsk, float], Coroutine[Any, Any, Json]]


def find_network(owner: User) -> Network | None:
    """The network of an owner, if there is one."""
    return Network.objects.filter(owner=owner).first()


def build_hop_name(owner_login: str, public_url: str) -> str:
    """The name of an owner's network as a hop of `via`: `hub.example.org:alice`."""
    address = _NOT_OF_NAMES.sub(":", public_url.partition("://")[2])
    return f"{address[-MAX_ADDRESS_CHARS:]}:{owner_login}"


@transaction.atomic
def get_or_create_network(owner: User) -> Network:
    """The network of an owner, made with its service user when there is none."""
    # Of two transactions that create the network at once, the second finds the row of the first.
    lock_owner(owner.pk)
    if found := find_network(owner):
        return found
    service_user = User.objects.create(login=SERVICE_PREFIX + random_hex(8), is_service=True)
    return Network.objects.create(owner=owner, service_user=service_user)


@transaction.atomic
def change_rules(owner: User, changes: Mapping[str, bool | int]) -> Network:
    """Change the rules of an owner's network, which is made when there is none. `changes`: fields of `Network`."""
    network = get_or_create_network(owner)
    for name, value in changes.items():
        setattr(network, name, value)
    network.save(update_fields=list(changes))
    return network
