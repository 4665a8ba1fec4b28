"""What a dialect is: names of methods, shapes of parameters, renderings of tasks. It decides nothing."""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any, Protocol

from a2a_bridge.requests import List, PushTarget, Request, Send
from a2a_bridge.tasks.record import Message, Task, TaskEvent
from a2a_bridge.tasks.store import TaskPage
from agents.transcript.pieces import Json
from kit.jsonrpc import RpcError


class Operation(StrEnum):
    """What can be done, whatever a dialect calls it."""

    SEND = "send"
    STREAM = "stream"
    GET = "get"
    LIST = "list"
    CANCEL = "cancel"
    SUBSCRIBE = "subscribe"
    CREATE_PUSH = "create push"
    GET_PUSH = "get push"
    LIST_PUSH = "list push"
    DELETE_PUSH = "delete push"
    SHOW_CARD = "show card"


STREAMS = frozenset({Operation.STREAM, Operation.SUBSCRIBE})


class Dialect(Protocol):
    """One way to speak A2A. `methods` are the names of JSON-RPC; `streams_errors`: a refused stream is a stream.

    `has_envelope`: each frame of a stream is a JSON-RPC response. `passes_ended`: whoever cancels or follows a
    task that has ended gets it as it is, and whoever follows one that asks for something is told no more.
    `replays`: who names the last frame it saw is told what it missed.
    """

    name: str
    methods: Mapping[str, Operation]
    streams_errors: bool
    has_envelope: bool
    passes_ended: bool
    replays: bool

    def read(self, operation: Operation, params: Any) -> Request:
        """Check parameters and say what is wanted.

        Raises:
            RpcError: -32602 naming the field, -32005 for content that no agent here takes.
        """

    def sent(self, task: Task, request: Request) -> Json:
        """The answer to a message that was waited for, or not."""

    def check_answer(self, task: Task, send: Send) -> None:
        """Refuse to show the end of a turn of which this dialect has nothing to show.

        Raises:
            RpcError: -32005.
        """

    def direct(self, context_id: str, message: Message) -> Json:
        """What is said without a task; only asked for where `Send.takes_direct`, or where `question` is empty."""

    def task(self, task: Task, history_length: int | None) -> Json:
        """The answer that a task is."""

    def page(self, page: TaskPage, request: List, token: str) -> Json:
        """The answer that a page of tasks is; `token` of the next one, if any."""

    def opening(self, task: Task, request: Request) -> Sequence[Json]:
        """The first frames of a stream."""

    def event(self, task: Task, event: TaskEvent, *, is_last: bool) -> Sequence[Json]:
        """The frames of an event, none if this dialect does not show it. `task`: as it is by now."""

    def frame_id(self, task_id: str, seq: int) -> str:
        """What a client that comes back may name; empty when this dialect has no such thing."""

    def push(self, task_id: str, target: PushTarget) -> Json:
        """One push address."""

    def pushes(self, task_id: str, targets: Sequence[PushTarget], token: str) -> Any:
        """A page of them."""

    def error(self, error: RpcError) -> RpcError:
        """An error with what this dialect says about it besides."""
