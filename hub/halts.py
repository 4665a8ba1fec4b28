"""Ends what halted agents, owners and callers have open in this process (docs/adr/0060)."""

from agents import halting
from agents.dispatch import HALTED
from agents.halting import Active
from hub.wiring import House
from kit.async_db import db_call
from kit.sockets import TRY_AGAIN_LATER


class Halts:
    """Looks for halts; call `look` several times a second.

    Turns end first, so that whoever waits for one is told so; what is open a look later is closed.
    """

    def __init__(self, house: House) -> None:
        self._house = house
        self._known: set[int] = set()

    async def look(self) -> None:
        """End turns under every halt; close sockets and streams under those that were there before.

        Where nothing is open nothing is looked for: what begins later is refused at admission.
        """
        if not self._may_end_something:
            self._known = set()
            return
        halts = await db_call(halting.active)()
        ripe = [one for one in halts if one.id in self._known]
        self._known = {one.id for one in halts}
        if halts and self._house.dispatcher.open_turns:
            for chat_id in await db_call(halting.turns_under)(halts, self._house.process_id):
                self._house.dispatcher.cancel(chat_id, HALTED)
        if ripe:
            await self._close(ripe)

    @property
    def _may_end_something(self) -> bool:
        house = self._house
        held = house.callers.credential_ids or house.room.credential_ids
        return bool(house.dispatcher.open_turns or house.link.sessions or held)

    async def _close(self, halts: list[Active]) -> None:
        link, callers, room = self._house.link, self._house.callers, self._house.room
        if link.sessions:
            for connection_id in await db_call(halting.connections_under)(halts, self._house.process_id):
                if socket := link.socket(connection_id):
                    link.start(socket.leave(TRY_AGAIN_LATER, bye="halted"), "halted")
        if held := callers.credential_ids | room.credential_ids:
            halted = await db_call(halting.credentials_under)(halts, held)
            callers.dismiss(halted)
            room.halt(halted)
