"""A bounded queue of frames for a socket whose client may read slowly."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress

MAX_FRAMES = 256
MAX_BYTES = 8_388_608  # a frame holds up to 1 MiB of an agent's data
CROWDED_FRAMES = 192  # with more frames than this, senders wait in `wait_for_room`
CROWDED_BYTES = 6_291_456


class FrameQueue:
    """The frames of one socket, in the order in which the hub sends them."""

    def __init__(self) -> None:
        self._frames: deque[bytes] = deque()
        self._bytes = 0
        self._is_closed = False
        self._line: asyncio.Lock | None = None  # senders wait for room one after another
        self._room: asyncio.Future[None] | None = None

    def __len__(self) -> int:
        return len(self._frames)

    def put(self, frame: bytes) -> bool:
        """Add a frame; False if the queue was over its limits and is closed: the caller then closes the socket."""
        if self._is_closed:
            return False
        self._frames.append(frame)
        self._bytes += len(frame)
        if len(self._frames) <= MAX_FRAMES and self._bytes <= MAX_BYTES:
            return True
        self.close()
        return False

    def close(self) -> None:
        """Drop the waiting frames, and refuse further ones."""
        self._is_closed = True
        self._frames.clear()
        self._bytes = 0
        self._make_room()

    async def send_all(self, send: Callable[[bytes], Awaitable[None]]) -> None:
        """Send the frames that wait, and those that are added meanwhile. Only one call may run at a time."""
        while self._frames:
            await send(self._frames[0])
            if self._frames:  # empty: the queue was closed meanwhile
                self._bytes -= len(self._frames.popleft())
                self._make_room()

    @property
    def has_room(self) -> bool:
        """True if senders need not wait."""
        return len(self._frames) < CROWDED_FRAMES and self._bytes < CROWDED_BYTES

    async def wait_for_room(self, within_s: float) -> None:
        """Wait until there is room or the time is over; waiting senders proceed one after another."""
        self._line = self._line or asyncio.Lock()
        with suppress(TimeoutError):
            async with asyncio.timeout(within_s), self._line:
                while not self.has_room:
                    self._room = asyncio.get_running_loop().create_future()
                    await self._room

    def _make_room(self) -> None:
        if self._room is not None and self.has_room and not self._room.done():
            self._room.set_result(None)
