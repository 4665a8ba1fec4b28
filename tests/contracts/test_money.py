"""Amounts in cents as text."""

import pytest

from kit.money import CENT, decimal_usd


@pytest.mark.parametrize(
    ("cents", "text"),
    [(25, "0.25"), (0, "0.00"), (100, "1.00"), (5, "0.05"), (10**18 + 1, "10000000000000000.01")],
)
def test_cents_are_exact_text(cents: int, text: str) -> None:
    assert decimal_usd(cents * CENT) == text
