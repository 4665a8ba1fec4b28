"""The kinds of requests of other surfaces than A2A: a tool of MCP, OpenAI's API, a message of the gateway."""

import json
from collections.abc import AsyncIterator, Mapping

import httpx
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidStatus

from lab.callers import Json, envelope
from lab.faults.gateway_socket import GatewaySocket, SignInRefused
from lab.faults.requests import AskAnswer, LoadRequest, read_json

TOOL_HEADERS = {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2025-06-18"}
TASK_META = "clawbridge/task_id"
# The codes of OpenAI's API for requests that are no turn: the audit has no row of them.
NOT_A_TURN = {
    "forbidden_origin",
    "idempotency_key_reused",
    "insufficient_scope",
    "internal_error",
    "invalid_api_key",
    "invalid_request",
    "model_not_found",
    "too_many_streams",
    "unavailable",
}
# Errors of the gateway about a message whose ask is no turn, by their codes; `unavailable` has the code of others.
NO_MESSAGE = {1001, 1002, 1003, 1004, 2001, 2002, 2003, 2004, 3001, 5001, 5002, 5003}


async def tool(client: httpx.AsyncClient, question: LoadRequest) -> AskAnswer:
    """Call the tool `ask_agent` of MCP."""
    arguments = {"handle": question.handle, "message": question.text}
    body = envelope("tools/call", {"name": "ask_agent", "arguments": arguments}, 1)
    response = await client.post("/mcp", json=body, headers=question.headers | TOOL_HEADERS)
    answer = _last_message(response.text) if _is_stream(response) else read_json(response)
    result = answer.get("result")
    if result is None:
        return _refused(response, answer.get("error"))
    text = result["content"][0].get("text", "")
    task_id = result.get("_meta", {}).get(TASK_META, "")
    if not result.get("isError"):
        return AskAnswer("completed", response.status_code, result["structuredContent"]["text"], task_id=task_id)
    return AskAnswer("failed" if task_id else "refused", response.status_code, text)


async def chat(client: httpx.AsyncClient, question: LoadRequest) -> AskAnswer:
    """POST /v1/chat/completions."""
    response = await client.post("/v1/chat/completions", json=_chat_body(question), headers=question.headers)
    answer = read_json(response)
    if "error" in answer:
        return _model_refused(response, answer["error"])
    text = answer["choices"][0]["message"]["content"]
    return AskAnswer("completed", response.status_code, text, task_id=answer["id"])


async def response_of(client: httpx.AsyncClient, question: LoadRequest) -> AskAnswer:
    """POST /v1/responses."""
    body = {"model": f"agent/{question.handle}", "input": question.text}
    response = await client.post("/v1/responses", json=body, headers=question.headers)
    answer = read_json(response)
    if answer.get("error"):
        return _model_refused(response, answer["error"])
    text = answer["output"][0]["content"][0]["text"]
    return AskAnswer("completed", response.status_code, text, task_id=answer["id"])


async def chat_stream(client: httpx.AsyncClient, question: LoadRequest) -> AskAnswer:
    """POST /v1/chat/completions with `stream`."""
    body = _chat_body(question) | {"stream": True}
    answer = AskAnswer("broken", text="the stream ended without an end")
    async with client.stream("POST", "/v1/chat/completions", json=body, headers=question.headers) as response:
        if not _is_stream(response):
            await response.aread()
            return _model_refused(response, read_json(response).get("error"))
        answer.status = response.status_code
        text = ""
        try:
            async for line in _data_of(response):
                if line == "[DONE]":
                    answer.outcome, answer.text = "completed", text
                    break
                chunk = json.loads(line)
                if "error" in chunk:
                    return _model_refused(response, chunk["error"])
                answer.task_id = chunk["id"]
                text += "".join(choice["delta"].get("content") or "" for choice in chunk["choices"])
        except httpx.TransportError as failure:
            answer.text = type(failure).__name__
    return answer


async def message(client: httpx.AsyncClient, question: LoadRequest) -> AskAnswer:
    """A message of `a2a-v1` that wants a response, over a socket of its own."""
    try:
        async with GatewaySocket(str(client.base_url), question.token) as socket:
            wanted = (f"@{question.handle}", question.text, question.message_id)
            await socket.send_message(*wanted, requiresResponse=True)
            return _message_answer(await socket.answer_to(question.message_id))
    except InvalidStatus as refused:
        head = refused.response
        answer = AskAnswer("refused", head.status_code, head.reason_phrase)
        answer.retry_after = "retry-after" in head.headers
        return answer
    except SignInRefused as refused:
        return AskAnswer("refused", 401, str(refused)[:200])
    except (ConnectionClosed, InvalidHandshake, EOFError) as failure:
        return AskAnswer("broken", text=f"{type(failure).__name__}: {failure}"[:200])
    except ConnectionError as failure:
        return AskAnswer("unsent", text=f"{type(failure).__name__}: {failure}"[:200])


def _message_answer(frame: Json) -> AskAnswer:
    content = frame["content"]
    if frame["type"] == "message":
        return AskAnswer("completed", 200, content["content"])
    text = f"{content['message']} ({content.get('reason')})"
    if content.get("reason") == "unavailable":  # the protocol has no header for the time of the next try
        return AskAnswer("refused", 503, text, retry_after=True)
    return AskAnswer("refused" if content["code"] in NO_MESSAGE else "failed", 200, text)


def _chat_body(question: LoadRequest) -> Json:
    return {"model": f"agent/{question.handle}", "messages": [{"role": "user", "content": question.text}]}


def _model_refused(response: httpx.Response, error: object) -> AskAnswer:
    """The error of a completion or response: of a turn that failed, or of a request that was none."""
    known: Mapping[str, object] = error if isinstance(error, dict) else {"message": error}
    if "code" not in known or known["code"] in NOT_A_TURN:
        return _refused(response, known)
    return AskAnswer("failed", response.status_code, str(known.get("message")))


def _refused(response: httpx.Response, error: object) -> AskAnswer:
    text = str(error.get("message") if isinstance(error, dict) else error)
    refusal = AskAnswer("refused", response.status_code, text)
    refusal.retry_after = "retry-after" in response.headers
    return refusal


def _is_stream(response: httpx.Response) -> bool:
    return "event-stream" in response.headers.get("content-type", "")


def _last_message(text: str) -> Json:
    """The answer of a stream of JSON-RPC messages; before it may come notifications."""
    messages = [json.loads(line[6:]) for line in text.splitlines() if line.startswith("data: {")]
    return messages[-1] if messages else {}


async def _data_of(response: httpx.Response) -> AsyncIterator[str]:
    async for line in response.aiter_lines():
        if line.startswith("data: "):
            yield line[6:]
