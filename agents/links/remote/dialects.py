"""Writes requests and reads answers in each dialect of A2A; the rest of the link knows A2A 1.0 alone."""

from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import msgspec

from agents.links.remote.card import HTTP_JSON, CardInterface
from agents.links.remote.events import MAX_WORDS, Declined, Malformed
from agents.transcript.pieces import Json, Part


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteQuestion:
    """One message to a remote server, with the server's own names for task and conversation.

    `asked_as`: the messageId of the hub's caller, which the server reads in the message's metadata.
    """

    message_id: str
    parts: tuple[Part, ...]
    task_id: str = ""
    context_id: str = ""
    asked_as: str = ""


@dataclass(frozen=True, slots=True)
class RemoteRequest:
    """An HTTP request that is to be sent; `body` None: it has no body."""

    method: str
    url: str
    body: Json | None
    version: str


RPC_ID = "clawbridge"
METHODS = {
    "1.0": {"send": "SendMessage", "stream": "SendStreamingMessage", "get": "GetTask", "cancel": "CancelTask"},
    "0.3": {"send": "message/send", "stream": "message/stream", "get": "tasks/get", "cancel": "tasks/cancel"},
}
HTTP_PATHS = {
    "send": "/message:send",
    "stream": "/message:stream",
    "get": "/tasks/{id}",
    "cancel": "/tasks/{id}:cancel",
}
UPDATES_03 = {"status-update": "statusUpdate", "artifact-update": "artifactUpdate"}


@dataclass(frozen=True, slots=True)
class RemoteDialect:
    """How an interface is called: JSON-RPC of version 1.0 or 0.3, or HTTP+JSON of 1.0."""

    interface: CardInterface

    def send(self, question: RemoteQuestion, *, streams: bool) -> RemoteRequest:
        params = _message_03(question) if self._is_03 else _message_10(question)
        return self._request("stream" if streams else "send", params)

    def get(self, task_id: str) -> RemoteRequest:
        return self._request("get", {"id": task_id})

    def cancel(self, task_id: str) -> RemoteRequest:
        return self._request("cancel", {"id": task_id})

    def event(self, answer: Any) -> Any:
        """The event of 1.0 in a JSON answer, or in an event of a stream. Raises `Declined`, `Malformed`."""
        result = self._result(answer)
        return event_from_03(result) if self._is_03 else result

    def task(self, answer: Any) -> Any:
        """The task of 1.0 in the JSON answer to `get` or `cancel`. Raises `Declined`, `Malformed`."""
        result = self._result(answer)
        return task_from_03(result) if self._is_03 else result

    @property
    def _is_03(self) -> bool:
        return self.interface.version == "0.3"

    def _request(self, operation: str, params: Json) -> RemoteRequest:
        url, version, tenant = self.interface.url, self.interface.version, self.interface.tenant
        if self.interface.binding == HTTP_JSON:
            path = HTTP_PATHS[operation].format(id=quote(params.get("id", ""), safe=""))
            place = f"/{quote(tenant, safe='')}{path}" if tenant else path
            body = {"get": None, "cancel": {}}.get(operation, params)
            return RemoteRequest("GET" if body is None else "POST", f"{url.rstrip('/')}{place}", body, version)
        named = {**params, "tenant": tenant} if tenant else params
        body = {"jsonrpc": "2.0", "id": RPC_ID, "method": METHODS[version][operation], "params": named}
        return RemoteRequest("POST", url, body, version)

    def _result(self, answer: Any) -> Any:
        is_rpc = self.interface.binding != HTTP_JSON
        if is_rpc and not isinstance(answer, dict):
            raise Malformed("the remote agent sent something that is no JSON-RPC answer")
        if isinstance(answer, dict) and answer.get("error") is not None:
            raise declined(answer["error"])
        if not is_rpc:
            return answer
        if answer.get("id") != RPC_ID or "result" not in answer:
            raise Malformed("the remote agent sent an answer to another request")
        return answer["result"]


