"""The kinds of requests that ask an agent: every dialect, whole and as a stream, by polling; other surfaces."""

import asyncio
import json
import random
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import aclosing

import httpx

from lab.callers import Json, envelope, rpc_path
from lab.faults import surface_kinds
from lab.faults.requests import ANSWER_WITHIN_S, AskAnswer, LoadRequest, read_json

POLL_EVERY_S = 0.2
CUT_SHARE, MAX_CUTS = 0.5, 5
ENDED = ("COMPLETED", "FAILED", "CANCELED", "REJECTED")

Send = Callable[[httpx.AsyncClient, LoadRequest], Awaitable[AskAnswer]]
ROUTE_FAILED = (200, 403, 409, 429, 502)  # admission refused it, or the turn failed: it is in the audit
V1 = {"A2A-Version": "1.0"}
V03 = {"A2A-Version": "0.3"}


async def ask(client: httpx.AsyncClient, kind: str, question: LoadRequest) -> AskAnswer:
    """Ask by one of REQUEST_KINDS; a lost connection is an answer, not an exception."""
    try:
        async with asyncio.timeout(ANSWER_WITHIN_S):
            return await REQUEST_KINDS[kind](client, question)
    except (httpx.ConnectError, httpx.ConnectTimeout) as failure:
        return AskAnswer("unsent", text=f"{type(failure).__name__}: {failure}"[:200])
    except (TimeoutError, httpx.TimeoutException):
        return AskAnswer("late", text="no answer in time")
    except httpx.TransportError as failure:
        return AskAnswer("broken", text=f"{type(failure).__name__}: {failure}"[:200])


async def hub_dialect(client: httpx.AsyncClient, question: LoadRequest) -> AskAnswer:
    """SendMessage in the hub's own dialect."""
    return await _rpc(client, question, {}, "SendMessage", question.params())


async def version_1(client: httpx.AsyncClient, question: LoadRequest) -> AskAnswer:
    """SendMessage in A2A 1.0."""
    return await _rpc(client, question, V1, "SendMessage", question.params())


async def version_03(client: httpx.AsyncClient, question: LoadRequest) -> AskAnswer:
    """message/send in A2A 0.3."""
    parts = [{"kind": "text", "text": question.text}]
    message = {"kind": "message", "messageId": question.message_id, "role": "user", "parts": parts}
    return await _rpc(client, question, V03, "message/send", {"message": message})


async def http_json(client: httpx.AsyncClient, question: LoadRequest) -> AskAnswer:
    """POST …/message:send in A2A 1.0."""
    path = f"{rpc_path(question.handle)}/message:send"
    response = await client.post(path, json=question.params(), headers=question.headers | V1)
    return _read(response)


async def polling(client: httpx.AsyncClient, question: LoadRequest) -> AskAnswer:
    """SendMessage that does not wait, and GetTask until the task has ended."""
    params = question.params(configuration={"returnImmediately": True})
    began = await _rpc(client, question, V1, "SendMessage", params)
    reads: list[AskAnswer] = []
    while began.outcome == "broken" and began.task_id:
        await asyncio.sleep(POLL_EVERY_S)
        try:
            answer = await get_task(client, question, began.task_id)
        except httpx.TransportError:
            continue
        if answer.outcome in ("completed", "failed"):
            answer.reads = reads
            return answer
        if answer.outcome == "refused":
            reads.append(answer)
    return began


async def get_task(client: httpx.AsyncClient, question: LoadRequest, task_id: str) -> AskAnswer:
    """GetTask in A2A 1.0; `broken` while it has not ended."""
    return await _rpc(client, question, V1, "GetTask", {"id": task_id})


async def native_route(client: httpx.AsyncClient, question: LoadRequest) -> AskAnswer:
    """POST /api/v1/peers/{peer}/route."""
    path = f"/api/v1/peers/{question.handle}/route"
    body = {"prompt": question.text, "mode": "ask"}
    response = await client.post(path, json=body, headers=question.headers)
    answer = read_json(response)
    if response.status_code == 200 and answer.get("ok"):
        return AskAnswer("completed", 200, text=answer["reply"])
    text = str(answer.get("error", "")) + " " + str(answer.get("message", ""))
    outcome = "failed" if response.status_code in ROUTE_FAILED else "refused"
    return AskAnswer(outcome, response.status_code, text.strip(), retry_after="retry-after" in response.headers)


async def hub_stream(client: httpx.AsyncClient, question: LoadRequest) -> AskAnswer:
    """SendStreamingMessage in the hub's own dialect."""
    return await _stream(client, question, {}, "SendStreamingMessage", question.params())


async def version_1_stream(client: httpx.AsyncClient, question: LoadRequest) -> AskAnswer:
    """SendStreamingMessage in A2A 1.0; a stream that breaks is taken up again after its last event.

    Half of the streams are broken off after an event, up to five times.
    """
    cuts = random.randint(1, MAX_CUTS) if random.random() < CUT_SHARE else 0
    answer = await _stream(client, question, V1, "SendStreamingMessage", question.params(), is_cut=cuts > 0)
    until = time.monotonic() + ANSWER_WITHIN_S / 2
    while answer.outcome == "broken" and answer.task_id and answer.events and time.monotonic() < until:
        await asyncio.sleep(random.uniform(0, POLL_EVERY_S))
        follow = V1 | {"Last-Event-ID": f"{answer.task_id}.{answer.events[-1]}"}
        try:
            task = {"id": answer.task_id}
            is_cut = answer.cuts < cuts
            more = await _stream(
                client, question, follow, "SubscribeToTask", task, is_cut=is_cut, pieces=answer.pieces
            )
        except httpx.TransportError:
            continue
        if more.outcome == "refused":
            answer.reads.append(more)
            if "ended" in more.text:
                break
            continue
        more.events, more.task_id = answer.events + more.events, answer.task_id
        more.cuts, more.reads = answer.cuts + more.cuts, answer.reads
        answer = more
    return answer


