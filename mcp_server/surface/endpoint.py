"""`POST /mcp`: Streamable HTTP of MCP. The guard of all surfaces checks a request, then the SDK answers it."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import Any, Protocol

import msgspec
from django.http.request import split_domain_port, validate_host

from a2a_bridge.service.answering import CallRunner
from a2a_bridge.service.exchange_notes import ExchangeNote, begin_note
from a2a_bridge.service.responses import public_error
from a2a_bridge.wire.errors import form_error
from accounts.authn import OutOfScope, TokenScope, Unauthenticated, digest, origin_of, presented
from accounts.error_responses import FORBIDDEN_ORIGIN
from accounts.middleware import allowing
from agnt.endpoint.http import find_token
from agnt.service.intake.runner import EnvelopeRunner
from kit.asgi import (
    RETRY_SOON,
    ClientLeft,
    Header,
    HttpRequest,
    Receive,
    RequestRefused,
    Scope,
    Send,
    answer_preflight,
    receive_of,
    respond,
)
from kit.jsonrpc import INVALID_REQUEST, RpcError, read_value
from kit.request_threads import call_nicely
from kit.tasks import TaskSet
from mcp_server.service.calls import (
    NOTIFICATION,
    SESSION_HEADER,
    OpenCall,
    OpenCalls,
    RequestName,
    ToolCaller,
    ToolCalls,
    find_return_s,
    name_request,
)
from mcp_server.service.elicitation import SESSION_PREFIX, Elicitations, find_session_id

PATH = "/mcp"
METADATA_PATH = "/.well-known/oauth-protected-resource"
# In the ASGI scope.
CALLER_KEY, LISTS_AGENTS_KEY, ELICIT_KEY = "mcp_server.caller", "mcp_server.lists_agents", "mcp_server.elicit"
KEY_CALLER_KEY = "mcp_server.key_caller"  # of a caller with an AGNT key, who has no CALLER_KEY
SCOPES = [TokenScope.ASK, TokenScope.READ]  # what the tools need
AGENTS_AS_TOOLS = "tools"  # of the query parameter `agents`
# Versions of MCP are dates. By those of this year on, a client cancels its request by leaving.
CANCELS_BY_LEAVING = "2026"
EXPOSED = (b"access-control-expose-headers", b"WWW-Authenticate, Mcp-Session-Id, traceparent")
PREFLIGHT = [
    (b"access-control-allow-methods", b"GET, POST, DELETE, OPTIONS"),  # a client that ends its session accepts 405
    (
        b"access-control-allow-headers",
        b"Authorization, Content-Type, Accept, MCP-Protocol-Version, Mcp-Session-Id, Mcp-Method, Mcp-Name,"
        b" traceparent, tracestate",
    ),
    (b"access-control-max-age", b"86400"),
]


class Manager(Protocol):
    """The part of the SDK's session manager that is used here."""

    def run(self) -> AbstractAsyncContextManager[None]:
        """Lets requests be answered until the block is left."""

    def handle_request(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        """Answer one request."""


class ServingSdk:
    """The SDK, imported and started by the first request: it takes 25 MB and 0.6 s, and many hubs use no MCP."""

    def __init__(self, build: Callable[[Any], Manager]) -> None:
        self._build = build
        self._tasks = TaskSet()
        self._started: asyncio.Future[Manager] | None = None

    async def get_manager(self) -> Manager:
        """The manager, once it serves. All early requests wait for the same start."""
        if self._started is None or (self._started.done() and self._started.exception() is not None):
            self._started = asyncio.get_running_loop().create_future()
            self._tasks.start(self._run(self._started), name="mcp")
        return await asyncio.shield(self._started)

    async def close(self) -> None:
        """End what is open."""
        await self._tasks.cancel()

    async def _run(self, started: asyncio.Future[Manager]) -> None:
        try:
            # In a thread, because the import would block the event loop.
            module = await call_nicely(lambda: import_module("mcp_server.surface.server"))
            manager = self._build(module)
            async with manager.run():
                started.set_result(manager)
                await asyncio.get_running_loop().create_future()  # wait until this asyncio task is cancelled
        except Exception as failure:
            if started.done():
                raise
            started.set_exception(failure)


@dataclass(frozen=True, slots=True)
class HubAddresses:
    """The addresses by which clients call the hub. `public_url`: the one that they sign in for.

    `allowed_hosts`: as Django takes them. `app_origins`: whose pages may call, besides the hub's own.
    """

    public_url: str
    allowed_hosts: Collection[str]
    app_origins: Collection[str]

    def check(self, headers: Mapping[str, str]) -> None:
        """Refuse a page of another site, also one whose name leads to the hub's address (DNS rebinding).

        Raises:
            RequestRefused: with 403; the host or the origin is none of these.
        """
        host, origin = headers.get("host"), headers.get("origin")
        if host is not None and not validate_host(split_domain_port(host)[0], self.allowed_hosts):
            raise RequestRefused(403, "forbidden_host", "the hub has another name: call it by its public address")
        if origin is None or origin == origin_of(self.public_url) or origin.partition("://")[2] == host:
            return
        if origin not in self.app_origins:
            raise RequestRefused(403, FORBIDDEN_ORIGIN, "the hub's operator does not allow pages of this origin")


class McpEndpoint:
    """Answers `PATH`.

    `envelopes`: runs the tools of callers with an AGNT key; None: the hub takes no such keys.
    """

    def __init__(
        self,
        runner: CallRunner,
        envelopes: EnvelopeRunner | None,
        elicitations: Elicitations,
        open_calls: OpenCalls,
        addresses: HubAddresses,
        version: str,
    ) -> None:
        self.elicitations = elicitations
        self.open_calls = open_calls
        self._ledger = runner.ledger
        self._exchanges = runner.exchanges
        self._envelopes = envelopes
        self._addresses = addresses
        calls = ToolCalls(runner)
        self._sdk = ServingSdk(lambda module: module.build_manager(calls, None, version))
        self._sdk_of_keys = ServingSdk(lambda module: module.build_manager(calls, envelopes, version))
        address, scopes = f"{addresses.public_url}{METADATA_PATH}{PATH}", " ".join(SCOPES)
        self._challenge = f'Bearer resource_metadata="{address}", scope="{scopes}"'.encode()

    async def __call__(self, request: HttpRequest, send: Send) -> None:
        """Answer one request; nothing a client sends makes this raise."""
        cors = allowing(request.headers.get("origin"), self._addresses.app_origins)
        response = SdkResponse(send, [*cors, EXPOSED, request.enter_trace()])
        try:
            self._addresses.check(request.headers)
            if request.method == "OPTIONS":
                await answer_preflight(send, [*cors, *PREFLIGHT])
                return
            if self._envelopes is not None and (key := find_token(request.headers)):
                await self._answer_key(self._envelopes, request, response, key)
                return
            caller, body, message = await self._check(request)
            response.note = caller.note
            if "method" not in message:
                await self.elicitations.take_response(caller, message)
            if canceled := name_canceled(caller, request, message):
                await self.open_calls.cancel(canceled)
            if session_id := find_session_id(message):
                response.headers.append((SESSION_HEADER.encode(), session_id.encode()))
            wanted = request.query_values("agents")
            elicits = request.headers.get(SESSION_HEADER, "").startswith(SESSION_PREFIX)
            scope = {
                **sdk_scope(request),
                CALLER_KEY: caller,
                LISTS_AGENTS_KEY: AGENTS_AS_TOOLS in wanted,
                ELICIT_KEY: partial(self.elicitations.ask, caller, response.send_event) if elicits else None,
            }
            manager = await self._sdk.get_manager()
            with self.open_calls.hold(name_call(caller, request, message), caller.open_call):
                await manager.handle_request(scope, receive_of(bytearray(body), request.receive), response.send)
        except ClientLeft:
            return
        except RequestRefused as refused:
            extra = (
                [(b"www-authenticate", self._challenge)]
                if isinstance(refused, Unauthenticated)
                else refused.headers
            )
            await response.refuse(form_error(refused), *extra)
        except Exception as failure:  # noqa: BLE001  each becomes the answer
            error = public_error(failure)
            await response.refuse(error, *([RETRY_SOON] if error.status == 503 else []))
        finally:
            if self._exchanges is not None and (note := response.note) is not None and note.chat_id:
                self._exchanges.record(note)

    async def close(self) -> None:
        """End what is open."""
        await self._sdk.close()
        await self._sdk_of_keys.close()

    async def _answer_key(
        self, envelopes: EnvelopeRunner, request: HttpRequest, response: "SdkResponse", key: str
    ) -> None:
        """Answer a caller with an AGNT key, who has tools of its own, and can be asked nothing.

        Raises:
            RequestRefused, RpcError: the first thing that is wrong.
            ClientLeft: it went away.
        """
        body = await request.read_checked(("POST",))
        user_agent = request.headers.get("user-agent", "")
        caller = await envelopes.find_caller(key, digest(key), user_agent)
        if caller is None:
            raise Unauthenticated
        read_message(body)
        manager = await self._sdk_of_keys.get_manager()
        scope = {**sdk_scope(request), KEY_CALLER_KEY: caller}
        await manager.handle_request(scope, receive_of(bytearray(body), request.receive), response.send)

    async def _check(self, request: HttpRequest) -> tuple[ToolCaller, bytes, dict[str, Any]]:
        """The caller, the body as the SDK may read it, and the message in it.

        Raises:
            RequestRefused, RpcError: the first thing that is wrong.
            ClientLeft: it went away.
        """
        body = await request.read_checked(("POST",))
        token = presented(request.headers, request.method, self._addresses.public_url)
        identity = await self._ledger.get_caller(token)
        assert token is not None  # noqa: S101  for the type checker: there is no caller without one
        if not identity.may_list_agents:  # the token has no scope of SCOPES
            raise OutOfScope(TokenScope.READ)
        message = read_message(body)
        traceparent = request.traceparent
        version = request.headers.get("mcp-protocol-version", "")
        caller = ToolCaller(
            token=token,
            identity=identity,
            body_bytes=len(body),
            traceparent=traceparent,
            open_call=OpenCall(leaving_cancels=version >= CANCELS_BY_LEAVING),
            returns_within_s=find_return_s(request.headers.get("user-agent", "")),
            note=None if self._exchanges is None else begin_note(request, body, len(body), "MCP"),
        )
        return caller, body, message


def name_call(caller: ToolCaller, request: HttpRequest, message: Mapping[str, Any]) -> RequestName | None:
    """The name by which the client can cancel this request; None for other requests than calls, and for a client
    that cancels by leaving.
    """
    if caller.open_call.leaving_cancels or message.get("method") != "tools/call":
        return None
    return name_request(caller.identity.credential_id, request.headers, message.get("id"))


def name_canceled(caller: ToolCaller, request: HttpRequest, message: Mapping[str, Any]) -> RequestName | None:
    """The name of the request that a message cancels; None where the message cancels no request, as in a
    version of 2026.
    """
    if caller.open_call.leaving_cancels or message.get("method") != NOTIFICATION:
        return None
    params = message.get("params")
    request_id = params.get("requestId") if isinstance(params, dict) else None
    return name_request(caller.identity.credential_id, request.headers, request_id)


def sdk_scope(request: HttpRequest) -> Scope:
    """The scope of a request for the SDK, which compares headers with the message.

    The web server leaves blanks at the end of a header's value (RFC 9110, 5.5: they are no part of the value).
    """
    return {**request.scope, "headers": [(name, value.strip(b" \t")) for name, value in request.scope["headers"]]}


def read_message(body: bytes) -> dict[str, Any]:
    """The message in a body, before the SDK reads it; what no sound client sends is refused.

    Raises:
        RpcError: on HTTP 400.
    """
    try:
        message = read_value(body)
        if not isinstance(message, dict):
            raise RpcError(INVALID_REQUEST, "want one message; batches are not supported")
        if not isinstance(message.get("id", ""), str | int):
            raise RpcError(INVALID_REQUEST, "id must be a string or an integer")
        return message
    except RpcError as error:
        error.status = 400
        raise


class SdkResponse:
    """The response to one request: adds headers to what the SDK sends, and knows whether it has begun.

    `note`: keeps the response for the page of the ask.
    """

    def __init__(self, send: Send, headers: list[Header]) -> None:
        self._send = send
        self.headers = headers
        self.note: ExchangeNote | None = None
        self._has_begun = False

    async def send(self, message: Mapping[str, Any]) -> None:
        """Send one message of ASGI."""
        if message["type"] == "http.response.start":
            self._has_begun = True
            message = {**message, "headers": [*message["headers"], *self.headers]}
        if self.note is not None:
            self.note.take(message)
        await self._send(message)

    async def send_event(self, message: Mapping[str, Any]) -> bool:
        """Send a message of our own on the stream that the SDK has begun; False where it has begun none."""
        if self._has_begun:
            body = b"event: message\r\ndata: " + msgspec.json.encode(message) + b"\r\n\r\n"
            await self._send({"type": "http.response.body", "body": body, "more_body": True})
        return self._has_begun

    async def refuse(self, error: RpcError, *headers: Header) -> None:
        """End with an error, unless the SDK has begun to answer."""
        if not self._has_begun:
            await respond(self._send, error.status, error.body(), [*self.headers, *headers])
