"""Addresses of the pages about webhooks."""

from django.urls import path

from webhooks import pages

urlpatterns = [
    path("webhooks", pages.webhooks, name="webhooks-page"),
    path("webhooks/<int:webhook_id>", pages.webhook, name="webhook-page"),
    path("webhooks/<int:webhook_id>/deliveries", pages.deliveries, name="webhook-page-deliveries"),
    path("webhooks/<int:webhook_id>/test", pages.test, name="webhook-page-test"),
    path("webhooks/<int:webhook_id>/replay", pages.replay, name="webhook-page-replay"),
    path("webhooks/<int:webhook_id>/roll-secret", pages.roll, name="webhook-page-roll-secret"),
    path("webhooks/<int:webhook_id>/delete", pages.delete, name="webhook-page-delete"),
]
