"""The calls of this room, one table: what each takes, and what runs for it."""

import asyncio
import re
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from msgspec import Struct

from agents.core.asking import Asker
from agents.models.choices import Failure, Outcome, Surface
from kit.iso import iso
from operators.answers import ProbeAnswer, PromptSent, RouteAnswer
from operators.bodies import ProbeBody, PromptBody, RouteBody
from operators.errors import NoSuchSession, failure_text
from operators.prompting import Wanted
from operators.switchboard import Routed, Switchboard

Names = Mapping[str, str]


class TurnFailed(Exception):
    """A routed prompt was sent, or may have been, and got no reply. `reason` is public."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Pending:
    """An answer that waits for an agent."""

    answer: Coroutine[Any, Any, Any]


@dataclass(frozen=True, slots=True)
class Call:
    """One address, whose groups name its variable parts; all are POST."""

    path: re.Pattern[str]
    body: type[Struct]
    run: Callable[[Switchboard, Asker, Names, Any], Awaitable[Any]]


async def prompt(switchboard: Switchboard, asker: Asker, names: Names, body: PromptBody) -> PromptSent:
    """Prompt a session; never waits for the reply."""
    wanted = Wanted(session_id=session_id_of(names["id"]), text=body.text, attachments=body.attachments or ())
    prompted = await switchboard.prompt(asker, wanted, surface=Surface.PROMPT)
    sent: PromptSent = {"ok": True, "chatId": prompted.chat_id, "ts": now()}
    if prompted.routed_to is not None:
        sent["routedToAgent"] = prompted.routed_to
    return sent


async def route(switchboard: Switchboard, asker: Asker, names: Names, body: RouteBody) -> RouteAnswer | Pending:
    """Prompt a peer; an ask waits for the reply."""
    routed = await switchboard.route(asker, names["peer"], body.prompt, body.mode)
    sent: RouteAnswer = {"ok": True, "chatId": routed.chat_id, "sessionId": routed.session_id, "mode": body.mode}
    return Pending(_with_reply(sent, routed, switchboard.reply_wait_s)) if body.mode == "ask" else sent


async def probe(switchboard: Switchboard, asker: Asker, names: Names, body: ProbeBody) -> ProbeAnswer:
    """Prompt many peers; never waits for a reply."""
    found = await switchboard.probe(asker, body.prompt, body.peers)
    return {"dispatched": [{"peer": one.name, "sessionId": one.session_id, "status": one.status} for one in found]}


CALLS = (
    Call(re.compile(r"/api/v1/sessions/(?P<id>[^/]+)/prompt"), PromptBody, prompt),
    Call(re.compile(r"/api/v1/peers/probe"), ProbeBody, probe),
    Call(re.compile(r"/api/v1/peers/(?P<peer>.+)/route", re.DOTALL), RouteBody, route),
)


def find_call(path: str) -> tuple[Call, Names] | None:
    """The call at a path, and the variable parts of it."""
    for call in CALLS:
        if found := call.path.fullmatch(path):
            return call, found.groupdict()
    return None


def session_id_of(text: str) -> UUID:
    """A session's public id.

    Raises:
        NoSuchSession: no session can have such an id.
    """
    try:
        return UUID(text)
    except ValueError:
        raise NoSuchSession from None


def now() -> str:
    """The time of an answer."""
    return iso(datetime.now(UTC))


async def _with_reply(sent: RouteAnswer, routed: Routed, wait_s: float) -> RouteAnswer:
    """Wait for the end of the turn, whose own deadline is the caller's.

    Raises:
        TurnFailed: it failed otherwise than by timeout.
    """
    settled = await asyncio.shield(routed.running.settled)
    if settled.outcome is Outcome.COMPLETED:
        return {**sent, "reply": settled.text, "replyTs": now()}
    message = settled.own_words or failure_text(settled.reason, wait_s)
    if settled.reason != Failure.TIMEOUT:
        raise TurnFailed(settled.reason, message)
    return {**sent, "ok": False, "timedOut": True, "error": message}
