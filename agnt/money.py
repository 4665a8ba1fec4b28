"""Money: integer US cents inside, decimal text outside. No float, no I/O."""

from decimal import ROUND_HALF_UP, Decimal

REFERRAL_PCT = Decimal(7)
REFERRAL_FLOOR_CENTS = 150
REFERRAL_FLAT_CENTS = 250
_CENT = Decimal("0.01")


def as_usd(cents: int) -> str:
    """An amount as the wire has it, such as `0.25`."""
    return str((Decimal(cents) / 100).quantize(_CENT))


def referral_fee_cents(spent_cents: int, *, is_subscribed: bool, pct: Decimal = REFERRAL_PCT) -> int:
    """What a venue owes for a guest that the network sent, in cents.

    A subscribed venue pays `pct` percent of what the guest spent, rounded half up to a cent, and at least 1.50
    USD; any other venue pays 2.50 USD whatever the guest spent.

    Raises:
        ValueError: the amount is negative, or `pct` is not from 0 to 100.
    """
    if spent_cents < 0 or not 0 <= pct <= 100:
        raise ValueError("want an amount of at least 0, and 0 to 100 percent")
    if not is_subscribed:
        return REFERRAL_FLAT_CENTS
    fee = (Decimal(spent_cents) * pct / 100).quantize(Decimal(1), ROUND_HALF_UP)
    return max(REFERRAL_FLOOR_CENTS, int(fee))
