"""The rules of a limit of an account, and texts of refusals; tests of the apps count rows."""

import pytest

from a2a_bridge.limits import PUSH_CONFIGS, PUSH_CONFIGS_OF_TASK
from accounts.limits import MINTED_APP_TOKENS
from accounts.quotas import MEBIBYTE, MIB, AccountLimit, QuotaExceeded
from agnt.limits import VENUES
from gateway import limits as of_gateway
from gateway.wire.errors import FrameRefused
from webhooks.limits import WEBHOOKS


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


@pytest.mark.parametrize(
    ("limit", "text"),
    [
        (MINTED_APP_TOKENS, "you hold 20 app tokens: revoke one first"),
        (WEBHOOKS, "you have 50 webhooks already"),
        (PUSH_CONFIGS, "your tasks have 1000 push configs already"),
        (PUSH_CONFIGS_OF_TASK, "the task has 10 push configs already"),
        (VENUES, "the network would have 10001 venues, and 10000 are the most: remove some first"),
        (of_gateway.TEAM_AGENTS, "a team has at most 1000 agents: remove some first"),
        (of_gateway.TEAM_KEYS, "a team has at most 20 keys: delete one first"),
        (of_gateway.STEPS, "you have 1000 steps of this task, and 1000 are the most: remove some first"),
        (of_gateway.ARTIFACTS, "you have 100 artifacts of this task, and 100 are the most: remove some first"),
    ],
)
def test_the_text_of_a_refusal(limit: AccountLimit, text: str) -> None:
    with pytest.raises(QuotaExceeded) as refused:
        limit.check_number(limit.most)
    code = "team_full" if limit is of_gateway.TEAM_AGENTS else "quota_exceeded"
    assert (refused.value.code, str(refused.value)) == (code, text)


SESSIONS_FULL = "a team has at most 2000 sessions, and 134217728 bytes: delete some first"
PROPOSALS_FULL = "the team has {} proposals, as many as it may"
VOTES_FULL = "this proposal has as many votes as it may, changed ones among them"


@pytest.mark.parametrize(
    ("limit", "code", "reason", "text"),
    [
        (of_gateway.LETTERS, 3003, "inbox_full", "the inboxes of this team are full"),
        (of_gateway.LETTERS_TEXT, 3003, "inbox_full", "the inboxes of this team are full"),
        (of_gateway.TEAM_SESSIONS, 2005, "quota_exceeded", SESSIONS_FULL),
        (of_gateway.TEAM_SESSIONS_TEXT, 2005, "quota_exceeded", SESSIONS_FULL),
        (of_gateway.OPEN_PROPOSALS, 1005, "too_many_proposals", PROPOSALS_FULL.format("100 open")),
        (of_gateway.KEPT_PROPOSALS, 1005, "too_many_proposals", PROPOSALS_FULL.format("10000 kept")),
        (of_gateway.VOTES, 1005, "too_many_votes", VOTES_FULL),
    ],
)
def test_the_error_of_a_frame(limit: AccountLimit, code: int, reason: str, text: str) -> None:
    with pytest.raises(FrameRefused) as refused:
        limit.check_number(limit.most)
    error = refused.value
    retry_after_ms = 60_000 if code == 1005 else 0
    assert (error.code, error.reason, str(error), error.retry_after_ms) == (code, reason, text, retry_after_ms)
