"""The deliveries of a webhook as their owner reads them: which to list, and what was sent."""

import json
from collections.abc import Collection
from dataclasses import dataclass

from django.db.models import QuerySet

from webhooks.models import Delivery, Subscription
from webhooks.service.sending import body_of

MOST_OFFERED = 500
MAX_SHOWN_CHARS = 20_000
ENDS_EARLY = "…"  # no JSON ends so


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryFilter:
    """Which deliveries to list; an empty field takes any. `agent`: a handle in any case, with or without @."""

    status: str = ""
    event: str = ""
    agent: str = ""

    def find(self, subscription: Subscription) -> QuerySet[Delivery]:
        """The deliveries of this webhook, newest first."""
        found: QuerySet[Delivery] = Delivery.objects.filter(subscription=subscription).order_by("-pk")
        if not (self.event + self.agent).isprintable():  # no name has such a character, and databases refuse NUL
            return found.none()
        if self.status:
            found = found.filter(status=self.status)
        if self.event:
            found = found.filter(type=self.event)
        if self.agent:
            found = found.filter(agent_handle__iexact=self.agent.removeprefix("@"))
        return found


@dataclass(frozen=True, slots=True)
class FilterChoices:
    """The values by which the newest deliveries of a webhook can be filtered."""

    events: Collection[str]
    agents: Collection[str]


def find_filter_choices(subscription: Subscription) -> FilterChoices:
    """The events and agents of the newest deliveries."""
    newest = Delivery.objects.filter(subscription=subscription).order_by("-pk")[:MOST_OFFERED]
    pairs = set(newest.values_list("type", "agent_handle"))
    return FilterChoices(sorted({one for one, _ in pairs}), sorted({agent for _, agent in pairs if agent}))


def show_body(delivery: Delivery) -> str:
    """The body of a delivery, indented for reading; a long one ends early."""
    text = json.dumps(json.loads(body_of(delivery)), indent=2, ensure_ascii=False)
    return text if len(text) <= MAX_SHOWN_CHARS else f"{text[:MAX_SHOWN_CHARS]}{ENDS_EARLY}"
