"""Requests to agents, and their answers, in the words of the fault suite."""

from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import httpx

from lab.callers import Json, bearer
from lab.callers import question as message_params

ANSWER_WITHIN_S = 60.0


@dataclass
class AskAnswer:
    """The answer to one request.

    `outcome`: `completed` (`text` is the reply), `failed` (a FAILED task; `text` is why), `refused` (no task, an
    error: `text`), `unsent` (no process accepted the connection), `broken` (the connection was lost before the
    end), `late` (no answer within ANSWER_WITHIN_S). `status` is HTTP's, 0 without an answer; `code`
    a JSON-RPC error's. `events`: the numbers of a stream's events; `pieces`: its artifacts; `cuts`: how often
    it was broken off on purpose. `reads`: what was refused on the way to the end (GetTask, SubscribeToTask).
    `took_s`: from the request to this answer.
    """

    outcome: str
    status: int = 0
    text: str = ""
    task_id: str = ""
    retry_after: bool = False
    code: int = 0
    cuts: int = 0
    events: list[int] = field(default_factory=list)
    pieces: dict[str, str] = field(default_factory=dict)
    reads: list["AskAnswer"] = field(default_factory=list)
    took_s: float = 0.0

    @property
    def summary(self) -> str:
        """A description for the detail of a figure."""
        return f"{self.status} {self.outcome} {self.text} {self.took_s:.1f} s"


@dataclass(frozen=True)
class LoadRequest:
    """A request that a caller will send. `token`: of the caller; `key`: an Idempotency-Key, or empty."""

    handle: str
    token: str
    text: str
    message_id: str
    key: str = ""

    @property
    def nonce(self) -> str:
        """The first word of the question, which the reply must contain."""
        return self.text.partition(" ")[0]

    @property
    def headers(self) -> dict[str, str]:
        keyed = {"Idempotency-Key": self.key} if self.key else {}
        return bearer(self.token) | keyed

    def params(self, **members: Any) -> Json:
        """The params of SendMessage, in the dialect of the hub and in A2A 1.0."""
        return message_params(self.text, self.message_id) | members


def read_json(response: httpx.Response) -> Json:
    """The JSON object of a response; an error object when the response has none."""
    with suppress(ValueError):
        if isinstance(answer := response.json(), dict):
            return answer
    return {"error": {"message": f"no JSON: {response.text[:150]}"}}
