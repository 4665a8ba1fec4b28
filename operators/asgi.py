"""`POST /sessions/{id}/prompt` and `/peers/…`: plain ASGI, because a routed ask waits (docs/adr/0002).

A request is checked in the order: HTTP method, caller, media type, size, JSON, members; then what it asks for.
"""

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
from agents.asking import Asker
from agents.errors import Unavailable
from agents.ledger import Ledger
from agents.types import Failure
from kit import sql, trace
from kit.asgi import (
    BODY_WITHIN_S,
    MAX_BODY_BYTES,
    BodyTooLarge,
    BodyTooSlow,
    ClientLeft,
    Header,
    Receive,
    Scope,
    Send,
    headers_of,
    media_type_of,
    read_body,
    respond,
    traced,
)
from operators.bodies import BadBody, read
from operators.calls import Call, Names, Pending, TurnFailed, find_call
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


def serves(scope: Scope) -> bool:
    """Whether a request is for this room; preflights are not."""
    return scope["method"] != "OPTIONS" and find_call(scope["path"]) is not None


@dataclass(frozen=True, slots=True)
class Operators:
    """Serves `CALLS`. `public_url`: whose pages may use the cookie; `app_origins`: whose may read answers."""

    switchboard: Switchboard
    ledger: Ledger
    callers: Served
    public_url: str
    app_origins: Sequence[str]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request; nothing a client sends makes this raise."""
        headers, span = headers_of(scope), traced(scope)
        try:
            answer = await self._answer(scope, receive, headers)
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
            logger.exception("operators.failed", extra={"path": scope["path"]})
            answer = _error(500, INTERNAL, INTERNAL_TEXT)
        cors = allowing(headers.get("origin"), self.app_origins)
        await respond(send, answer.status, _encode(answer.body), [*answer.headers, span, *cors])

    async def _answer(self, scope: Scope, receive: Receive, headers: dict[str, str]) -> Answer:
        found = find_call(scope["path"])
        assert found is not None  # noqa: S101  for the type checker: `serves` said so
        if scope["method"] != "POST":
            raise Broken(405, "want POST", (b"allow", b"POST"))
        identity = await self._identify(headers)
        if media_type_of(headers.get("content-type", "")) != JSON_TYPE:
            raise Broken(415, f"want Content-Type: {JSON_TYPE}")
        body = await _body(scope, receive)
        return Answer(200, await self._run(*found, identity, body))

    async def _run(self, call: Call, names: Names, identity: Identity, body: bytes) -> Any:
        try:
            wanted = read(body, call.body)
        except BadBody as bad:
            raise Broken(400, str(bad)) from None
        asker = Asker(user_id=identity.user_id, login=identity.login, traceparent=trace.current())
        answer = await call.run(self.switchboard, asker, names, wanted)
        return await self._follow(identity, answer) if isinstance(answer, Pending) else answer

    async def _follow(self, identity: Identity, pending: Pending) -> Any:
        """Wait for an answer, for as long as the caller's credential is good."""
        answers: list[Any] = []

        async def wait() -> None:
            answers.append(await pending.answer)

        if not await self.callers.serve(identity.credential_id, wait()):
            raise _unauthorized()
        return answers[0]

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


async def _body(scope: Scope, receive: Receive) -> bytes:
    try:
        return await read_body(scope, receive, limit_bytes=MAX_BODY_BYTES, within_s=BODY_WITHIN_S)
    except BodyTooLarge:
        raise Broken(413, f"the body is over {MAX_BODY_BYTES} bytes") from None
    except BodyTooSlow:
        raise Broken(408, f"the body took over {BODY_WITHIN_S:g} s", code="request_timeout") from None


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
