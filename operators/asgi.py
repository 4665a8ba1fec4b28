"""`POST /sessions/{id}/prompt` and `/peers/…`: plain ASGI, because a routed ask waits (docs/adr/0002).

A request is checked in the order: HTTP method, caller, media type, size, JSON, members; then what it asks for.
"""

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from accounts.authn import (
    CALLER_KINDS,
    INSUFFICIENT_SCOPE,
    ForeignOrigin,
    Identity,
    TokenScope,
    check_origin,
    presented,
    scope_text,
)
from accounts.cors import allowing
from accounts.error_pages import CODES, FORBIDDEN_ORIGIN, FORBIDDEN_ORIGIN_TEXT, INTERNAL, INTERNAL_TEXT
from accounts.served import Served
from agents.core.asking import Asker
from agents.core.errors import Unavailable
from agents.core.ledger import Ledger
from agents.models.choices import Failure
from kit import sql
from kit.asgi import (
    BODY_WITHIN_S,
    MAX_BODY_BYTES,
    BodyTooLarge,
    BodyTooSlow,
    ClientLeft,
    Header,
    HttpRequest,
    Send,
    media_type_of,
    respond,
)
from operators.bodies import BadBody, read
from operators.calls import Call, Names, Pending, TurnFailed
from operators.errors import REFUSED, told
from operators.switchboard import Switchboard

logger = logging.getLogger(__name__)

JSON_TYPE = "application/json"

_encode = msgspec.json.Encoder().encode


@dataclass(frozen=True, slots=True)
class Answer:
    """What goes back."""

    status: int
    body: Any
    headers: Sequence[Header] = ()


class Broken(Exception):
    """A request that gets no further; `answer` says why."""

    def __init__(self, status: int, message: str, *headers: Header, code: str = "") -> None:
        super().__init__(message)
        self.answer = _error(status, code or CODES[status], message, *headers)


@dataclass(frozen=True, slots=True)
class Operators:
    """Serves `CALLS`. `public_url`: whose pages may use the cookie; `app_origins`: whose may read answers."""

    switchboard: Switchboard
    ledger: Ledger
    callers: Served
    public_url: str
    app_origins: Sequence[str]

    async def __call__(self, request: HttpRequest, call: Call, names: Names, send: Send) -> None:
        """Answer one request for a call; nothing a client sends makes this raise."""
        span = request.enter_trace()
        try:
            answer = await self._answer(request, call, names)
        except ClientLeft:
            return
        except Broken as broken:
            answer = broken.answer
        except (Unavailable, *sql.AWAY):
            answer = _refusal(Unavailable())
        except REFUSED as refused:
            answer = _refusal(refused)
        except TurnFailed as failed:
            answer = _failure(failed)
        except Exception:
            logger.exception("operators.failed", extra={"path": request.path})
            answer = _error(500, INTERNAL, INTERNAL_TEXT)
        cors = allowing(request.headers.get("origin"), self.app_origins)
        await respond(send, answer.status, _encode(answer.body), [*answer.headers, span, *cors])

    async def _answer(self, request: HttpRequest, call: Call, names: Names) -> Answer:
        if request.method != "POST":
            raise Broken(405, "want POST", (b"allow", b"POST"))
        identity = await self._identify(request.headers)
        if media_type_of(request.headers.get("content-type", "")) != JSON_TYPE:
            raise Broken(415, f"want Content-Type: {JSON_TYPE}")
        try:
            wanted = read(await request.read_body(), call.body)
        except BodyTooLarge:
            raise Broken(413, f"the body is over {MAX_BODY_BYTES} bytes") from None
        except BodyTooSlow:
            raise Broken(408, f"the body took over {BODY_WITHIN_S:g} s", code="request_timeout") from None
        except BadBody as bad:
            raise Broken(400, str(bad)) from None
        asker = Asker(user_id=identity.user_id, login=identity.login, traceparent=request.traceparent)
        body = await call.run(self.switchboard, asker, names, wanted)
        return Answer(200, await self._follow(identity, body) if isinstance(body, Pending) else body)

    async def _follow(self, identity: Identity, pending: Pending) -> Any:
        """Wait for an answer, for as long as the caller's credential is good."""
        task = self.callers.enter(identity.credential_id)
        try:
            return await pending.answer
        except asyncio.CancelledError:
            if self.callers.was_dismissed(task):
                raise _unauthorized() from None
            raise
        finally:
            self.callers.leave(identity.credential_id, task)

    async def _identify(self, headers: dict[str, str]) -> Identity:
        token = presented(headers)
        found = await self.ledger.look_up(token.digest, None) if token else None
        if token is None or found is None or found.identity is None or found.identity.kind not in CALLER_KINDS:
            raise _unauthorized()
        if token.by_cookie:
            try:
                check_origin("POST", headers, public_url=self.public_url)
            except ForeignOrigin:
                raise Broken(403, FORBIDDEN_ORIGIN_TEXT, code=FORBIDDEN_ORIGIN) from None
        if not found.identity.may(TokenScope.ASK):
            challenge = f'Bearer error="{INSUFFICIENT_SCOPE}", scope="{TokenScope.ASK}"'.encode()
            header = (b"www-authenticate", challenge)
            raise Broken(403, scope_text(TokenScope.ASK), header, code=INSUFFICIENT_SCOPE)
        return found.identity


def _unauthorized() -> Broken:
    return Broken(401, "want a live session or app token", (b"www-authenticate", b"Bearer"))


def _refusal(refused: Exception) -> Answer:
    words = told(refused)
    retry = [(b"retry-after", b"%d" % words.retry_in_s)] if words.retry_in_s else []
    return _error(words.status, words.code, words.message, *retry)


def _failure(failed: TurnFailed) -> Answer:
    if failed.reason == Failure.NOT_DELIVERED:
        return _error(409, "channel_offline", str(failed))
    return _error(502, failed.reason, str(failed))


def _error(status: int, code: str, message: str, *headers: Header) -> Answer:
    return Answer(status, {"error": code, "message": message}, headers)
