"""The rules of a limit of an account; tests of the apps count rows."""

import pytest

from accounts.quotas import MEBIBYTE, MIB, AccountLimit, QuotaExceeded


class Refusal(Exception):
    """An error of another protocol."""


def test_the_number_of_a_limit_may_be_reached_and_not_exceeded() -> None:
    limit = AccountLimit("things", 2)
    limit.check_number(1)
    with pytest.raises(QuotaExceeded, match="you have 2 things, and 2 are the most: remove some first") as refused:
        limit.check_number(2)
    assert refused.value.code == "quota_exceeded"
    limit.check_number(2, 0)
    with pytest.raises(QuotaExceeded):
        limit.check_number(0, 3)


def test_0_is_no_limit() -> None:
    limit = AccountLimit("things", 0)
    limit.check_number(10**9)
    limit.check(account_id=0, more=10**9)  # without a query
    assert limit.has_room(account_id=0, more=10**9)


def test_a_limit_in_mebibytes_counts_bytes() -> None:
    limit = AccountLimit("texts", 1, unit=MIB, refusal="{wanted} bytes are over {most} MiB")
    limit.check_number(MEBIBYTE - 1)
    with pytest.raises(QuotaExceeded, match=f"{MEBIBYTE + 1} bytes are over 1 MiB"):
        limit.check_number(MEBIBYTE)


def test_a_limit_makes_the_error_of_its_protocol() -> None:
    limit = AccountLimit("frames", 1, code="too_many", refused_as=Refusal)
    with pytest.raises(Refusal) as refused:
        limit.check_number(1)
    assert refused.value.args == ("you have 1 frames, and 1 are the most: remove some first", "too_many")
