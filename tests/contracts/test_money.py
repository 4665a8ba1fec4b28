"""Amounts in cents as text."""

from kit.money import CENT, decimal_usd


def test_cents_are_exact_text() -> None:
    for cents, text in [
        (25, "0.25"),
        (0, "0.00"),
        (100, "1.00"),
        (5, "0.05"),
        (10**18 + 1, "10000000000000000.01"),
    ]:
        assert decimal_usd(cents * CENT) == text, (cents, text)
