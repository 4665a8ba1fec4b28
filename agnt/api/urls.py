"""Addresses under /api/v1."""

from django.urls import path

from agnt.api import bookings, cancellations, interactions, keys, network, venue_files, venue_secrets, venues

urlpatterns = [
    path("network", network.NetworkRules.as_view(), name="network"),
    path("network/venues", venues.NetworkVenues.as_view(), name="network-venues"),
    path("network/venues/export", venue_files.ExportVenues.as_view(), name="network-venues-export"),
    path("network/venues/import", venue_files.ImportVenues.as_view(), name="network-venues-import"),
    path("network/venues/<uuid:venue_id>", venues.OneNetworkVenue.as_view(), name="network-venue"),
    path(
        "network/venues/<uuid:venue_id>/secret",
        venue_secrets.VenueSecret.as_view(),
        name="network-venue-secret",
    ),
    path("network/keys", keys.NetworkKeys.as_view(), name="network-keys"),
    path("network/keys/<uuid:api_key_id>", keys.OneNetworkKey.as_view(), name="network-key"),
    path(
        "network/keys/<uuid:api_key_id>/rotate-secret", keys.RotateKeySecret.as_view(), name="network-key-rotate"
    ),
    path("network/bookings", bookings.NetworkBookings.as_view(), name="network-bookings"),
    path("network/bookings/<uuid:booking_id>", bookings.OneNetworkBooking.as_view(), name="network-booking"),
    path("network/cancellations", cancellations.NetworkCancellations.as_view(), name="network-cancellations"),
    path(
        "network/cancellations/<uuid:booking_id>/retry",
        cancellations.RetryCancellation.as_view(),
        name="network-cancellation-retry",
    ),
    path("network/usage", network.NetworkUsage.as_view(), name="network-usage"),
    path("network/interactions", interactions.NetworkInteractions.as_view(), name="network-interactions"),
]
