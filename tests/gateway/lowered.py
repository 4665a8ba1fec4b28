"""Lower limits of `gateway` for one test."""

from dataclasses import replace

import pytest

from gateway import limits


def lower(monkeypatch: pytest.MonkeyPatch, **numbers: int) -> None:
    """Set limits, by the names of their constants; a size is in bytes."""
    for name, number in numbers.items():
        monkeypatch.setattr(limits, name, replace(getattr(limits, name), limit=number, unit=""))
