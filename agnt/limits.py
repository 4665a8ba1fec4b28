"""How many calls each key has left on the current UTC day. Every call that came with a live key counts."""

from collections.abc import Mapping
from datetime import UTC, date, datetime, time, timedelta

from django.db import connection
from msgspec import Struct

from agnt.errors import EnvelopeRefused, ErrorCode
from agnt.models import ApiKey, KeyUsage
from kit import sql

DAILY_CALLS: Mapping[str, int] = {
    ApiKey.Tier.FREE: 100,
    ApiKey.Tier.PRO: 10_000,
    ApiKey.Tier.ENTERPRISE: 500_000,
}
_COUNT = (
    "INSERT INTO {table} (key_id, day, calls) VALUES {rows} ON CONFLICT (key_id, day)"
    " DO UPDATE SET calls = {table}.calls + excluded.calls RETURNING key_id, calls"
)


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


def count_calls(calls: Mapping[int, int], day: date) -> dict[int, int]:
    """Count calls by key; the new totals of that day. Call it in a transaction: keys are locked in their order."""
    if not calls:
        return {}
    on = connection.ops.adapt_datefield_value(day)
    marks = ", ".join(["(%s, %s, %s)"] * len(calls))
    statement = _COUNT.format(table=KeyUsage._meta.db_table, rows=marks)
    values = [value for key_id in sorted(calls) for value in (key_id, on, calls[key_id])]
    return dict(sql.rows(statement, values))


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
