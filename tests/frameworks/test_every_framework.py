"""What the user of an agent framework ends up with who asks an agent of the hub by the framework's own class."""

import re

import pytest

from lab.agents import TaskPeer, gone, online
from lab.hub_process import HubProcess
from tests.frameworks.__main__ import PAGE, page
from tests.frameworks.clients import ALL, PLAIN, SCENARIOS, STREAM, Framework, Scenario, shown
from tests.sdks.environments import FRAMEWORKS, NotInstalled

OFTEN = (PLAIN, STREAM)
WRONG = "cw_sess_" + "0" * 32


@pytest.fixture
def hub(embedded_hub: HubProcess) -> HubProcess:
    """One process on SQLite."""
    return embedded_hub


@pytest.fixture(params=ALL, ids=str)
def framework(request: pytest.FixtureRequest) -> Framework:
    """Each framework whose packages can be had."""
    chosen: Framework = request.param
    try:
        FRAMEWORKS[chosen.environment].ready()
    except NotInstalled as failure:
        pytest.skip(f"{chosen} cannot be installed: {failure}")
    return chosen


@pytest.mark.parametrize(
    "scenario",
    [pytest.param(one, id=one.name, marks=() if one in OFTEN else pytest.mark.deep) for one in SCENARIOS],
)
async def test_the_user_gets_what_the_agent_said(
    hub: HubProcess, alice: str, framework: Framework, scenario: Scenario
) -> None:
    async with online(hub, TaskPeer) as agent:
        if not scenario.agent_is_gone:
            seen = await asked(hub, agent, alice, framework, scenario)
    if scenario.agent_is_gone:
        await gone(hub, agent)
        seen = await asked(hub, agent, alice, framework, scenario)
    if fault := framework.faults.get(scenario.name):
        check(seen, fault.seen)
    else:
        check(seen, scenario.right)


def check(seen: list[str], patterns: tuple[str, ...]) -> None:
    assert len(seen) == len(patterns), seen
    for got, pattern in zip(seen, patterns, strict=True):
        assert re.fullmatch(pattern, got, re.DOTALL), seen


def test_the_page_says_what_the_tests_hold() -> None:
    text = "`python -m tests.frameworks` writes the table anew"
    assert PAGE.read_text() == page(), text


async def asked(
    hub: HubProcess, agent: TaskPeer, token: str, framework: Framework, scenario: Scenario
) -> list[str]:
    """What the user is shown after each question."""
    token = WRONG if scenario.is_token_wrong else token
    async with framework.run(hub.url, agent.handle, token, scenario.texts) as run:
        await run.end()
    return [shown(sight) for sight in run.sights]
