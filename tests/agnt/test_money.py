"""Amounts as text, and what a venue owes for a guest."""

from decimal import Decimal

import pytest

from agnt.money import as_usd, referral_fee_cents


@pytest.mark.parametrize(
    ("cents", "text"),
    [(25, "0.25"), (0, "0.00"), (100, "1.00"), (5, "0.05"), (10**18 + 1, "10000000000000000.01")],
)
def test_an_amount_is_exact_text(cents: int, text: str) -> None:
    assert as_usd(cents) == text


@pytest.mark.parametrize(
    ("spent", "fee"),
    [
        (0, 150),  # the floor
        (2142, 150),  # 149.94
        (2143, 150),  # 150.01
        (2150, 151),  # 150.5, half up
        (2164, 151),  # 151.48
        (10_000, 700),
        (10**15, 7 * 10**13),
    ],
)
def test_a_subscribed_venue_pays_seven_percent_and_at_least_150_cents(spent: int, fee: int) -> None:
    assert referral_fee_cents(spent, is_subscribed=True) == fee


def test_a_venue_may_have_a_percentage_of_its_own() -> None:
    assert referral_fee_cents(10_000, is_subscribed=True, pct=Decimal("12.5")) == 1250
    assert referral_fee_cents(10_000, is_subscribed=True, pct=Decimal(0)) == 150


@pytest.mark.parametrize("spent", [0, 1, 10_000, 10**12])
def test_any_other_venue_pays_250_cents(spent: int) -> None:
    assert referral_fee_cents(spent, is_subscribed=False) == 250


@pytest.mark.parametrize(("spent", "pct"), [(-1, 7), (1, -1), (1, 101)])
def test_impossible_amounts_are_refused(spent: int, pct: int) -> None:
    for is_subscribed in (True, False):
        with pytest.raises(ValueError):
            referral_fee_cents(spent, is_subscribed=is_subscribed, pct=Decimal(pct))
