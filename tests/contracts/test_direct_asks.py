"""A plain ask that is answered by callbacks: one response, whatever comes in which order."""

import asyncio
import json
from collections.abc import AsyncIterator, Coroutine, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from accounts.models import Credential
from accounts.tokens import mint
from agents.core.post import Final
from agents.models import Connection
from hub.asgi import ask_in_context
from hub.wiring import HubServices
from kit.asgi import Exchange, Header, HttpRequest, Message
from kit.async_db import db_call
from kit.trace import current_span, current_turn
from lab.waiting import eventually
from tests.contracts.desks import Desk
from tests.contracts.rows import Published, live_process, published, user

pytestmark = [pytest.mark.django_db(transaction=True)]
QUESTION = {
    "jsonrpc": "2.0",
    "id": "1",
    "method": "SendMessage",
    "params": {"message": {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "what?"}]}},
}


@dataclass
class Responses:
    """What the server is told of one request. Tasks of the request begin when the test says so."""

    whole: list[tuple[int, bytes]] = field(default_factory=list)
    tasks: list[Coroutine[Any, Any, None]] = field(default_factory=list)

    async def receive(self) -> Message:
        await asyncio.Event().wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Any) -> None:
        raise NotImplementedError(message["type"])  # all responses here are whole

    def respond(self, status: int, headers: Iterable[Header], body: bytes) -> None:
        self.whole.append((status, body))

    def begin_now(self, status: int, headers: Iterable[Header]) -> bool:
        raise NotImplementedError

    def write_now(self, piece: bytes, *, is_last: bool) -> bool:
        raise NotImplementedError

    def check_client(self) -> None:
        """The client stays."""

    def run(self, work: Coroutine[Any, Any, None]) -> None:
        self.tasks.append(work)


@dataclass
class Asking:
    """A hub, an agent, and a caller with a token."""

    services: HubServices
    desk: Desk
    agent: Published
    secret: str
    credential_id: int

    async def ask(self, secret: str | None = None) -> Responses:
        """Ask; returns the responses so far. The prompt, if there is one, was delivered."""
        responses = Responses()
        headers = [
            (b"authorization", f"Bearer {secret or self.secret}".encode()),
            (b"content-type", b"application/json"),
        ]
        scope = {"type": "http", "method": "POST", "path": "/", "headers": headers, "query_string": b""}
        request = HttpRequest(scope, responses.receive)
        body = json.dumps(QUESTION).encode()
        work = self.services.bridge.ask_whole(self.agent.ref.handle, request, body, responses)
        assert work is None

        async def is_on_its_way() -> bool:
            return bool(self.desk.prompts or responses.tasks)

        await eventually(is_on_its_way, "the ask is decided")
        return responses

    def reply(self, text: str = "so") -> None:
        """End the turn, as the agent's socket does."""
        self.services.waiting.take(Final(self.desk.prompts[0].chat_id, 0, text))

    async def settled(self) -> None:
        """Wait until no turn is open."""

        async def is_over() -> bool:
            return not self.services.dispatcher.open_turns

        await eventually(is_over, "the turn has ended")


@asynccontextmanager
async def asking(**fields: object) -> AsyncIterator[Asking]:
    """A hub in this process with an agent, and what a caller needs."""
    services = HubServices()

    def prepare() -> tuple[Published, int, str, int]:
        live_process(services.process_id)
        agent = published(**fields)
        connection = Connection.objects.get(session=agent.agent.session)
        Connection.objects.update(process=services.process_id)
        minted = mint(user("alice"), Credential.Kind.SESSION, "test")
        return agent, connection.pk, minted.token, minted.credential.pk

    agent, connection_id, secret, credential_id = await db_call(prepare)()
    desk = Desk(agent.ref.session_id, takes_at_once=True)
    services.link.attach(connection_id, desk)
    yield Asking(services, desk, agent, secret, credential_id)
    await services.dispatcher.drain(0)
    assert services.bridge.runner.exchanges is not None
    await services.bridge.runner.exchanges.close()
    services.ledger.close()


async def goes_on_in_a_task(responses: Responses) -> None:
    async def waits_longer() -> bool:
        return bool(responses.tasks)

    await eventually(waits_longer, "the request goes on in a task")


def state_of(body: bytes) -> str:
    state: str = json.loads(body)["result"]["status"]["state"]
    return state


