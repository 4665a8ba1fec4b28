"""A send that begins a task in this process, at a dispatcher of the test."""

from a2a_bridge.service.calls import AgentCaller, Call
from a2a_bridge.service.exchange import Exchanges
from a2a_bridge.service.pushes import Pushes
from a2a_bridge.service.run import TaskRun
from a2a_bridge.service.tasks.feed import Feeds
from a2a_bridge.service.tasks.memory import MemoryTaskStore
from a2a_bridge.service.tasks.reader import TaskReader
from a2a_bridge.service.tasks.store import StoresById
from a2a_bridge.wire.dialects.dialect import Operation
from a2a_bridge.wire.dialects.hub import HUB
from a2a_bridge.wire.requests import Send
from a2a_bridge.wire.task import Message, Role
from accounts.authn import Identity
from agents.core.dispatch import Dispatcher
from agents.core.post import LocalPost
from agents.core.types import AskTarget
from agents.transcript.pieces import Part
from tests.contracts.stored_tasks import Clock

SEND = Send(message=Message("m", Role.USER, (Part(text="what?"),)), question="what?")


async def begin_send(dispatcher: Dispatcher) -> tuple[Exchanges, TaskRun]:
    """The exchanges of a process and the task that they began."""
    tasks, feeds, post = StoresById(MemoryTaskStore(Clock()), {}), Feeds(), LocalPost()
    exchanges = Exchanges(
        dispatcher=dispatcher,
        tasks=tasks,
        feeds=feeds,
        pushes=Pushes(feeds, TaskReader(tasks, feeds, reply_wait_s=60), post, lambda: None),
        post=post,
        reply_wait_s=60,
        process_id="here",
    )
    identity = Identity(1, "session", "", 1, "bob", is_staff=False, is_stale=False)
    caller = AgentCaller(identity, AskTarget(1, 1, "a/b"))
    call = Call(caller=caller, dialect=HUB, operation=Operation.SEND, request=SEND)
    return exchanges, await exchanges.start(call, SEND)
