"""The pages of a network on the desk: their rows, what is typed into them, and how they are read."""

import re
from html import unescape
from typing import Any

from django.test import Client

from agnt.models import Booking, Venue
from tests.native.desk import file_of

NETWORK = "/desk/network"


def make_booking(venue: Venue, **fields: Any) -> Booking:
    return Booking.objects.create(network=venue.network, venue=venue, **{"sender": "my_agent_001", **fields})


def text_of(answer: Any) -> str:
    """The text of a page, without its markup."""
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", answer.content.decode())).split())


def value_of(answer: Any, field: str) -> str:
    """The value of a field of a page."""
    found = re.search(rf'<input id="{field}" value="([^"]*)"', answer.content.decode())
    assert found is not None, text_of(answer)
    return found[1]


def export(page: Client) -> str:
    """The file of venues."""
    name, venues = file_of(page, f"{NETWORK}/venues.csv")
    assert name == 'attachment; filename="venues.csv"'
    return venues
