"""The steps of every operation, the same in all dialects and bindings."""

import asyncio
import base64
from collections.abc import Coroutine
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import msgspec

from a2a_bridge.service.calls import AgentCaller, Call, CompleteAnswer, Outcome, StreamedAnswer
from a2a_bridge.service.follow_ups import load_with_follow_ups
from a2a_bridge.service.sends import take_send
from a2a_bridge.service.services import Services, again, find
from a2a_bridge.service.streams import TaskStreams
from a2a_bridge.service.tasks.reader import LOOK_EVERY_S
from a2a_bridge.service.tasks.store import TaskQuery
from a2a_bridge.wire.dialects.dialect import Operation, get_renderer
from a2a_bridge.wire.dialects.reading import invalid
from a2a_bridge.wire.errors import agent_unreachable, not_cancelable, not_followable, refused
from a2a_bridge.wire.requests import (
    CancelTask,
    CreatePush,
    FollowTask,
    GetTask,
    ListPush,
    ListTasks,
    NamePush,
    RateTask,
    Send,
)
from a2a_bridge.wire.task import Task
from agents.core import ratings
from agents.core.errors import NotPublished
from agents.core.post import CancelTurn
from agents.transcript.pieces import Json
from kit.async_db import db_call
from kit.durations import seconds

CANCEL_WITHIN_S = seconds(4.0, at_least_s=1.5)  # clients in use give up after 5 s of silence


