"""A call on its way through the bridge: who makes it, what serves it, and in which form its answer comes."""

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass

from a2a_bridge.dialects.dialect import Dialect, Operation
from a2a_bridge.exchange import Exchanges
from a2a_bridge.idempotency import Repeat
from a2a_bridge.joining import Joined
from a2a_bridge.pushes.pushes import Pushes
from a2a_bridge.requests import Request, Send
from a2a_bridge.streams import Frame
from a2a_bridge.tasks.feed import Feeds
from a2a_bridge.tasks.pieces import answer_message
from a2a_bridge.tasks.reader import TaskReader
from a2a_bridge.tasks.run import TaskRun
from a2a_bridge.tasks.store import TaskStore
from accounts.authn import Identity
from agents.dispatch import Dispatcher
from agents.pieces import Json
from agents.post import Post
from agents.types import Target


@dataclass(frozen=True, slots=True)
class Caller:
    """Who calls, and which agent's address they call."""

    identity: Identity
    agent: Target


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """What operations work with. `extended_card`: of an agent for a user, by their ids; reads the database."""

    exchanges: Exchanges
    reader: TaskReader
    tasks: TaskStore
    feeds: Feeds
    pushes: Pushes
    dispatcher: Dispatcher
    post: Post
    extended_card: Callable[[int, int], Json | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One request that is sound. `seen`: the id of the last frame a returning client saw (Last-Event-ID).

    `key`: its Idempotency-Key.
    """

    caller: Caller
    dialect: Dialect
    operation: Operation
    request: Request
    seen: str = ""
    key: str = ""
    traceparent: str = ""


@dataclass(frozen=True, slots=True)
class Done:
    """An answer that is there."""

    result: object


@dataclass(frozen=True, slots=True)
class Waiting:
    """An answer that comes with the end of a turn."""

    run: TaskRun | Repeat | Joined
    call: Call

    @property
    def result(self) -> Json:
        """The answer, once the turn has ended.

        Raises:
            RpcError: the dialect can show nothing of it.
        """
        dialect, request, run = self.call.dialect, self.call.request, self.run
        if isinstance(request, Send) and request.takes_direct and not run.is_promoted:
            return dialect.direct(run.task.context_id, answer_message(run.task))
        if isinstance(request, Send):
            dialect.check_answer(run.task, request)
        return dialect.sent(run.task, request)


@dataclass(frozen=True, slots=True)
class Told:
    """An answer frame by frame; None where nothing was told for a while. `run`: the turn that it tells."""

    frames: AsyncIterator[Frame | None]
    run: TaskRun | None = None


Outcome = Done | Waiting | Told
