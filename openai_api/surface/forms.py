"""The two forms of answers: completions and responses, each as one JSON object or as events."""

from datetime import datetime
from typing import Any, Literal

from msgspec import UNSET

from a2a_bridge.wire.dialects.reading import read_params
from a2a_bridge.wire.task import Role, Task
from agents.transcript.pieces import text_in
from kit import sse
from kit.jsonrpc import read_value
from openai_api.surface.answers import ModelWire, encode, refusal_after, task_in
from openai_api.wire.errors import ModelRefused
from openai_api.wire.messages import MODEL_PREFIX, AskedAnswer, ChatRequest, ResponseRequest
from openai_api.wire.shapes import (
    ChatCompletion,
    Choice,
    Chunk,
    ChunkChoice,
    Delta,
    Reply,
    Response,
    ResponseConversation,
    ResponseEvent,
    ResponseFailure,
    ResponseMessage,
    ResponseText,
    ResponseUsage,
    TokenUsage,
)

DONE = b"data: [DONE]\n\n"
ESTIMATED = (b"x-clawbridge-usage", b"estimated")
CHARS_OF_TOKEN = 4  # about as many as an English token has


class ChatWire(ModelWire):
    """The form of chat completions."""

    model = ""
    tells_usage = False  # of a stream; other answers always have it

    def read(self, body: bytes) -> AskedAnswer:
        request: ChatRequest = read_params(ChatRequest, read_value(body))
        self.model = request.model
        self.tells_usage = request.stream_options is not None and request.stream_options.include_usage
        return request.asked

    def result(self, result: object) -> bytes:
        task = task_in(result)
        reply = Reply(content=self.content(task))
        choices = [Choice(message=reply, finish_reason="stop")]
        usage = usage_of(task, reply.content, self.earlier)
        self.headers = [ESTIMATED] if usage.estimated else []
        return encode(
            ChatCompletion(id=task.id, created=self.created_at, model=self.model, choices=choices, usage=usage)
        )

    def opening(self, task: Task) -> bytes:
        return self._event(task, [ChunkChoice(delta=Delta(role="assistant", content=""))])

    def delta(self, task: Task, text: str) -> bytes:
        return self._event(task, [ChunkChoice(delta=Delta(content=text))])

    def ending(self, task: Task) -> bytes:
        last = self._event(task, [ChunkChoice(delta=Delta(), finish_reason="stop")])
        if self.tells_usage:
            last += self._event(task, [], usage_of(task, self.content(task), self.earlier))
        return last + DONE

    def _event(self, task: Task, choices: list[ChunkChoice], usage: TokenUsage | None = None) -> bytes:
        chunk = Chunk(id=task.id, created=self.created_at, model=self.model, choices=choices, usage=usage)
        return sse.event(encode(chunk))


def usage_of(task: Task, content: str, earlier: Task | None = None) -> TokenUsage:
    """The tokens that an agent reported; else what the texts of the last question and of the answer come to.

    `earlier`: a task whose tokens are added.
    """
    told = task.usage
    is_told = told is not None and (told.input_tokens is not None or told.output_tokens is not None)
    if told is not None and is_told:
        prompt, completion = told.input_tokens or 0, told.output_tokens or 0
    else:
        asked = next((one for one in reversed(task.history) if one.role is Role.USER), None)
        prompt, completion = _estimate(text_in(asked.parts) if asked else ""), _estimate(content)
    estimated = not is_told
    if earlier is not None:
        before = usage_of(earlier, earlier.reply_text)
        prompt, completion = prompt + before.prompt_tokens, completion + before.completion_tokens
        estimated |= before.estimated
    total = prompt + completion
    return TokenUsage(prompt_tokens=prompt, completion_tokens=completion, total_tokens=total, estimated=estimated)


def _estimate(text: str) -> int:
    return -(-len(text) // CHARS_OF_TOKEN)


class ResponseWire(ModelWire):
    """The form of responses. A stream's events are numbered, and say whose part they are."""

    binding = "Responses"
    _model = ""
    _previous_id: str | None = None
    _begun: Task | None = None
    _number = -1

    def read(self, body: bytes) -> AskedAnswer:
        request: ResponseRequest = read_params(ResponseRequest, read_value(body))
        self._model, self._previous_id = request.model, request.previous_response_id
        return request.asked

    def result(self, result: object) -> bytes:
        whole = self._whole(task_in(result))
        if whole.usage is not None and whole.usage.estimated is True:
            self.headers = [ESTIMATED]
        return encode(whole)

    def show(self, task: Task) -> bytes:
        """A task that was asked earlier, as a response in its present state."""
        self._model = f"{MODEL_PREFIX}{task.handle}"
        self.created_at = int(datetime.fromisoformat(task.updated_at).timestamp())
        if not task.is_terminal and not task.is_interrupted:
            return encode(self._response(task, "in_progress"))
        refusal = refusal_after(task, None)
        if refusal is None:
            return self.result(task)
        failure = ResponseFailure(refusal.code, str(refusal))
        return encode(self._response(task, "failed", error=failure))

    def opening(self, task: Task) -> bytes:
        self._begun = task
        begun = self._response(task, "in_progress")
        item = ResponseMessage(id=_message_id(task), status="in_progress", content=[])
        return b"".join(
            [
                self._event("response.created", response=begun),
                self._event("response.in_progress", response=begun),
                self._event("response.output_item.added", output_index=0, item=item),
                self._event("response.content_part.added", **_place(task), part=ResponseText(text="")),
            ]
        )

    def delta(self, task: Task, text: str) -> bytes:
        return self._event("response.output_text.delta", **_place(task), delta=text, logprobs=[])

    def ending(self, task: Task) -> bytes:
        whole = self._whole(task)
        [item] = whole.output
        [part] = item.content
        return b"".join(
            [
                self._event("response.output_text.done", **_place(task), text=part.text, logprobs=[]),
                self._event("response.content_part.done", **_place(task), part=part),
                self._event("response.output_item.done", output_index=0, item=item),
                self._event("response.completed", response=whole),
            ]
        )

    def failure(self, refusal: ModelRefused) -> bytes:
        if self._begun is None:
            return self._event("error", code=refusal.code, message=str(refusal), param=None)
        failure = ResponseFailure(refusal.code, str(refusal))
        return self._event("response.failed", response=self._response(self._begun, "failed", error=failure))

    def _whole(self, task: Task) -> Response:
        part = ResponseText(text=self.content(task))
        item = ResponseMessage(id=_message_id(task), status="completed", content=[part])
        told = usage_of(task, part.text, self.earlier)
        usage = ResponseUsage(
            input_tokens=told.prompt_tokens,
            output_tokens=told.completion_tokens,
            total_tokens=told.total_tokens,
            estimated=told.estimated or UNSET,
        )
        return self._response(task, "completed", output=[item], usage=usage)

    def _response(
        self, task: Task, status: Literal["in_progress", "completed", "failed"], **more: Any
    ) -> Response:
        return Response(
            id=task.id,
            created_at=self.created_at,
            status=status,
            model=self._model,
            previous_response_id=self._previous_id,
            conversation=ResponseConversation(task.context_id),
            **{"output": [], **more},
        )

    def _event(self, name: Any, **more: Any) -> bytes:
        self._number += 1
        return sse.event(encode(ResponseEvent(type=name, sequence_number=self._number, **more)), name=name)


def _message_id(task: Task) -> str:
    return f"msg_{task.id}"


def _place(task: Task) -> dict[str, Any]:
    return {"item_id": _message_id(task), "output_index": 0, "content_index": 0}
