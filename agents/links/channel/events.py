"""`POST /api/channel/event`: what the hooks of an agent's program report (section 4.8 of the channel's wire).

A plain ASGI callable, because several hooks a turn come over connections of their own and their program waits for
the answer: a Django view would cost each a thread. Events are written by the ledger, in batches.
"""

import logging
from typing import Annotated, Literal
from uuid import UUID

import msgspec
from django.db import DatabaseError
from msgspec import Meta, Struct

from accounts.authn import AGENT_KINDS, check_caller, presented
from agents import limits
from agents.core.ledger import Ledger
from agents.core.post import Hook
from agents.core.rest_server import public_refusal
from agents.core.types import HookedSession
from agents.links.channel.frames import MAX_LEVELS
from agents.links.sockets import SocketLink
from agents.transcript.recording import BadPayload, NewEvent, clean
from agents.transcript.storage import STORAGE_FULL, StorageMeter
from agents.transcript.token_usage import add_turn_usage, usage_in
from kit import strict_json
from kit.asgi import ClientLeft, HttpRequest, RequestRefused, Send, respond, respond_refused
from kit.async_db import db_call
from kit.describe import CHANNEL_TOKEN, DescribedAnswer, DescribedOperation, Done, ErrorBody
from kit.newest import NewestEntries

logger = logging.getLogger(__name__)

EVENT_PATH = "/api/channel/event"
KNOWN_CONNECTIONS = 10_000
TAKEN = b'{"ok":true}'
CANNOT_WRITE = "the hub cannot write now, try again shortly"


class HookEvent(Struct, frozen=True, rename="camel"):
    """One event of one session. `ts` is the program's own clock: the hub stamps events by its own."""

    session_id: UUID
    kind: Literal["chat", "tail"]
    type: Annotated[str, Meta(min_length=1, max_length=64)]
    payload: msgspec.Raw = msgspec.field(default_factory=lambda: msgspec.Raw(b"null"))
    ts: Annotated[str, Meta(max_length=64)] | None = None

    @property
    def is_stop(self) -> bool:
        """True if the agent's turn is over."""
        return (self.kind, self.type) == ("tail", "Stop")

    @property
    def begins(self) -> bool:
        """True if the program begins to work on a prompt, typed by its owner or sent by the hub."""
        return (self.kind, self.type) == ("tail", "UserPromptSubmit")


class HookEvents:
    """Serves the hooks.

    The class informs each connection once that its program has hooks, and of each turn's end.
    """

    def __init__(self, *, ledger: Ledger, link: SocketLink, meter: StorageMeter) -> None:
        self._ledger = ledger
        self._meter = meter
        self._link = link
        self._hooked = NewestEntries[int, None](KNOWN_CONNECTIONS)

    async def __call__(self, request: HttpRequest, send: Send) -> None:
        """Answer one request; nothing a client sends makes this raise."""
        try:
            await self._take(*await self._read(request))
        except ClientLeft:
            return
        except Exception as failure:  # noqa: BLE001  each becomes the answer
            refused = public_refusal(failure, "hook.failed", request.path, unavailable=CANNOT_WRITE)
            await respond_refused(send, refused)
        else:
            await respond(send, 202, TAKEN)

    async def _read(self, request: HttpRequest) -> tuple[int, HookedSession, HookEvent, str]:
        """Read a valid event: its identity, its session, and its payload for storage."""
        event = _event(await request.read_checked(("POST",)))
        wanted = event.session_id if isinstance(event, HookEvent) else None
        # Only Bearer, as on the socket: agents never use a cookie.
        token = presented({"authorization": request.headers.get("authorization", "")})
        found = await self._ledger.look_up(token.digest if token else None, None, wanted)
        identity = check_caller(token, found.identity, kinds=AGENT_KINDS)
        if isinstance(event, RequestRefused):
            raise event
        if found.session is None:
            raise RequestRefused(404, "not_found", "no such session of this token")
        try:
            return identity.user_id, found.session, event, clean(bytes(event.payload))
        except BadPayload as bad:
            raise _wrong(str(bad)) from None

    async def _take(self, owner_id: int, session: HookedSession, event: HookEvent, payload: str) -> None:
        size = len(payload) + limits.USAGE_ROW_BYTES * event.is_stop
        has_room = await self._meter.takes(owner_id, size)
        if has_room:
            await self._ledger.record(NewEvent(session.session_id, event.kind, event.type, payload))
        # Also if there is no room for the event: the end of the agent's turn must release its claims.
        if event.is_stop:
            await self._ledger.release_session(session.session_id)
            if has_room:
                await _add_usage(session.session_id, payload)
        await self._send_hook(session, event)
        if not has_room:
            raise RequestRefused(429, "quota_exceeded", STORAGE_FULL)

    async def _send_hook(self, session: HookedSession, event: HookEvent) -> None:
        """Tell the agent's connection about an event that concerns it."""
        if session.connection_id is None or session.process_id is None:
            return
        if event.is_stop or event.begins or session.connection_id not in self._hooked:
            self._hooked[session.connection_id] = None
            await self._link.send(session.process_id, Hook(session.connection_id, event.is_stop, event.begins))


_decode = msgspec.json.Decoder(HookEvent).decode


def _event(body: bytes) -> HookEvent | RequestRefused:
    """The event in a body, or what is wrong with it: whose token it is comes first."""
    try:
        strict_json.read(body, max_depth=MAX_LEVELS, max_brackets=None, takes_any_text=True)
        event = _decode(body.decode("utf-8-sig"))
    except strict_json.BadShape as bad:
        return _wrong(str(bad))
    except msgspec.ValidationError as wrong:
        return _wrong(str(wrong)[:300])
    except (strict_json.NotJson, msgspec.DecodeError, RecursionError, UnicodeError):
        return _wrong("the body is not JSON")
    return event if event.type.isprintable() else _wrong("type: want printable text")


def _wrong(message: str) -> RequestRefused:
    return RequestRefused(400, "validation_failed", message)


async def _add_usage(session_id: int, payload: str) -> None:
    """Count the turn's tokens; the event is kept whether or not this works."""
    if usage := usage_in(payload):
        try:
            await db_call(add_turn_usage)(session_id, usage)
        except DatabaseError:
            logger.exception("hook.usage_lost")


OPERATIONS = (
    DescribedOperation(
        method="post",
        path=EVENT_PATH,
        name="postEvent",
        summary="Take an event of a session that was registered with this channel token.",
        tag="channel",
        security=[CHANNEL_TOKEN],
        request=HookEvent,
        answers={
            202: Done,
            404: ErrorBody,
            408: ErrorBody,
            503: DescribedAnswer(shape=ErrorBody, text="The database is out of reach, or too much waits for it."),
        },
    ),
)
