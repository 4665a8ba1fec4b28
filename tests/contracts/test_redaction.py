"""Secrets that are left out of logs, records and pages."""

import pytest

from kit.redaction import without_secrets

JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        *[(f"{start}0123456789abcdef", f"{start}…") for start in ("cw_sess_", "cw_app_", "cw_ref_", "cw_code_")],
        *[(f"{start}0123456789abcdef", f"{start}…") for start in ("cw_dev_", "ck_live_", "agnt_live_", "whsec_")],
        *[(f"gh{letter}_0123456789abcdef", f"gh{letter}_…") for letter in "pousr"],
        (JWT, "eyJ…"),
        *[(f"{word} 0123456789abcdef", f"{word} …") for word in ("Bearer", "bearer", "BEARER")],
        ("?token=abc&b=1", "?token=…&b=1"),
        ("https://hub.example/join/abcdef", "https://hub.example/join/…"),
        ("postgresql://user:password@host/name", "postgresql://user:…@host/name"),
        ("Bearer gho_0123456789abcdef at https://a:b@c/join/abcdef", "Bearer gho_… at https://a:…@c/join/…"),
    ],
)
def test_each_kind_of_secret_is_left_out_and_the_words_around_it_stay(text: str, shown: str) -> None:
    assert without_secrets(f"said {text} then") == f"said {shown} then"


@pytest.mark.parametrize(
    "text", ["", "a question", "cw_", "ghost_story", "bearer of news", "https://host/join/a", "e\u0130yJ"]
)
def test_a_text_without_secrets_stays_as_it_is(text: str) -> None:
    assert without_secrets(text) == text
