"""An entry of a session: as a line of `session.jsonl`, and sealed as a row."""

from hashlib import sha256
from typing import Any

import msgspec
from msgspec import Struct

from accounts import sealing
from accounts.sealing import Unreadable
from gateway.models import HeldEntry, SessionEntry
from gateway.wire.errors import ErrorCode, FrameRefused

PURPOSE = b"a2a-v1 sessions"
PAIR_CHARS = 20


class Entry(Struct, frozen=True, kw_only=True):
    """The content of one message. `content`: text or an object. `id`: empty for a message without an id."""

    timestamp_ms: int
    role: str
    content: Any
    id: str = ""

    def show(self, session_id: str) -> dict[str, Any]:
        """As a line of a session has it."""
        shown = {
            "timestamp": self.timestamp_ms,
            "role": self.role,
            "content": self.content,
            "sessionId": session_id,
        }
        return {**shown, "id": self.id} if self.id else shown

    def line(self, session_id: str) -> bytes:
        """Its line of `session.jsonl`."""
        return msgspec.json.encode(self.show(session_id)) + b"\n"


class Place(Struct, frozen=True):
    """Where a message of a team and its reply belong: in the sessions of `agents`, its sender and its recipient.

    `writer`: the name of the sender's seat, or `@login`. `session_id` empty: the session that the gateway
    keeps for this pair of writer and recipient.
    """

    owner_id: int
    agents: tuple[str, ...]
    writer: str
    recipient: str
    session_id: str

    @property
    def base_id(self) -> str:
        """The id of its session; the first one that it may have, where the gateway chose it."""
        if self.session_id:
            return self.session_id
        pair = f"{self.writer} {self.recipient}"
        return f"auto-{sha256(pair.encode()).hexdigest()[:PAIR_CHARS]}"


class Record(Struct, frozen=True):
    """An entry and its place. `key`: that of its `HeldEntry`; empty: none. `sealed`: the encrypted content."""

    place: Place
    entry: Entry
    key: str = ""
    sealed: str = ""


def make_place(owner_id: int, login: str, sender: str, recipient: str, session_id: str) -> Place:
    """Where a message of one team belongs. `sender`: the name of its seat; empty: a client sent it."""
    agents = (recipient,) if sender in ("", recipient) else (sender, recipient)
    return Place(owner_id, agents, sender or f"@{login}", recipient, session_id)


def make_row(log_id: int, session_id: str, entry: Entry, sealed: str) -> SessionEntry:
    """An entry as a row that is not written yet."""
    return SessionEntry(
        log_id=log_id,
        entry_id=entry.id,
        timestamp_ms=entry.timestamp_ms,
        role=entry.role,
        content=sealed,
        bytes=len(entry.line(session_id)),
    )


def read_row(row: SessionEntry) -> Entry:
    """The entry of a row.

    Raises:
        FrameRefused: 4004, it cannot be read.
    """
    try:
        content = open_content(row.content)
    except Unreadable:
        text = "an entry of this session cannot be read"
        raise FrameRefused(ErrorCode.SESSION_CORRUPT, text, reason="unreadable") from None
    return Entry(timestamp_ms=row.timestamp_ms, role=row.role, content=content, id=row.entry_id)


def seal_content(content: Any) -> str:
    """The content of an entry as it is stored."""
    return sealing.seal_json(content, PURPOSE)


def open_content(sealed: str) -> Any:
    """The content of an entry from its row.

    Raises:
        Unreadable: the content is damaged.
    """
    return sealing.open_json(sealed, PURPOSE)


def show_content(sealed: str) -> Any:
    """The content of an entry for an export of all rows; None when it is damaged."""
    try:
        return open_content(sealed)
    except Unreadable:
        return None


def reseal_entries() -> tuple[int, int]:
    """Seal all entries anew with the newest key; how many were, and how many could not be read."""
    done, unreadable = sealing.reseal_all(SessionEntry.objects.all(), PURPOSE, "content")
    held_done, held_unreadable = sealing.reseal_all(HeldEntry.objects.all(), PURPOSE, "content")
    return done + held_done, unreadable + held_unreadable
