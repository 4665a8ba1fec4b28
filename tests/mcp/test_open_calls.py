"""Which call a notification of a client of MCP 2025 cancels."""

from contextlib import ExitStack
from typing import Any

import msgspec
import pytest

from agents.core.post import LocalPost
from mcp_server.service.open_calls import OpenCall, OpenCalls, RequestName, name_request

MINE = RequestName(1, "plain-1", "a client", 7)


def canceled_among(held: list[RequestName], named: RequestName) -> list[bool]:
    """Which of these open calls a notification with that name cancels."""
    open_calls, calls = OpenCalls("here", LocalPost()), [OpenCall() for _ in held]
    with ExitStack() as stack:
        for name, call in zip(held, calls, strict=True):
            stack.enter_context(open_calls.hold(name, call))
        open_calls.take(msgspec.Raw(msgspec.json.encode(named)))
    return [call.leaving_cancels for call in calls]


def test_one_of_many_calls_is_canceled() -> None:
    replace = msgspec.structs.replace
    others = [replace(MINE, **{name: other}) for name, other in OTHERS.items()]
    assert canceled_among([MINE, *others], MINE) == [True] + [False] * len(others)


OTHERS: dict[str, Any] = {"credential_id": 2, "session_id": "plain-2", "user_agent": "another", "request_id": "7"}


def test_two_calls_of_one_name_are_not_told_apart_and_go_on() -> None:
    assert canceled_among([MINE, MINE], MINE) == [False, False]


@pytest.mark.parametrize("request_id", [None, True, 1.5, {}, "x" * 501])
def test_a_notification_that_no_client_means_names_nothing(request_id: object) -> None:
    assert name_request(1, {}, request_id) is None
