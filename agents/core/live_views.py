"""Sends frames to the operators who watch sessions, over the sockets of this process and of other processes."""

from collections.abc import Iterable
from typing import Protocol

import msgspec

from agents.core.post import Message, Post
from agents.transcript.announcements import LiveFrame, LiveMessage, RecheckAccess, encode


class Watcher(Protocol):
    """The socket of one operator of this process."""

    user_id: int

    def see(self, session_id: int, frame: bytes) -> None:
        """Queue an encoded frame for the socket; a socket whose client reads too slowly is closed."""

    def look_again(self, session_id: int) -> None:
        """Check the user's share of this session after a change; stop watching if the share is gone."""


class LiveViews:
    """Keeps the watchers of this process by session, and sends to the watchers of other processes."""

    def __init__(self, *, process_id: str, post: Post) -> None:
        self._me = process_id
        self._post = post
        self._watchers: dict[int, set[Watcher]] = {}

    def watch(self, session_id: int, watcher: Watcher) -> None:
        """Send the watcher the frames of this session; its `Attachment` row exists already."""
        self._watchers.setdefault(session_id, set()).add(watcher)

    def unwatch(self, session_id: int, watcher: Watcher) -> None:
        """Stop sending frames of this session to the watcher."""
        watchers = self._watchers.get(session_id, set())
        watchers.discard(watcher)
        if not watchers:
            self._watchers.pop(session_id, None)

    async def publish(self, processes: Iterable[str], session_id: int, message: LiveMessage) -> None:
        """Send a message to the watchers of a session, in these processes."""
        live = LiveFrame(session_id, msgspec.Raw(encode(message)))
        for process_id in processes:
            await self.send(process_id, live)

    async def send(self, process_id: str, message: LiveFrame | RecheckAccess) -> None:
        """Send a message to the watchers of a process: this one or another."""
        if process_id == self._me:
            self.take(message)
        else:
            await self._post.send(process_id, message)

    def take(self, message: Message) -> None:
        """Handle a message for watchers of this process."""
        if isinstance(message, LiveFrame):
            frame = bytes(message.frame)
            for watcher in list(self._watchers.get(message.session_id, ())):
                watcher.see(message.session_id, frame)
        elif isinstance(message, RecheckAccess):
            for watcher in list(self._watchers.get(message.session_id, ())):
                if watcher.user_id == message.user_id:
                    watcher.look_again(message.session_id)
