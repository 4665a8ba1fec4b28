"""What becomes of the rows that sign-ins leave."""

from datetime import timedelta

from accounts.oauth.models import DeviceGrant, Invitation, LoginAttempt, LoginCode
from kit import batches
from kit.clock import db_now

KEPT_AFTER_EXPIRY = timedelta(days=1)


def forget() -> None:
    """Delete what ran out a day ago; until then a second use of a code still revokes."""
    for model in (LoginAttempt, LoginCode, DeviceGrant, Invitation):
        batches.delete(model.objects.filter(expires_at__lt=db_now() - KEPT_AFTER_EXPIRY))
