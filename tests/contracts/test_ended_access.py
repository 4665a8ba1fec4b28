"""A process that sees a halt, and one that has not looked yet: the turns of both end as halted."""

import time
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest
from django.db import DatabaseError, connection

from accounts.open_requests import UnsignedSockets
from agents.core import halt_rules
from agents.core.halt_rules import ActiveHalt, HaltSubject, Kind
from agents.core.lost_access import find_asks_without_access
from agents.core.post import Final, LocalPost, Message, PostedPrompt
from agents.core.types import Ask
from agents.core.waiting import WaitingTurns
from agents.links.channel.arrivals import Arrivals
from agents.links.channel.driving import register_agents
from agents.links.channel.socket import AgentSocket
from agents.links.sockets import SocketLink
from agents.models import Connection, Halt
from agents.models.choices import TurnFailure
from hub.polling import Changes, Halts, Version
from kit.account_pace import AccountPaces
from kit.async_db import DbCalls, db_call
from lab.waiting import eventually
from tests.contracts.rows import HOME, admitted, ask, published
from tests.plans import plans_of_turns

pytestmark = pytest.mark.django_db(transaction=True)
LATE = "late-process"


class Noted(LocalPost):
    """Records the messages to another process."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, Message]] = []

    async def send(self, process_id: str, message: Message) -> bool:
        self.sent.append((process_id, message))
        return True


class AgentOfOne(AgentSocket):
    """The socket of an agent that is registered."""

    session_id = 1


async def send_nowhere(message: Any) -> None:
    """Discard a frame for the agent."""


async def never(*_: object) -> None:
    raise AssertionError("no reply comes late")


def open_turn() -> tuple[int, Ask]:
    """A turn of the late process, with its connection; the agent is halted."""
    agent = published()
    asked = ask(agent)
    connection_id = admitted(asked).connection_id
    halt_rules.halt_subject(HaltSubject(Kind.AGENT, agent=agent.agent), by=None, by_staff=True)
    assert Connection.objects.get(pk=connection_id).process_id == HOME
    return connection_id, asked


def make_services(link: SocketLink) -> Any:
    """The parts of a process that `Halts` uses; only sockets are open here."""
    nothing = SimpleNamespace(credential_ids=set[int](), dismiss=lambda gone: None, halt=lambda gone: None)
    return SimpleNamespace(
        link=link,
        callers=nothing,
        operator_sockets=nothing,
        dispatcher=SimpleNamespace(open_turns=0),
        process_id=HOME,
    )


async def test_a_turn_of_a_process_that_has_not_looked_yet_ends_as_halted() -> None:
    connection_id, asked = await db_call(open_turn)()
    post = Noted()
    link = SocketLink(process_id=HOME, post=post, waiting=WaitingTurns(never))
    unused: Any = None
    arrivals = Arrivals(link, AccountPaces(0), partial(register_agents, process_id=HOME))
    socket = AgentOfOne(
        link=link, ledger=unused, requests=unused, follow_ups=unused, meter=unused, process_id=HOME,
        clock=time.monotonic, unsigned=UnsignedSockets(), arrivals=arrivals,
    )  # fmt: skip
    socket.base_send = send_nowhere
    link.attach(connection_id, socket)
    await socket.prompt(
        PostedPrompt(asked.chat_id, connection_id, LATE, asked.caller_login, asked.question, asked.wait_s)
    )
    halts = Halts(make_services(link), Changes(), DbCalls(1))
    await halts.look()
    assert not socket.is_over
    await halts.look()

    async def has_left() -> bool:
        return bool(post.sent)

    await eventually(has_left, "the open prompt fails")
    ((process_id, final),) = post.sent
    assert process_id == LATE
    assert isinstance(final, Final)
    assert final.reason == TurnFailure.HALTED
    await link.close()


def rename(table: str, name: str) -> None:
    with connection.schema_editor() as editor:
        editor.execute(f"ALTER TABLE {table} RENAME TO {name}")


class Unchanged:
    """A database to which nothing is committed."""

    def version(self) -> Version | None:
        return 1, 1


async def test_a_look_that_failed_is_made_again() -> None:
    """Otherwise a halt would wait until another program writes something."""
    _, asked = await db_call(open_turn)()
    link = SocketLink(process_id=HOME, post=LocalPost(), waiting=WaitingTurns(never))
    services, canceled = make_services(link), list[str]()
    services.dispatcher = SimpleNamespace(open_turns=1, cancel=lambda chat_id, ending: canceled.append(chat_id))
    halts = Halts(services, Unchanged(), DbCalls(1))
    await db_call(rename)(Halt._meta.db_table, "away")
    with pytest.raises(DatabaseError):
        await halts.look()
    await db_call(rename)("away", Halt._meta.db_table)
    await halts.look()
    assert canceled == [asked.chat_id]


def test_looks_read_open_turns_and_not_all_turns() -> None:
    """The looks are repeated several times a second; a hub keeps millions of ended turns."""
    halts = [
        ActiveHalt(1, Kind.AGENT, 1, None),
        ActiveHalt(2, Kind.OWNER, None, 1),
        ActiveHalt(3, Kind.CALLER, None, 1),
    ]
    with plans_of_turns() as plans:
        find_asks_without_access(HOME)
        halt_rules.find_halted_turns(halts, HOME)
    assert len(plans) == 2
    for plan in plans:
        assert "SEARCH agents_turn USING INTEGER PRIMARY KEY" in plan
        assert "SCAN U0 USING INDEX turn_holding_a_session" in plan
