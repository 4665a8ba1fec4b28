"""Sending the agents of a process that drains elsewhere, one after the other: they would all come back at once."""

import time

from agents.links.channel.link import ChannelLink, Socket
from kit.durations import seconds
from kit.sockets import SERVICE_RESTART
from kit.tasks import TaskSet

SPREAD_S = seconds(4.0, at_least_s=2.0)  # so that a quarter comes back in any second: clients wait 1 to 1.2 s
FEW_A_SECOND = 20.0
SAID_WITHIN_S = 2.0


class Goodbyes:
    """To the sockets of one process, whose turns are over first."""

    def __init__(self, link: ChannelLink) -> None:
        self._link = link
        self._began = time.monotonic()
        self._a_second = max(FEW_A_SECOND, len(link.sockets) / SPREAD_S)
        self._told = 0
        self._telling = TaskSet()

    def say_some(self) -> None:
        """To as many idle ones as it is time for; later nothing is asked of those who stay."""
        for_s = time.monotonic() - self._began
        self._link.refuses_far_prompts = for_s >= SPREAD_S
        due = 1 + int(for_s * self._a_second) - self._told
        idle = [socket for socket in self._link.sockets if socket.is_idle(time.monotonic())]
        self._say(idle[: max(0, due)])

    def say_all(self) -> None:
        """To everybody who is left, whatever is open."""
        self._link.refuses_far_prompts = True
        self._say(self._link.sockets)

    async def said(self) -> None:
        """Wait until all were heard, or will not be."""
        await self._telling.wait(SAID_WITHIN_S)

    def _say(self, sockets: list[Socket]) -> None:
        for socket in sockets:
            self._telling.start(socket.leave(SERVICE_RESTART, bye="restart"), name="goodbye")
            self._told += 1
