"""A caller's decision on a permission request of an agent, while the turn continues (docs/adr/0080)."""

import time
from collections.abc import Iterable
from dataclasses import dataclass

from a2a_bridge.service.calls import Call
from a2a_bridge.service.repeats import JoinedTask
from a2a_bridge.service.services import Services
from a2a_bridge.service.tasks.reader import LOOK_EVERY_S
from a2a_bridge.wire.dialects.reading import invalid
from a2a_bridge.wire.errors import refused
from a2a_bridge.wire.requests import Send
from a2a_bridge.wire.task import Message, Task
from agents.transcript.permissions import (
    MAX_MESSAGE_CHARS,
    STATUSES,
    AlreadyResolved,
    AmbiguousDecision,
    Decision,
    NoSuchRequest,
    decide_as_caller,
)
from agents.transcript.pieces import ApprovalAsked, text_in
from kit.async_db import db_call
from kit.durations import seconds
from kit.jsonrpc import RpcError

GOES_ON_WITHIN_S = seconds(3.0, at_least_s=2.0)
DECISIONS: dict[str, Decision] = {"approve": "allow", "deny": "deny"}
WANTED = "answer approve or deny, as text (a requestId may follow) or as data: {requestId, decision, message?}"


class AsksApproval(Exception):
    """The message continues a task that waits for its caller's approval. The hub sent nothing."""

    def __init__(self, task: Task) -> None:
        super().__init__()
        self.task = task


@dataclass(frozen=True, slots=True)
class ApprovalVerdict:
    """A caller's decision. `message`: a text for the agent.

    `is_named`: the message names the permission request.
    """

    request_id: str
    decision: Decision
    message: str = ""
    is_named: bool = True


def read_verdict(said: Message, waits_for: tuple[ApprovalAsked, ...]) -> ApprovalVerdict:
    """Read the decision in a message: from a data part, else from its whole text.

    Raises:
        RpcError: -32602, it is none, or does not name which of several requests it is for.
    """
    found = [part.data for part in said.parts if isinstance(part.data, dict) and "decision" in part.data]
    if len(found) > 1:
        raise invalid("message.parts", f"message.parts: one verdict in a message; {WANTED}")
    data = found[0] if found else _read_words(text_in(said.parts))
    wanted, message = data["decision"], data.get("message", "")
    if not isinstance(wanted, str) or wanted not in DECISIONS:
        raise invalid("message.parts", f"message.parts: {WANTED}")
    if not isinstance(message, str) or len(message) > MAX_MESSAGE_CHARS:
        raise invalid("message.parts", f"message.parts: message: want up to {MAX_MESSAGE_CHARS} characters")
    known = [one.request_id for one in waits_for]
    request_id = data.get("requestId", known[0] if len(known) == 1 else None)
    if request_id not in known:
        raise _unnamed(known)
    return ApprovalVerdict(request_id, DECISIONS[wanted], message, is_named="requestId" in data)


def _read_words(text: str) -> dict[str, str]:
    """A verdict's text as its data: `approve` or `deny`, and after it perhaps a request's id."""
    decision, *request_id = text.split(maxsplit=1) or [""]
    read = {"decision": decision.rstrip(".!").lower()}
    return read | ({"requestId": request_id[0].strip()} if request_id else {})


def _unnamed(known: Iterable[str]) -> RpcError:
    return invalid("message.parts", f"message.parts: requestId: want one of {', '.join(known)}")


async def answer(services: Services, call: Call, send: Send, task: Task) -> JoinedTask:
    """Decide the task's permission request, and follow the task.

    Raises:
        RpcError: the message is no verdict, or another decision stands.
    """
    verdict, caller = read_verdict(send.message, task.approvals), call.caller
    try:
        await db_call(decide_as_caller)(
            caller.agent.session_id,
            task.chat_id,
            verdict.request_id,
            decision=verdict.decision,
            caller_id=caller.identity.user_id,
            message=verdict.message,
            is_named=verdict.is_named,
        )
    except NoSuchRequest:
        raise refused("this permission request is decided or its turn ended: read the task with GetTask") from None
    except (
        AmbiguousDecision
    ):  # the caller may mean that one: an operator's decision, or their own, overtook the message
        raise _unnamed([verdict.request_id]) from None
    except AlreadyResolved as resolved:
        row = resolved.row
        if (row.status, row.resolver_id) != (STATUSES[verdict.decision], caller.identity.user_id):
            raise refused(str(resolved)) from None
    feed = await services.reader.follow(task)
    until = time.monotonic() + GOES_ON_WITHIN_S
    while any(one.request_id == verdict.request_id for one in feed.task.approvals):
        left_s = until - time.monotonic()
        if left_s <= 0 or not await services.reader.refresh(feed):
            break
        await feed.wait_for_events(feed.task.seq, min(left_s, LOOK_EVERY_S))
    return JoinedTask(feed, send, services.reader)
