"""The frames of a stream: a snapshot of the task, then its events, in the caller's dialect."""

import math
import time
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from a2a_bridge.service.repeats import JoinedTask, RepeatedSend
from a2a_bridge.service.run import TaskRun
from a2a_bridge.service.tasks.feed import Feed
from a2a_bridge.service.tasks.pieces import answer_message
from a2a_bridge.service.tasks.reader import LOOK_EVERY_S, TaskReader
from a2a_bridge.wire.dialects.dialect import Dialect, EventRenderer, get_renderer
from a2a_bridge.wire.requests import FollowTask, Request, Send
from a2a_bridge.wire.task import OPEN, Task, TaskEvent, after
from kit.durations import seconds

KEEPALIVE_S = seconds(3.0, at_least_s=0.75)  # clients in use give up after 5 s of silence
WHOLE_WITHIN_S = 10.0  # after the first piece; a reply that takes longer is streamed as a task

Frame = tuple[str, object]  # an id, or none; and what it shows


class SilenceTimer:
    """Measures how long a stream has sent nothing."""

    __slots__ = ("_since",)

    def __init__(self) -> None:
        self._since = time.monotonic()

    @property
    def left_s(self) -> float:
        """The seconds until a comment is due; 0 once it is."""
        return max(self._since + KEEPALIVE_S - time.monotonic(), 0.0)

    def end(self) -> None:
        """Record that the stream has sent something."""
        self._since = time.monotonic()


