"""How each way of calling writes its requests and wraps its answers; what is inside is always A2A 1.0 here."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol
from urllib.parse import quote

import msgspec

from agents.links.remote.card import HTTP_JSON, Interface
from agents.links.remote.failures import MAX_WORDS, Declined, Malformed
from agents.links.remote.v03 import event_from_03, part_to_03, task_from_03
from agents.transcript.pieces import Json, Part


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One message to a remote server, with the server's own names for task and conversation.

    `asked_as`: the messageId of the hub's caller, which the server reads in the message's metadata.
    """

    message_id: str
    parts: tuple[Part, ...]
    task_id: str = ""
    context_id: str = ""
    asked_as: str = ""


@dataclass(frozen=True, slots=True)
class Request:
    """An HTTP request to be; `body` None: it has none."""

    method: str
    url: str
    body: Json | None
    version: str


class Dialect(Protocol):
    """One version over one binding."""

    def send(self, question: Question, *, streams: bool) -> Request:
        """Ask."""

    def get(self, task_id: str) -> Request:
        """Look at a task."""

    def cancel(self, task_id: str) -> Request:
        """Want a task no more."""

    def event(self, answer: Any) -> Any:
        """What a JSON answer, or one of a stream, holds: an event. Raises `Declined`, `Malformed`."""

    def task(self, answer: Any) -> Any:
        """What the JSON answer to `get` or `cancel` holds: a task. Raises `Declined`, `Malformed`."""


def dialect_of(interface: Interface, rpc_id: str) -> Dialect:
    """The dialect of an interface; `rpc_id` is what its requests are called, where they have a name."""
    if interface.version == "0.3":
        return JsonRpc(interface, rpc_id, METHODS_03, _message_03, event_from_03, task_from_03)
    if interface.binding == HTTP_JSON:
        return HttpJson(interface)
    return JsonRpc(interface, rpc_id, METHODS_10, _message_10, _as_it_is, _as_it_is)


METHODS_10 = ("SendMessage", "SendStreamingMessage", "GetTask", "CancelTask")
METHODS_03 = ("message/send", "message/stream", "tasks/get", "tasks/cancel")


@dataclass(frozen=True, slots=True)
class JsonRpc:
    """JSON-RPC of either version. `methods`: to send, stream, get and cancel."""

    interface: Interface
    rpc_id: str
    methods: tuple[str, str, str, str]
    params: Callable[[Question], Json]
    read_event: Callable[[Any], Any]
    read_task: Callable[[Any], Any]

    def send(self, question: Question, *, streams: bool) -> Request:
        return self._call(self.methods[1 if streams else 0], self.params(question))

    def get(self, task_id: str) -> Request:
        return self._call(self.methods[2], {"id": task_id})

    def cancel(self, task_id: str) -> Request:
        return self._call(self.methods[3], {"id": task_id})

    def event(self, answer: Any) -> Any:
        return self.read_event(self._result(answer))

    def task(self, answer: Any) -> Any:
        return self.read_task(self._result(answer))

    def _call(self, method: str, params: Json) -> Request:
        tenant = {"tenant": self.interface.tenant} if self.interface.tenant else {}
        body = {"jsonrpc": "2.0", "id": self.rpc_id, "method": method, "params": {**params, **tenant}}
        return Request("POST", self.interface.url, body, self.interface.version)

    def _result(self, answer: Any) -> Any:
        if not isinstance(answer, dict):
            raise Malformed("the remote agent sent something that is no JSON-RPC answer")
        if answer.get("error") is not None:
            raise declined(answer["error"])
        if answer.get("id") != self.rpc_id or "result" not in answer:
            raise Malformed("the remote agent sent an answer to another request")
        return answer["result"]


@dataclass(frozen=True, slots=True)
class HttpJson:
    """HTTP+JSON of version 1.0."""

    interface: Interface

    def send(self, question: Question, *, streams: bool) -> Request:
        verb = "stream" if streams else "send"
        return self._request("POST", f"/message:{verb}", _message_10(question))

    def get(self, task_id: str) -> Request:
        return self._request("GET", f"/tasks/{quote(task_id, safe='')}")

    def cancel(self, task_id: str) -> Request:
        return self._request("POST", f"/tasks/{quote(task_id, safe='')}:cancel", {})

    def event(self, answer: Any) -> Any:
        return self.task(answer)

    def task(self, answer: Any) -> Any:
        if isinstance(answer, dict) and answer.get("error") is not None:
            raise declined(answer["error"])
        return answer

    def _request(self, method: str, path: str, body: Json | None = None) -> Request:
        tenant = f"/{quote(self.interface.tenant, safe='')}" if self.interface.tenant else ""
        return Request(method, f"{self.interface.url.rstrip('/')}{tenant}{path}", body, self.interface.version)


def declined(error: Any) -> Declined:
    """An error object in words."""
    error = error if isinstance(error, dict) else {}
    code, message = error.get("code"), error.get("message")
    code = code if isinstance(code, int) else 0
    said = f": {message[:MAX_WORDS]}" if isinstance(message, str) and message else ""
    return Declined(f"the remote agent answered with error {code}{said}", code)


def _message_10(question: Question) -> Json:
    parts = [msgspec.to_builtins(part) for part in question.parts]
    message = {"messageId": question.message_id, "role": "ROLE_USER", "parts": parts, **_ids(question)}
    return {"message": message}


def _message_03(question: Question) -> Json:
    parts = [part_to_03(part) for part in question.parts]
    named = {"kind": "message", "messageId": question.message_id, "role": "user", "parts": parts}
    return {"message": {**named, **_ids(question)}, "configuration": {"blocking": True}}


def _ids(question: Question) -> Json:
    asked_as = {"clawbridge": {"messageId": question.asked_as}} if question.asked_as else None
    ids = {"taskId": question.task_id, "contextId": question.context_id, "metadata": asked_as}
    return {name: value for name, value in ids.items() if value}


def _as_it_is(value: Any) -> Any:
    return value
