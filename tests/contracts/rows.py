"""A hub's rows without a hub: agents that are online, callers who ask, and the ledger's own batch."""

import asyncio
import itertools
from dataclasses import dataclass

from accounts.models import Credential, User
from accounts.tokens import get_or_create_local_user, mint
from agents.core.ledger import Ledger
from agents.core.ledger.batch import commit
from agents.core.ledger.work import Admit, ExtraWrites, Release, Result, Settle, Work
from agents.core.types import Ask, AskTarget, OpenTurn, SettledTurn, TurnEnding
from agents.models import Agent, Connection, DailyUsage, Process, Session, Turn
from agents.models.choices import Outcome, Surface
from kit.clock import db_now
from kit.ids import time_ordered

HOME = "home-process"
_numbers = itertools.count(1)


@dataclass(frozen=True)
class Published:
    """An agent that callers may ask."""

    agent: Agent
    ref: AskTarget

    @property
    def spent(self) -> int:
        return sum(DailyUsage.objects.filter(agent=self.agent).values_list("queries", flat=True))

    @property
    def turns(self) -> list[Turn]:
        return list(Turn.objects.filter(agent=self.agent).order_by("pk"))


def settling(
    ledger: Ledger, turn: OpenTurn, ending: TurnEnding, extra_writes: ExtraWrites | None = None
) -> "asyncio.Future[SettledTurn | Exception]":
    """The future of the end that stands."""
    ended: asyncio.Future[SettledTurn | Exception] = asyncio.get_running_loop().create_future()
    ledger.settle(turn, ending, ended.set_result, extra_writes)
    return ended


def user(login: str) -> User:
    return get_or_create_local_user(login)


def live_process(process_id: str = HOME) -> Process:
    """A process with a heartbeat of now."""
    now_beating = {"host": "test", "pid": 1, "beat_at": db_now()}
    return Process.objects.update_or_create(id=process_id, defaults=now_beating)[0]


def published(*, online: bool = True, **fields: object) -> Published:
    """A published agent of a fresh owner."""
    owner = user(f"owner{next(_numbers)}")
    session = Session.objects.create(owner=owner, routing_name="desk")
    handle = f"{owner.login}/desk"
    agent = Agent(owner=owner, session=session, handle=handle, handle_key=handle, name="desk", status="published")
    for name, value in fields.items():
        setattr(agent, name, value)
    agent.save()
    if online:
        token = mint(owner, Credential.Kind.CHANNEL, "test").credential
        Connection.objects.create(session=session, process=live_process(), credential=token)
    return Published(agent, AskTarget(agent.pk, session.pk, handle))


def ask(agent: Published, caller: str = "alice", *, wait_s: float = 60) -> Ask:
    """One question of a caller, not decided yet."""
    return Ask(
        chat_id=time_ordered(),
        target=agent.ref,
        caller_id=user(caller).pk,
        caller_login=caller,
        surface=Surface.A2A,
        question="what?",
        wait_s=wait_s,
    )


ASK = Ask(  # of no row in the database
    chat_id="c",
    target=AskTarget(1, 1, "a/b"),
    caller_id=1,
    caller_login="al",
    surface=Surface.A2A,
    question="what?",
    wait_s=60,
)


def decide(*asks: Ask, home: str = HOME) -> list[Result]:
    """The results of these asks in one batch."""
    return list(commit([Admit(one) for one in asks], home=home).results)


def admitted(one: Ask) -> OpenTurn:
    """The turn of an ask that must be admitted."""
    (turn,) = decide(one)
    assert isinstance(turn, OpenTurn), turn
    return turn


COMPLETED = TurnEnding(outcome=Outcome.COMPLETED, text="so", latency_ms=5)


def end(turn: OpenTurn, ending: TurnEnding = COMPLETED) -> Result:
    """Settle one turn."""
    return commit([Settle(turn, ending)], home=HOME).results[0]


def release(*, chat_id: str | None = None, session_id: int | None = None) -> None:
    """Free lingering claims."""
    work: list[Work] = [Release(chat_id, session_id)]
    commit(work, home=HOME)
