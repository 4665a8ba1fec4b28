"""Questions to users of clients of MCP 2025: sent on the stream of a call, answered by a POST (docs/adr/0127).

A client says in `initialize` that it can ask its user. The hub keeps no sessions: the session id that the client
gets, and sends with each request, is what says so from then on.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import msgspec

from a2a_bridge.wire.errors import unauthenticated
from accounts import sealing
from accounts.authn import Unauthenticated
from accounts.open_requests import OpenRequests
from agents.core.post import Post
from agents.transcript.announcements import SurfaceMessage
from kit.durations import seconds
from kit.ids import random_hex
from mcp_server.service.calls import ToolCaller

SURFACE = "mcp"
PURPOSE = b"mcp-elicitation"
SESSION_PREFIX = "elicits-"
PLAIN_SESSION_PREFIX = "plain-"  # of clients that cannot show forms
ANSWER = "answer"  # the one field of the form
WITHIN_S = seconds(600.0, at_least_s=5.0)  # for the user of the client
MAX_WAITING = 1_000
MAX_ID_CHARS = 500
MAX_ANSWER_CHARS = 262_144

SendMessage = Callable[[Mapping[str, Any]], Awaitable[bool]]


def make_form(question: str) -> dict[str, Any]:
    """The parameters of `elicitation/create`: one text."""
    schema = {
        "type": "object",
        "properties": {ANSWER: {"type": "string", "title": "Your answer"}},
        "required": [ANSWER],
    }
    return {"message": question, "requestedSchema": schema}


def find_session_id(message: Mapping[str, Any]) -> str | None:
    """The session id for a client that begins with this message; None for a message that begins nothing.

    The id says whether the client can show forms, and tells the requests of this client from those of others.
    """
    if message.get("method") != "initialize" or not isinstance(params := message.get("params"), dict):
        return None
    capabilities = params.get("capabilities")
    elicits = capabilities.get("elicitation") if isinstance(capabilities, dict) else None
    shows_forms = isinstance(elicits, dict) and (not elicits or "form" in elicits)
    return f"{SESSION_PREFIX if shows_forms else PLAIN_SESSION_PREFIX}{random_hex(16)}"


class NotAsked(Exception):
    """The client's user could not be asked."""


class ElicitationAnswer(msgspec.Struct, frozen=True):
    """The answer of a client's user, for the process that waits; `answer` None: the user gave none."""

    nonce: str
    user_id: int
    answer: str | None = None


class Elicitations:
    """The questions to users of clients that wait in this process."""

    def __init__(self, process_id: str, post: Post, callers: OpenRequests) -> None:
        self._process_id = process_id
        self._post = post
        self._callers = callers
        self._waiting: dict[str, tuple[int, asyncio.Future[str | None]]] = {}
        self._has_ended = False

    async def ask(self, caller: ToolCaller, send: SendMessage, question: str) -> str | None:
        """Ask the client's user by `send`, which writes to the stream of a call. None: the user did not answer.

        Raises:
            NotAsked: too many wait, the process drains, or the stream takes nothing.
            RpcError: unauthenticated, the caller's token was revoked meanwhile.
        """
        if self._has_ended or len(self._waiting) >= MAX_WAITING:
            raise NotAsked
        nonce = random_hex(16)
        answered: asyncio.Future[str | None] = asyncio.get_running_loop().create_future()
        self._waiting[nonce] = (caller.identity.user_id, answered)
        try:
            name = sealing.seal(f"{self._process_id} {nonce}", PURPOSE)
            form = make_form(question)
            with self._callers.hold(caller.identity.credential_id):
                if not await send({"jsonrpc": "2.0", "id": name, "method": "elicitation/create", "params": form}):
                    raise NotAsked
                async with asyncio.timeout(WITHIN_S):
                    return await answered
        except TimeoutError:
            return None
        except Unauthenticated:
            raise unauthenticated() from None
        finally:
            del self._waiting[nonce]

    async def take_response(self, caller: ToolCaller, message: Mapping[str, Any]) -> None:
        """Pass the response of a client to the process that waits for it; others are dropped."""
        name, user_id = message.get("id"), caller.identity.user_id
        if not isinstance(name, str) or len(name) > MAX_ID_CHARS or not name.isascii():
            return
        try:
            process_id, nonce = sealing.unseal(name, PURPOSE).split()
        except sealing.SecretUnreadable:
            return
        answer = ElicitationAnswer(nonce, user_id, _read_answer(message.get("result")))
        if process_id == self._process_id:
            self._take_answer(answer)
        else:
            body = SurfaceMessage(SURFACE, msgspec.Raw(msgspec.json.encode(answer)))
            await self._post.send(process_id, body)

    def take(self, body: msgspec.Raw) -> None:
        """Take the answer of a user from another process; it is dropped where no question waits for this user."""
        self._take_answer(msgspec.json.decode(body, type=ElicitationAnswer))

    def _take_answer(self, answer: ElicitationAnswer) -> None:
        user_id, answered = self._waiting.get(answer.nonce, (None, None))
        if answered is not None and user_id == answer.user_id and not answered.done():
            answered.set_result(answer.answer)

    def end_all(self) -> None:
        """End each wait as not answered, and ask no more: the process drains."""
        self._has_ended = True
        for _, answered in self._waiting.values():
            if not answered.done():
                answered.set_result(None)


class _Form(msgspec.Struct):
    answer: str = ""


class _Result(msgspec.Struct):
    action: str
    content: _Form | None = None


def _read_answer(result: object) -> str | None:
    """The text that the user gave; None where there is none."""
    try:
        read = msgspec.convert(result, _Result)
    except msgspec.ValidationError:
        return None
    text = read.content.answer if read.action == "accept" and read.content is not None else ""
    return text if text.strip() and len(text) <= MAX_ANSWER_CHARS else None
