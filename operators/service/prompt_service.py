"""Starts the prompts, routes and probes of operators, from REST and sockets. It waits for no agent."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace

from agents.core.ask_starter import TURN_WAIT_S, Asker, AskStarter
from agents.core.errors import Denied, FileGone, NotPublished, Unavailable
from agents.core.waiting import RunningTurn
from agents.models.choices import Surface
from kit.async_db import db_call
from operators.service.prompting import (
    ProbeTarget,
    PromptRequest,
    check_files,
    find_probe_targets,
    find_route_target,
    prepare,
)
from operators.wire.shapes import Mode


@dataclass(frozen=True, slots=True)
class SentPrompt:
    """A prompt that is on its way. `routed_to`: the handle of the agent its text named."""

    chat_id: str
    routed_to: str | None


@dataclass(frozen=True, slots=True)
class SentRoute:
    """An ask that is under way, and the public id of the session asked."""

    running: RunningTurn
    session_id: str

    @property
    def chat_id(self) -> str:
        """Its name."""
        return self.running.turn.ask.chat_id


class PromptService:
    """Starts asks for operators. `reply_wait_s`: how long the caller of a routed ask waits."""

    def __init__(self, *, asking: AskStarter, reply_wait_s: float) -> None:
        self._asking = asking
        self.reply_wait_s = reply_wait_s

    async def prompt(self, asker: Asker, wanted: PromptRequest, *, surface: Surface) -> SentPrompt:
        """Prompt a session, or whom the text names instead.

        Raises:
            One of `operators.wire.errors.REFUSED`: nothing was sent.
        """
        prepared = await db_call(prepare)(wanted, asker.user_id)
        running = await self._asking.ask(
            asker,
            prepared.target,
            prepared.text,
            surface=surface,
            tells=True,
            source=prepared.source,
            files=prepared.files,
        )
        return SentPrompt(running.turn.ask.chat_id, prepared.routed_to)

    async def route(self, asker: Asker, peer: str, prompt: str, mode: Mode) -> SentRoute:
        """Ask or tell one peer or agent by name.

        Raises:
            One of `operators.wire.errors.REFUSED`: nothing was sent.
        """
        reached = await db_call(find_route_target)(peer, prompt, asker.user_id)
        tells = mode == "tell"
        running = await self._asking.ask(
            asker,
            reached.target,
            prompt,
            surface=Surface.ROUTE,
            wait_s=TURN_WAIT_S if tells else self.reply_wait_s,
            tells=tells,
            files=reached.files,
        )
        return SentRoute(running, reached.session_id)

    async def probe(self, asker: Asker, prompt: str, peers: Sequence[str] | None) -> list[ProbeTarget]:
        """Tell many peers the same; each with what became of it.

        Raises:
            FilesRefused: nothing was sent.
        """
        files = await db_call(check_files)(prompt, asker.user_id)
        found = await db_call(find_probe_targets)(peers, asker.user_id)
        return await asyncio.gather(*(self._tell(asker, one, prompt, files) for one in found))

    async def _tell(self, asker: Asker, probed: ProbeTarget, prompt: str, files: tuple[int, ...]) -> ProbeTarget:
        if probed.target is None:
            return probed
        status = "sent"
        try:
            await self._asking.ask(asker, probed.target, prompt, surface=Surface.PROBE, tells=True, files=files)
        except Denied as denied:
            status = denied.reason
        except (NotPublished, FileGone):
            status = "not_found"
        except Unavailable:
            status = "unavailable"
        return replace(probed, status=status)
