"""The messages of one task: sends a question, prints the reply as it comes, and tells how the task ended."""

import base64
import binascii
import signal
import time
from collections.abc import Generator
from contextlib import closing
from types import FrameType, TracebackType
from typing import Any, Self
from uuid import uuid4

import msgspec

from clawbridge.hub_client import (
    Broken,
    HubClient,
    Part,
    Status,
    StreamEvent,
    agent_path,
)
from clawbridge.question import JsonPart
from clawbridge.terminal import (
    CommandFailure,
    ExitCode,
    one_line,
    read_answer,
    report,
    write_note,
    write_reply,
)

MAX_RECONNECTS = 5  # in a row, without an event between them
FIRST_PAUSE_S = 0.5
WAITING = {"INPUT_REQUIRED": "input", "AUTH_REQUIRED": "authorization"}
SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Interrupted(KeyboardInterrupt):
    """The user wants the command to end."""


class StopSignals:
    """Raises Interrupted at the first SIGINT or SIGTERM once a task can be canceled, at the second one at once."""

    def __init__(self) -> None:
        self.number = 0
        self._can_cancel = False
        self._previous: dict[int, Any] = {}

    def __enter__(self) -> Self:
        self._previous = {number: signal.signal(number, self._on_signal) for number in SIGNALS}
        return self

    def __exit__(self, kind: type[BaseException] | None, value: object, trace: TracebackType | None) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)

    def allow(self) -> None:
        """From now on there is a task to cancel."""
        self._can_cancel = True
        if self.number:
            raise Interrupted

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        is_first, self.number = not self.number, number
        if self._can_cancel or not is_first:
            self._can_cancel = False
            raise Interrupted


