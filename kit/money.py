"""Amounts in US dollars: kept as whole micro-dollars, read and shown as decimal dollars."""

from decimal import ROUND_HALF_UP, Decimal

MICRO = 1_000_000
CENT = 10_000  # micro-dollars
DECIMAL_PLACES = 6  # decimals of a dollar: the smallest amount is a micro-dollar


def to_microusd(usd: Decimal | float) -> int:
    """A finite amount in micro-dollars, rounded half up. A float counts as the shortest decimal that it prints."""
    return int((Decimal(str(usd)) * MICRO).to_integral_value(ROUND_HALF_UP))


def to_usd(microusd: int) -> float:
    """The amount as a JSON number: it prints the exact decimal up to 9 billion dollars."""
    return microusd / MICRO


def to_usd_or_none(microusd: int | None) -> float | None:
    """Like `to_usd`; None for None."""
    return None if microusd is None else to_usd(microusd)


def decimal_usd(microusd: int | None) -> str:
    """The amount as a plain decimal, with cents and further decimals where it has some: `1250.00`, `0.0042`.

    Empty for None.
    """
    if microusd is None:
        return ""
    dollars, rest = divmod(microusd, MICRO)
    return f"{dollars}.{_decimals(rest)}"


def format_usd(microusd: int) -> str:
    """Like `decimal_usd`, for people: `$1,250.00`, `$0.0042`."""
    dollars, rest = divmod(microusd, MICRO)
    return f"${dollars:,}.{_decimals(rest)}"


def _decimals(rest: int) -> str:
    return f"{rest:06d}".rstrip("0").ljust(2, "0")
