"""`POST /sessions/{id}/prompt` and `/peers/…`: plain ASGI, because a routed ask waits (docs/adr/0002).

A request is checked by the guard of all surfaces (`accounts.authn`); then what it asks for.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from accounts.authn import TokenScope, presented
from accounts.middleware import allowing
from accounts.open_requests import OpenRequests
from agents.core.ask_starter import Asker
from agents.core.errors import Unavailable
from agents.core.ledger import Ledger
from agents.core.rest_errors import public_refusal
from kit.asgi import ClientLeft, Header, HttpRequest, Send, respond
from operators.calls import Names, OperatorCall, Pending
from operators.errors import REFUSED, describe_error
from operators.prompt_service import PromptService
from operators.shapes import read

_encode = msgspec.json.Encoder().encode


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
        headers: Sequence[Header] = ()
        try:
            status, body = 200, _encode(await self._answer(request, call, names))
        except ClientLeft:
            return
        except Exception as failure:  # noqa: BLE001  each becomes the answer
            known = describe_error(failure) if isinstance(failure, REFUSED) else failure
            refused = public_refusal(known, "operators.failed", request.path, unavailable=Unavailable.text)
            status, body, headers = refused.status, refused.body, refused.headers
        cors = allowing(request.headers.get("origin"), self.app_origins)
        await respond(send, status, body, [*headers, span, *cors])

    async def _answer(self, request: HttpRequest, call: OperatorCall, names: Names) -> Any:
        body = await request.read_checked(("POST",))
        token = presented(request.headers, request.method, self.public_url)
        identity = await self.ledger.get_caller(token, TokenScope.ASK)
        wanted = read(body, call.operation.request)
        asker = Asker(user_id=identity.user_id, login=identity.login, traceparent=request.traceparent)
        answer = await call.run(self.prompt_service, asker, names, wanted)
        if not isinstance(answer, Pending):
            return answer
        with self.callers.hold(identity.credential_id):
            return await answer.answer
