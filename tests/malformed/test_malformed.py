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
from lab.hub_process import HubProcess
from lab.waiting import eventually
from tests.malformed.mutations import Case, Mutations
from tests.malformed.raw_http import Connection
from tests.malformed.valid_requests import mark
from tests.malformed.verdicts import is_served
from tests.tenancy.tables import Tables, snapshot

SEED = int(os.environ.get("MALFORMED_SEED", "20261121"))
EACH = 100
AT_LEAST = 2000
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
async def target(hub: HubProcess) -> AsyncIterator[Target]:
    async with online(hub, Echo, agent=PLENTY) as agent:
        task = await send(hub.url, agent.handle, "hello", hub.mint("alice", "session"))
        yield Target(hub, agent, task["id"])


def drawn(target: Target) -> list[Case]:
    mutations = Mutations(target.hub.url, rpc_path(target.agent.handle), target.token, target.task_id, SEED)
    return list(mutations.draw(each=EACH))


def turns(tables: Tables) -> int:
    return len(tables["agents_turn"])


async def test_thousands_of_malformed_requests_get_sound_answers_and_change_nothing(target: Target) -> None:
    cases = drawn(target)
    assert len(cases) >= AT_LEAST
    before = snapshot(target.hub)
    served = await target.serve(cases)
    asked = {case.number for case in cases if case.asks and case.number in served}
    assert len(asked) > 50  # some mutations are harmless: the check of what reached the agent is not empty

    async def all_heard() -> bool:
        return set(target.heard()) == asked

    await eventually(all_heard, "what reached the agent is what was served")
    assert len(target.heard()) == len(asked)
    after = snapshot(target.hub)
    assert turns(after) == turns(before) + len(asked)
    refused = [case for case in cases if case.number not in served]
    assert len(refused) > AT_LEAST // 2
    found = await target.serve(refused)  # what has been made since may be found now
    assert {case.sound.name for case in refused if case.number in found} <= {"GetTaskPushNotificationConfig"}
    again = snapshot(target.hub)
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
