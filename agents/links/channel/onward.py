"""One agent's requests: each in a task of the link, so many at once, refused while the agent is isolated."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from agents.links.channel import refusals
from agents.links.channel.frame import Frame
from agents.links.channel.request_frames import AgentsRequest, Request
from agents.links.channel.requests import Behalf, Errand, Requests, Say

AT_ONCE = 20

Start = Callable[[Coroutine[Any, Any, None], str], None]


class Onward:
    """The requests of one connection: admitted in the order in which they came, and waited for all at once.

    A request stops waiting when the agent is gone.
    """

    def __init__(self, *, requests: Requests, start: Start, say: Say) -> None:
        self._requests = requests
        self._start = start
        self._say = say
        self._open = 0
        self._gone: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._in_order = asyncio.Lock()

    def take(self, request: Request, behalf: Behalf) -> list[Frame]:
        """Begin to serve a request; the frames that refuse it when it may not be served now."""
        if behalf.isolated and not isinstance(request, AgentsRequest):
            return refusals.refuse(request, "isolated", refusals.ISOLATED, login=behalf.asker.login)
        if self._open >= AT_ONCE:
            return refusals.refuse(request, "too_many_requests", refusals.TOO_MANY, login=behalf.asker.login)
        self._open += 1
        self._start(self._serve(request, behalf), "request of an agent")
        return []

    def end(self) -> None:
        """The agent is gone. What it asked for its owner goes on; the rest ends with the turns it was asked in."""
        if not self._gone.done():
            self._gone.set_result(None)

    async def _serve(self, request: Request, behalf: Behalf) -> None:
        try:
            await self._requests.serve(request, Errand(behalf, self._say, self._gone, self._in_order))
        finally:
            self._open -= 1
