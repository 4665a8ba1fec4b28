"""The agent that the kit asks: the id of a message names the scenario of the kit, and so the answer."""

from typing import Any

from lab.agents import TaskPeer
from lab.callers import Json

# By the beginning of `messageId`, the longest first: steps of `TaskPeer`.
SCENARIOS = {
    "tck-stream-artifact-chunked": "note working | text a chunk-1 | last a chunk-2 | complete",
    "test-resubscribe-message-id": "note working | rest 4 | complete",
    "tck-stream-artifact-text": "note working | text a Streamed text content | complete",
    "tck-stream-artifact-file": "note working | raw output tck | complete",
    "tck-stream-ordering-001": "note working | text a Ordered output | complete",
    "tck-input-required": "ask input required",
    "tck-complete-task": "reply Hello from TCK",
    "tck-artifact-text": "text a Generated text content | complete",
    "tck-artifact-file": "raw output tck | complete",
    "tck-artifact-data": 'data a {"key": "value", "count": 42} | complete',
    "tck-reject-task": "reject rejected",
    "tck-stream-001": "note working | text a Stream hello from TCK | complete",
    "tck-stream-002": "complete",
    "tck-stream-003": "note working | text a Stream task lifecycle | complete",
}
DIRECT = "tck-message-response"
WITH_URL = "tck-artifact-file-url"
FILE = {"url": "https://example.com/output.txt", "filename": "output.txt", "mediaType": "text/plain"}


class KitAgent(TaskPeer):
    """Answers by scenario, and echoes every other message."""

    async def answer(self, prompt: Json) -> None:
        chat_id, message_id = prompt["chatId"], prompt.get("messageId", "")
        if message_id.startswith(DIRECT):
            await self.reply(chat_id, "Direct message response", direct=True)
            return
        if message_id.startswith(WITH_URL):
            await self.artifact(chat_id, "a", FILE)
            await self.status(chat_id, "completed")
            return
        steps: Any = next((steps for begins, steps in SCENARIOS.items() if message_id.startswith(begins)), None)
        await super().answer(prompt if steps is None else {**prompt, "text": steps})