REQUEST_KINDS: Mapping[str, Send] = {
    "hub": hub_dialect,
    "v1": version_1,
    "v0.3": version_03,
    "http+json": http_json,
    "poll": polling,
    "route": native_route,
    "hub stream": hub_stream,
    "v1 stream": version_1_stream,
    "tool": surface_kinds.tool,
    "chat": surface_kinds.chat,
    "chat stream": surface_kinds.chat_stream,
    "response": surface_kinds.response_of,
    "message": surface_kinds.message,
}
WEIGHTS = dict.fromkeys(REQUEST_KINDS, 2) | {"hub": 5, "v1": 4, "http+json": 3, "poll": 1, "route": 1}
# The kinds of REQUEST_KINDS that heed an Idempotency-Key and answer with the id of a task.
KEYED = ("hub", "v1", "http+json", "chat", "response")
WITHOUT_TASK_ID = ("v0.3", "route", "message")


async def _rpc(
    client: httpx.AsyncClient, question: LoadRequest, headers: Mapping[str, str], method: str, params: Json
) -> AskAnswer:
    body = envelope(method, params)
    response = await client.post(rpc_path(question.handle), json=body, headers=question.headers | dict(headers))
    return _read(response)


def _read(response: httpx.Response) -> AskAnswer:
    """Read a whole response of JSON-RPC or of HTTP+JSON."""
    answer = read_json(response)
    if "error" in answer or not response.is_success:
        error = answer.get("error")
        known: Json = error if isinstance(error, dict) else {"message": json.dumps(answer)[:200]}
        refusal = AskAnswer("refused", response.status_code, str(known.get("message")), code=known.get("code", 0))
        refusal.retry_after = "retry-after" in response.headers
        return refusal
    said = _said(answer.get("result", answer))
    said.status = response.status_code
    return said


async def _stream(
    client: httpx.AsyncClient,
    question: LoadRequest,
    headers: Mapping[str, str],
    method: str,
    params: Json,
    *,
    is_cut: bool = False,
    pieces: Mapping[str, str] | None = None,
) -> AskAnswer:
    """Read a stream to its end, or if `is_cut` to its first numbered event. `pieces`: of the stream before."""
    body = envelope(method, params)
    given = question.headers | dict(headers)
    answer = AskAnswer("broken", text="the stream ended without an end", pieces=dict(pieces or {}))
    async with client.stream("POST", rpc_path(question.handle), json=body, headers=given) as response:
        if "event-stream" not in response.headers.get("content-type", ""):
            await response.aread()
            return _read(response)
        answer.status = response.status_code
        try:
            async with aclosing(_events(response)) as events:
                async for number, event in events:
                    _add(answer, number, event)
                    if is_cut and answer.events and answer.outcome == "broken":
                        answer.cuts = 1
                        break
        except httpx.TransportError as failure:
            if answer.outcome == "broken":
                answer.text = type(failure).__name__
    if answer.outcome == "completed" and not answer.text:
        answer.text = "".join(answer.pieces.values())
    return answer


async def _events(response: httpx.Response) -> AsyncGenerator[tuple[int, Json]]:
    number = -1
    async for line in response.aiter_lines():
        if line.startswith("id: "):
            number = int(line.rpartition(".")[2])
        elif line.startswith("data: "):
            yield number, json.loads(line[6:])


def _add(answer: AskAnswer, number: int, event: Json) -> None:
    if "error" in event:
        answer.outcome, answer.text = "refused", str(event["error"].get("message"))
        return
    result = event.get("result", event)
    if number >= 0:
        answer.events.append(number)
    if "artifactUpdate" in result:
        artifact = result["artifactUpdate"]["artifact"]
        before = answer.pieces.get(artifact["artifactId"], "") if result["artifactUpdate"].get("append") else ""
        answer.pieces[artifact["artifactId"]] = before + _texts(artifact.get("parts", []))
        return
    status = result.get("statusUpdate")
    said = _said({"task": {"id": status["taskId"], "status": status["status"]}} if status else result)
    answer.task_id = said.task_id or answer.task_id
    if said.outcome != "broken":
        answer.outcome, answer.text = said.outcome, said.text


def _said(result: Json) -> AskAnswer:
    """Read a Task or Message of any dialect; `broken` when the task has not ended."""
    if result.get("kind") == "message" or "message" in result:
        return AskAnswer("completed", text=_texts(result.get("message", result)["parts"]))
    task = result.get("task", result)
    state = str(task.get("status", {}).get("state", "")).upper().replace("-", "_").removeprefix("TASK_STATE_")
    if state not in ENDED:
        return AskAnswer("broken", text=f"still {state}", task_id=task.get("id", ""))
    if state == "COMPLETED":
        return AskAnswer("completed", text=_reply(task), task_id=task["id"])
    return AskAnswer("failed", text=_texts(task["status"].get("message", {}).get("parts", [])), task_id=task["id"])


def _reply(task: Json) -> str:
    if artifacts := task.get("artifacts"):
        return _texts(artifacts[-1]["parts"])
    if history := task.get("history"):
        return _texts(history[-1]["parts"]) if "agent" in history[-1]["role"].lower() else ""
    return _texts(task["status"].get("message", {}).get("parts", []))


def _texts(parts: list[Json]) -> str:
    return "".join(str(part.get("text", "")) for part in parts)
