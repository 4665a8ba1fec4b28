"""The sockets of operators: sign-in, frames in, and a bounded queue of frames out (docs/reference/frames.md)."""

import asyncio
import logging
from collections.abc import Mapping

from django.db import DatabaseError

from accounts.authn import Identity, Presented, TokenScope, presented
from agents.core.errors import Unavailable
from agents.core.ledger import Ledger
from agents.core.live_views import LiveViews
from agents.transcript.storage import StorageMeter
from kit.account_pace import AccountPaces
from kit.asgi import Receive, RequestRefused, Scope, Send, headers_of
from kit.durations import seconds
from kit.frame_queue import FrameQueue
from kit.sockets import POLICY_VIOLATION, SERVICE_RESTART, TRY_AGAIN_LATER, SocketConsumer
from operators.service.prompts import PromptService
from operators.surface.conversation import OperatorConversation
from operators.wire.frames import BadOperatorFrame, Error, decode, encode

logger = logging.getLogger(__name__)

SEND_WITHIN_S = seconds(10.0, at_least_s=3.0)

SUBPROTOCOL = "bearer"
WANTED = "want a live session or app token for ask, read and publish; a cookie, from the hub's own pages"
# The socket shows transcripts, sends prompts and decides permission requests.
TAKES = (TokenScope.READ, TokenScope.ASK, TokenScope.PUBLISH)


class OperatorSockets:
    """The operators' sockets of one process, which a revoked credential or a restart closes."""

    def __init__(self, sockets_per_user: int) -> None:
        self._sockets_per_user = sockets_per_user
        self._sockets: set[OperatorSocket] = set()
        self.is_closed = False

    @property
    def sockets(self) -> int:
        """The number of open sockets."""
        return len(self._sockets)

    @property
    def credential_ids(self) -> set[int]:
        """The ids of the credentials whose sockets are open."""
        return {socket.credential_id for socket in self._sockets}

    def enter(self, socket: "OperatorSocket") -> bool:
        """Add a signed-in socket; False when its user has reached the limit."""
        if sum(other.user_id == socket.user_id for other in self._sockets) >= self._sockets_per_user:
            return False
        self._sockets.add(socket)
        return True

    def leave(self, socket: "OperatorSocket") -> None:
        """Remove a closed socket."""
        self._sockets.discard(socket)

    def dismiss(self, credential_ids: set[int]) -> None:
        """Close the sockets of credentials that were revoked or have expired."""
        for socket in self._of(credential_ids):
            socket.refuse("token_revoked", "this token was revoked")

    def halt(self, credential_ids: set[int]) -> None:
        """Close the sockets of these credentials, because their users are halted."""
        for socket in self._of(credential_ids):
            socket.refuse("halted", "your questions are halted")

    def _of(self, credential_ids: set[int]) -> list["OperatorSocket"]:
        return [socket for socket in self._sockets if socket.credential_id in credential_ids]

    async def close(self) -> None:
        """Close all sockets for a restart, and accept no more."""
        self.is_closed = True
        leaving = list(self._sockets)
        for socket in leaving:
            socket.end(SERVICE_RESTART)
        await asyncio.gather(*(socket.ended() for socket in leaving))


