"""Errors for a client of `/mcp` when the hub fails: a fixed text, never that of the failure."""

from types import SimpleNamespace
from typing import Any

import mcp_types as types
import pytest
from mcp.shared.exceptions import MCPError

from accounts.authn import Identity, Presented
from agents.core.errors import Unavailable
from agents.core.post import LocalPost
from hub import wiring
from kit.asgi import RETRY_SOON, HttpRequest, Message
from kit.jsonrpc import INTERNAL_ERROR
from mcp_server.service.calls import OpenCalls, ToolCaller, ToolCalls
from mcp_server.surface.endpoint import CALLER_KEY, ELICIT_KEY, LISTS_AGENTS_KEY, HubAddresses, McpEndpoint
from mcp_server.surface.results import ERROR_ADVICE
from mcp_server.surface.server import ToolHandlers
from tests.mcp.clients import text_of


class LedgerAway:
    """A ledger whose database is out of reach."""

    async def get_caller(self, *_: object) -> Identity:
        raise Unavailable


# pytest-django refuses the database to these tests: each read of it fails, with a text of its own.


def make_handlers() -> ToolHandlers:
    return ToolHandlers(ToolCalls(wiring.HubServices().bridge.runner))


def make_context() -> Any:
    identity = Identity(1, "session", "", 1, "alice", is_staff=False, is_stale=False)
    caller = ToolCaller(token=Presented("0" * 64, False), identity=identity, body_bytes=1, traceparent="")
    scope = {CALLER_KEY: caller, LISTS_AGENTS_KEY: True, ELICIT_KEY: None}
    return SimpleNamespace(request=SimpleNamespace(scope=scope), meta=None)


async def test_a_list_that_cannot_be_read_does_not_show_why() -> None:
    with pytest.raises(MCPError) as failed:
        await make_handlers().list(make_context(), None)
    assert (failed.value.code, str(failed.value)) == (INTERNAL_ERROR, "internal error")


@pytest.mark.parametrize(("tool", "arguments"), [("list_agents", {}), ("ask_alice_helper", {"message": "hello"})])
async def test_a_tool_that_fails_does_not_show_why(tool: str, arguments: dict[str, Any]) -> None:
    params = types.CallToolRequestParams(name=tool, arguments=arguments)
    answer = await make_handlers().call(make_context(), params)
    assert isinstance(answer, types.CallToolResult)
    assert answer.is_error
    assert text_of(answer).splitlines() == ["Error: internal error.", ERROR_ADVICE[INTERNAL_ERROR]]


async def test_a_request_gets_503_while_the_database_is_out_of_reach() -> None:
    runner: Any = SimpleNamespace(ledger=LedgerAway(), exchanges=None)
    elicitations: Any = SimpleNamespace()
    addresses = HubAddresses("http://hub", ["hub"], ())
    endpoint = McpEndpoint(runner, None, elicitations, OpenCalls("here", LocalPost()), addresses, "1")
    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    async def receive() -> Message:
        return {"type": "http.request", "body": b"{}", "more_body": False}

    scope = {"type": "http", "method": "POST", "path": "/mcp", "query_string": b"", "headers": []}
    await endpoint(HttpRequest(scope, receive), send)
    assert sent[0]["status"] == 503
    assert RETRY_SOON in sent[0]["headers"]
