"""Chat completions: one JSON object, or `chat.completion.chunk`s."""

from a2a_bridge.wire.task import Task
from kit import sse
from openai_api.surface.answers import ModelWire, encode
from openai_api.wire.content import content_of
from openai_api.wire.messages import AskedAnswer, ChatRequest, read_request
from openai_api.wire.shapes import ChatCompletion, Choice, Chunk, ChunkChoice, Delta, Reply, TokenUsage

DONE = b"data: [DONE]\n\n"


class ChatWire(ModelWire):
    """The form of chat completions."""

    model = ""
    tells_usage = False  # of a stream; other answers always have it

    def read(self, body: bytes) -> AskedAnswer:
        request = read_request(ChatRequest, body)
        self.model = request.model
        self.tells_usage = request.stream_options is not None and request.stream_options.include_usage
        return request.asked

    def result(self, result: object) -> bytes:
        assert isinstance(result, Task)  # noqa: S101  for the type checker: the dialect's answers are tasks
        reply = Reply(content=content_of(result, self.public_url))
        choices = [Choice(message=reply, finish_reason="stop")]
        usage = usage_of(result)
        return encode(
            ChatCompletion(id=result.id, created=self.created_at, model=self.model, choices=choices, usage=usage)
        )

    def opening(self, task: Task) -> bytes:
        return self._event(task, [ChunkChoice(delta=Delta(role="assistant", content=""))])

    def delta(self, task: Task, text: str) -> bytes:
        return self._event(task, [ChunkChoice(delta=Delta(content=text))])

    def ending(self, task: Task) -> bytes:
        last = self._event(task, [ChunkChoice(delta=Delta(), finish_reason="stop")])
        usage = usage_of(task) if self.tells_usage else None
        return last + (self._event(task, [], usage) if usage else b"") + DONE

    def _event(self, task: Task, choices: list[ChunkChoice], usage: TokenUsage | None = None) -> bytes:
        chunk = Chunk(id=task.id, created=self.created_at, model=self.model, choices=choices, usage=usage)
        return sse.event(encode(chunk))


def usage_of(task: Task) -> TokenUsage | None:
    """The tokens that an agent reported."""
    told = task.usage
    if told is None or (told.input_tokens is None and told.output_tokens is None):
        return None
    prompt, completion = told.input_tokens or 0, told.output_tokens or 0
    return TokenUsage(prompt_tokens=prompt, completion_tokens=completion, total_tokens=prompt + completion)