class OperatorSocket(SocketConsumer):
    """`/cli`. The socket accepts first and refuses by frame: clients retry a refused upgrade for ever."""

    def __init__(
        self,
        *,
        prompt_service: PromptService,
        live: LiveViews,
        ledger: Ledger,
        operator_sockets: OperatorSockets,
        meter: StorageMeter,
        paces: AccountPaces,
        process_id: str,
        public_url: str,
    ) -> None:
        super().__init__()
        self._paces = paces
        self._prompt_service = prompt_service
        self._live = live
        self._ledger = ledger
        self._operator_sockets = operator_sockets
        self._meter = meter
        self._process_id = process_id
        self._public_url = public_url
        self._queue = FrameQueue()
        self._close_code = 0  # sent once the queue is empty
        self._sender: asyncio.Task[None] | None = None
        self._conversation: OperatorConversation | None = None
        self._serving: asyncio.Task[None] | None = None
        self._over = self._is_given_up = False
        self.credential_id = self.user_id = 0

    # From the server.

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve the socket to its end."""
        self._serving = asyncio.current_task()
        try:
            await super().__call__(scope, receive, send)
        except asyncio.CancelledError:
            if not self._is_given_up:
                raise
            if self._serving is not None:
                self._serving.uncancel()

    async def connect(self) -> None:
        """Accept the socket, then find out which user it belongs to."""
        offered = self.scope["subprotocols"]
        await self.accept(SUBPROTOCOL if SUBPROTOCOL in offered else None)
        if self._operator_sockets.is_closed:
            self.end(SERVICE_RESTART)
            return
        try:
            identity = await self._identify(offered, headers_of(self.scope))
        except Unavailable:
            self.end(SERVICE_RESTART)
            return
        if identity is None:
            self.refuse("auth_failed", WANTED)
            return
        self.credential_id, self.user_id = identity.credential_id, identity.user_id
        if not self._operator_sockets.enter(self):
            self.put(encode(Error(code="quota_exceeded", message="you hold too many sockets open here")))
            self.end(TRY_AGAIN_LATER)
            return
        self.pace = self._paces.of(identity.user_id)
        self._conversation = OperatorConversation(
            identity,
            prompt_service=self._prompt_service,
            live=self._live,
            meter=self._meter,
            pace=self.pace,
            process_id=self._process_id,
            put=self.put,
        )

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        """Handle one message of the operator."""
        if self._over or self._conversation is None:
            return
        try:
            await self._conversation.take(decode(text_data))
        except BadOperatorFrame as bad:
            self.put(encode(bad.error))
        except DatabaseError:
            logger.exception("operator.database_away")
            self.end(SERVICE_RESTART)

    async def disconnect(self, code: int) -> None:
        """Clean up after the socket was closed by either side."""
        self._over = True
        self._operator_sockets.leave(self)
        if self._sender is not None:
            self._sender.cancel()
            await asyncio.wait([self._sender])
        await asyncio.shield(self._release())

    # To the operator.

    def put(self, frame: bytes) -> None:
        """Queue a frame; an operator who does not keep up is closed."""
        if self._over:
            return
        if self._queue.put(frame):
            self._start_sending()
        else:  # the client can read lost events from the transcript
            self.end(TRY_AGAIN_LATER)

    def refuse(self, code: str, message: str) -> None:
        """Send an error and close the socket for good: a client must not return with this token."""
        self.put(encode(Error(code=code, message=message)))
        self.end(POLICY_VIOLATION)

    def end(self, code: int) -> None:
        """Close the socket, once the queued frames were sent."""
        if not self._over:
            self._over = True
            self._close_code = code
            self._start_sending()

    async def ended(self) -> None:
        """Wait until the close was sent, or could not be."""
        if self._sender is not None:
            await asyncio.wait([self._sender])

    def _start_sending(self) -> None:
        if self._sender is None or self._sender.done():
            self._sender = asyncio.get_running_loop().create_task(self._send_all(), name="to operator")

    async def _send_all(self) -> None:
        """Send the queued frames, then close the socket if it has ended; drop a client that does not read."""
        try:
            await self._queue.send_all(self._send_frame)
            if not self._close_code:
                return
            async with asyncio.timeout(SEND_WITHIN_S):
                await self.close(self._close_code)
        except TimeoutError:
            self._is_given_up = True
        # RuntimeError: the server has answered the peer's close, but has not sent us the disconnect yet.
        except (OSError, RuntimeError):
            pass
        self._over = True
        if self._is_given_up and self._serving is not None:
            self._serving.cancel()  # the server closes a connection whose application has ended

    async def _send_frame(self, frame: bytes) -> None:
        async with asyncio.timeout(SEND_WITHIN_S):
            await self.base_send({"type": "websocket.send", "text": str(frame, "utf-8")})

    async def _release(self) -> None:
        if self._conversation is not None:
            try:
                await self._conversation.end()
            except DatabaseError:  # the attachments are deleted with the row of the process
                logger.exception("operator.not_detached")

    async def _identify(self, offered: list[str], headers: Mapping[str, str]) -> Identity | None:
        try:
            return await self._ledger.get_caller(self._find_token(offered, headers), *TAKES)
        except RequestRefused:
            return None

    def _find_token(self, offered: list[str], headers: Mapping[str, str]) -> Presented | None:
        """The token: by header, else as the subprotocol after `bearer`, else the cookie."""
        if "authorization" not in headers and len(offered) > 1 and offered[0] == SUBPROTOCOL:
            return presented({"authorization": f"Bearer {offered[1]}"})
        # The upgrade is a GET, but frames over the socket change state.
        return presented(headers, "POST", self._public_url)