def declined(error: Any) -> Declined:
    """An error object in words."""
    error = error if isinstance(error, dict) else {}
    code, message = error.get("code"), error.get("message")
    code = code if isinstance(code, int) else 0
    said = f": {message[:MAX_WORDS]}" if isinstance(message, str) and message else ""
    return Declined(f"the remote agent answered with error {code}{said}", code)


def _message_10(question: RemoteQuestion) -> Json:
    parts = [msgspec.to_builtins(part) for part in question.parts]
    message = {"messageId": question.message_id, "role": "ROLE_USER", "parts": parts, **_ids(question)}
    return {"message": message}


def _message_03(question: RemoteQuestion) -> Json:
    parts = [part_to_03(part) for part in question.parts]
    named = {"kind": "message", "messageId": question.message_id, "role": "user", "parts": parts}
    return {"message": {**named, **_ids(question)}, "configuration": {"blocking": True}}


def _ids(question: RemoteQuestion) -> Json:
    asked_as = {"clawbridge": {"messageId": question.asked_as}} if question.asked_as else None
    ids = {"taskId": question.task_id, "contextId": question.context_id, "metadata": asked_as}
    return {name: value for name, value in ids.items() if value}


def part_to_03(part: Part) -> Json:
    """A part of 1.0 as 0.3 writes it; JSON data that is not an object is wrapped in one."""
    extra: Json = {} if isinstance(part.metadata, msgspec.UnsetType) else {"metadata": part.metadata}
    if isinstance(part.text, str):
        return {"kind": "text", "text": part.text, **extra}
    if part.data is not msgspec.UNSET:
        if isinstance(part.data, dict):
            return {"kind": "data", "data": part.data, **extra}
        marked = {**extra.get("metadata", {}), "data_part_compat": True}
        return {"kind": "data", "data": {"value": part.data}, "metadata": marked}
    file: Json = {"bytes": part.raw} if isinstance(part.raw, str) else {"uri": part.url}
    named = {"name": part.filename, "mimeType": part.media_type}
    return {"kind": "file", "file": {**file, **{key: value for key, value in named.items() if value}}, **extra}


def event_from_03(value: Any) -> Any:
    """A result of 0.3 as an event of 1.0; a value that is no result is returned as it is, and refused later."""
    if not isinstance(value, dict):
        return value
    kind = value.get("kind")
    kind = kind if isinstance(kind, str) and kind else _kind_of(value)
    if kind in UPDATES_03:
        return {UPDATES_03[kind]: task_from_03(value)}
    return {kind: task_from_03(value)} if kind in ("task", "message") else value


def task_from_03(value: Any) -> Any:
    """A task, message or update with its parts as 1.0 writes them."""
    if not isinstance(value, dict):
        return value
    found = dict(value)
    if isinstance(value.get("parts"), list):
        found["parts"] = [_part_from_03(part) for part in value["parts"]]
    for name in ("status", "message", "artifact"):
        if name in value:
            found[name] = task_from_03(value[name])
    for name in ("artifacts", "history"):
        if isinstance(value.get(name), list):
            found[name] = [task_from_03(one) for one in value[name]]
    return found


def _kind_of(value: Json) -> str:
    """The kind of a result of 0.3 that does not name its kind."""
    if "artifact" in value:
        return "artifact-update"
    if "status" in value:
        return "task" if "id" in value else "status-update"
    return "message" if "parts" in value else ""


def _part_from_03(part: Any) -> Any:
    if not isinstance(part, dict):
        return part
    found = {name: part[name] for name in ("text", "data", "metadata") if part.get(name) is not None}
    file = part.get("file")
    if isinstance(file, dict):
        names = {"bytes": "raw", "uri": "url", "name": "filename", "mimeType": "mediaType"}
        found |= {ours: file[theirs] for theirs, ours in names.items() if file.get(theirs) is not None}
    metadata, data = found.get("metadata"), found.get("data")
    if isinstance(metadata, dict) and metadata.get("data_part_compat") is True and isinstance(data, dict):
        found["data"] = data.get("value")
        found["metadata"] = {name: value for name, value in metadata.items() if name != "data_part_compat"}
        if not found["metadata"]:
            del found["metadata"]
    return found