@dataclass(slots=True)
class TaskStreams:
    """Streams the events of a task to one caller. A frame of None asks for a keep-alive comment."""

    dialect: Dialect
    request: Request
    reader: TaskReader
    _render: EventRenderer | None = field(init=False, default=None)

    async def of_turn(self, run: TaskRun, *, may_be_direct: bool = False) -> AsyncIterator[Frame | None]:
        """A turn that was just started, from its beginning to its end.

        `may_be_direct`: it is a task unless its agent, or a remote server, answers with a message. Most agents
        never answer so, which the hub knows as soon as it asked them. The first frame waits for other agents.
        """
        if run.is_refused:
            for frame in self._opening(run.task):
                yield frame
            return
        if may_be_direct:
            if not run.is_decided:
                await run.until_decided.wait(KEEPALIVE_S)
            if run.is_settled and not run.is_promoted:
                yield self._message(run.task)
                return
        feed = await run.start_feed()
        known = feed.since(run.opening.seq)
        # The turn may have ended before this stream followed it.
        told = run.last_events if known is None else known
        seq = told[-1].seq if told else run.opening.seq
        for frame in (*self._opening(run.opening), *self._events(feed.task, told)):
            yield frame
        async for later in self.of_feed(feed, seq):
            yield later

    async def of_direct(self, run: TaskRun) -> AsyncIterator[Frame | None]:
        """The frames of a turn that is a task only if more than a plain reply comes, or if it comes slowly."""
        seen, quiet, until = 0, SilenceTimer(), math.inf
        while not run.is_promoted and not run.is_settled:
            if run.pieces and until == math.inf:
                until = time.monotonic() + WHOLE_WITHIN_S
            if time.monotonic() >= until:
                break
            await run.more_than(seen, min(quiet.left_s, until - time.monotonic()))
            seen = len(run.pieces)
            if not quiet.left_s:
                yield None
                quiet.end()
        if not run.is_settled:
            async for told in self.of_turn(run):
                yield told
            return
        if run.is_promoted:
            for frame in self._story(run):
                yield frame
            return
        if self.dialect.check_answer is not None and isinstance(self.request, Send):
            self.dialect.check_answer(run.task, self.request)
        yield self._message(run.task)

    async def of_repeat(self, repeat: RepeatedSend | JoinedTask) -> AsyncIterator[Frame | None]:
        """The result of an earlier send, once there is one."""
        while not await repeat.answered(KEEPALIVE_S):
            yield None
        if isinstance(self.request, Send) and self.request.takes_direct and not repeat.is_promoted:
            if self.dialect.check_answer is not None:
                self.dialect.check_answer(repeat.task, self.request)
            yield self._message(repeat.task)
            return
        for frame in self._opening(repeat.task):
            yield frame

    async def of_message(self, shown: object) -> AsyncIterator[Frame | None]:
        """The one frame of a stream that shows a message without a task."""
        yield "", shown

    async def of_snapshot(self, task: Task) -> AsyncIterator[Frame | None]:
        """The frames of a task that does not change any more."""
        for frame in self._opening(task):
            yield frame

    async def of_task(self, feed: Feed) -> AsyncIterator[Frame | None]:
        """The frames of a task as it is, and of its later events."""
        seq = feed.task.seq
        for frame in self._opening(feed.task):
            yield frame
        async for told in self.of_feed(feed, seq):
            yield told

    async def again(self, feed: Feed, missed: Sequence[TaskEvent] | None, seq: int) -> AsyncIterator[Frame | None]:
        """The frames after the event `seq`, for a caller that saw it; a snapshot if later events are not known."""
        if missed is None:
            async for told in self.of_task(feed):
                yield told
            return
        for frame in self._events(feed.task, missed):
            yield frame
        async for told in self.of_feed(feed, missed[-1].seq if missed else seq):
            yield told

    async def of_feed(self, feed: Feed, seq: int) -> AsyncIterator[Frame | None]:
        """The frames of the events after the event `seq`."""
        quiet = SilenceTimer()
        while not self._is_over(feed.task) or feed.task.seq > seq:
            if await feed.wait_for_events(seq, quiet.left_s if feed.is_fed else min(quiet.left_s, LOOK_EVERY_S)):
                frames, seq = await self._news(feed, seq)
                for frame in frames:
                    yield frame
                    quiet.end()
            if not quiet.left_s:
                yield None
                quiet.end()
            if not feed.is_fed and not await self.reader.refresh(feed):
                return

    async def _news(self, feed: Feed, seq: int) -> tuple[Iterable[Frame], int]:
        """The frames of the events after `seq`, or of the present task if not all are known; and the last seq."""
        events = feed.since(seq)
        if events is None:
            events = await self.reader.missed(feed, seq)
        if not events and feed.task.seq > seq:
            return self._opening(feed.task), feed.task.seq
        return self._events(feed.task, events or ()), events[-1].seq if events else seq

    def _story(self, run: TaskRun) -> list[Frame]:
        """The frames of a turn that ended before the stream followed it; of a refused turn only the ended task."""
        if run.is_refused:
            return self._opening(run.task)
        return [*self._opening(run.opening), *self._events(run.task, run.last_events)]

    def _message(self, task: Task) -> Frame:
        """The answer of a turn as a message that is no task."""
        return "", get_renderer(self.dialect.render_message)(task.context_id, answer_message(task))

    def _opening(self, task: Task) -> list[Frame]:
        self._render = self.dialect.follow(task)
        frame_id = self.dialect.frame_id(task.id, task.seq)
        return [(frame_id, shown) for shown in self.dialect.render_opening(task, self.request)]

    def _events(self, task: Task, events: Sequence[TaskEvent]) -> Iterator[Frame]:
        """The frames of events. If the events end more than one turn, only the last event can end the stream.

        A frame is made when the caller takes it, so that frames that are not taken use no memory.
        """
        task = after(task, events)  # what was read from the store may be further on than the feed
        render = self._render = self._render or self.dialect.follow(task)
        for event in events:
            is_last = event.seq == task.seq and self._is_over(task)
            for shown in render(task, event, is_last=is_last):
                yield self.dialect.frame_id(task.id, event.seq), shown

    def _is_over(self, task: Task) -> bool:
        """A send's stream also ends when the task waits for its caller; a subscription only with the task."""
        if task.state in OPEN:
            return False
        stays = isinstance(self.request, FollowTask) and not self.dialect.passes_ended
        return task.is_terminal or (task.is_interrupted and not stays)
