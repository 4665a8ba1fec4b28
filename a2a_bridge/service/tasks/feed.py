"""The events of one task as this process knows them; every stream of the task follows them."""

from collections.abc import Sequence
from weakref import WeakValueDictionary

from a2a_bridge.wire.task import Task, TaskEvent, after
from kit.tasks import TaskSet, Waiters


class Feed:
    """The events of a task from some moment on. A feed has any number of streams, each at its own pace.

    The feed exists as long as a turn of this process, or a stream, refers to it. `is_fed`: that turn adds each
    event; else the streams read the store (`TaskReader.refresh`). `has_pushes`: this process knows of push
    addresses of the task.
    """

    def __init__(self, task: Task) -> None:
        self.task = task
        self.is_fed = False
        self.has_pushes = False
        self.looked_at = 0.0
        self._first = task.seq
        self._events: list[TaskEvent] = []
        self._followers = Waiters()

    def add(self, task: Task, events: Sequence[TaskEvent]) -> bool:
        """Add events that were committed; `task` is what it became. False: all were known.

        If another process committed events in between, the feed begins anew with these: followers find the events
        in between in the store.
        """
        new = [event for event in events if event.seq > self.task.seq]
        if not new:
            return False
        if new[0].seq > self.task.seq + 1:
            self._first, self._events = new[0].seq - 1, []
        self._events += new
        self.task = after(task, new)
        if self.task.seq > new[-1].seq:
            self._first, self._events = self.task.seq, []
        self.wake_readers()
        return True

    def end(self, task: Task, events: Sequence[TaskEvent]) -> None:
        """Add the last events of the turn of this process, after which streams read the store."""
        self.is_fed = False
        if not self.add(task, events):
            self.wake_readers()

    def skip_to(self, task: Task) -> None:
        """Begin anew with the present task, because the events before it are not known in this process."""
        if task.seq > self.task.seq:
            self.task, self._first, self._events = task, task.seq, []
            self.wake_readers()

    def since(self, seq: int) -> Sequence[TaskEvent] | None:
        """The events after the event `seq`; None when the feed does not have all of them."""
        return self._events[seq - self._first :] if seq >= self._first else None

    async def wait_for_events(self, seq: int, within_s: float) -> bool:
        """Wait for an event after `seq`, or for `wake_readers`; False when neither came in time."""
        return self.task.seq > seq or await self._followers.wait(within_s)

    def wake_readers(self) -> None:
        """Wake all streams that wait for news."""
        self._followers.wake()


class Feeds:
    """The feeds of this process. `recording`: what keeps events of its turns as they come."""

    def __init__(self) -> None:
        self._feeds: WeakValueDictionary[str, Feed] = WeakValueDictionary()
        self.recording = TaskSet()

    def find(self, task_id: str) -> Feed | None:
        """The feed of a task, if a turn or a stream holds one."""
        return self._feeds.get(task_id)

    def of(self, task: Task) -> Feed:
        """The feed of a task in this process; a new feed begins with the present task."""
        feed = self._feeds.get(task.id)
        if feed is None:
            feed = self._feeds[task.id] = Feed(task)
        return feed
