"""Closes the sockets and streams of users and agents whose access has ended, by a halt, a revocation or expiry.

Rows in the database record this, and every process polls the rows. An embedded hub first asks SQLite whether any
program has committed since the last look, which costs microseconds (docs/adr/0060).
"""

from datetime import datetime

from accounts.authn import still_good
from agents.core import halt_rules, presence
from agents.core.dispatch import HALTED
from agents.core.halt_rules import ActiveHalt
from agents.models.choices import Failure
from hub.changes import Changes, Version
from hub.services import HubServices
from kit.async_db import DbCall
from kit.clock import approximate_now
from kit.sockets import TRY_AGAIN_LATER
from operators.service.attachments import find_lost_views


class Revocations:
    """Closes sockets and streams of a revoked or expired token, a suspended user or a share taken back, in 2 s
    (docs/adr/0020). Call `look` each second.
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
        if not held and not hub_services.link.sockets:
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

        A process with nothing open reads no rows: admission refuses later asks. Without halts the rows are read
        again only when the database has changed.
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
                    leaving = socket.close_from_hub(TRY_AGAIN_LATER, bye="halted", reason=Failure.HALTED)
                    link.start(leaving, "halted")
        if held := callers.credential_ids | operator_sockets.credential_ids:
            halted = await self._call(halt_rules.find_halted_credentials, halts, held)
            callers.dismiss(halted)
            operator_sockets.halt(halted)
