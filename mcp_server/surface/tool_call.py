"""One call of a tool: its arguments, its progress, and how its client's user answers an agent that asks back."""

import asyncio
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import mcp_types as types
from mcp.shared.exceptions import MCPError
from msgspec import Struct

from a2a_bridge.service.responses import public_error
from a2a_bridge.wire.dialects.reading import read_params
from a2a_bridge.wire.requests import FollowTask, GetTask
from a2a_bridge.wire.task import State, Task
from kit.jsonrpc import RpcError
from mcp_server.service.calls import CallResult, Progress, ToolCaller, ToolCalls
from mcp_server.service.elicitation import ANSWER, NotAsked, make_form
from mcp_server.surface.endpoint import ELICIT_KEY
from mcp_server.surface.results import question_of, render_result
from mcp_server.wire.tools import MAX_HANDLE_CHARS, AnswerTask, make_send

NOT_ANSWERED = "You did not answer what the agent asked back. It still waits: see answer_task."
MAX_ROUNDS = 20  # in which the client's user is asked in one call
MIN_WAIT_S = 1.0

Elicit = Callable[[str], Coroutine[Any, Any, str | None]]
Context = Any  # `ServerRequestContext` of the SDK; its request is a Starlette request
Answer = types.CallToolResult | types.InputRequiredResult


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call of a tool. `context` and `params` are the SDK's. `began_at`: by the monotonic clock."""

    caller: ToolCaller
    context: Context
    params: types.CallToolRequestParams
    calls: ToolCalls
    progress: Progress | None
    began_at: float = field(default_factory=time.monotonic)

    def read(self, arguments: type[Struct]) -> Any:
        """The arguments.

        Raises:
            RpcError: -32602, naming the argument.
        """
        return read_params(arguments, self.params.arguments or {})

    def find_wait_s(self, wanted_s: int | None) -> float | None:
        """The seconds to wait for an agent: the caller's, else those until the client gives up; None: no limit."""
        within_s = self.caller.returns_within_s
        if wanted_s is not None or within_s is None:
            return wanted_s
        return max(self.began_at + within_s - time.monotonic(), MIN_WAIT_S)

    @property
    def elicit(self) -> Elicit | None:
        """Asks the client's user on the stream of this call, and returns the answer; None where the client
        cannot be asked.
        """
        elicit: Elicit | None = self.context.request.scope[ELICIT_KEY]
        return elicit

    def may_require_input(self) -> bool:
        """True if the client can ask its user, and the protocol lets it answer by calling the tool again."""
        capabilities = self.context.session.client_capabilities
        return (
            self.context.protocol_version in types.version.MODERN_PROTOCOL_VERSIONS
            and capabilities is not None
            and capabilities.elicitation is not None
        )


@contextmanager
def public_errors() -> Iterator[None]:
    """Make each failure an error of the protocol: the SDK would send the text of another to the client.

    Raises:
        MCPError: with the public text.
    """
    try:
        yield
    except MCPError:
        raise
    except Exception as failure:  # noqa: BLE001  each becomes the answer
        error = public_error(failure)
        raise MCPError(code=error.code, message=error.message) from None


def read_cursor(params: types.PaginatedRequestParams | None) -> str:
    """The cursor of a request for a page; empty for the first one.

    Raises:
        MCPError: it is not of this hub.
    """
    cursor = (params.cursor if params else None) or ""
    if len(cursor) > MAX_HANDLE_CHARS or not cursor.isprintable():
        raise MCPError(code=types.INVALID_PARAMS, message="cursor: want the nextCursor of a page before")
    return cursor


def find_progress(context: Context) -> Progress | None:
    """Reports what an agent says while it works; None where the client asked for no progress."""
    meta = context.meta
    if not meta or meta.get("progress_token", meta.get("progressToken")) is None:
        return None
    numbers = count(1)  # the number of each notification has to be more than the one before

    async def report(text: str) -> None:
        await context.session.report_progress(float(next(numbers)), message=text)

    return report


async def render_or_ask(call: ToolCall, result: CallResult, wait_s: int | None) -> Answer:
    """The result of a message. If the agent asks back and the client can ask its user, the hub asks the user.

    The user is not asked on the stream of a call if the client waits `wait_s` only. AUTH_REQUIRED is not
    shown as a form: forms must not collect credentials.
    """
    for _ in range(MAX_ROUNDS):
        task = result.task
        if result.error is not None or task is None or task.state is not State.INPUT_REQUIRED:
            break
        question = f"@{task.handle} asks back: {question_of(task)}"
        if call.may_require_input():
            asked = types.ElicitRequestFormParams.model_validate(make_form(question))
            # The state is no secret: a task is found by its id for its own caller alone.
            return types.InputRequiredResult(
                input_requests={ANSWER: types.ElicitRequest(params=asked)}, request_state=task.id
            )
        if call.elicit is None or wait_s is not None:
            break
        try:
            answer = await _ask_user(call, call.elicit(question), task)
        except NotAsked:
            break
        except RpcError as error:
            return render_result(CallResult(task=task, error=error))
        if answer is None:
            return await render_unanswered(call, task.id)
        result = await send_answer(call, AnswerTask(task_id=task.id, message=answer))
    return render_result(result)


async def _ask_user(call: ToolCall, elicited: Coroutine[Any, Any, str | None], task: Task) -> str | None:
    """The answer of the client's user; None if there was no answer, or the task continued without the
    answer.

    Raises:
        NotAsked, RpcError: see `Elicitations.ask`.
    """
    asking = asyncio.ensure_future(elicited)
    # Meanwhile an operator may decide, or another client answer or cancel. This call counts as an open stream of
    # the caller.
    following = asyncio.ensure_future(call.calls.run(call.caller, task.handle, FollowTask(task_id=task.id)))
    try:
        await asyncio.wait((asking, following), return_when=asyncio.FIRST_COMPLETED)
        return asking.result() if asking.done() else None
    finally:
        for one in (asking, following):
            one.cancel()
        await asyncio.gather(asking, following, return_exceptions=True)


async def render_unanswered(call: ToolCall, task_id: str) -> Answer:
    """A task whose caller's user gave no answer, as it is by now."""
    result = await call.calls.run_of_task(call.caller, task_id, GetTask(task_id=task_id))
    still_waits = result.error is None and result.task is not None and result.task.is_interrupted
    return render_result(result, NOT_ANSWERED if still_waits else "")


async def send_answer(call: ToolCall, wanted: AnswerTask) -> CallResult:
    """Send the agent of a task the answer to what it asked back."""
    progress, wait_s, task_id = call.progress, call.find_wait_s(wanted.wait_s), wanted.task_id
    send = make_send(wanted.message, wanted.files, task_id=task_id, waits=progress is None and wait_s is None)
    return await call.calls.run_of_task(call.caller, task_id, send, progress, wait_s)
