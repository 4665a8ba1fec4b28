"""Each refusal and failure that a tool can answer says what to do next."""

from typing import Any

import mcp_types as types
import pytest

from a2a_bridge.wire import errors
from a2a_bridge.wire.errors import NAMES
from a2a_bridge.wire.task import TERMINAL, Message, Role, State, Task
from agents.core.errors import REFUSALS
from agents.core.failures import FAILURES
from agents.transcript.pieces import Part
from kit import jsonrpc
from mcp_server.service.calls import CallResult
from mcp_server.surface.agnt_tools import render_response
from mcp_server.surface.results import ENDED_ADVICE, ERROR_ADVICE, render_result
from tests.mcp.clients import text_of

# Of the forms of requests over HTTP, of cookies, push notifications and Idempotency-Keys: no tool has these.
NOT_OF_TOOLS = {
    jsonrpc.PARSE_ERROR, jsonrpc.METHOD_NOT_FOUND, errors.PUSH_NOTIFICATION_NOT_SUPPORTED,
    errors.VERSION_NOT_SUPPORTED, errors.FOREIGN_ORIGIN, errors.IDEMPOTENCY_KEY_REUSED,
}  # fmt: skip


def ended(state: State, metadata: Any = None) -> types.CallToolResult:
    """The result for a task that ended without an answer."""
    message = Message("m", Role.AGENT, (Part(text="no"),), **({"metadata": metadata} if metadata else {}))
    task = Task(
        id="task-1", caller_id=1, handle="a/b", context_id="c", chat_id="x", home="p", state=state,
        updated_at="2026-01-01T00:00:00.000Z", history=(), message=message,
    )  # fmt: skip
    return render_result(CallResult(task=task))


def test_each_error_has_its_advice() -> None:
    assert set(NAMES) - NOT_OF_TOOLS == set(ERROR_ADVICE)


def test_each_end_without_an_answer_has_its_advice() -> None:
    assert set(ENDED_ADVICE) == set(TERMINAL) - {State.COMPLETED}


@pytest.mark.parametrize(
    "entry", [*FAILURES.values(), *(one.entry for one in REFUSALS)], ids=lambda one: one.reason
)
def test_a_task_that_is_read_later_has_the_advice_of_its_reason(entry: Any) -> None:
    text = text_of(ended(State.FAILED, {"reason": entry.reason}))
    assert text.startswith(f"Not answered: no. {entry.advice or ENDED_ADVICE[State.FAILED]}\n")


@pytest.mark.parametrize("metadata", [None, {"reason": "a word of its own"}, {"reason": ["a list"]}])
def test_a_failure_in_the_agents_own_words_has_an_advice_too(metadata: Any) -> None:
    assert text_of(ended(State.FAILED, metadata)).startswith(f"Not answered: no. {ENDED_ADVICE[State.FAILED]}\n")


@pytest.mark.parametrize(("retryable", "advice"), [(True, "Call again later, after 5 s"), (False, "agnt.ping")])
def test_a_refusal_of_a_network_has_its_advice(retryable: bool, advice: str) -> None:
    error = {"code": "no", "message": "no", "retryable": retryable, "retry_after_s": 5}
    assert advice in text_of(render_response({"payload": {"status": "error", "error": error}}))
