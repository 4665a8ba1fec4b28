"""Addresses of the pages of a network; `hub/urls.py` includes them where AGNT is on."""

from django.urls import path

from agnt.web import bookings, keys, log, overview, revenue, rules, signing_page, venue_files, venues

urlpatterns = [
    path("desk/network", overview.network, name="desk-network"),
    path("desk/network/venues", venues.venues, name="desk-network-venues"),
    path("desk/network/venues.csv", venue_files.as_csv, name="desk-network-venues-csv"),
    path("desk/network/venues/import", venue_files.import_file, name="desk-network-venues-import"),
    path("desk/network/venues/new", venues.new, name="desk-network-venue-new"),
    path("desk/network/venues/<uuid:venue_id>", venues.venue, name="desk-network-venue"),
    path("desk/network/keys", keys.keys, name="desk-network-keys"),
    path("desk/network/keys/<uuid:api_key_id>", keys.key, name="desk-network-key"),
    path("desk/network/bookings", bookings.bookings, name="desk-network-bookings"),
    path("desk/network/bookings/<uuid:booking_id>", bookings.booking, name="desk-network-booking"),
    path("desk/network/revenue", revenue.revenue, name="desk-network-revenue"),
    path("desk/network/log", log.log, name="desk-network-log"),
    path("desk/network/rules", rules.rules, name="desk-network-rules"),
    path("demos/agnt/", signing_page.sign_envelope, name="sign-envelope"),
]
