"""Addresses of the gateway under /api/a2a and /api/v1; none ends in a slash."""

from django.urls import path

from gateway.rest.frames import FrameHistory, LiveFrames
from gateway.rest.keys import EnvelopeKeys, OneEnvelopeKey

audit_urlpatterns = [
    path("live", LiveFrames.as_view(), name="gateway-live"),
    path("history", FrameHistory.as_view(), name="gateway-history"),
]

urlpatterns = [
    path("gateway/keys", EnvelopeKeys.as_view(), name="gateway-keys"),
    path("gateway/keys/<str:key_id>", OneEnvelopeKey.as_view(), name="gateway-key"),
]
