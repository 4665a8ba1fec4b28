"""All below `/v1/`: `POST /v1/chat/completions` and `/v1/responses`, `GET /v1/models` and below.

The guard of all surfaces checks a request first.
"""

from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from typing import Any

from a2a_bridge.service.answering import CallRunner
from a2a_bridge.service.calls import Incoming
from a2a_bridge.service.direct import answer_whole
from a2a_bridge.service.exchange_log import ExchangeLog
from a2a_bridge.service.exchange_notes import begin_note
from a2a_bridge.service.services import find_of_caller
from a2a_bridge.wire.dialects.dialect import Operation
from a2a_bridge.wire.dialects.reading import MAX_ID_CHARS, check_printable, invalid
from a2a_bridge.wire.errors import TASK_NOT_FOUND
from a2a_bridge.wire.requests import Send as AskedSend
from accounts.authn import Identity, OutOfScope, Presented, TokenScope, presented
from kit.asgi import Exchange, HttpRequest, RequestRefused, Send, answer_preflight, receive_of
from kit.async_db import AccountCall, db_call
from kit.jsonrpc import RpcError
from openai_api.service.catalog import find_team_name, get_handle, load_model, load_models, read_query
from openai_api.surface.answers import CHAT, ChatAnswer, ModelWire, encode
from openai_api.surface.formatted import HeldReply, answer_in_format
from openai_api.surface.forms import ChatWire, ResponseWire
from openai_api.wire.messages import AskedAnswer, make_send

COMPLETIONS_PATH = "/v1/chat/completions"
RESPONSES_PATH = "/v1/responses"
MODELS_PATH = "/v1/models"
V1 = "/v1/"
OFFERED = f"POST {COMPLETIONS_PATH}, POST {RESPONSES_PATH}, GET {RESPONSES_PATH}/ID, GET {MODELS_PATH}"
NO_RESPONSE = "You have no such response, or its task is not kept any more."
CONVERSATION = "X-Conversation-Id"
EXPOSED = (b"access-control-expose-headers", b"Retry-After, X-Should-Retry")  # clients in pages read these
PREFLIGHT = [
    (b"access-control-allow-origin", b"*"),
    (b"access-control-allow-methods", b"GET, POST, OPTIONS"),
    (b"access-control-allow-headers", b"Authorization, *"),  # the npm client names its platform in ten headers
    (b"access-control-max-age", b"86400"),
]


