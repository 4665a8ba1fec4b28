"""Answers a plain send without an asyncio task: each step is a callback of the step before (docs/adr/0214).

The steps: the request is read, the ledger admits its ask, the prompt is written, the reply frame ends the turn,
the ledger settles it, the response is written. A send that streams, joins another, is refused, or waits for long
goes on in a task, by `CallRunner`.
"""

import asyncio
from collections.abc import Coroutine
from typing import Any

from a2a_bridge.service.answering import CallRunner
from a2a_bridge.service.calls import AwaitedAnswer, Call, Incoming, Outcome
from a2a_bridge.service.responses import CallAnswer
from a2a_bridge.service.run import TaskRun
from a2a_bridge.service.sends import new_plain_run, note_ask, outcome_of
from a2a_bridge.service.streams import KEEPALIVE_S
from a2a_bridge.wire import errors
from a2a_bridge.wire.dialects.dialect import Operation
from a2a_bridge.wire.requests import Send
from agents.core.types import LookUpResult
from kit.asgi import Exchange


def answer_whole(
    runner: CallRunner, incoming: Incoming, answer: CallAnswer, exchange: Exchange
) -> Coroutine[Any, Any, None] | None:
    """Begin to answer a request that was read; returns a coroutine if the call needs a task from its beginning."""
    request = incoming.request
    is_plain = incoming.is_plain_send and incoming.operation is Operation.SEND
    if (
        is_plain
        and runner.operations.services.dispatcher.asks_found
        and isinstance(request, Send)
        and request.waits
    ):
        DirectAsk(runner, incoming, answer, exchange).begin()
        return None
    return runner.answer(incoming, answer)


class DirectAsk:
    """One plain send whose caller waits for the end of the turn."""

    __slots__ = (
        *("_answer", "_call", "_exchange", "_has_task", "_incoming", "_made", "_run", "_runner", "_timer"),
    )
    _call: Call
    _run: TaskRun
    _timer: asyncio.TimerHandle

    def __init__(self, runner: CallRunner, incoming: Incoming, answer: CallAnswer, exchange: Exchange) -> None:
        self._runner = runner
        self._incoming = incoming
        self._answer = answer
        self._exchange = exchange
        self._made: tuple[TaskRun, ...] = ()
        self._has_task = False  # a task of the request answers it

    def begin(self) -> None:
        """Let the ledger look up the caller and the agent, and decide the ask."""
        dispatcher = self._runner.operations.services.dispatcher
        dispatcher.begin_found(self._incoming.digest, self._incoming.handle, self._make, self._take_begun)

    def cancel(self) -> None:
        """Refuse the request, because its credential was revoked. The turn goes on."""
        if not self._has_task:  # otherwise the task is cancelled, once it has registered
            self._leave()
            self._runner.operations.services.exchanges.leave(self._run, is_answered=False, cancels=False)
            self._has_task = True
            self._run_task(self._refuse())

    def _make(self, found: LookUpResult) -> TaskRun:
        """Make the turn; the ledger's thread calls this."""
        self._call = self._runner.enter(self._incoming, self._answer, found)
        self._made = (new_plain_run(self._runner.operations.services, self._call),)
        return self._made[0]

    def _take_begun(self, begun: TaskRun | Exception) -> None:
        """Wait for the turn that began, or answer by a task what did not become a turn."""
        if isinstance(begun, Exception):
            services = self._runner.operations.services
            self._go_on(outcome_of(services, self._incoming, self._made, begun))
            return
        self._run = begun
        note_ask(self._call, begun.task.chat_id)
        begun.followers += 1
        self._runner.callers.add(self._call.caller.identity.credential_id, self)
        begun.until_due.append(self._take_due)
        self._timer = asyncio.get_running_loop().call_later(KEEPALIVE_S, self._wait_longer)

    def _take_due(self) -> None:
        """Respond, as the turn has ended; an agent that asks for an approval is followed by a task."""
        run, runner = self._run, self._runner
        if self._has_task:
            return
        try:
            waiting = AwaitedAnswer(run, self._call)
            is_answered = run.is_settled and self._answer.respond_now(self._exchange, waiting)
        except Exception:  # noqa: BLE001  the task meets the same error, and answers it
            is_answered = False
        if not is_answered:
            self._wait_longer()
            return
        self._leave()
        runner.operations.services.exchanges.leave(run, is_answered=True, cancels=False)
        runner.record(self._answer)

    def _wait_longer(self) -> None:
        """Go on in a task, which keeps the client connected while it waits."""
        if not self._has_task:
            self._has_task = True
            self._run_task(self._follow())

    def _run_task(self, work: Coroutine[Any, Any, None]) -> None:
        """Start a task with the context variables of the request: an agent's frame or a timer may cause it."""
        self._run.context.copy().run(self._exchange.run, work)

    async def _follow(self) -> None:
        self._leave()
        self._run.followers -= 1  # the runner counts this request again
        self._answer.has_waited = True
        await self._runner.answer(self._incoming, self._answer, _found(AwaitedAnswer(self._run, self._call)))

    async def _refuse(self) -> None:
        await self._answer.fail(errors.unauthenticated())
        self._runner.record(self._answer)

    def _go_on(self, finding: Coroutine[Any, Any, Outcome]) -> None:
        self._exchange.run(self._runner.answer(self._incoming, self._answer, finding))

    def _leave(self) -> None:
        """Stop waiting for the turn."""
        self._timer.cancel()
        self._run.until_due.remove(self._take_due)
        self._runner.callers.leave(self._call.caller.identity.credential_id, self)


async def _found(outcome: Outcome) -> Outcome:
    return outcome
