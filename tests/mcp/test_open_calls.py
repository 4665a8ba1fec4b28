"""The call that a notification of a client of MCP 2025 cancels."""

from contextlib import ExitStack
from typing import Any

import msgspec
import pytest

from accounts.authn import Identity, Presented
from agents.core.post import LocalPost
from kit.asgi import HttpRequest, Message
from mcp_server.service.calls import NOTIFICATION, OpenCall, OpenCalls, RequestName, ToolCaller, name_request
from mcp_server.surface.endpoint import name_canceled

MINE = RequestName(1, "plain-1", "a client", 7)


def canceled_among(held: list[RequestName], named: RequestName) -> list[bool]:
    """The open calls among these that a notification with that name cancels."""
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


@pytest.mark.parametrize(("leaving_cancels", "named"), [(False, RequestName(1, "", "", 7)), (True, None)])
def test_a_client_of_2026_cancels_by_no_notification(leaving_cancels: bool, named: RequestName | None) -> None:
    scope = {"type": "http", "method": "POST", "path": "/mcp", "query_string": b"", "headers": []}

    async def receive() -> Message:
        return {"type": "http.disconnect"}

    identity = Identity(1, "session", "", 1, "alice", is_staff=False, is_stale=False)
    open_call = OpenCall(leaving_cancels=leaving_cancels)
    token = Presented("0" * 64, False)
    caller = ToolCaller(token=token, identity=identity, body_bytes=1, traceparent="", open_call=open_call)
    message = {"method": NOTIFICATION, "params": {"requestId": 7}}
    assert name_canceled(caller, HttpRequest(scope, receive), message) == named
