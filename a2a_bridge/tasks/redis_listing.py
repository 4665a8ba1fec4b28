"""A caller's tasks in Redis, a line each: enough to choose a page by, and to see what to give up."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import msgspec

from a2a_bridge.tasks.record import State, Task
from a2a_bridge.tasks.store import TaskQuery, may_run, ttl_s
from kit.clock import near_now

KEEP_OF_TEN = 9  # when there are too many: so that they are not all counted again at once


class Line(msgspec.Struct, frozen=True, array_like=True):
    """One task. Redis itself adds the bytes; the id is the line's name."""

    updated_at: str
    state: State
    handle: str
    context_id: str
    expires_ms: int
    size_bytes: int = 0
    id: str = ""

    @property
    def position(self) -> tuple[str, str]:
        """Where it stands in a list."""
        return self.updated_at, self.id


_decode = msgspec.json.Decoder(Line).decode


def line_of(task: Task) -> bytes:
    """The line of a task without its end: `,<bytes>]` follows."""
    expires_ms = _now_ms() + ttl_s(task) * 1000
    line = (task.updated_at, task.state, task.handle, task.context_id, expires_ms)
    return msgspec.json.encode(line)[:-1]


def read_lines(listing: Mapping[Any, Any]) -> list[Line]:
    """All lines of a list, whatever their age."""
    return [
        msgspec.structs.replace(_decode(line), id=task_id.decode()) for task_id, line in listing.items() if task_id
    ]


def chosen(lines: Sequence[Line], query: TaskQuery) -> list[Line]:
    """The lines that a query means on all pages, in its order."""
    now_ms = _now_ms()
    meant = [one for one in lines if one.expires_ms > now_ms and query.takes(one)]
    return sorted(meant, key=lambda one: one.position, reverse=True)


def spent(lines: Sequence[Line], *, most: int, most_bytes: int) -> list[Line]:
    """What to give up: what has expired, then the oldest that no agent works on, until a tenth is free."""
    now, now_ms = near_now(), _now_ms()
    given_up = [one for one in lines if one.expires_ms <= now_ms]
    kept = sorted((one for one in lines if one.expires_ms > now_ms), key=lambda one: one.position)
    count, size_bytes = len(kept), sum(one.size_bytes for one in kept)
    for one in kept:
        if count <= most * KEEP_OF_TEN // 10 and size_bytes <= most_bytes * KEEP_OF_TEN // 10:
            break
        if not may_run(one.state, datetime.fromisoformat(one.updated_at), now):
            given_up.append(one)
            count, size_bytes = count - 1, size_bytes - one.size_bytes
    return given_up


def _now_ms() -> int:
    return int(near_now().timestamp() * 1000)
