"""Values that an operator may write; the error of a bad value shows no secret."""

import pytest
from django.core.exceptions import ImproperlyConfigured

from kit import env

KEY = "k" * 32


def test_ports_are_numbers_with_spaces_between(monkeypatch: pytest.MonkeyPatch, subtests: pytest.Subtests) -> None:
    for raw, ports in (("", {443, 8443}), ("443", {443}), (" 1  65535 ", {1, 65535}), ("443 443", {443})):
        with subtests.test(raw=raw):
            monkeypatch.setenv("WEBHOOK_PORTS", raw)
            assert env.ports("WEBHOOK_PORTS", "443 8443") == ports
    for wrong in ("0", "65536", "-1", "https", "443,8443", "4 4 3 x", " ", "1" * 5000, "²"):
        with subtests.test(raw=wrong):
            monkeypatch.setenv("WEBHOOK_PORTS", wrong)
            with pytest.raises(ImproperlyConfigured, match="WEBHOOK_PORTS"):
                env.ports("WEBHOOK_PORTS", "443 8443")


def test_keys_are_long_texts_and_a_short_one_is_not_shown(
    monkeypatch: pytest.MonkeyPatch, subtests: pytest.Subtests
) -> None:
    for count, raw in enumerate(("", KEY, f"{KEY} {KEY}x")):
        with subtests.test(raw=raw):
            monkeypatch.setenv("WEBHOOK_KEYS", raw)
            assert len(env.keys("WEBHOOK_KEYS")) == count
    monkeypatch.setenv("WEBHOOK_KEYS", f"{KEY} hunter2")
    with pytest.raises(ImproperlyConfigured, match="at least 32") as said:
        env.keys("WEBHOOK_KEYS")
    assert "hunter2" not in str(said.value)
