"""The pages of a network on the desk: their rows, what is typed into them, and how they are read."""

import asyncio
import re
from html import unescape
from typing import Any

from django.test import Client

from agnt.models import Booking, Network, Venue
from tests.native.desk import read

NETWORK = "/desk/network"


def make_venue(network: Network, slug: str = "la-brisa", **fields: Any) -> Venue:
    return Venue.objects.create(network=network, slug=slug, **{"name": slug.title(), **fields})


def make_booking(venue: Venue, **fields: Any) -> Booking:
    return Booking.objects.create(network=venue.network, venue=venue, **{"sender": "my_agent_001", **fields})


def text_of(answer: Any) -> str:
    """What a page says, without its markup."""
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", answer.content.decode())).split())


def value_of(answer: Any, field: str) -> str:
    """What a field of a page holds."""
    found = re.search(rf'<input id="{field}" value="([^"]*)"', answer.content.decode())
    assert found is not None, text_of(answer)
    return found[1]


def export(page: Client) -> str:
    """The file of venues."""
    answer: Any = page.get(f"{NETWORK}/venues.csv")
    assert answer["Content-Disposition"] == 'attachment; filename="venues.csv"'
    return asyncio.run(read(answer.streaming_content))
