"""Clients that take nothing: how long the hub keeps what it has for them.

An answer that waits in the server's buffer holds its connection, and closing that in good order would wait until
it was taken: for ever, when nobody reads.
"""

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from kit.durations import seconds

TAKEN_WITHIN_S = seconds(45.0)  # a stream gives up on its reader after 30, and says so in its log
TAKEN_S = seconds(6.0)  # gained by emptying the buffer of about 48 KiB: 8 KiB a second may be taken for ever


class PatientHttp(HttpToolsProtocol):
    """Tears a connection down whose buffer stays full for `taken_within_s`, or nearly so for longer."""

    taken_within_s = TAKEN_WITHIN_S

    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        self._giving_up: asyncio.TimerHandle | None = None
        self._left_s = self.taken_within_s
        self._paused_at = 0.0

    def pause_writing(self) -> None:
        """The buffer is full."""
        super().pause_writing()
        self._paused_at = self.loop.time()
        self._giving_up = self.loop.call_later(self._left_s, self.transport.abort)

    def resume_writing(self) -> None:
        """There is room again."""
        self._stay()
        used_s = self.loop.time() - self._paused_at
        self._left_s = min(self._left_s - used_s + TAKEN_S, self.taken_within_s)
        super().resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        """It is over, from whichever side."""
        self._stay()
        super().connection_lost(exc)

    def _stay(self) -> None:
        if self._giving_up is not None:
            self._giving_up.cancel()
            self._giving_up = None
