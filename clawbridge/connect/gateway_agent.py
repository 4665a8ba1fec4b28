"""An agent on a gateway of `a2a-v1`: takes the seat of its name, answers messages, and votes if it is told to."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing, suppress
from typing import Any
from urllib.parse import quote

from websockets.asyncio.client import ClientConnection
from websockets.exceptions import ConnectionClosed

from clawbridge.connect import gateway_frames
from clawbridge.connect.agent import Agent, gateway_url
from clawbridge.connect.answers import Answer, as_text, sendable
from clawbridge.connect.connection import Ending, HubConnection
from clawbridge.connect.frames import Question, Welcome
from clawbridge.connect.gateway_frames import AGENT_NAME, GatewayFrame, Json
from clawbridge.connect.reply_parts import Failed, Rejected, ReplyEnd, ReplyPart
from clawbridge.connect.tasks import running

logger = logging.getLogger(__name__)

PING_EVERY_S = 20.0  # the gateway's pong shows that the gateway is alive
FATAL_CODES = frozenset({5002, 5004})
NO_SERVICES = "this agent has no services: send it a message"
VOTE_HINT = "Vote on this proposal. Begin with approve, reject or abstain.\n\n"


class GatewayAgent(Agent):
    """An `Agent` that speaks `a2a-v1`, and needs a name. `votes`: the program votes on proposals, too."""

    _subprotocol = gateway_frames.SUBPROTOCOL

    def __init__(self, *, votes: bool = False, **options: Any) -> None:
        self._votes = votes
        super().__init__(**options)

    def _url_of(self, hub: str, name: str | None) -> str:
        if name is None or not AGENT_NAME.fullmatch(name):
            raise ValueError("--gateway: want --name, a lower-case letter, then letters, digits and hyphens")
        return f"{gateway_url(hub)}?agentId={quote(name)}"

    def _make_connection(self, socket: ClientConnection) -> HubConnection:
        return GatewaySeat(
            socket,
            answer=self._answer,
            silence_s=self._silence_s,
            on_welcome=self._welcomed,
            votes=self._votes,
        )

    def _register(self) -> str:
        return gateway_frames.handshake()


class GatewaySeat(HubConnection):
    """A socket to the gateway. A message is a question; the whole answer is one frame."""

    def __init__(
        self,
        socket: ClientConnection,
        *,
        answer: Answer,
        silence_s: float,
        on_welcome: Callable[[Welcome], None],
        votes: bool,
    ) -> None:
        super().__init__(socket, answer=answer, streams=False, silence_s=silence_s, on_welcome=on_welcome)
        self._votes = votes
        self._asked: dict[str, GatewayFrame] = {}  # by the chat id of the question
        self._name = ""
        self._client_id = ""

    async def serve(self, register: str) -> Ending:
        """Advertise and stay; the answer says why it ended."""
        async with running(self._send_pings()):
            return await super().serve(register)

    async def _handle(self, fields: Json) -> Ending | None:
        frame = gateway_frames.read_frame(fields)
        match frame.type:
            case "auth-response":
                self._name = str(frame.content.get("agent", ""))
            case "handshake":
                client_id = str(frame.content.get("clientId", ""))
                self._on_welcome(Welcome(session_id=client_id, routing_name=self._name))
            case "message" | "proposal" if frame.type == "message" or self._votes:
                self._ask(frame)
            case "request":
                with suppress(ConnectionClosed):
                    await self._send(gateway_frames.failure(frame, NO_SERVICES))
            case "ping":
                with suppress(ConnectionClosed):
                    await self._send(gateway_frames.encode("pong", {}))
            case "error":
                return error_ending(frame)
            case "disconnect":
                return disconnect_ending(frame)
        return None

    def _ask(self, frame: GatewayFrame) -> None:
        chat_id = frame.correlation_id or frame.id or gateway_frames.new_id("chat")
        if chat_id in self._asked:
            return  # the same question again
        self._asked[chat_id] = frame
        text = VOTE_HINT + frame.text if frame.type == "proposal" else frame.text
        question = Question(
            chat_id=chat_id,
            text=text,
            asker=frame.sender or None,
            context_id=frame.session_id,
            message_id=frame.id,
        )
        if not self._questions.take(question):
            del self._asked[chat_id]

    async def _reply(self, question: Question) -> None:
        frame = self._asked[question.chat_id]
        ends: list[ReplyEnd] = []

        async def noted() -> AsyncGenerator[ReplyPart, None]:
            async with aclosing(sendable(question, self._answer)) as parts:
                async for part in parts:
                    if isinstance(part, ReplyEnd):
                        ends.append(part)
                    yield part

        try:
            async with aclosing(as_text(noted())) as parts:
                text = "".join([part async for part in parts if isinstance(part, str)])
        finally:
            del self._asked[question.chat_id]
        failed = next((end.text for end in ends if isinstance(end, Failed | Rejected)), None)
        if frame.type == "proposal":
            await self._send(gateway_frames.vote(frame, *gateway_frames.read_vote("" if failed else text)))
        elif not frame.wants_response:
            return
        elif failed is not None:
            await self._send(gateway_frames.failure(frame, failed))
        else:
            await self._send(gateway_frames.reply(frame, text))

    async def _report_canceled(self, chat_id: str) -> None:
        """Do nothing: the protocol has no cancel, so no question is ever canceled."""

    async def _send_pings(self) -> None:
        with suppress(ConnectionClosed):
            while True:
                await asyncio.sleep(PING_EVERY_S)
                await self._send(gateway_frames.encode("ping", {}))


def error_ending(frame: GatewayFrame) -> Ending | None:
    """Log an error of the gateway, and return the kind of end if the error ends the connection."""
    error = frame.error
    if error is None or error.code not in FATAL_CODES or frame.correlation_id:
        logger.warning("the gateway reports %s", error)
        return None
    logger.error("the gateway refused the token: %s", error)
    return Ending.REFUSED


def disconnect_ending(frame: GatewayFrame) -> Ending:
    """Log why the gateway closes the connection, and return the kind of end."""
    reason, message = frame.content.get("reason"), frame.content.get("message", "")
    logger.info("the gateway closes the connection (%s): %s", reason, message)
    match frame.content.get("code"):
        case "superseded":
            return Ending.SUPERSEDED
        case "dismissed":
            return Ending.DISMISSED
    return Ending.LOST
