"""All code that locks the same rows locks them in one order: PostgreSQL never has to fail a transaction to break a
deadlock.
"""

import asyncio
from collections.abc import Iterator

import httpx
import psycopg
import pytest

from lab.agents import Echo, TaskPeer, online, publish
from lab.callers import bearer, envelope, question, rpc_path, web
from lab.hub_process import HubProcess
from tests.pushes.client import CREATE, client

pytestmark = [pytest.mark.slow, pytest.mark.distributed]

LEAVING = [f"leaving-{number}" for number in range(4)]
ASKS_AT_ONCE = 4
ROUNDS = 10
DEADLOCKS = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"


@pytest.fixture(autouse=True)
def no_deadlock(worked_hub: HubProcess) -> Iterator[None]:
    """Of this hub's database, as PostgreSQL counts them."""
    yield
    with psycopg.connect(worked_hub.home.env["DATABASE_URL"]) as database:
        assert database.execute(DEADLOCKS).fetchone() == (0,)


async def test_accounts_are_closed_while_an_administrator_asks_their_agents(worked_hub: HubProcess) -> None:
    staff = worked_hub.mint("root", "session", admin=True)
    worked_hub.mint_sessions(LEAVING)
    async with web(worked_hub.url) as http:
        for login in LEAVING:
            async with Echo(worked_hub.urls[1], worked_hub.mint(login, "channel")) as agent:
                assert agent.session_id is not None
                session = worked_hub.mint(login, "session")
                published = await publish(worked_hub, session, agent.session_id, "leaving", concurrencyCap=20)
                asking = [
                    asyncio.create_task(_ask_until_gone(http, published["handle"], staff))
                    for _ in range(ASKS_AT_ONCE)
                ]
                await agent.heard("prompt", count=ASKS_AT_ONCE)
                closed = await http.delete("/api/v1/me/account", params={"login": login}, headers=bearer(session))
                assert closed.is_success, closed.text
                assert set(await asyncio.gather(*asking)) <= {401, 403, 404}


async def _ask_until_gone(http: httpx.AsyncClient, handle: str, token: str) -> int:
    while True:
        body = envelope("SendMessage", question("are you there?"))
        answer = await http.post(rpc_path(handle), json=body, headers=bearer(token))
        if answer.status_code != 200:
            return answer.status_code


async def test_an_address_is_replaced_while_its_task_ends(worked_hub: HubProcess) -> None:
    async with online(worked_hub, TaskPeer) as agent:
        alice = client(worked_hub, agent, at=1)
        for number in range(1, ROUNDS + 1):
            agent.release.clear()
            task = await alice.asked("hold | reply done")
            address = {"taskId": task["id"], "id": "one", "url": "http://127.0.0.1:9/"}
            await alice.call(CREATE, address)
            await agent.heard("prompt", count=number)
            agent.release.set()
            await asyncio.gather(
                *(alice.call(CREATE, {**address, "url": f"{address['url']}{n}"}) for n in range(6))
            )


async def test_an_agent_moves_between_two_sessions_while_it_is_asked(worked_hub: HubProcess) -> None:
    owner, caller = worked_hub.mint("mover", "session"), bearer(worked_hub.mint("asker", "session"))
    channel, answers = worked_hub.mint("mover", "channel"), {200, 503}
    async with (
        Echo(worked_hub.urls[0], channel) as one,
        Echo(worked_hub.urls[1], channel) as two,
        web(worked_hub.url) as http,
    ):
        sessions = [one.session_id, two.session_id]
        assert sessions[0] is not None
        agent = await publish(worked_hub, owner, sessions[0], "mover", concurrencyCap=20)
        asking = [asyncio.create_task(_ask_times(http, agent["handle"], caller)) for _ in range(ASKS_AT_ONCE)]
        moved = 0
        while not all(task.done() for task in asking):
            body = {"sessionId": sessions[(moved + 1) % 2]}
            answer = await http.patch(f"/api/v1/agents/{agent['id']}", json=body, headers=bearer(owner))
            assert answer.status_code in (200, 409), answer.text
            moved += answer.status_code == 200
        assert {status for task in asking for status in task.result()} <= answers
        body = {"sessionId": sessions[(moved + 1) % 2]}
        answer = await http.patch(f"/api/v1/agents/{agent['id']}", json=body, headers=bearer(owner))
        assert answer.status_code == 200, answer.text


async def _ask_times(http: httpx.AsyncClient, handle: str, headers: dict[str, str]) -> list[int]:
    body = envelope("SendMessage", question("are you there?"))
    return [(await http.post(rpc_path(handle), json=body, headers=headers)).status_code for _ in range(ROUNDS)]
