"""A message on its way to an agent, and the events that come back, without I/O, for both clients."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import msgspec

from clawbridge import Unreachable
from clawbridge.calls import HubCall, HubRequest, agent_path, read_task
from clawbridge.shapes import Message, Part, Status, Task, TaskStreamEvent

MAX_RECONNECTS = 5  # in a row, without an event between them
FIRST_PAUSE_S = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Update:
    """The news of one event of a stream: a piece of the reply (`parts`), or a new state of the task (`status`).

    `artifact_id`: of the artifact that `parts` belong to, empty for a message without a task, which is `message`.
    """

    task_id: str
    context_id: str
    status: Status | None = None
    artifact_id: str = ""
    parts: Sequence[Part] = ()
    message: Message | None = None

    @property
    def text(self) -> str:
        """The texts of the piece."""
        return "".join(part.text for part in self.parts if part.text)


class OutgoingMessage:
    """Sends one message: makes its requests, reads the updates of its task, and continues a stream that broke.

    The message has an `Idempotency-Key`: however often it is sent, the agent is asked once.
    """

    def __init__(self, agent: str, message: str | Sequence[Part], *, task_id: str, context_id: str) -> None:
        self.task_id = task_id
        self.context_id = context_id
        self.message: Message | None = None
        self.was_sent = False  # True if the hub may have received the message
        self._agent = agent
        self._path = agent_path(agent)
        self._status: Status | None = None
        self._known: dict[str, str] = {}  # texts of artifacts that were passed on, or are of earlier messages
        self._last_event_id = ""
        self._failures = 0
        parts = [Part(text=message)] if isinstance(message, str) else list(message)
        self._message: dict[str, Any] = {
            "messageId": str(uuid4()),
            "role": "ROLE_USER",
            "parts": [msgspec.to_builtins(part) for part in parts],
        }
        self._message |= {"taskId": task_id} if task_id else {}
        self._message |= {"contextId": context_id} if context_id and not task_id else {}

    @property
    def is_settled(self) -> bool:
        """True if the agent has answered, ended the task or asked for input."""
        return self.message is not None or (self._status is not None and self._status.is_settled)

    def request(self) -> HubRequest:
        """The request that sends the message, or continues its stream behind the last event."""
        headers = {"Idempotency-Key": self._message["messageId"]}
        headers |= {"Last-Event-ID": self._last_event_id} if self._last_event_id else {}
        return HubRequest("POST", f"{self._path}/message:stream", body={"message": self._message}, headers=headers)

    def take(self, event_id: str, event: TaskStreamEvent) -> Iterator[Update]:
        """Read an event; returns the update that the event adds to the earlier ones."""
        if event_id != self._last_event_id:  # an equal id is that of an event that the hub repeats
            self._last_event_id, self._failures = event_id, 0
        if event.task:
            task = event.task
            self.task_id, self.context_id, self._status = task.id, task.context_id, task.status
            yield self._update(status=task.status)
            for artifact in task.artifacts:
                passed_on = self._known.get(artifact.artifact_id)
                if task.status.has_ended and passed_on is None:
                    yield self._update(artifact_id=artifact.artifact_id, parts=artifact.parts)
                elif passed_on and artifact.text != passed_on and artifact.text.startswith(passed_on):
                    rest = Part(
                        text=artifact.text.removeprefix(passed_on)
                    )  # the events with this text were missed
                    yield self._update(artifact_id=artifact.artifact_id, parts=[rest])
                self._known[artifact.artifact_id] = artifact.text
        if event.artifact_update:
            update, artifact = event.artifact_update, event.artifact_update.artifact
            if update.append or not update.last_chunk or artifact.artifact_id not in self._known:
                yield self._update(artifact_id=artifact.artifact_id, parts=artifact.parts)
            before = self._known.get(artifact.artifact_id, "") if update.append else ""
            self._known[artifact.artifact_id] = before + artifact.text
        if event.status_update:
            self._status = event.status_update.status
            yield self._update(status=self._status)
        if event.message:
            self.message = event.message
            yield self._update(message=event.message, parts=event.message.parts)

    def pause_s(self, hub: str) -> float:
        """The seconds to wait after the stream broke.

        Raises:
            Unreachable: the stream broke too often in a row.
        """
        self._failures += 1
        if self._failures > MAX_RECONNECTS:
            raise Unreachable(f"the connection to {hub} broke {self._failures} times")
        return FIRST_PAUSE_S * float(2 ** (self._failures - 1))

    def answer(self) -> HubCall[Task | Message]:
        """The answer of the agent: the task as the hub has it, or the message without a task."""
        if self.message is not None:
            return self.message
        return (yield from read_task(self.task_id, self._agent))

    def _update(self, **fields: Any) -> Update:
        return Update(task_id=self.task_id, context_id=self.context_id, **fields)
