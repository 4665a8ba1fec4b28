"""What comes in over REST, checked field by field, and what goes out as JSON."""

from collections.abc import Sequence
from typing import Any, cast

from rest_framework import serializers

from accounts.rest import Body
from kit.iso import iso, iso_or_none
from kit.safe_http import NotSent
from webhooks.catalog import EventType
from webhooks.models import MAX_URL_CHARS, Delivery, Subscription
from webhooks.rest.shapes import Webhook, WebhookDelivery, WebhookEvent, WebhookFilters, WebhookWithSecret
from webhooks.sending import check_url
from webhooks.subscribing import WithSecret

Json = dict[str, Any]
MAX_EVENTS = 50
MAX_EVENT_CHARS = 64


class FiltersBody(Body):
    """What narrows a subscription down; both have to fit."""

    sessionId = serializers.UUIDField(required=False, allow_null=True)
    routingName = serializers.CharField(required=False, allow_null=True, max_length=81)

    def validate_routingName(self, name: str | None) -> str:
        """With its @, also when it came without."""
        return f"@{name.removeprefix('@')}" if name else ""


class SubscriptionBody(Body):
    """The body of POST, and any part of it that of PATCH. Event names need not be in the catalog."""

    url = serializers.CharField(max_length=MAX_URL_CHARS)
    events = serializers.ListField(
        child=serializers.RegexField(r"\A\S+\Z", max_length=MAX_EVENT_CHARS),
        allow_empty=False,
        max_length=MAX_EVENTS,
    )
    filters = FiltersBody(required=False, allow_null=True)

    def validate_url(self, url: str) -> str:
        """Where the hub may send to, at this moment at least: each delivery looks again."""
        try:
            check_url(url)
        except NotSent as refused:
            raise serializers.ValidationError(str(refused)) from None
        return url

    def fields_of_row(self) -> Json:
        """The checked body as fields of `Subscription`."""
        body = self.validated_data
        fields: Json = {"url": body["url"]} if "url" in body else {}
        if "events" in body:
            fields["events"] = " ".join(dict.fromkeys(body["events"]))
        if "filters" in body:
            filters = body["filters"] or {}
            fields["session_id"] = str(filters.get("sessionId") or "")
            fields["routing_name"] = filters.get("routingName") or ""
        return fields


def show_subscription(one: Subscription) -> Webhook:
    """A webhook without its secret."""
    filters: WebhookFilters = {}
    if one.session_id:
        filters["sessionId"] = one.session_id
    if one.routing_name:
        filters["routingName"] = one.routing_name
    return {
        "id": one.pk,
        "url": one.url,
        "events": one.event_names,
        "filters": filters,
        "status": "active" if one.status == Subscription.Status.ACTIVE else "unhealthy",
        "consecutiveFailures": one.consecutive_failures,
        "createdAt": iso(one.created_at),
        "lastDeliveryAt": iso_or_none(one.last_delivery_at),
        "previousSecretUntil": iso_or_none(one.previous_until),
    }


def show_subscriptions(rows: Sequence[Subscription]) -> list[Webhook]:
    """Webhooks without their secrets."""
    return [show_subscription(one) for one in rows]


def show_with_secret(made: WithSecret) -> WebhookWithSecret:
    """A webhook and its secret, for the one answer that holds it."""
    return {**show_subscription(made.subscription), "signingSecret": made.secret}


def show_deliveries(rows: Sequence[Delivery]) -> list[WebhookDelivery]:
    """Deliveries without their payloads."""
    return [_show_delivery(one) for one in rows]


def show_event(row: EventType) -> WebhookEvent:
    """A row of the catalog."""
    return {"type": row.type, "fires": row.fires, "payload": row.payload}


def _show_delivery(one: Delivery) -> WebhookDelivery:
    return {
        "id": one.pk,
        "eventId": one.event_id,
        "type": one.type,
        "status": cast(Any, one.status),
        "attempts": one.attempts,
        "queuedAt": iso(one.queued_at),
        "nextAttemptAt": iso_or_none(one.next_attempt_at),
        "deliveredAt": iso_or_none(one.delivered_at),
        "lastStatus": one.last_status,
        "lastError": one.last_error or None,
    }
