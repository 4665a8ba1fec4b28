"""Chat completions: one JSON object, or `chat.completion.chunk`s."""

from a2a_bridge.wire.task import Role, Task, text_in
from kit import sse
from openai_api.surface.answers import ModelWire, encode, task_in
from openai_api.wire.messages import AskedAnswer, ChatRequest, read_request
from openai_api.wire.shapes import ChatCompletion, Choice, Chunk, ChunkChoice, Delta, Reply, TokenUsage

DONE = b"data: [DONE]\n\n"
ESTIMATED = (b"x-clawbridge-usage", b"estimated")
CHARS_OF_TOKEN = 4  # about as many as an English token has


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
