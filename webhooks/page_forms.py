"""The form that subscribes: the native API's own checks, each complaint beside its field."""

from collections.abc import Iterator
from typing import Any

from django.http import QueryDict

from webhooks.rest.serializers import SubscriptionBody


class SubscribeForm:
    """What was typed, checked. `errors`: one sentence for each field that is wrong."""

    def __init__(self, given: QueryDict | None = None) -> None:
        given = given if given is not None else QueryDict()
        self.url = given.get("url", "").strip()
        self.events = given.getlist("events")
        self.session_id = given.get("session_id", "").strip()
        self.routing_name = given.get("routing_name", "").strip()
        self.errors: dict[str, str] = {}

    def read(self) -> dict[str, Any] | None:
        """Fields of `Subscription`; None when something is wrong."""
        filters = {"sessionId": self.session_id or None, "routingName": self.routing_name or None}
        body = SubscriptionBody(data={"url": self.url, "events": self.events, "filters": filters})
        if body.is_valid():
            return body.fields_of_row()
        self.errors = dict(_sentences(body.errors))
        return None


def _sentences(errors: Any) -> Iterator[tuple[str, str]]:
    """The first sentence about each field, those of `filters` by their own names."""
    for name, found in errors.items():
        if name == "filters" and isinstance(found, dict):
            yield from _sentences(found)
        else:
            yield name, "Choose at least one event." if name == "events" else _first(found)


def _first(found: Any) -> str:
    while isinstance(found, dict | list) and found:
        found = next(iter(found.values())) if isinstance(found, dict) else found[0]
    return str(found)
