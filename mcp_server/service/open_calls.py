"""The calls of tools that are being answered, and how their clients cancel them.

A client of MCP 2026 closes the stream of the call. A client of MCP 2025 sends `notifications/cancelled` with the
id of its request, by a POST that a proxy may send to any process.
"""

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import msgspec

from agents.core.post import Post
from agents.models import Process
from agents.models.session import alive_since
from agents.transcript.announcements import SurfaceMessage
from kit.async_db import db_call
from kit.clock import db_now

SURFACE = "mcp.cancel"
SESSION_HEADER = "mcp-session-id"
NOTIFICATION = "notifications/cancelled"
MAX_NAME_CHARS = 500


class CallCanceled(Exception):
    """The client canceled this call by a notification."""


class OpenCall:
    """A call of a tool while it is answered. `leaving_cancels`: a client that leaves cancels the call."""

    def __init__(self, *, leaving_cancels: bool = False) -> None:
        self.leaving_cancels = leaving_cancels
        self._is_canceled = False
        self._task: asyncio.Task[Any] | None = None

    def cancel(self) -> None:
        """End the call: its client canceled it."""
        self.leaving_cancels = self._is_canceled = True
        if self._task is not None:
            self._task.cancel()

    @contextmanager
    def run(self) -> Iterator[None]:
        """The task that runs the block answers this call.

        Raises:
            CallCanceled: the client canceled it.
        """
        if self._is_canceled:
            raise CallCanceled
        self._task = task = asyncio.current_task()
        try:
            yield
        except asyncio.CancelledError:
            if not self._is_canceled or task is None:
                raise
            task.uncancel()  # the task goes on to answer: `asyncio.timeout` looks at its count of cancellations
            raise CallCanceled from None
        finally:
            self._task = None


class RequestName(msgspec.Struct, frozen=True):
    """How a client of MCP 2025 names one of its requests. `session_id` and `user_agent`: what its requests carry.

    Each client counts its requests for itself, so two clients with one token may use the same `request_id`.
    """

    credential_id: int
    session_id: str
    user_agent: str
    request_id: int | str


def name_request(credential_id: int, headers: Mapping[str, str], request_id: object) -> RequestName | None:
    """The name of a request with this id in its body; None where no client can mean it."""
    if isinstance(request_id, bool) or not isinstance(request_id, int | str):
        return None
    session_id, user_agent = headers.get(SESSION_HEADER, ""), headers.get("user-agent", "")
    if max(len(str(request_id)), len(session_id), len(user_agent)) > MAX_NAME_CHARS:
        return None
    return RequestName(credential_id, session_id, user_agent, request_id)


class OpenCalls:
    """The calls of this process that clients of MCP 2025 can cancel, by the names of their requests."""

    def __init__(self, process_id: str, post: Post) -> None:
        self._process_id = process_id
        self._post = post
        self._open: dict[RequestName, list[OpenCall]] = {}

    @contextmanager
    def hold(self, name: RequestName | None, call: OpenCall) -> Iterator[None]:
        """While the block runs, the call can be canceled by its name."""
        if name is None:
            yield
            return
        held = self._open.setdefault(name, [])
        held.append(call)
        try:
            yield
        finally:
            held.remove(call)
            if not held:
                del self._open[name]

    async def cancel(self, name: RequestName) -> None:
        """Cancel a call, in whichever process it is answered.

        If two open calls have this name, neither is canceled: the hub cannot tell which is meant.
        """
        if self._cancel_here(name):
            return
        body = SurfaceMessage(SURFACE, msgspec.Raw(msgspec.json.encode(name)))
        for process_id in await db_call(_find_others)(self._process_id):
            await self._post.send(process_id, body)

    def take(self, body: msgspec.Raw) -> None:
        """Take a notification that another process received."""
        self._cancel_here(msgspec.json.decode(body, type=RequestName))

    def _cancel_here(self, name: RequestName) -> bool:
        found = self._open.get(name, [])
        if len(found) == 1:
            found[0].cancel()
        return bool(found)


def _find_others(process_id: str) -> list[str]:
    """The other processes that live."""
    living = Process.objects.filter(beat_at__gt=alive_since(db_now())).exclude(pk=process_id)
    return list(living.values_list("pk", flat=True))
