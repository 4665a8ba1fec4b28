"""`/demos/agnt/`: signs an example envelope in the browser, and shows its canonical form and its signature."""

import json

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.gzip import gzip_page
from django.views.decorators.http import require_safe

from clawbridge.agnt.errors import Json
from clawbridge.agnt.fields import NETWORK

# The second vector of the reference: what the page shows at first can be compared with it.
SECRET = "test-signing-key-0001"  # noqa: S105  it is published
SENDER = "agnt_consumer_42"
AT_S = 1775988123
FIRST = "booking.search"
EXAMPLES: dict[str, Json] = {
    FIRST: {"query": "sunset dinner", "location": "canggu", "limit": 5},
    "booking.confirm": {"venue_id": "la-brisa", "time": "19:30", "party_size": 2, "user_note": "window"},
    "venue.list": {"category": "restaurant", "location": "canggu", "limit": 10},
    "network.ping": {},
}


@never_cache
@gzip_page
@require_safe
def sign_envelope(request: HttpRequest) -> HttpResponse:
    """The form with an example; nothing that is typed into it comes to the hub."""
    examples = {intent: json.dumps(payload, indent=2) for intent, payload in EXAMPLES.items()}
    context = {
        "secret": SECRET,
        "sender": SENDER,
        "network": NETWORK,
        "at_s": AT_S,
        "examples": examples,
        "payload": examples[FIRST],
    }
    return render(request, "agnt/sign.html", context)
