"""The frames of one signed-in operator on `/cli`: a handler for each, and no handler waits for an agent."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Literal
from uuid import UUID

import msgspec

from accounts.authn import Identity
from agents.core.ask_starter import AskingUser
from agents.core.live_views import LiveViews
from agents.models.choices import Surface
from agents.transcript import permissions
from agents.transcript.access import SessionRole
from agents.transcript.announcements import PresenceMessage
from agents.transcript.recording import post_op_message
from agents.transcript.storage import STORAGE_FULL, StorageMeter
from kit.account_pace import STORED, AccountPace
from kit.async_db import busy_request_call, db_call
from kit.tasks import TaskSet
from operators.service.prompts import PromptRequest, PromptService, get_session
from operators.service.session_views import Attached, attach, detach, find_role_name, load_attendance, pending
from operators.surface.api import session_id_of
from operators.wire.errors import REFUSED, NoSuchSession, TooManySubscriptions, describe_error
from operators.wire.frames import (
    Ack,
    Approval,
    Error,
    OperatorFrame,
    OpMessage,
    Prompt,
    Route,
    Subscribe,
    Subscribed,
    Unsubscribe,
    encode,
)

MAX_SUBSCRIPTIONS = 100

Handler = Callable[[Any], Awaitable[msgspec.Struct | None]]


class OperatorConversation:
    """The subscriptions of one operator, and the handlers of its frames; the `Watcher` of each session."""

    def __init__(
        self,
        identity: Identity,
        *,
        prompt_service: PromptService,
        live: LiveViews,
        meter: StorageMeter,
        pace: AccountPace,
        process_id: str,
        put: Callable[[bytes], None],
    ) -> None:
        self.user_id = identity.user_id
        self._login = identity.login
        self._asker = AskingUser(user_id=identity.user_id, login=identity.login)
        self._prompt_service = prompt_service
        self._live = live
        self._meter = meter
        self._pace = pace
        self._process_id = process_id
        self._put = put  # queues a frame; an operator who does not keep up is closed
        self._attached: dict[UUID, Attached] = {}
        self._looking = TaskSet()
        self._on: dict[type[OperatorFrame], Handler] = {
            Subscribe: self._subscribe,
            Unsubscribe: self._unsubscribe,
            Prompt: self._prompt,
            OpMessage: self._op_message,
            Approval: self._approve,
            Route: self._route,
        }

    async def take(self, frame: OperatorFrame) -> None:
        """Run the handler of a frame, and send its answer."""
        try:
            if isinstance(frame, Subscribe | OpMessage):  # both tell all who watch the session
                async with self._pace.line:
                    await self._pace.keep(STORED)
                    answer = await self._on[type(frame)](frame)
            else:
                answer = await self._on[type(frame)](frame)
        except REFUSED as refused:
            error = describe_error(refused)
            answer = Error(code=error.code, message=str(error))
        if answer is not None:
            self._put(encode(answer))

    async def end(self) -> None:
        """End all subscriptions, and notify the other operators; may be called again."""
        await self._looking.cancel()
        await self._leave(list(self._attached))

    # As a watcher.

    def see(self, session_id: int, frame: bytes) -> None:
        """See `agents.core.live_views.Watcher`."""
        self._put(frame)

    def look_again(self, session_id: int) -> None:
        """See `agents.core.live_views.Watcher`."""
        self._looking.start(self._look(session_id), name="look again")

    async def _look(self, session_id: int) -> None:
        for public_id, attached in list(self._attached.items()):
            if (
                attached.session_id == session_id
                and await db_call(find_role_name)(session_id, self.user_id) is None
            ):
                await self._leave([public_id])
                gone = Error(code="forbidden", message=f"the session {public_id} is not shared with you any more")
                self._put(encode(gone))

    # One function for each frame.

    async def _subscribe(self, frame: Subscribe) -> None:
        public_id = session_id_of(frame.session_id)
        attached = self._attached.get(public_id)
        if attached is None:
            if len(self._attached) >= MAX_SUBSCRIPTIONS:
                raise TooManySubscriptions
            attached = await db_call(attach)(public_id, self.user_id, self._process_id)
            self._attached[public_id] = attached
        role = await busy_request_call(find_role_name)(attached.session_id, self.user_id)
        # `_look` has ended the subscription meanwhile.
        if role is None or self._attached.get(public_id) is not attached:
            await self._leave([public_id])
            raise NoSuchSession
        self._put(encode(Subscribed(session_id=attached.public_id, role=role)))
        self._live.watch(attached.session_id, self)
        await self._send_presence(attached, joined=self._login if attached.is_first else None)
        for request in await busy_request_call(pending)(attached.session_id):
            self._put(encode(request))

    async def _unsubscribe(self, frame: Unsubscribe) -> Ack:
        await self._leave([session_id_of(frame.session_id)])
        return Ack()

    async def _prompt(self, frame: Prompt) -> Ack:
        source = frame.source_session_id
        wanted = PromptRequest(
            session_id=session_id_of(frame.session_id),
            text=frame.text,
            attachments=frame.attachments or (),
            source_id=session_id_of(source) if source is not None else None,
        )
        await self._prompt_service.prompt(self._asker, wanted, surface=Surface.CLI)
        return Ack()

    async def _op_message(self, frame: OpMessage) -> Ack | Error:
        if not await self._meter.takes(self.user_id, len(frame.text.encode())):
            return Error(code="quota_exceeded", message=STORAGE_FULL)
        await db_call(_post_message)(
            session_id_of(frame.session_id),
            author_id=self.user_id,
            author_login=self._login,
            text=frame.text,
            mentions=frame.mentions,
        )
        return Ack()

    async def _approve(self, frame: Approval) -> Ack:
        await db_call(_decide)(
            session_id_of(frame.session_id),
            frame.request_id,
            decision=frame.decision,
            resolver_id=self.user_id,
            message=frame.message or "",
        )
        return Ack()

    async def _route(self, frame: Route) -> Ack:
        await self._prompt_service.route(self._asker, frame.peer, frame.prompt, frame.mode)
        return Ack()

    async def _leave(self, public_ids: list[UUID]) -> None:
        gone = [one for one in map(self._attached.pop, public_ids, [None] * len(public_ids)) if one is not None]
        for attached in gone:
            self._live.unwatch(attached.session_id, self)
        if gone:
            await db_call(detach)(gone)
        for attached in gone:
            await self._send_presence(attached, left=self._login)

    async def _send_presence(
        self, attached: Attached, *, joined: str | None = None, left: str | None = None
    ) -> None:
        now = await busy_request_call(load_attendance)(attached.session_id)
        still_there = left in now.logins  # by another socket
        message = PresenceMessage(attached.public_id, now.logins, joined, None if still_there else left)
        await self._live.publish(now.processes, attached.session_id, message)


def _post_message(
    public_id: UUID, *, author_id: int, author_login: str, text: str, mentions: Sequence[str] | None
) -> None:
    """Store a message to the other operators of a session.

    Raises:
        NoSuchSession, NotAllowed: nothing was stored.
    """
    session = get_session(public_id, author_id, SessionRole.PROMPTER)
    post_op_message(session, author_id=author_id, author_login=author_login, text=text, mentions=mentions)


def _decide(
    public_id: UUID, request_id: str, *, decision: Literal["allow", "deny"], resolver_id: int, message: str
) -> None:
    """Decide a permission request that is not decided yet.

    Raises:
        NoSuchSession, NotAllowed, NoSuchRequest, AlreadyResolved: nothing was decided.
    """
    session = get_session(public_id, resolver_id, SessionRole.APPROVER)
    permissions.decide(session.pk, request_id, decision=decision, resolver_id=resolver_id, message=message)
