"""`POST /v1/chat/completions` and `GET /v1/models`. The guard of all surfaces checks a request first."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from a2a_bridge.answering import CallRunner
from a2a_bridge.asgi import PREFIX, handle_of
from a2a_bridge.calls import Incoming
from a2a_bridge.dialects.dialect import Operation
from a2a_bridge.dialects.reading import MAX_ID_CHARS, check_printable, invalid
from a2a_bridge.errors import agent_not_found
from accounts.authn import OutOfScope, Presented, TokenScope, presented
from agents.core.ledger import Ledger
from kit.asgi import HttpRequest, Send, answer_preflight
from kit.async_db import db_call
from kit.jsonrpc import RpcError
from openai_api.answers import CHAT, ChatAnswer, ChatWire, encode
from openai_api.messages import MODEL_PREFIX, make_send, read_request
from openai_api.models import load_models, read_query

COMPLETIONS_PATH = "/v1/chat/completions"
MODELS_PATH = "/v1/models"
CONVERSATION = "X-Conversation-Id"
PREFLIGHT = [
    (b"access-control-allow-origin", b"*"),
    (b"access-control-allow-methods", b"GET, POST, OPTIONS"),
    (b"access-control-allow-headers", b"Authorization, *"),  # the npm client names its platform in ten headers
    (b"access-control-max-age", b"86400"),
]


@dataclass(frozen=True, slots=True)
class ChatCompletions:
    """Answers `COMPLETIONS_PATH`. `public_url`: whose pages may use the cookie."""

    runner: CallRunner
    public_url: str

    async def __call__(self, request: HttpRequest, send: Send) -> None:
        """Answer one request; nothing a client sends makes this raise."""
        await answer_request(request, send, ChatWire(self.public_url), self._complete)

    async def _complete(self, request: HttpRequest, answer: ChatAnswer) -> None:
        body = await request.read_checked(("POST",))
        token = presented(request.headers, request.method, self.public_url)
        try:
            incoming = read_call(request, token, body, answer.chat)
            del body  # an answer may take long; a stream need not hold it
            await self.runner.run(incoming, answer)
        except RpcError:
            # Who has no live token is told so first, whatever else is wrong; only then is it looked up again.
            await self.runner.ledger.get_caller(token)
            raise


@dataclass(frozen=True, slots=True)
class ModelList:
    """Answers `MODELS_PATH`. `public_url`: whose pages may use the cookie."""

    ledger: Ledger
    public_url: str

    async def __call__(self, request: HttpRequest, send: Send) -> None:
        """Answer one request; nothing a client sends makes this raise."""
        await answer_request(request, send, ChatWire(self.public_url), self._list)

    async def _list(self, request: HttpRequest, answer: ChatAnswer) -> None:
        await request.read_checked(("GET", "HEAD"))
        caller = await self.ledger.get_caller(presented(request.headers, request.method, self.public_url))
        if not caller.may_list_agents:
            raise OutOfScope(TokenScope.READ)
        limit, after = read_query(request)
        await answer.send_whole(encode(await db_call(load_models)(caller, limit, after)))


async def answer_request(
    request: HttpRequest, send: Send, wire: ChatWire, run: Callable[[HttpRequest, ChatAnswer], Awaitable[None]]
) -> None:
    """Answer a preflight, or what `run` makes of the request; what it raises becomes an error in OpenAI's form."""
    if request.method == "OPTIONS":
        await answer_preflight(send, PREFLIGHT)
        return
    answer = ChatAnswer(request.receive, send, wire, [request.enter_trace()])
    try:
        await run(request, answer)
    except Exception as failure:  # noqa: BLE001  whatever fails becomes the answer
        await answer.fail(failure)


def read_call(request: HttpRequest, token: Presented | None, body: bytes, wire: ChatWire) -> Incoming:
    """The call that a request is.

    Raises:
        RpcError: it is none.
    """
    asked = read_request(body)
    named = request.headers.get(CONVERSATION.lower(), "")
    if len(named) > MAX_ID_CHARS:
        raise invalid(CONVERSATION, f"{CONVERSATION}: want at most {MAX_ID_CHARS} characters")
    conversation_id = check_printable(named, CONVERSATION) or check_printable(asked.user or "", "user")
    handle = handle_of(f"{PREFIX}{asked.model.removeprefix(MODEL_PREFIX)}")
    if handle is None or not asked.model.startswith(MODEL_PREFIX):
        raise agent_not_found()
    wire.take(asked)
    key = request.headers.get("idempotency-key", "")
    return Incoming(
        handle=handle,
        token=token,
        digest=token.digest if token else None,
        wire=wire,
        body_bytes=len(body),
        dialect=CHAT,
        operation=Operation.STREAM if asked.stream else Operation.SEND,
        request=make_send(asked, conversation_id),
        key=key,
        traceparent=request.traceparent,
        is_plain_send=not key,
    )