Run = Callable[[HttpRequest, ChatAnswer], Awaitable[None]]
AskTeam = Callable[[HttpRequest, ChatAnswer, AskedAnswer, str], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class ModelEndpoint:
    """Answers all requests below `V1`.

    `public_url`: whose pages may use the cookie. `check`: runs the check of a format. `ask_team`: asks an agent of
    the caller's team, for a model of a completion without an owner; None: the hub has no such models.
    """

    runner: CallRunner
    public_url: str
    check: AccountCall
    ask_team: AskTeam | None = None

    async def __call__(self, request: HttpRequest, send: Send) -> None:
        """Answer one request; nothing a client sends makes this raise."""
        wire, run = self._find(request.path)
        await answer_request(request, send, wire(self.public_url), run, self.runner.exchanges)

    def ask_whole(self, request: HttpRequest, body: bytes, exchange: Exchange) -> Coroutine[Any, Any, None] | None:
        """Answer a POST for an answer whose body was read; returns a coroutine if that needs a task."""
        wire = self._find(request.path)[0](self.public_url)
        answer = ChatAnswer(exchange.receive, exchange.send, wire, [request.enter_trace(), EXPOSED], exchange)
        try:
            request.check_whole(("POST",), body)
            asked = wire.read(body)
            name, key = read_name(request) or asked.conversation, request.headers.get("idempotency-key", "")
            send = make_send(asked, name, key)
            takes_teams = request.path == COMPLETIONS_PATH and self.ask_team is not None
            is_plain = asked.format is None and (name or not asked.previous_id)
            if is_plain and not (takes_teams and find_team_name(asked.model)):
                token = presented(request.headers, request.method, self.public_url)
                answer.check_caller = partial(self.runner.ledger.get_caller, token)
                if self.runner.exchanges is not None:
                    answer.note = begin_note(request, body, len(body), wire.binding)
                call = make_call(request, token, len(body), get_handle(asked.model), answer, send, key)
                return answer_whole(self.runner, call, answer, exchange)
        except Exception:  # noqa: BLE001, S110  the task meets the same error, and answers it
            pass
        return self(HttpRequest(request.scope, receive_of(bytearray(body), exchange.receive)), exchange.send)

    def _find(self, path: str) -> tuple[type[ModelWire], Run]:
        """The form in which a path answers, and what answers."""
        if path == COMPLETIONS_PATH:
            return ChatWire, partial(self._ask, ask_team=self.ask_team)
        if path == RESPONSES_PATH:
            return ResponseWire, self._ask
        if path == MODELS_PATH or path.startswith(f"{MODELS_PATH}/"):
            return ChatWire, self._list_models
        return ResponseWire, self._show_response if path.startswith(f"{RESPONSES_PATH}/") else self._refuse

    async def _ask(self, request: HttpRequest, answer: ChatAnswer, ask_team: AskTeam | None = None) -> None:
        body = await request.read_checked(("POST",))
        token = presented(request.headers, request.method, self.public_url)
        if self.runner.exchanges is not None:
            answer.note = begin_note(request, body, len(body), answer.chat.binding)
        answer.check_caller = partial(self.runner.ledger.get_caller, token)
        asked, body_bytes = answer.chat.read(body), len(body)
        if ask_team is not None and (name := find_team_name(asked.model)):
            await ask_team(request, answer, asked, name)
            return
        conversation_id = read_name(request) or asked.conversation
        if asked.previous_id and not conversation_id:
            conversation_id = await self._find_conversation(token, asked)
        handle, key = get_handle(asked.model), request.headers.get("idempotency-key", "")
        send, wanted = make_send(asked, conversation_id, key), asked.format
        call = partial(make_call, request, token, body_bytes, handle, answer)
        if wanted is not None:
            caller = await self.runner.ledger.get_caller(token)  # before its schema is checked, which is work
            ask = partial(self._ask_once, answer, call)
            check = partial(self.check, caller.user_id, request.receive)
            await answer_in_format(answer, check, wanted, send, key, ask)
            return
        incoming = call(send, key)
        del body, asked, call, send  # an answer may take long; a stream need not hold them
        await self.runner.run(incoming, answer)

    async def _ask_once(
        self, answer: ChatAnswer, call: Callable[[AskedSend, str], Incoming], send: AskedSend, key: str
    ) -> HeldReply:
        held = HeldReply(answer)
        await self.runner.run(call(send, key), held)
        return held

    async def _find_conversation(self, token: Presented | None, asked: AskedAnswer) -> str:
        """The conversation of the caller's earlier answer by the same agent.

        Raises:
            RequestRefused: no live token.
            RpcError: there is no such answer, or its task is not kept any more.
        """
        caller = await self.runner.ledger.get_caller(token)
        handle = get_handle(asked.model)
        try:
            task = await find_of_caller(self.runner.operations.services, asked.previous_id, caller.user_id)
        except RpcError:
            task = None
        if task is None or task.handle.lower() != handle.lower():
            field = "previous_response_id"
            raise RpcError(
                TASK_NOT_FOUND, f"{field}: you have no such answer of this model", field=field, status=400
            )
        return task.context_id

    async def _show_response(self, request: HttpRequest, answer: ChatAnswer) -> None:
        """An answer of an agent, as long as its task is kept."""
        caller = await self._read(request)
        task_id = request.path.removeprefix(f"{RESPONSES_PATH}/")
        try:
            task = await find_of_caller(self.runner.operations.services, task_id, caller.user_id)
        except RpcError:
            raise RequestRefused(HTTPStatus.NOT_FOUND, "response_not_found", NO_RESPONSE) from None
        if not caller.may(TokenScope.ASK, agent=task.handle):
            raise OutOfScope(TokenScope.ASK)
        await answer.send_whole(ResponseWire(self.public_url).show(task))

    async def _refuse(self, request: HttpRequest, answer: ChatAnswer) -> None:
        raise RequestRefused(
            HTTPStatus.NOT_FOUND, "unknown_url", f"The hub has no such address. It has {OFFERED}."
        )

    async def _list_models(self, request: HttpRequest, answer: ChatAnswer) -> None:
        """The models of a caller, or one of them."""
        caller = await self._read(request)
        if not caller.may_list_agents:
            raise OutOfScope(TokenScope.READ)
        # The server has decoded the path: an id may come with its slashes, or with %2F.
        model = request.path.removeprefix(MODELS_PATH).removeprefix("/")
        if request.path == MODELS_PATH:
            limit, after = read_query(request)
            shown: object = await db_call(load_models)(caller, limit, after)
        else:
            shown = await db_call(load_model)(caller, model)
        await answer.send_whole(encode(shown))

    async def _read(self, request: HttpRequest) -> Identity:
        """The caller of a request that only reads.

        Raises:
            RequestRefused: it does not only read, or has no live token.
        """
        await request.read_checked(("GET", "HEAD"))
        return await self.runner.ledger.get_caller(presented(request.headers, request.method, self.public_url))


async def answer_request(
    request: HttpRequest, send: Send, wire: ModelWire, run: Run, exchanges: ExchangeLog | None = None
) -> None:
    """Answer a preflight, or what `run` makes of the request; what it raises becomes an error in OpenAI's form.

    `exchanges`: records the exchange, if it asked an agent.
    """
    if request.method == "OPTIONS":
        await answer_preflight(send, PREFLIGHT)
        return
    answer = ChatAnswer(request.receive, send, wire, [request.enter_trace(), EXPOSED])
    try:
        await run(request, answer)
    except Exception as failure:  # noqa: BLE001  whatever fails becomes the answer
        await answer.fail(failure)
    finally:
        if exchanges is not None and (note := answer.note) is not None and note.chat_id:
            exchanges.record(note)


def read_name(request: HttpRequest) -> str:
    """The name of the conversation in the header; empty without one.

    Raises:
        RpcError: -32602, it is too long, or cannot be printed.
    """
    named = request.headers.get(CONVERSATION.lower(), "")
    if len(named) > MAX_ID_CHARS:
        raise invalid(CONVERSATION, f"{CONVERSATION}: want at most {MAX_ID_CHARS} characters")
    return check_printable(named, CONVERSATION)


def make_call(
    request: HttpRequest,
    token: Presented | None,
    body_bytes: int,
    handle: str,
    answer: ChatAnswer,
    send: AskedSend,
    key: str,
) -> Incoming:
    """The call that an ask is."""
    return Incoming(
        handle=handle,
        token=token,
        digest=token.digest if token else None,
        wire=answer.chat,
        body_bytes=body_bytes,
        dialect=CHAT,
        operation=Operation.SEND if send.waits else Operation.STREAM,
        request=send,
        key=key,
        traceparent=request.traceparent,
        is_plain_send=not (key or send.needs),
        note=answer.note,
    )
