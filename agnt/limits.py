"""How many calls each key has left on the current UTC day. Every call that came with a live key counts."""

from collections.abc import Mapping
from datetime import UTC, datetime, time, timedelta

from msgspec import Struct

from agnt.errors import EnvelopeRefused, ErrorCode
from agnt.models import ApiKey

DAILY_CALLS: Mapping[str, int] = {
    ApiKey.Tier.FREE: 100,
    ApiKey.Tier.PRO: 10_000,
    ApiKey.Tier.ENTERPRISE: 500_000,
}


class Rate(Struct, frozen=True):
    """The calls of a key on one day. `used`: this one and those before it; may be over the limit."""

    limit: int
    used: int
    resets_at: datetime

    def headers(self) -> dict[str, str]:
        """The HTTP headers that say so; the reset in Unix seconds."""
        return {
            "X-RateLimit-Limit": str(self.limit),
            "X-RateLimit-Remaining": str(max(0, self.limit - self.used)),
            "X-RateLimit-Reset": str(int(self.resets_at.timestamp())),
        }


def make_rate(tier: str, used: int, now: datetime) -> Rate:
    """The rate of a key that has sent so many calls on the day of `now`."""
    midnight = datetime.combine(now.astimezone(UTC).date() + timedelta(days=1), time.min, UTC)
    return Rate(DAILY_CALLS[tier], used, midnight)


def check_rate(rate: Rate, now: datetime) -> None:
    """Refuse a call beyond the limit of its day.

    Raises:
        EnvelopeRefused: `rate_limited`, with the seconds to midnight.
    """
    if rate.used > rate.limit:
        text = f"this key may send {rate.limit} calls a day, in UTC"
        wait_s = max(1.0, (rate.resets_at - now).total_seconds())
        raise EnvelopeRefused(ErrorCode.RATE_LIMITED, text, retry_after_s=wait_s)
