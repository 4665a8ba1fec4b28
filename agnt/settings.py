"""The settings that `agnt` reads (kit/env.py). The hub sets what has no value here (docs/adr/0106)."""

from pathlib import Path

from kit import env

PUBLIC_URL: str
IS_HTTPS: bool
INVOICES_DIR: Path

A2A_SIGNING_KEY = env.master_key("A2A_SIGNING_KEY")
"""Default: derived from `SECRET_KEY`
the master key of AGNT: the signing secret of each [AGNT key](tokens.md#agnt-keys) is derived from it. The hub
stores a secret, encrypted, when the secret is made: another master key changes only the secrets that are made or
rotated later. AGNT's own programs refuse to start without a master key; the hub derives one, to try AGNT with"""
VENUES_PER_NETWORK = env.integer("VENUES_PER_NETWORK", 10_000)
"""venues one AGNT network may have, inactive ones counted"""
STRIPE_API_KEY = env.text("STRIPE_API_KEY")
"""Default: none: bills are [files](../howto/bill-bookings.md) in `DATA_DIR/invoices`
the secret or restricted key of your account at Stripe, which gets the [bills of AGNT
bookings](../howto/bill-bookings.md#with-stripe) as meter events. Needs the extra `clawbridge-hub[stripe]`"""
STRIPE_API_URL = env.base_url("STRIPE_API_URL", "https://api.stripe.com")
"""Stripe's API, or a server that stands in for Stripe in tests"""
STRIPE_METER = env.text("STRIPE_METER", "agnt_booking_cents")
"""the event name of the meter at Stripe"""
