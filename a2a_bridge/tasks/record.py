"""The internal task: what every dialect renders, and the contract of who keeps it."""

import sys
from enum import StrEnum
from typing import Protocol

import msgspec

TASK_TTL_S = 30 * 60
OPEN_TTL_S = 15 * 60


class State(StrEnum):
    """Task states in use; dialects have their own spelling."""

    WORKING = "working"
    COMPLETED = "completed"
    FAILED = "failed"


class Task(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One ask as its caller sees it. `text`: the reply when completed, the reason when failed."""

    id: str
    caller_id: int
    handle: str
    chat_id: str
    message_id: str
    question: tuple[str, ...]
    state: State
    updated_at: str
    text: str = ""
    reply_id: str = ""

    @property
    def is_terminal(self) -> bool:
        """Whether it will not change any more."""
        return self.state is not State.WORKING

    @property
    def size_bytes(self) -> int:
        """About what it weighs in memory."""
        return 600 + sys.getsizeof(self.text) + sum(8 + sys.getsizeof(text) for text in self.question)


class TaskStore(Protocol):
    """Keeps tasks until 30 minutes after their end, for the caller that made them alone.

    Bounded in bytes for each caller and in all: the oldest finished tasks go first.
    """

    async def put(self, task: Task) -> None:
        """Keep a task, replacing the one of the same id."""

    async def find(self, task_id: str, *, caller_id: int) -> Task | None:
        """The task; None when it is absent, expired, or another caller's.

        Raises:
            Unavailable: the store is out of reach.
        """

    async def drop(self, task: Task) -> None:
        """Forget a task that nobody was told of."""

    async def close(self) -> None:
        """Let go of what the store holds open."""
