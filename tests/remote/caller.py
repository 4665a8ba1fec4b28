"""An owner's agents that are remote servers, and a caller who asks them through the core as it is."""

import itertools
import time
from collections.abc import Sequence
from typing import Any

from accounts.models import User
from accounts.tokens import get_or_create_local_user
from agents.core.dispatch import Dispatcher
from agents.core.ledger import Ledger
from agents.core.live_views import LiveViews
from agents.core.post import LocalPost
from agents.core.types import Ask, AskTarget, SettledTurn
from agents.core.waiting import RunningTurn, WaitingTurns
from agents.links.remote.approval import FRESH_S
from agents.links.remote.card import NO_AUTH, Auth
from agents.links.remote.link import RemoteLink
from agents.links.remote.publishing import find_server, publish_remote
from agents.models import Agent, RemoteServer, Turn
from agents.models.choices import Surface
from agents.models.remote import REMOTE_LINK
from agents.transcript.pieces import Part
from hub.caller_rate import CallerRate
from kit.async_db import db_call
from kit.ids import time_ordered
from tests.contracts.rows import HOME, live_process
from tests.native.rows import Person, api

_numbers = itertools.count(1)


def far_body(card_url: str, **remote: Any) -> dict[str, Any]:
    """The body for REST that publishes a remote server as `far`."""
    return {"name": "Far", "slug": "far", "status": "published", "remote": {"cardUrl": card_url, **remote}}


def publish_far(owner: Person, card_url: str, **remote: Any) -> Any:
    """The answer of REST to that."""
    return api(owner.session).post("/api/v1/agents", far_body(card_url, **remote), format="json")


class Caller:
    """One process of a hub that asks remote servers."""

    def __init__(self) -> None:
        self.later_s = 0.0  # how much later it is for the link than it was
        self.ledger = Ledger(home=HOME, carry=lambda _: None)
        waiting = WaitingTurns(self.ledger.release_turn)
        self.link = RemoteLink(waiting=waiting, clock=self._clock)
        self.dispatcher = Dispatcher(
            links={REMOTE_LINK: self.link},
            ledger=self.ledger,
            waiting=waiting,
            limits=CallerRate(0),
            live=LiveViews(process_id=HOME, post=LocalPost()),
            clock=time.monotonic,
        )

    def _clock(self) -> float:
        return time.monotonic() + self.later_s

    async def close(self) -> None:
        await self.link.close()
        await db_call(self.ledger.close)()

    def doubt_cards(self) -> None:
        """Be so late that each card is fetched anew."""
        self.later_s += FRESH_S

    async def publish(
        self, card_url: str, auth: Auth = NO_AUTH, *, keys: Sequence[Any] = (), tells: bool = False, **details: Any
    ) -> Agent:
        """Make a remote server an agent, as REST and the desk do."""
        return await db_call(_publish)(card_url, auth, keys, tells, details)

    async def start(
        self,
        agent: Agent,
        text: str,
        *,
        login: str = "alice",
        context_id: str = "",
        task_id: str = "",
        message_id: str = "",
        wait_s: float = 20,
        parts: Sequence[Part] = (),
        traceparent: str = "",
    ) -> RunningTurn:
        """Ask, and do not wait."""
        user = await db_call(get_or_create_local_user)(login)
        ask = Ask(
            chat_id=time_ordered(),
            target=AskTarget(agent.pk, agent.session_id, agent.handle),
            caller_id=user.pk,
            caller_login=login,
            surface=Surface.A2A,
            question=text,
            wait_s=wait_s,
            context_id=context_id,
            task_id=task_id,
            message_id=message_id,
            parts=tuple(parts),
            traceparent=traceparent,
        )
        return await self.dispatcher.ask(RunningTurn(ask))

    async def ask(self, agent: Agent, text: str, **more: Any) -> SettledTurn:
        """Ask, and wait for the end."""
        running = await self.start(agent, text, **more)
        return await running.settled


def _publish(card_url: str, auth: Auth, keys: Sequence[Any], tells: bool, details: dict[str, Any]) -> Agent:
    live_process()
    owner: User = get_or_create_local_user(f"far{next(_numbers)}")
    wanted = {"name": "far", "status": "published", **details}
    found = find_server(card_url, auth, keys, {"tells_caller": tells})
    return publish_remote(owner, found, wanted, slug="far").agent


async def spent_today(agent: Agent) -> int:
    """The number of questions that an agent's budget was charged with."""
    return sum([row.queries async for row in agent.usage.all()])


async def server_of(agent: Agent) -> RemoteServer:
    """The row of an agent's server, read again."""
    return await RemoteServer.objects.aget(session_id=agent.session_id)


async def turn_of(running: RunningTurn) -> Turn:
    """The row of a turn, read again."""
    return await Turn.objects.aget(chat_id=running.ask.chat_id)