@dataclass(frozen=True, slots=True)
class Operations:
    """Runs calls. All methods may raise RpcError, NotPublished and Unavailable."""

    services: Services

    def run(self, call: Call) -> Coroutine[Any, Any, Outcome]:
        """Do what is asked."""
        match call.request:
            case Send() as send:
                return take_send(self.services, call, send)
            case FollowTask() as subscribe:
                return self._subscribe(call, subscribe)
            case _:
                return self._result(call)

    async def _result(self, call: Call) -> CompleteAnswer:
        match call.request:
            case GetTask() as get:
                task = await find(self.services, call, get.task_id)
                return CompleteAnswer(call.dialect.render_task(await _as_shown(call, task), get.history_length))
            case ListTasks() as wanted:
                return CompleteAnswer(await self._page(call, wanted))
            case CancelTask() as cancel:
                return CompleteAnswer(call.dialect.render_task(await self._cancel(call, cancel.task_id), None))
            case RateTask() as rate:
                return CompleteAnswer(call.dialect.render_task(await self._rate(call, rate), None))
            case CreatePush() as create:
                return CompleteAnswer(await self._create_push(call, create))
            case NamePush() as named:
                return CompleteAnswer(await self._one_push(call, named))
            case ListPush() as page:
                return CompleteAnswer(await self._list_pushes(call, page))
            case _:  # ShowCard
                return CompleteAnswer(await self._show_card(call.caller))

    async def _page(self, call: Call, wanted: ListTasks) -> object:
        query = TaskQuery(
            caller_id=call.caller.identity.user_id,
            handle=call.caller.agent.handle,
            context_id=wanted.context_id,
            state=wanted.state,
            since=wanted.since,
            before=_position(wanted.page_token) if wanted.page_token else None,
            limit=wanted.page_size,
        )
        page = await self.services.tasks.page(query)
        token = "" if page.is_last or not page.tasks else _token(page.tasks[-1])
        return get_renderer(call.dialect.render_page)(page, wanted, token)

    async def _cancel(self, call: Call, task_id: str) -> Task:
        """The task once it is canceled.

        The agent gets the order to stop at once, and the task shows `canceled` when that is durable.
        """
        task = await find(self.services, call, task_id)
        if task.is_interrupted and not task.approvals and not await self.services.exchanges.end(task):
            task = await find(self.services, call, task_id)
        if task.is_terminal:
            if call.dialect.passes_ended:
                return task
            raise not_cancelable(task.state)
        if task.is_running:
            await self._stop(task)
        ended = await find(self.services, call, task_id)
        if not call.dialect.passes_ended and ended.state != "canceled":
            raise not_cancelable(ended.state)
        return ended

    async def _rate(self, call: Call, wanted: RateTask) -> Task:
        """The task, once its caller's thumb for the answer of its last turn is stored or removed."""
        task, caller_id = await find(self.services, call, wanted.task_id), call.caller.identity.user_id
        try:
            if wanted.rating == "none":
                await db_call(ratings.remove_rating)(task.chat_id, caller_id)
            else:
                is_good = wanted.rating == ratings.UP
                await db_call(ratings.rate)(task.chat_id, caller_id, is_good=is_good, note=wanted.note)
        except ratings.NoSuchAnswer:
            raise refused("this task has no answer to rate") from None
        return await _as_shown(call, task)

    async def _stop(self, task: Task) -> None:
        services = self.services
        if not services.dispatcher.cancel(task.chat_id):
            await services.post.send(task.home, CancelTurn(task.chat_id))
        feed = await services.reader.follow(task)
        try:
            async with asyncio.timeout(CANCEL_WITHIN_S):
                while feed.task.is_running and await services.reader.refresh(feed):
                    await feed.wait_for_events(feed.task.seq, LOOK_EVERY_S)
        except TimeoutError:
            raise agent_unreachable(task.state) from None

    async def _subscribe(self, call: Call, subscribe: FollowTask) -> Outcome:
        streaming = TaskStreams(call.dialect, subscribe, self.services.reader)
        if call.seen:
            return await again(self.services, call, streaming, subscribe.task_id)
        task = await find(self.services, call, subscribe.task_id)
        if task.is_terminal and not call.dialect.passes_ended:
            raise not_followable(task.state)
        if task.is_terminal or (task.is_interrupted and call.dialect.passes_ended):
            return StreamedAnswer(streaming.of_snapshot(await _as_shown(call, task)))
        exchanges = self.services.exchanges
        run = exchanges.find(task.chat_id)
        if run is None and task.is_running and task.home != exchanges.home:
            await exchanges.keep(task.chat_id, task.home)
        return StreamedAnswer(streaming.of_task(await self.services.reader.follow(task)), run)

    async def _create_push(self, call: Call, create: CreatePush) -> object:
        task = await find(self.services, call, create.task_id)
        await self.services.pushes.check(create.target)
        kept = await self.services.pushes.add(task, create.target)
        return get_renderer(call.dialect.render_push)(task.id, kept)

    async def _one_push(self, call: Call, named: NamePush) -> object:
        """Get or delete one push config; deleting an absent one succeeds."""
        task = await find(self.services, call, named.task_id)
        if call.operation is Operation.DELETE_PUSH:
            await self.services.pushes.drop(task.id, named.config_id)
            return {}
        return get_renderer(call.dialect.render_push)(task.id, await self.services.pushes.find(named))

    async def _list_pushes(self, call: Call, wanted: ListPush) -> object:
        task = await find(self.services, call, wanted.task_id)
        return get_renderer(call.dialect.render_push_page)(task.id, *await self.services.pushes.page(wanted))

    async def _show_card(self, caller: AgentCaller) -> Json:
        agent_id, user_id = caller.agent.agent_id, caller.identity.user_id
        card = await db_call(self.services.extended_card)(agent_id, user_id) if agent_id else None
        if card is None:
            raise NotPublished
        return card


async def _as_shown(call: Call, task: Task) -> Task:
    """The task with its follow-ups, if it has ended and the dialect of the call shows them in it."""
    return await load_with_follow_ups(task) if task.is_terminal and call.dialect.adds_follow_ups else task


def _token(task: Task) -> str:
    return base64.urlsafe_b64encode(msgspec.json.encode((task.updated_at, task.id))).decode("ascii")


def _position(token: str) -> tuple[str, str]:
    try:
        raw = base64.b64decode(token.encode("ascii"), altchars=b"-_", validate=True)
        at, task_id = msgspec.json.decode(raw, type=tuple[str, str])
        is_ours = datetime.fromisoformat(at).tzinfo is UTC and task_id.isascii() and task_id.isprintable()
    except (ValueError, OverflowError, msgspec.DecodeError):
        is_ours = False
    if not is_ours:
        raise invalid("pageToken", "pageToken: not one of this hub")
    return at, task_id
