"""The rows that timers of a process look for in the database: rows that wait, and users and agents whose access
has ended.

Every process polls rows. An embedded hub first asks SQLite whether any program has committed since the last look,
which costs microseconds (docs/adr/0060).
"""

import sqlite3
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import datetime
from pathlib import Path

from accounts.authn import still_good
from agents.core import halt_rules, presence
from agents.core.dispatch import ACCESS_ENDED, HALTED
from agents.core.halt_rules import ActiveHalt
from agents.core.lost_access import find_asks_without_access
from agents.models.choices import TurnFailure
from hub.wiring import HubServices
from kit.async_db import DbCall
from kit.clock import approximate_now
from kit.sockets import TRY_AGAIN_LATER
from operators.service.session_views import find_lost_views

Version = tuple[int, int]


class Changes:
    """The commits to a database that other machines write to are unknown: every look reads the tables."""

    def version(self) -> Version | None:
        """A version that differs after each commit; None: unknown."""
        return None

    def close(self) -> None:
        """Close what a look needs; the next call of `version` opens it again."""


class SqliteChanges(Changes):
    """Notices commits to a SQLite file by any program (docs/adr/0060). Use each instance in one thread.

    The hub's connections stay with the file that they opened: a database is replaced while the hub is stopped.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._connection: sqlite3.Connection | None = None
        self._opened = 0

    def version(self) -> Version | None:
        """See `Changes`. The call takes microseconds and waits for no lock."""
        try:
            if self._connection is None:
                address = f"{self._path.absolute().as_uri()}?mode=rw"
                self._connection = sqlite3.connect(address, timeout=0, uri=True)
                self._opened += 1  # each connection counts from its own beginning
            commits: int = self._connection.execute("PRAGMA data_version").fetchone()[0]
        except sqlite3.Error:
            self.close()
            return None
        return self._opened, commits

    def close(self) -> None:
        """Close the connection."""
        if self._connection is not None:
            with suppress(sqlite3.Error):
                self._connection.close()
            self._connection = None


class WaitingRows:
    """Runs a timer's work while any row waits, for its time or for an agent; after that, only a commit adds one.

    `are_any`: whether a row waits, asked of the database in another thread.
    """

    def __init__(
        self, changes: Changes, call: DbCall, are_any: Callable[[], bool], work: Callable[[], Awaitable[object]]
    ) -> None:
        self._changes = changes
        self._call = call
        self._are_any = are_any
        self._work = work
        self._empty_at: Version | None = None  # the version of the database in which no row waited

    async def look(self) -> None:
        """Run the work, unless no row waits."""
        version = self._changes.version()
        if version is not None and version == self._empty_at:
            return
        self._empty_at = None
        if await self._call(self._are_any):
            await self._work()
        else:
            self._empty_at = version


class Revocations:
    """Closes sockets and streams of a revoked or expired token, a suspended user or a share taken back, and ends
    asks of callers who may not ask the agent any more, in 2 s (docs/adr/0060, 0191). Call `look` each second.
    """

    def __init__(self, hub_services: HubServices, changes: Changes, call: DbCall) -> None:
        self._hub_services = hub_services
        self._changes = changes
        self._call = call
        self._read_at: Version | None = None  # the version of the database at the last look at the rows
        self._held: set[int] = set()
        self._expires_at: datetime | None = None

    async def look(self) -> None:
        """Close sockets and streams. Reads the rows after a commit, other held credentials, or an expiry."""
        hub_services = self._hub_services
        held = hub_services.callers.credential_ids | hub_services.operator_sockets.credential_ids
        if not held and not hub_services.link.sockets and not hub_services.dispatcher.open_turns:
            self._read_at = None
            return
        version, now = self._changes.version(), approximate_now()
        is_expired = self._expires_at is not None and now >= self._expires_at
        if version is not None and version == self._read_at and held == self._held and not is_expired:
            return
        self._read_at = None  # until this look has succeeded: after a failure the next look reads the rows again
        has_found = await self._close(held)
        # Found sockets: look again, because such a socket may be attached only in this moment.
        self._read_at, self._held = None if has_found else version, held
        if version is not None:
            self._expires_at = await self._call(presence.find_next_expiry, hub_services.process_id, held, now)

    async def _close(self, held: set[int]) -> bool:
        """Close what the rows have ended; whether there was anything."""
        hub_services = self._hub_services
        link, operator_sockets = hub_services.link, hub_services.operator_sockets
        found: list[object] = []
        if link.sockets:
            for connection_id in await self._call(presence.find_revoked, hub_services.process_id):
                found.append(connection_id)
                if socket := link.socket(connection_id):
                    link.start(socket.refuse("token_revoked", "this token was revoked"), "revoked")
        if held:
            gone = held - await self._call(still_good, held)
            found += gone
            hub_services.callers.dismiss(gone)
            operator_sockets.dismiss(gone)
        if hub_services.dispatcher.open_turns:
            for chat_id in await self._call(find_asks_without_access, hub_services.process_id):
                found.append(chat_id)
                hub_services.dispatcher.cancel(chat_id, ACCESS_ENDED)
        if operator_sockets.credential_ids:
            for lost in await self._call(find_lost_views, hub_services.process_id):
                found.append(lost)
                hub_services.live.take(lost)
        return bool(found)


class Halts:
    """Ends turns, sockets and streams of halted agents, owners and callers in this process (docs/adr/0060).

    Call `look` several times a second. Turns end first, so that their callers get an answer; the next look closes
    open sockets and streams.
    """

    def __init__(self, hub_services: HubServices, changes: Changes, call: DbCall) -> None:
        self._hub_services = hub_services
        self._changes = changes
        self._call = call
        self._read_at: Version | None = None  # the version of the database at the last look at the rows
        self._known: set[int] = set()

    async def look(self) -> None:
        """End turns under every halt; close sockets and streams under halts that the last look knew.

        A process with nothing open reads no rows: admission refuses later asks. If there are no halts, the rows
        are read again only when the database has changed.
        """
        if not self._may_end_something:
            self._known, self._read_at = set(), None
            return
        version = self._changes.version()
        if version is not None and version == self._read_at and not self._known:
            return
        self._read_at = None  # until this look has succeeded: after a failure the next look reads the rows again
        halts = await self._call(halt_rules.load_active_halts)
        ripe = [one for one in halts if one.id in self._known]
        self._known = {one.id for one in halts}
        if halts and self._hub_services.dispatcher.open_turns:
            for chat_id in await self._call(halt_rules.find_halted_turns, halts, self._hub_services.process_id):
                self._hub_services.dispatcher.cancel(chat_id, HALTED)
        if ripe:
            await self._close(ripe)
        self._read_at = version

    @property
    def _may_end_something(self) -> bool:
        hub_services = self._hub_services
        held = hub_services.callers.credential_ids or hub_services.operator_sockets.credential_ids
        return bool(hub_services.dispatcher.open_turns or hub_services.link.sessions or held)

    async def _close(self, halts: list[ActiveHalt]) -> None:
        link, callers, operator_sockets = (
            self._hub_services.link,
            self._hub_services.callers,
            self._hub_services.operator_sockets,
        )
        if link.sessions:
            for connection_id in await self._call(
                halt_rules.find_halted_connections, halts, self._hub_services.process_id
            ):
                if socket := link.socket(connection_id):
                    # A process that has not looked yet gets the reason of its turns from the socket.
                    leaving = socket.close_from_hub(TRY_AGAIN_LATER, bye="halted", reason=TurnFailure.HALTED)
                    link.start(leaving, "halted")
        if held := callers.credential_ids | operator_sockets.credential_ids:
            halted = await self._call(halt_rules.find_halted_credentials, halts, held)
            callers.dismiss(halted)
            operator_sockets.halt(halted)
