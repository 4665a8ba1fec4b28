"""Runs calls of every binding, and sends their responses. Every call gets a response."""

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass
from functools import partial
from typing import Any

from msgspec.structs import replace

from a2a_bridge.service.calls import (
    HYBRID,
    AwaitedAnswer,
    Call,
    CompleteAnswer,
    Incoming,
    Outcome,
    StreamedAnswer,
)
from a2a_bridge.service.exchange_log import ExchangeLog
from a2a_bridge.service.operations import Operations
from a2a_bridge.service.repeats import JoinedTask
from a2a_bridge.service.responses import CallAnswer, ResponseWriter
from a2a_bridge.service.run import TaskRun
from a2a_bridge.service.sends import send_at_once
from a2a_bridge.wire import errors
from a2a_bridge.wire.dialects.dialect import STREAMS
from a2a_bridge.wire.requests import Send as SendRequest
from accounts.open_requests import OpenRequests
from agents.core.ledger import Ledger
from agents.core.types import LookUpResult
from kit.asgi import ClientLeft
from kit.concurrency import ConcurrencyLimit


@dataclass(frozen=True, slots=True)
class CallRunner:
    """Runs calls of every binding and answers them.

    `stream_max_age_s`: after which a stream ends, whatever its task does. `exchanges`: records requests and their
    responses; None: nothing is recorded.
    """

    operations: Operations
    ledger: Ledger
    streams: ConcurrencyLimit
    callers: OpenRequests
    stream_max_age_s: float
    exchanges: ExchangeLog | None = None

    async def answer(
        self, incoming: Incoming, answer: CallAnswer, finding: Coroutine[Any, Any, Outcome] | None = None
    ) -> None:
        """Do what `run` does, respond whatever fails, and record the exchange."""
        try:
            await self.run(incoming, answer, finding)
        except Exception as failure:  # noqa: BLE001  whatever fails becomes the answer
            await answer.fail(failure)
        finally:
            self.record(answer)

    def record(self, answer: CallAnswer) -> None:
        """Record a request and its response, if the request asked an agent."""
        if self.exchanges is not None and (note := answer.note) is not None and note.chat_id:
            self.exchanges.record(note)

    async def run(
        self, incoming: Incoming, answer: ResponseWriter, finding: Coroutine[Any, Any, Outcome] | None = None
    ) -> None:
        """Run a call and respond. `finding`: finds the outcome of a call that has begun."""
        try:
            outcome = await (finding or self._find_outcome(incoming, answer))
            if isinstance(outcome, CompleteAnswer):
                await answer.at_once(outcome.result)
            elif incoming.call is not None:
                await self._follow(incoming.call, outcome, answer)
        finally:
            if incoming.call is not None and incoming.call.operation in STREAMS:
                self.streams.leave(incoming.call.caller.identity.user_id)

    async def _find_outcome(self, incoming: Incoming, answer: ResponseWriter) -> Outcome:
        """Look up the caller, and run the call; a plain send needs one trip to the ledger for both."""
        enter, services = partial(self.enter, incoming, answer), self.operations.services
        if incoming.is_plain_send and services.dispatcher.asks_found:
            return await send_at_once(services, incoming, enter)
        found = await self.ledger.look_up(incoming.digest, incoming.handle)
        return await self.operations.run(enter(found))

    def enter(self, incoming: Incoming, answer: ResponseWriter, found: LookUpResult) -> Call:
        """Make the call of the caller that was found; a stream is counted before its ask is admitted.

        Raises:
            RpcError: it is refused.
        """
        caller = incoming.check(found)
        answer.wire = incoming.wire  # from now on its errors are of its own dialect, with its id
        if incoming.error is not None:
            raise incoming.error
        dialect, operation, request = incoming.dialect, incoming.operation, incoming.request
        if dialect is None or operation is None or request is None:
            raise RuntimeError("a request that was not read")
        if isinstance(request, SendRequest) and request.takes_direct and caller.agent.style != HYBRID:
            request = replace(request, takes_direct=False)  # the agent always makes tasks
        if operation in STREAMS:
            self.streams.enter(caller.identity.user_id)
        call = incoming.call = Call(
            caller=caller,
            dialect=dialect,
            operation=operation,
            request=request,
            seen=incoming.seen,
            key=incoming.key,
            traceparent=incoming.traceparent,
            may_cancel=incoming.may_cancel,
            note=incoming.note,
        )
        return call

    async def _follow(self, call: Call, outcome: AwaitedAnswer | StreamedAnswer, answer: ResponseWriter) -> None:
        """Respond to a long call until its end, or until the caller's credential is revoked.

        A request that ends before its turn leaves it, see `Exchanges.leave`.
        """
        exchanges, run = self.operations.services.exchanges, outcome.run
        if isinstance(run, TaskRun):
            run.followers += 1
        is_answered = cancels = False
        task = self.callers.enter(call.caller.identity.credential_id)
        try:
            if isinstance(outcome, AwaitedAnswer):
                await answer.wait(outcome)
            else:
                await answer.stream(outcome, self.stream_max_age_s)
            is_answered = True
        except (asyncio.CancelledError, ClientLeft) as ended:
            if isinstance(ended, ClientLeft) or not self.callers.was_dismissed(task):
                cancels = answer.leaving_cancels
                raise
        finally:
            self.callers.leave(call.caller.identity.credential_id, task)
            if isinstance(run, TaskRun):
                exchanges.leave(run, is_answered=is_answered, cancels=cancels)
            elif isinstance(run, JoinedTask) and cancels:
                exchanges.leave_elsewhere(run)
        if not is_answered:
            is_stream = isinstance(outcome, StreamedAnswer)
            await (answer.end() if is_stream else answer.refuse(errors.unauthenticated()))
