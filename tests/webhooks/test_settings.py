"""What an operator may write, and that a bad value is said without saying a secret."""

import pytest
from django.core.exceptions import ImproperlyConfigured

from kit import env

KEY = "k" * 32


@pytest.mark.parametrize(
    ("raw", "ports"), [("", {443, 8443}), ("443", {443}), (" 1  65535 ", {1, 65535}), ("443 443", {443})]
)
def test_ports_are_numbers_with_spaces_between(monkeypatch: pytest.MonkeyPatch, raw: str, ports: set[int]) -> None:
    monkeypatch.setenv("WEBHOOK_PORTS", raw)
    assert env.ports("WEBHOOK_PORTS", "443 8443") == ports


@pytest.mark.parametrize("raw", ["0", "65536", "-1", "https", "443,8443", "4 4 3 x", " ", "1" * 5000, "²"])
def test_other_ports_stop_the_start(monkeypatch: pytest.MonkeyPatch, raw: str) -> None:
    monkeypatch.setenv("WEBHOOK_PORTS", raw)
    with pytest.raises(ImproperlyConfigured, match="WEBHOOK_PORTS"):
        env.ports("WEBHOOK_PORTS", "443 8443")


@pytest.mark.parametrize(("raw", "count"), [("", 0), (KEY, 1), (f"{KEY} {KEY}x", 2)])
def test_keys_are_long_texts(monkeypatch: pytest.MonkeyPatch, raw: str, count: int) -> None:
    monkeypatch.setenv("WEBHOOK_KEYS", raw)
    assert len(env.keys("WEBHOOK_KEYS")) == count


def test_a_short_key_stops_the_start_and_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEBHOOK_KEYS", f"{KEY} hunter2")
    with pytest.raises(ImproperlyConfigured, match="at least 32") as said:
        env.keys("WEBHOOK_KEYS")
    assert "hunter2" not in str(said.value)
