"""What webhooks answer over REST (docs/reference/rest.md), as types: the functions that show rows build them."""

from typing import Literal, NotRequired, TypedDict

from kit.describe import Time, Uuid


class WebhookFilters(TypedDict):
    """What narrows a webhook down; none for an empty object."""

    sessionId: NotRequired[Uuid]
    routingName: NotRequired[str]


class Webhook(TypedDict):
    """A webhook without its secret. Until `previousSecretUntil` the secret before the newest signs too."""

    id: int
    url: str
    events: list[str]
    filters: WebhookFilters
    status: Literal["active", "unhealthy"]
    consecutiveFailures: int
    createdAt: Time
    lastDeliveryAt: Time | None
    previousSecretUntil: Time | None


class WebhookWithSecret(Webhook):
    """A webhook with its signing secret, this once."""

    signingSecret: str


class WebhookDelivery(TypedDict):
    """A delivery. While it is being sent, `nextAttemptAt` is when its sender is given up on."""

    id: int
    eventId: str
    type: str
    status: Literal["pending", "sending", "delivered", "failed"]
    attempts: int
    queuedAt: Time
    nextAttemptAt: Time | None
    deliveredAt: Time | None
    lastStatus: int | None
    lastError: str | None


class WebhookEvent(TypedDict):
    """A row of the catalog: when an event fires, and the fields of its payload."""

    type: str
    fires: str
    payload: str


class QueuedEvent(TypedDict):
    """What was queued: the id that the delivery carries."""

    eventId: str
