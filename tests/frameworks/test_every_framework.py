"""Users of agent frameworks ask an agent of the hub by the framework's own class: the answers that they see."""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from lab.agents import TaskPeer, gone, online
from lab.callers import send
from lab.hub_process import HubProcess
from tests.frameworks.__main__ import PAGE, page
from tests.frameworks.clients import CELLS, Framework, shown
from tests.frameworks.scenarios import PLAIN, STREAM, Scenario
from tests.sdks.environments import DEEP_ONLY, FRAMEWORKS, NotInstalled

OFTEN = (PLAIN, STREAM)
WRONG = "cw_sess_" + "0" * 32


def is_often(framework: Framework, scenario: Scenario) -> bool:
    return scenario in OFTEN and framework.environment not in DEEP_ONLY


@pytest.fixture
def hub(embedded_hub: HubProcess) -> HubProcess:
    return embedded_hub


@pytest.mark.parametrize(
    ("framework", "scenario"),
    [
        pytest.param(*cell, id=f"{cell[0]}-{cell[1].name}", marks=() if is_often(*cell) else pytest.mark.deep)
        for cell in CELLS
    ],
)
async def test_the_user_gets_what_the_agent_said(
    hub: HubProcess, alice: str, framework: Framework, scenario: Scenario
) -> None:
    install(framework)
    async with asked(hub, scenario.agent_is) as agent:
        seen = await shown_to_user(hub, agent, alice, framework, scenario)
        fault = framework.faults.get(scenario.name)
        if scenario.is_canceled and fault is None:
            await agent.heard("cancel")
    check(seen, scenario.right if fault is None else fault.seen)


@pytest.mark.deep
@pytest.mark.parametrize(
    ("framework", "scenario"),
    [
        pytest.param(replace(one, scenario=fault.helped_by), scenario, id=f"{one}-{scenario.name}")
        for one, scenario in CELLS
        if (fault := one.faults.get(scenario.name)) and fault.helped_by
    ],
)
async def test_what_helps(hub: HubProcess, alice: str, framework: Framework, scenario: Scenario) -> None:
    """The way that a note names gives the right answer. The way may add text, so an echo is longer."""
    install(framework)
    async with asked(hub, scenario.agent_is) as agent:
        seen = await shown_to_user(hub, agent, alice, framework, scenario)
    check(seen, tuple(pattern.replace("echo: ", "echo: .*") + ".*" for pattern in scenario.right))


def install(framework: Framework) -> None:
    """Skip the test if the packages of a framework cannot be installed."""
    try:
        FRAMEWORKS[framework.environment].ready()
    except NotInstalled as failure:
        pytest.skip(f"{framework} cannot be installed: {failure}")


@asynccontextmanager
async def asked(hub: HubProcess, state: str) -> AsyncIterator[TaskPeer]:
    fields = {"dailyBudgetQueries": 1} if state == "spent" else {}
    bob = hub.mint("bob", "session")
    async with online(hub, TaskPeer, agent=fields) as agent, asyncio.TaskGroup() as driving:
        if state == "spent":
            await send(hub.url, agent.handle, "hello", bob)
        elif state == "busy":
            driving.create_task(send(hub.url, agent.handle, "hold", bob))
            await agent.heard("prompt")
        if state != "offline":
            yield agent
        agent.release.set()
    if state == "offline":
        await gone(hub, agent)
        yield agent


def check(seen: list[str], patterns: tuple[str, ...]) -> None:
    assert len(seen) == len(patterns), seen
    for got, pattern in zip(seen, patterns, strict=True):
        assert re.fullmatch(pattern, got, re.DOTALL), seen


def test_the_page_is_made_of_the_scenarios() -> None:
    text = "`python -m tests.frameworks` writes the table anew"
    assert PAGE.read_text() == page(), text


async def shown_to_user(
    hub: HubProcess, agent: TaskPeer, token: str, framework: Framework, scenario: Scenario
) -> list[str]:
    token = WRONG if scenario.is_token_wrong else token
    async with framework.run(hub.url, agent.handle, token, scenario) as run:
        await run.end()
    return [shown(sight) for sight in run.sights]
