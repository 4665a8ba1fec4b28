"""The push notifications of tasks, for coroutines: addresses are checked and kept, and events are queued."""

import logging
import re
from collections.abc import Callable, Sequence

from django.db import DatabaseError, InterfaceError, transaction

from a2a_bridge.models import PushConfig
from a2a_bridge.service import push_configs
from a2a_bridge.service.push_configs import queue_pushes
from a2a_bridge.service.tasks.feed import Feeds
from a2a_bridge.service.tasks.reader import LOOK_EVERY_S, TaskReader
from a2a_bridge.wire.dialects.reading import invalid
from a2a_bridge.wire.errors import task_not_found
from a2a_bridge.wire.requests import ListPush, NamePush, PushTarget
from a2a_bridge.wire.task import StatusEvent, Task, TaskEvent
from accounts.quotas import QuotaExceeded
from agents.core.post import Post, WatchForPushes
from kit import sql
from kit.asgi import TOO_MANY_REQUESTS, slow_down
from kit.async_db import db_call
from kit.clock import db_now
from kit.safe_http import NotSent
from webhooks.service.sending import check_url

logger = logging.getLogger(__name__)

IN_SEND = "configuration.taskPushNotificationConfig."
LOOKS = 20
SCHEME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
VALUE = re.compile(r"[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?")  # what a header may hold


class Pushes:
    """Keeps the addresses of tasks and queues their events. `wake`: starts sending once something is queued."""

    def __init__(
        self,
        feeds: Feeds,
        reader: TaskReader,
        post: Post,
        wake: Callable[[], None],
        *,
        look_every_s: float = LOOK_EVERY_S,
    ) -> None:
        self._feeds = feeds
        self._reader = reader
        self._post = post
        self._look_every_s = look_every_s
        self.wake = wake

    async def check(self, target: PushTarget, within: str = "") -> None:
        """Check an address as `check_target` does, in a thread of the pool."""
        await db_call(check_target)(target, within)

    async def keep(self, task: Task, target: PushTarget, within: str = "") -> tuple[PushTarget, bool]:
        """Keep an address as `push_configs.keep` does, in a thread of the pool.

        Raises:
            RpcError: -32602, there are too many.
        """
        try:
            return await db_call(push_configs.keep)(task, target)
        except QuotaExceeded as many:
            await slow_down(TOO_MANY_REQUESTS)
            raise invalid(f"{within}id", f"{within}id: {many}") from None

    async def add(self, task: Task, target: PushTarget) -> PushTarget:
        """Keep a checked address of a task of any process; later events are sent to the address."""
        kept, has_ended = await self.keep(task, target)
        feed = self._feeds.find(task.id)
        if feed is not None and feed.is_fed:
            feed.has_pushes = True
        elif task.is_running:
            await self._post.send(task.home, WatchForPushes(task.id))
        if has_ended and task.is_running:  # in between: the process that settled did not find the address
            await self._queue_end(task)
        return kept

    async def find(self, named: NamePush) -> PushTarget:
        """One address of a task.

        Raises:
            RpcError: -32001, as for a task that is not there.
        """
        found = await db_call(push_configs.find)(named.task_id, named.config_id)
        if found is None:
            raise task_not_found()
        return found

    async def page(self, wanted: ListPush) -> tuple[Sequence[PushTarget], str]:
        """Addresses of a task, and the token of the next page, if any."""
        if wanted.page_token and not (wanted.page_token.isdecimal() and len(wanted.page_token) < 19):
            raise invalid("pageToken", "pageToken: not one of this hub")
        shown, last = await db_call(push_configs.page)(
            wanted.task_id, wanted.page_size, int(wanted.page_token or "0")
        )
        return shown, str(last) if last else ""

    async def drop(self, task_id: str, config_id: str = "") -> None:
        """Delete an address of a task, or all of them."""
        await db_call(push_configs.drop)(task_id, config_id)

    async def queue_events(self, task: Task, events: Sequence[TaskEvent], traceparent: str = "") -> None:
        """Queue events between turns, or of a running one. An event that cannot be queued now is not sent."""
        await self._write(task, queue_pushes(task, events, traceparent))

    async def continue_task(self, task: Task, events: Sequence[TaskEvent], traceparent: str = "") -> bool:
        """Like `queue_events`, for the first events of a further turn; returns whether any address gets them."""
        if not await db_call(_move)(task):
            return False
        await self.queue_events(task, events, traceparent)
        return True

    async def queue_follow_up(self, followed_id: str, task: Task, events: Sequence[TaskEvent]) -> None:
        """Send `task`, which has ended, to the push addresses of the task that it follows."""
        if await db_call(push_configs.copy)(followed_id, task):
            await self.queue_events(task, events)

    def queue_for_address(self, task_id: str) -> None:
        """Queue pushes of a task that runs here, because another process keeps an address of it."""
        if feed := self._feeds.find(task_id):
            feed.has_pushes = True

    async def _queue_end(self, task: Task) -> None:
        """Queue the end of a turn that the database has, and that the task store is about to have."""
        feed = self._feeds.of(task)
        for _ in range(LOOKS):
            now = await self._reader.find(task.id, task.caller_id)
            if now is None:
                return
            if not now.is_running:
                end = StatusEvent(now.seq, now.updated_at, now.state, now.message, usage=now.usage)
                await self.queue_events(now, [end])
                return
            await feed.wait_for_events(now.seq, self._look_every_s)
        logger.error("push.end_not_told", extra={"task_id": task.id})

    async def _write(self, task: Task, writes: Sequence[sql.Query]) -> None:
        if not writes:
            return
        try:
            await db_call(_run)(writes)
        except (DatabaseError, InterfaceError):
            logger.exception("push.not_queued", extra={"task_id": task.id})
            return
        self.wake()


def check_target(target: PushTarget, within: str = "") -> None:
    """Check an address as sending would now, which may take seconds. `within`: its place in the request.

    Raises:
        RpcError: -32602, naming the field.
    """
    _check_header(target.scheme, SCHEME, f"{within}authentication.scheme")
    _check_header(target.credentials, VALUE, f"{within}authentication.credentials")
    _check_header(target.token, VALUE, f"{within}token")
    try:
        check_url(target.url)
    except NotSent as refused:
        raise invalid(f"{within}url", f"{within}url: {refused}") from None


def _check_header(value: str, allowed: re.Pattern[str], where: str) -> None:
    if value and not allowed.fullmatch(value):
        raise invalid(where, f"{where}: want printable ASCII, as in a header")


def _run(writes: Sequence[sql.Query]) -> None:
    with transaction.atomic():
        sql.rows_of_each(writes)


def _move(task: Task) -> int:
    """Set the turn of a task's addresses to its newest one; the function returns how many addresses there are."""
    rows = PushConfig.objects.filter(task_id=task.id, ended_seq=None)
    return rows.update(chat_id=task.chat_id, touched_at=db_now())
