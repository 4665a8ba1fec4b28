"""Answers in a format that the caller demands: held back, checked, and asked for once more if they do not have it.

Two ordinary asks are made (docs/adr/0186). A check takes up to a second: it runs when it is its caller's turn. The
first check imports `jsonschema`.
"""

import hashlib
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from importlib import import_module
from typing import Any, NamedTuple

from a2a_bridge.service.calls import AwaitedAnswer, StreamedAnswer, Wire
from a2a_bridge.wire.dialects.reading import invalid
from a2a_bridge.wire.errors import unauthenticated
from a2a_bridge.wire.requests import Send
from a2a_bridge.wire.task import Task
from agents.core.errors import Denied
from kit.asgi import ClientLeft, RequestRefused
from kit.async_db import DbCall
from kit.jsonrpc import RpcError
from kit.strict_json import UnreadableText, bare_json
from openai_api.surface.answers import ChatAnswer, refusal_after, refusal_of_failure, task_in
from openai_api.wire.errors import AGENT_FAILED, NO_RETRY, ModelRefused
from openai_api.wire.formats import ReplyFormat, read_json
from openai_api.wire.messages import make_repair

SCHEMAS = "kit.json_schemas"


class CheckedReply(NamedTuple):
    """A reply without its fence; or what is wrong with it. `is_final`: asking again would not mend it."""

    content: str = ""
    flaw: str = ""
    is_final: bool = False


async def check_format(wanted: ReplyFormat, check: DbCall) -> None:
    """Check the schema of a format.

    Raises:
        RpcError: -32602, it is not sound, or demands too much work.
    """
    if wanted.schema is not None:
        flaw = await check(_find_schema_flaw, wanted.schema)
        if flaw:
            raise invalid(wanted.field, f"{wanted.field}: {flaw}")


def _find_schema_flaw(schema: dict[str, Any]) -> str:
    flaw: str = import_module(SCHEMAS).find_schema_flaw(schema)
    return flaw


def _check(wanted: ReplyFormat, reply: str) -> CheckedReply:
    content = bare_json(reply)
    try:
        value = read_json(content)
    except UnreadableText as wrong:
        return CheckedReply(flaw=str(wrong))
    if wanted.schema is None:
        flaw = "" if isinstance(value, dict) else "the reply is no JSON object"
        return CheckedReply(flaw=flaw) if flaw else CheckedReply(content)
    schemas = import_module(SCHEMAS)
    try:
        flaw = schemas.find_flaw(value, wanted.schema)
    except schemas.Uncheckable as wrong:
        return CheckedReply(flaw=f"the schema cannot be applied: {wrong}", is_final=True)
    return CheckedReply(flaw=flaw) if flaw else CheckedReply(content)


class HeldReply:
    """Keeps the end of an ask; a stream gets comments meanwhile. See `a2a_bridge.service.answering`."""

    leaving_cancels = False

    def __init__(self, answer: ChatAnswer) -> None:
        self.wire: Wire = answer.wire
        self.task: Task | None = None
        self.denied: Denied | None = None
        self._answer = answer

    async def at_once(self, result: object) -> None:
        """Keep a task that is known."""
        self.task = task_in(result)

    async def wait(self, waiting: AwaitedAnswer) -> None:
        """Keep the task as it is at the end of a turn."""
        self.task, self.denied = await self._answer.wait_for_end(waiting)

    async def stream(self, answer: StreamedAnswer, max_age_s: float) -> None:
        """Keep the task as it is at the end of a stream."""
        self.task, self.denied, _ = await self._answer.follow(answer, max_age_s, is_held=True)

    async def refuse(self, error: RpcError) -> None:
        """Raise an error."""
        raise error

    async def end(self) -> None:
        """The stream was cut off, because the caller's token is no longer valid."""
        raise unauthenticated()


AskOnce = Callable[[Send, str], Awaitable[HeldReply]]


async def answer_in_format(
    answer: ChatAnswer, check: DbCall, wanted: ReplyFormat, send: Send, key: str, ask: AskOnce
) -> None:
    """Ask, and answer with the JSON of the reply. An agent that asks back is not checked.

    `check`: runs a check in a turn of the caller. `ask`: asks the agent with an Idempotency-Key, which may be
    empty. A repeated key finds both asks.

    Raises:
        RpcError, RequestRefused: the format is not sound, or was not checked; nothing was asked.
        ModelRefused: the agent was asked, and its reply does not have the format.
    """
    await check_format(wanted, check)
    first = await ask(send, key)
    flaw = await _find_flaw(answer, check, wanted, first)
    if not flaw or first.task is None:
        await answer.answer_held(first.task, first.denied)
        return
    await answer.check_connected()
    answer.chat.earlier = first.task
    next_key = f"repair-{hashlib.sha256(key.encode()).hexdigest()}" if key else ""
    try:
        second = await ask(make_repair(send, wanted, flaw, first.task.context_id, next_key), next_key)
    except ClientLeft:
        raise
    except Exception as failure:  # noqa: BLE001  whatever fails becomes the answer
        refusal = refusal_of_failure(failure)
        raise refusal if refusal.status == HTTPStatus.UNAUTHORIZED else _not_repaired(flaw, refusal) from None
    if second.task is not None and second.denied is not None:
        raise _not_repaired(flaw, refusal_after(second.task, second.denied))
    if flaw := await _find_flaw(answer, check, wanted, second):
        raise _refusal(f"{flaw}. The agent was asked twice")
    await answer.answer_held(second.task, None)


async def _find_flaw(answer: ChatAnswer, check: DbCall, wanted: ReplyFormat, held: HeldReply) -> str:
    """The flaw of a reply; empty without one, or without a reply to check.

    Raises:
        ModelRefused: asking again would not mend it.
    """
    task = held.task
    if task is None or task.is_interrupted or refusal_after(task, held.denied) is not None:
        return ""
    reply = answer.chat.content(task)
    try:
        checked = await check(_check, wanted, reply)
    except RequestRefused as busy:
        text = f"The agent's reply was not checked: {busy}"
        raise ModelRefused(AGENT_FAILED, "invalid_reply_format", text, NO_RETRY) from None
    if checked.is_final:
        raise _refusal(checked.flaw)
    answer.chat.checked = checked.content
    return checked.flaw


def _not_repaired(flaw: str, refusal: ModelRefused | None) -> ModelRefused:
    return _refusal(f"{flaw}. The agent could not be asked again: {refusal}")


def _refusal(text: str) -> ModelRefused:
    said = f"The agent's reply does not have the format that was asked for: {text}."
    return ModelRefused(AGENT_FAILED, "invalid_reply_format", said, NO_RETRY)