class Conversation:
    """The messages of one task, and what comes back. `task_id`: empty until the hub has named it."""

    def __init__(self, client: HubClient, handle: str, *, prints_reply: bool, is_quiet: bool) -> None:
        self.task_id = ""
        self.context_id = ""
        self.status: Status | None = None
        self.direct: Any = None
        self._client = client
        self.handle = handle
        self._path = agent_path(handle)
        self._prints_reply = prints_reply
        self._is_quiet = is_quiet
        self._known: set[str] = set()  # ids of artifacts that were printed, or belong to earlier messages
        self._artifact_id = ""
        self._ends_line = True

    def send(self, parts: list[JsonPart], signals: StopSignals) -> None:
        """Send one message and read its events, until the task ends or its agent asks for input.

        A broken stream is continued where it ended; the agent is asked once.
        """
        message = {"messageId": str(uuid4()), "role": "ROLE_USER", "parts": parts}
        message |= {"taskId": self.task_id} if self.task_id else {}
        message |= {"contextId": self.context_id} if self.context_id and not self.task_id else {}
        self.status = None
        last_id, failures = "", 0
        while failures <= MAX_RECONNECTS:
            if failures:
                self._note("the connection broke: trying again")
                time.sleep(FIRST_PAUSE_S * 2 ** (failures - 1))
            try:
                with closing(self._events(message, last_id)) as events:
                    for event_id, event in events:
                        last_id, failures = event_id, 0
                        self._take(event, signals)
                        if self._is_settled:
                            return
            except Broken:
                pass
            failures += 1
        raise CommandFailure(ExitCode.UNREACHABLE, f"the connection to {self._client.url} broke {failures} times")

    def cancel(self) -> str:
        """Cancel the task on the hub; what became of it, as a line for the user."""
        try:
            self._client.call("POST", f"{self._path}/tasks/{self.task_id}:cancel", body={})
        except CommandFailure as failure:
            return f"could not cancel {self.task_id}: {failure.message}"
        return f"canceled {self.task_id}"

    def result(self) -> Any:
        """The result of `SendMessage` of A2A 1.0: the task as the hub has it, or the message without a task."""
        if self.direct is not None:
            return {"message": self.direct}
        return {"task": self._client.call("GET", f"{self._path}/tasks/{self.task_id}")}

    def end_line(self) -> None:
        """Let the reply end with a line feed."""
        if not self._ends_line:
            write_reply("\n")
            self._ends_line = True

    @property
    def _is_settled(self) -> bool:
        return self.direct is not None or (
            self.status is not None and (self.status.has_ended or self.status.name in WAITING)
        )

    def _events(self, message: JsonPart, after: str) -> Generator[tuple[str, StreamEvent]]:
        key = str(message["messageId"])
        return self._client.stream(f"{self._path}/message:stream", {"message": message}, key=key, after=after)

    def _take(self, event: StreamEvent, signals: StopSignals) -> None:
        if event.task:
            self.task_id, self.context_id = event.task.id, event.task.context_id
            self.status = event.task.status
            for artifact in event.task.artifacts:
                if self.status.has_ended and artifact.artifact_id not in self._known:
                    self._print(artifact.artifact_id, artifact.parts)
                self._known.add(artifact.artifact_id)
        if event.artifact_update:
            update, artifact = event.artifact_update, event.artifact_update.artifact
            if update.append or not update.last_chunk or artifact.artifact_id not in self._known:
                self._print(artifact.artifact_id, artifact.parts)
            self._known.add(artifact.artifact_id)
        if event.status_update:
            self.status = event.status_update.status
            if self.status.name == "WORKING" and self.status.text:
                self._note(self.status.text)
        if event.message:
            self.direct = msgspec.to_builtins(event.message)
            self._print("", event.message.parts)
        if self.task_id and not self._is_settled:
            signals.allow()

    def _print(self, artifact_id: str, parts: list[Part]) -> None:
        if not self._prints_reply:
            return
        if artifact_id != self._artifact_id:
            self.end_line()
            self._artifact_id = artifact_id
        for part in parts:
            self._print_part(part)

    def _print_part(self, part: Part) -> None:
        text = part.text
        if text is None and part.data is not msgspec.UNSET:
            text = msgspec.json.format(msgspec.json.encode(part.data)).decode() + "\n"
        if text:
            write_reply(text)
            self._ends_line = text.endswith("\n")
        elif text is None:
            self._note(describe_file(part, self.task_id))

    def _note(self, text: str) -> None:
        """Print a note on a line of its own; standard output has the reply alone."""
        if not self._is_quiet:
            write_note(text, after_line=self._ends_line)


def describe_file(part: Part, task_id: str) -> str:
    """A line on a file of the agent's, and how to get it; a message without a task is not kept."""
    name = one_line(part.filename) or "a file"
    kind = f" ({one_line(part.media_type)})" if part.media_type else ""
    if part.url is not None:
        return f"file {name}{kind}: {one_line(part.url)}"
    try:
        size = len(base64.b64decode(part.raw or ""))
    except (binascii.Error, ValueError):
        size = 0
    how = f"clawbridge artifacts {task_id} --save DIR" if task_id else "--json has its content"
    return f"file {name}{kind}, {size} bytes: {how}"


def converse(talk: Conversation, parts: list[JsonPart], signals: StopSignals, *, asks_back: bool) -> ExitCode:
    """Send the question, and the user's answers while the agent asks back; how the task ended."""
    while True:
        talk.send(parts, signals)
        status = talk.status
        if talk.direct is not None or status is None:
            return ExitCode.COMPLETED
        if status.name not in WAITING:
            talk.end_line()
            if status.name != "COMPLETED":
                report(status.text or f"the task is {status.name}")
            return ExitCode[status.name]
        signals.allow()
        talk.end_line()
        answer = read_answer(status.text) if asks_back else None
        if not answer:
            report(
                f"the agent asks for {WAITING[status.name]}: {status.text}" if not asks_back else "no answer given"
            )
            report(f"answer with: clawbridge reply {talk.task_id} ANSWER")
            return ExitCode[status.name]
        parts = [{"text": answer}]
