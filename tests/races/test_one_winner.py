"""Many callers at once: one winner for a claim, never a question over the budget."""

import asyncio
import random
from collections import Counter
from collections.abc import Coroutine, Sequence
from contextlib import AsyncExitStack
from itertools import pairwise
from typing import Any

import httpx
import pytest

from lab.agents import Echo, Held, Slow, online
from lab.callers import bearer, envelope, failed_text, inbound, question, rpc_path, web
from lab.hub_process import HubProcess
from lab.waiting import eventually

BUDGET = 50
CALLERS = 100
CONNECT_OVER_S = 1.0  # a machine that connects all at one moment may take longer than the hub waits for a head
REST_S = (0.1, 1.0)  # between the asks of one caller: one agent answers, and a refusal costs as much as an ask
AT_ONCE = 20
BUSY = "agent is processing a turn for another caller"
CAPPED = "agent already holds"


async def outcome(client: httpx.AsyncClient, handle: str, token: str) -> str:
    """ "" when the question was answered, else why it was refused."""
    body = envelope("SendMessage", question("mine?"))
    response = await client.post(rpc_path(handle), json=body, headers=bearer(token))
    assert response.status_code == 200, response.text
    task = response.json()["result"]
    return "" if task["status"]["state"] == "COMPLETED" else failed_text(task)


async def ask_until_spent(client: httpx.AsyncClient, handle: str, token: str) -> Counter[str]:
    """Ask again and again until told that the budget is spent; how often each answer came."""
    seen: Counter[str] = Counter()
    await asyncio.sleep(random.uniform(0, CONNECT_OVER_S))
    while not (text := await outcome(client, handle, token)).endswith(f"hit its daily budget ({BUDGET})"):
        assert text == "" or text == BUSY or text.startswith(CAPPED), text
        seen["accepted" if not text else "refused"] += 1
        await asyncio.sleep(random.uniform(*REST_S))
    return seen


def check_no_overlap(spans: list[tuple[float, float, str]]) -> None:
    """No two callers were served at one time."""
    for (_, ended, one), (began, _, other) in pairwise(sorted(spans)):
        assert ended <= began or one == other, f"{one} and {other} were served at once"


async def count_answers(asks: Sequence[Coroutine[Any, Any, str]], agent: Held, *, held: int) -> Counter[str]:
    """Ask all at once; the agent answers when all but `held` of them are refused."""
    tasks = [asyncio.create_task(ask) for ask in asks]

    async def refused() -> bool:
        return sum(task.done() for task in tasks) >= len(tasks) - held

    try:
        await eventually(refused, "the others are refused")
    finally:
        agent.release.set()
    return Counter(await asyncio.gather(*tasks))


@pytest.mark.slow
async def test_a_hundred_callers_spend_a_budget_of_fifty_exactly(hub: HubProcess) -> None:
    tokens = hub.mint_sessions([f"caller-{number}" for number in range(CALLERS)])
    async with (
        online(hub, Slow, delay_s=0.005, agent={"dailyBudgetQueries": BUDGET}) as agent,
        AsyncExitStack() as stack,
    ):
        limits = httpx.Limits(max_connections=CALLERS, keepalive_expiry=None)
        clients = [await stack.enter_async_context(web(url, limits=limits)) for url in hub.urls]
        runs = [
            ask_until_spent(clients[number % len(clients)], agent.handle, token)
            for number, token in enumerate(tokens)
        ]
        total = sum(await asyncio.gather(*runs), Counter())
        log = await inbound(hub.url, agent.agent["id"], hub.mint("owner", "session"))
    assert total["accepted"] == BUDGET
    assert len(agent.prompts) == BUDGET
    assert log["summary"]["ok"] == BUDGET
    assert log["agent"]["queriesToday"] == BUDGET
    assert len({asker for _, _, asker in agent.spans}) > 1
    check_no_overlap(agent.spans)


async def test_of_callers_who_ask_at_one_moment_one_wins_the_claim(hub: HubProcess) -> None:
    tokens = hub.mint_sessions([f"racer-{number}" for number in range(AT_ONCE)])
    async with online(hub, Held) as agent, AsyncExitStack() as stack:
        clients = [await stack.enter_async_context(web(url)) for url in hub.urls]
        asks = [
            outcome(clients[number % len(clients)], agent.handle, token) for number, token in enumerate(tokens)
        ]
        answers = await count_answers(asks, agent, held=1)
    assert answers == {"": 1, BUSY: AT_ONCE - 1}
    assert len(agent.prompts) == 1


async def test_of_one_callers_questions_at_one_moment_the_cap_wins(hub: HubProcess) -> None:
    token = hub.mint("alice", "session")
    async with online(hub, Held, agent={"concurrencyCap": 3}) as agent, AsyncExitStack() as stack:
        clients = [await stack.enter_async_context(web(url)) for url in hub.urls]
        asks = [outcome(clients[number % len(clients)], agent.handle, token) for number in range(10)]
        answers = await count_answers(asks, agent, held=3)
    assert answers == {"": 3, "agent already holds 3 of your questions": 7}
    assert len(agent.prompts) == 3


async def test_the_last_question_of_a_budget_has_one_winner(hub: HubProcess) -> None:
    token = hub.mint("alice", "session")
    async with (
        online(hub, Echo, agent={"dailyBudgetQueries": 1, "concurrencyCap": 20}) as agent,
        AsyncExitStack() as stack,
    ):
        clients = [await stack.enter_async_context(web(url)) for url in hub.urls]
        asks = [outcome(clients[number % len(clients)], agent.handle, token) for number in range(AT_ONCE)]
        answers = Counter(await asyncio.gather(*asks))
    assert answers == {"": 1, f"agent @{agent.handle} hit its daily budget (1)": AT_ONCE - 1}
    assert len(agent.prompts) == 1


async def test_the_claim_is_free_once_the_answer_is_on_the_wire(hub: HubProcess) -> None:
    tokens = [hub.mint(login, "session") for login in ("alice", "bob")]
    async with online(hub, Echo) as agent, AsyncExitStack() as stack:
        clients = [await stack.enter_async_context(web(url)) for url in hub.urls]
        turns = range(40)
        answers = [
            await outcome(clients[turn // 2 % len(clients)], agent.handle, tokens[turn % 2]) for turn in turns
        ]
    assert answers == [""] * len(turns)
