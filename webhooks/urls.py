"""Addresses under /api/v1."""

from django.urls import path

from webhooks.rest.subscriptions import (
    Catalog,
    Deliveries,
    OneWebhook,
    Replay,
    RollSecret,
    SendTest,
    Webhooks,
)

urlpatterns = [
    path("webhooks", Webhooks.as_view(), name="webhooks"),
    path("webhooks/events", Catalog.as_view(), name="webhook-events"),
    path("webhooks/<int:webhook_id>", OneWebhook.as_view(), name="webhook"),
    path("webhooks/<int:webhook_id>/test", SendTest.as_view(), name="webhook-test"),
    path("webhooks/<int:webhook_id>/roll-secret", RollSecret.as_view(), name="webhook-roll-secret"),
    path("webhooks/<int:webhook_id>/deliveries", Deliveries.as_view(), name="webhook-deliveries"),
    path("webhooks/<int:webhook_id>/deliveries/<int:delivery_id>/replay", Replay.as_view(), name="webhook-replay"),
]
