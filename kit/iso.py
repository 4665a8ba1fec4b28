"""Times as text."""

from datetime import UTC, datetime


def iso(moment: datetime) -> str:
    """ISO 8601 in UTC with milliseconds and a Z, as JavaScript writes it."""
    return moment.astimezone(UTC).isoformat("T", "milliseconds").removesuffix("+00:00") + "Z"


def iso_or_none(moment: datetime | None) -> str | None:
    """The same for a time that may not have come yet."""
    return iso(moment) if moment else None
