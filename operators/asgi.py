"""`POST /sessions/{id}/prompt` and `/peers/…`: plain ASGI, because a routed ask waits (docs/adr/0002).

A request is checked by the guard of all surfaces (`accounts.authn`); then what it asks for.
"""

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from accounts.authn import Identity, TokenScope, Unauthenticated, presented
from accounts.error_pages import INTERNAL, INTERNAL_TEXT
from accounts.middleware import allowing
from accounts.open_requests import OpenRequests
from agents.core.ask_starter import Asker
from agents.core.errors import Unavailable
from agents.core.ledger import Ledger
from agents.models.choices import Failure
from kit import sql
from kit.asgi import ClientLeft, Header, HttpRequest, RequestRefused, Send, respond
from operators.calls import Names, OperatorCall, Pending, TurnFailed
from operators.errors import REFUSED, describe_error
from operators.prompt_service import PromptService
from operators.shapes import read

logger = logging.getLogger(__name__)

_encode = msgspec.json.Encoder().encode


@dataclass(frozen=True, slots=True)
class OperatorAnswer:
    """What goes back."""

    status: int
    body: Any
    headers: Sequence[Header] = ()


@dataclass(frozen=True, slots=True)
class Operators:
    """Serves `CALLS`. `public_url`: whose pages may use the cookie; `app_origins`: whose may read answers."""

    prompt_service: PromptService
    ledger: Ledger
    callers: OpenRequests
    public_url: str
    app_origins: Sequence[str]

    async def __call__(self, request: HttpRequest, call: OperatorCall, names: Names, send: Send) -> None:
        """Answer one request for a call; nothing a client sends makes this raise."""
        span = request.enter_trace()
        try:
            answer = await self._answer(request, call, names)
        except ClientLeft:
            return
        except RequestRefused as refused:
            answer = _error(refused.status, refused.code, str(refused), *refused.headers)
        except (Unavailable, *sql.DATABASE_AWAY):
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

    async def _answer(self, request: HttpRequest, call: OperatorCall, names: Names) -> OperatorAnswer:
        body = await request.read_checked(("POST",))
        token = presented(request.headers, request.method, self.public_url)
        identity = await self.ledger.get_caller(token, TokenScope.ASK)
        wanted = read(body, call.operation.request)
        asker = Asker(user_id=identity.user_id, login=identity.login, traceparent=request.traceparent)
        answer = await call.run(self.prompt_service, asker, names, wanted)
        return OperatorAnswer(200, await self._follow(identity, answer) if isinstance(answer, Pending) else answer)

    async def _follow(self, identity: Identity, pending: Pending) -> Any:
        """Wait for an answer, for as long as the caller's credential is good."""
        task = self.callers.enter(identity.credential_id)
        try:
            return await pending.answer
        except asyncio.CancelledError:
            if self.callers.was_dismissed(task):
                raise Unauthenticated from None
            raise
        finally:
            self.callers.leave(identity.credential_id, task)


def _refusal(refused: Exception) -> OperatorAnswer:
    words = describe_error(refused)
    retry = [(b"retry-after", b"%d" % words.retry_in_s)] if words.retry_in_s else []
    return _error(words.status, words.code, words.message, *retry)


def _failure(failed: TurnFailed) -> OperatorAnswer:
    if failed.reason == Failure.NOT_DELIVERED:
        return _error(409, "channel_offline", str(failed))
    return _error(502, failed.reason, str(failed))


def _error(status: int, code: str, message: str, *headers: Header) -> OperatorAnswer:
    return OperatorAnswer(status, {"error": code, "message": message}, headers)
