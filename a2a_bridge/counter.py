"""Where calls are served: run, answered in their binding's way, and never left without an answer."""

import logging
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, replace
from typing import Any

from a2a_bridge import errors
from a2a_bridge.answering import Answer
from a2a_bridge.calls import Call, Caller, Done, Told, Waiting
from a2a_bridge.dialects.dialect import STREAMS, Dialect, Operation
from a2a_bridge.idempotency import Repeat
from a2a_bridge.joining import Joined
from a2a_bridge.open_streams import OpenStreams
from a2a_bridge.operations import Operations
from a2a_bridge.requests import Request, Send
from a2a_bridge.tasks.run import TaskRun
from accounts.served import Served
from agents.errors import NotPublished, Unavailable
from agents.types import Target
from kit import sql, trace
from kit.asgi import ClientLeft, Scope, header
from kit.jsonrpc import INTERNAL_ERROR, RpcError

HYBRID = "hybrid"
Followed = TaskRun | Repeat | Joined | None

logger = logging.getLogger(__name__)


def call_of(scope: Scope, caller: Caller, dialect: Dialect, operation: Operation, request: Request) -> Call:
    """A call with what its headers say besides."""
    return Call(
        caller=caller,
        dialect=dialect,
        operation=operation,
        request=suited(request, caller.agent),
        seen=header(scope, b"last-event-id") if dialect.replays else "",
        key=header(scope, b"idempotency-key"),
        traceparent=trace.current(),
    )


def suited(request: Request, agent: Target) -> Request:
    """The request; without a direct reply where the agent always makes tasks."""
    if isinstance(request, Send) and request.takes_direct and agent.style != HYBRID:
        return replace(request, takes_direct=False)
    return request


@dataclass(frozen=True, slots=True)
class Counter:
    """Serves calls of every binding. `stream_max_age_s`: after which a stream ends, whatever its task does."""

    operations: Operations
    streams: OpenStreams
    callers: Served
    stream_max_age_s: float

    async def give(self, call: Call, answer: Answer) -> None:
        """Run a call and answer it; a stream counts as open from before anything is asked."""
        if call.operation not in STREAMS:
            await self._give(call, answer)
            return
        caller_id = call.caller.identity.user_id
        self.streams.enter(caller_id)
        try:
            await self._give(call, answer)
        finally:
            self.streams.leave(caller_id)

    async def serve(
        self, answer: Answer, work: Coroutine[Any, Any, None], streams_errors: Callable[[], bool]
    ) -> None:
        """Run `work`; whatever it raises becomes the answer."""
        try:
            await work
        except RpcError as error:
            await answer.refuse(error, as_stream=streams_errors())
        except NotPublished:
            await answer.refuse(errors.agent_not_found())
        except (Unavailable, *sql.AWAY):  # what reads, out of the ledger's sight
            await answer.refuse(errors.unavailable())
        except ClientLeft:
            return
        except Exception:
            logger.exception("bridge.failed")
            await answer.refuse(RpcError(INTERNAL_ERROR, "internal error", status=500))

    async def _give(self, call: Call, answer: Answer) -> None:
        match await self.operations.run(call):
            case Done() as done:
                await answer.at_once(done)
            case Waiting() as waiting:
                if not await self._follow(call, waiting.run, answer.wait(waiting)):
                    await answer.refuse(errors.unauthenticated())
            case Told(frames, run):
                if not await self._follow(call, run, answer.stream(frames, self.stream_max_age_s)):
                    await answer.end()

    async def _follow(self, call: Call, run: Followed, answer: Coroutine[Any, Any, None]) -> bool:
        """Run what may take long, as `_while_welcome`.

        An ask that waits for a free agent gives up its place when the last who follows it leaves.
        """
        if not isinstance(run, TaskRun) or not run.is_in_line:
            return await self._while_welcome(call, answer)
        run.followers += 1
        has_left = True
        try:
            has_left = not await self._while_welcome(call, answer)
        finally:
            run.followers -= 1
            if has_left:
                self._leave(run)
        return not has_left

    def _leave(self, run: TaskRun) -> None:
        if run.is_in_line and not run.followers and not run.outlives_followers:
            self.operations.services.dispatcher.cancel(run.task.chat_id)

    async def _while_welcome(self, call: Call, answer: Coroutine[Any, Any, None]) -> bool:
        """Run what may take long; False when the caller's credential was revoked before its end."""
        return await self.callers.serve(call.caller.identity.credential_id, answer)
