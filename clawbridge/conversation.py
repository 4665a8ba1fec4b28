"""The messages of one task: sends a question, prints the reply as it comes, and tells how the task ended."""

import signal
from collections.abc import Sequence
from contextlib import closing
from types import FrameType, TracebackType
from typing import Any, Self

import msgspec

from clawbridge import HubError
from clawbridge.calls import HubRequest, agent_path
from clawbridge.client import Client
from clawbridge.sending import Update
from clawbridge.shapes import WAITING, Message, Part, Status
from clawbridge.terminal import (
    ExitCode,
    one_line,
    read_answer,
    report,
    write_note,
    write_reply,
)

WAITS_FOR = {"INPUT_REQUIRED": "input", "AUTH_REQUIRED": "authorization"}
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
        """Let a signal raise Interrupted from now on: there is a task to cancel."""
        self._can_cancel = True
        if self.number:
            raise Interrupted

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        is_first, self.number = not self.number, number
        if self._can_cancel or not is_first:
            self._can_cancel = False
            raise Interrupted


class TaskConversation:
    """The messages of one task, and what comes back. `task_id`: empty until the hub has named it."""

    def __init__(self, client: Client, handle: str, *, prints_reply: bool, is_quiet: bool) -> None:
        self.task_id = ""
        self.context_id = ""
        self.status: Status | None = None
        self.direct: Message | None = None
        self._client = client
        self.handle = handle
        self._prints_reply = prints_reply
        self._is_quiet = is_quiet
        self._artifact_id = ""
        self._ends_line = True

    def send(self, parts: Sequence[Part], signals: StopSignals) -> None:
        """Send one message and print what comes back, until the task ends or its agent asks for input."""
        self.status = None
        updates = self._client.stream(
            self.handle, parts, task_id=self.task_id, context_id=self.context_id, on_reconnect=self._on_reconnect
        )
        with closing(updates):
            for update in updates:
                self._take(update, signals)

    def cancel(self) -> str:
        """Cancel the task on the hub; returns the result as a line for the user."""
        try:
            self._client.cancel(self.task_id, agent=self.handle)
        except HubError as problem:
            return f"could not cancel {self.task_id}: {problem}"
        return f"canceled {self.task_id}"

    def result(self) -> Any:
        """The result of `SendMessage` of A2A 1.0: the task as the hub has it, or the message without a task."""
        if self.direct is not None:
            return {"message": msgspec.to_builtins(self.direct)}
        return {"task": self._client.call(HubRequest("GET", f"{agent_path(self.handle)}/tasks/{self.task_id}"))}

    def end_line(self) -> None:
        """Print a line feed if the reply does not end with one."""
        if not self._ends_line:
            write_reply("\n")
            self._ends_line = True

    def _on_reconnect(self) -> None:
        self._note("the connection broke: trying again")

    def _take(self, update: Update, signals: StopSignals) -> None:
        self.task_id, self.context_id = update.task_id, update.context_id
        self.direct = update.message
        if update.status:
            self.status = update.status
            if self.status.name == "WORKING" and self.status.text:
                self._note(self.status.text)
        self._print(update.artifact_id, update.parts)
        if self.task_id and not (self.status and self.status.is_settled):
            signals.allow()

    def _print(self, artifact_id: str, parts: Sequence[Part]) -> None:
        if not (parts and self._prints_reply):
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
    how = f"clawbridge artifacts {task_id} --save DIR" if task_id else "--json has its content"
    return f"file {name}{kind}, {len(part.content)} bytes: {how}"


def converse(talk: TaskConversation, parts: Sequence[Part], signals: StopSignals, *, asks_back: bool) -> ExitCode:
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
                if talk.task_id:
                    report(f"what happened: clawbridge trace {talk.task_id}")
            return ExitCode[status.name]
        signals.allow()
        talk.end_line()
        answer = read_answer(status.text) if asks_back else None
        if not answer:
            why = f"the agent asks for {WAITS_FOR[status.name]}: {status.text}"
            report("no answer given" if asks_back else why)
            report(f"answer with: clawbridge reply {talk.task_id} ANSWER")
            return ExitCode[status.name]
        parts = [Part(text=answer)]
