"""Thousands of malformed requests on one hub: no 5xx, no hang, a sound answer to each, and nothing changed by a
refusal. Cases come from `mutations.py`; a failure names the case and shows its bytes.
"""

import asyncio
import os
import re
from collections.abc import AsyncIterator, Sequence

import pytest

from lab.agents import Echo, online
from lab.callers import Json, bearer, envelope, rpc_path, send, web
from lab.hub_process import HubProcess, StartHub
from lab.hub_storage import HubStorage
from lab.waiting import eventually
from tests.malformed.mutations import Case, Mutations
from tests.malformed.raw_http import Connection
from tests.malformed.valid_requests import mark
from tests.malformed.verdicts import is_served
from tests.tenancy.tables import Tables, snapshot

SEED = int(os.environ.get("MALFORMED_SEED", "20261121"))
AT_LEAST = 20  # cases for each request of one kind that is drawn
EACH = [pytest.param(40, id="some"), pytest.param(100, id="many", marks=pytest.mark.deep)]
CONNECTIONS = 8
WITHIN_S = 20
MARKED = re.compile(r"case-(\d+)\.")
PLENTY = {"concurrencyCap": 20, "dailyBudgetQueries": 100_000}


class Target:
    """A hub, an agent on it, and who asks."""

    def __init__(self, hub: HubProcess, agent: Echo, task_id: str) -> None:
        self.hub, self.agent, self.task_id = hub, agent, task_id
        self.token = hub.mint("alice", "session")

    async def serve(self, cases: Sequence[Case]) -> set[int]:
        """Send all, a few at a time; the numbers of those that were served. Fails with what was not sound."""
        waiting, served, wrong = iter(cases), set[int](), list[str]()

        async def work() -> None:
            async with Connection(self.hub.url) as connection:
                for case in waiting:
                    try:
                        if await self._ask(connection, case):
                            served.add(case.number)
                    except (AssertionError, ValueError, KeyError, TimeoutError) as failure:
                        wrong.append(f"{case.name}\n  {type(failure).__name__} {str(failure)[:400]}")

        await asyncio.gather(*(work() for _ in range(CONNECTIONS)))
        self.hub.check_running()
        assert not wrong, f"{len(wrong)} of {len(cases)}:\n" + "\n".join(wrong[:20])
        return served

    async def _ask(self, connection: Connection, case: Case) -> bool:
        try:
            response = await connection.ask(case.request(), within_s=WITHIN_S)
        except (asyncio.IncompleteReadError, ConnectionError):
            assert case.may_hang_up, "the hub hung up"
            return False
        is_good = is_served(case, response)
        assert not (is_good and case.is_wrong), f"this was served: {response.body[:300]!r}"
        return is_good

    def heard(self) -> list[int]:
        """The numbers of the cases that reached the agent."""
        return [int(number) for one in self.agent.prompts for number in MARKED.findall(one["text"])]


@pytest.fixture
def hub(home: HubStorage, start_hub: StartHub) -> HubProcess:
    """A hub of the test's own: on a shared one, letters that other tests left end meanwhile, for example."""
    return start_hub(home, processes=2 if home.is_grown else 1)


@pytest.fixture
async def target(hub: HubProcess) -> AsyncIterator[Target]:
    async with online(hub, Echo, agent=PLENTY) as agent:
        task = await send(hub.url, agent.handle, "hello", hub.mint("alice", "session"))
        yield Target(hub, agent, task["id"])


def drawn(target: Target, each: int) -> list[Case]:
    mutations = Mutations(target.hub.url, rpc_path(target.agent.handle), target.token, target.task_id, SEED)
    return list(mutations.draw(each=each))


def turns(tables: Tables) -> int:
    return len(tables["agents_turn"])


def is_settled(hub: HubProcess, tables: Tables) -> bool:
    """True once every turn ended and its task is in its thread: callers that do not wait are answered before.

    A hub of several processes reads no tasks into threads here: it has no worker.
    """
    open_turns = [row for row in tables["agents_turn"] if dict(row)["released_at"] is None]
    unread_tasks = [row for row in tables["a2a_bridge_storedtask"] if dict(row)["is_indexed"] == "0"]
    return not open_turns and (hub.home.is_grown or not unread_tasks)


async def settled(hub: HubProcess) -> Tables:
    """The content of the database once no work is open."""

    async def look() -> Tables | None:
        tables = await asyncio.to_thread(snapshot, hub)
        return tables if is_settled(hub, tables) else None

    return await eventually(look, "every turn has ended")


@pytest.mark.parametrize("each", EACH)
async def test_thousands_of_malformed_requests_get_sound_answers_and_change_nothing(
    target: Target, each: int
) -> None:
    """Slow work runs in a thread: the agent in this process must answer the hub's pings meanwhile."""
    cases = await asyncio.to_thread(drawn, target, each)
    assert len(cases) >= AT_LEAST * each
    before = await settled(target.hub)
    served = await target.serve(cases)
    asked = {case.number for case in cases if case.asks and case.number in served}
    assert len(asked) > each / 2  # some mutations are harmless: the check of what reached the agent is not empty

    async def all_heard() -> bool:
        return set(target.heard()) == asked

    await eventually(all_heard, "what reached the agent is what was served")
    assert len(target.heard()) == len(asked)
    after = await settled(target.hub)
    assert turns(after) == turns(before) + len(asked)
    refused = [case for case in cases if case.number not in served]
    assert len(refused) > AT_LEAST * each // 2
    found = await target.serve(refused)  # what has been made since may be found now
    assert {case.sound.name for case in refused if case.number in found} <= {"GetTaskPushNotificationConfig"}
    again = await settled(target.hub)
    for table in after.keys() | again.keys():
        assert again[table] == after[table], f"a refusal changed {table}"
    await check_alive(target)


async def check_alive(target: Target) -> None:
    """The hub answers, in each way."""
    headers = bearer(target.token) | {"A2A-Version": "1.0"}
    base = rpc_path(target.agent.handle)
    async with web(target.hub.url) as client:
        assert (await client.get("/readyz")).status_code == 200
        told: Json = (await client.post(base, json=envelope("ListTasks", {}), headers=headers)).json()
        assert told["result"] == (await client.get(f"{base}/tasks", headers=headers)).json()
    task = await send(target.hub.url, target.agent.handle, mark(0), target.token)
    assert task["status"]["state"] == "COMPLETED"