@pytest.mark.parametrize("takes_at_once", [True, False], ids=["at once", "after a wait"])
async def test_an_ask_is_answered_without_a_task_of_its_request(*, takes_at_once: bool) -> None:
    async with asking() as hub:
        hub.desk.takes_at_once = takes_at_once
        responses = await hub.ask()
        hub.reply()
        await hub.settled()
        ((status, body),) = responses.whole
        assert (status, state_of(body), responses.tasks) == (200, "COMPLETED", [])
        assert not hub.services.callers.credential_ids


async def test_what_follows_an_admission_runs_with_the_turn_in_its_context() -> None:
    """Log lines name the turn by it, and spans their parent."""
    async with asking() as hub:
        await hub.ask()
        chat_id = hub.desk.prompts[0].chat_id
        running = hub.services.dispatcher.find(chat_id)
        assert running is not None
        assert running.context.get(current_turn) == chat_id
        assert running.context.get(current_span) == running.ask.traceparent
        hub.reply()


async def test_a_delivery_that_breaks_ends_its_turn() -> None:
    async with asking() as hub:
        hub.desk.is_broken = True
        responses = await hub.ask()
        await hub.settled()
        ((status, body),) = responses.whole
        assert (status, state_of(body)) == (200, "FAILED")


async def test_a_follower_that_breaks_keeps_no_other_from_the_end() -> None:
    async with asking() as hub:
        responses = await hub.ask()
        running = hub.services.dispatcher.find(hub.desk.prompts[0].chat_id)
        assert running is not None
        running.until_settled.append(broken)
        running.until_due.insert(0, broken)
        hub.reply()
        await hub.settled()
        assert [status for status, _ in responses.whole] == [200]


def broken() -> None:
    raise RuntimeError


async def test_a_task_that_a_request_needs_has_the_trace_of_the_request() -> None:
    responses, seen = Responses(), list[str]()

    async def work() -> None:
        seen.append(current_span.get())

    def ask(request: HttpRequest, body: bytes, exchange: Exchange) -> Coroutine[Any, Any, None]:
        request.enter_trace()
        exchange.run(work())
        seen.append(request.traceparent)
        return work()

    responses.run = lambda work: started.append(asyncio.ensure_future(work))  # type: ignore[method-assign]
    started: list[asyncio.Future[None]] = []
    scope = {"type": "http", "method": "POST", "path": "/", "headers": [], "query_string": b""}
    ask_in_context(ask, scope, b"", responses)
    await asyncio.gather(*started)
    assert seen == [seen[0]] * 3
    assert seen[0]


async def test_an_ask_that_waits_for_long_is_answered_once_by_a_task() -> None:
    async with asking() as hub:
        responses = await hub.ask()
        await goes_on_in_a_task(responses)
        hub.reply()  # before the task begins
        await hub.settled()
        assert responses.whole == []
        (task,) = responses.tasks
        await task
        ((_, body),) = responses.whole
        assert state_of(body) == "COMPLETED"
        assert not hub.services.callers.credential_ids


async def test_a_revoked_token_ends_the_request_and_not_the_turn() -> None:
    async with asking() as hub:
        responses = await hub.ask()
        hub.services.callers.dismiss({hub.credential_id})
        (task,) = responses.tasks
        await task
        hub.reply()
        await hub.settled()
        assert [status for status, _ in responses.whole] == [401]
        assert [turn.outcome for turn in await db_call(lambda: hub.agent.turns)()] == ["completed"]


async def test_a_token_that_is_revoked_while_the_task_begins_is_found_by_the_next_look() -> None:
    async with asking() as hub:
        responses = await hub.ask()
        await goes_on_in_a_task(responses)
        hub.services.callers.dismiss({hub.credential_id})
        task = asyncio.ensure_future(responses.tasks[0])
        await asyncio.sleep(0)
        assert hub.services.callers.credential_ids == {hub.credential_id}
        hub.services.callers.dismiss({hub.credential_id})
        await asyncio.wait_for(task, 5)
        assert [status for status, _ in responses.whole] == [401]
        hub.reply()


async def test_an_ask_that_is_refused_is_answered_by_a_task() -> None:
    async with asking() as hub:
        responses = await hub.ask("cw_sess_" + "0" * 32)
        (task,) = responses.tasks
        await task
        assert [status for status, _ in responses.whole] == [401]
        assert hub.desk.prompts == []
