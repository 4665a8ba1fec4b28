"""The server scenarios of MCP's official conformance suite that apply to the hub, by the page that lists them."""

from pathlib import Path

import pytest

from lab.agents import Echo, online
from lab.hub_process import HubProcess
from tests.mcp.clients import mcp_client
from tests.mcp.conformance import FAILED, NAME, list_scenarios, read_checks, read_rows, run_suite

pytestmark = pytest.mark.deep
RUN, LEFT_OUT, OF_AUTHORIZATION = "Server scenarios that run", "Server scenarios left out", "Authorization server"


@pytest.mark.parametrize("version", ["2025-11-25", "2026-07-28"])
async def test_the_scenarios_that_apply_pass(
    embedded_hub: HubProcess, version: str, tmp_path: Path, subtests: pytest.Subtests
) -> None:
    url, token = embedded_hub.url, embedded_hub.mint("alice", "session")
    wanted = ["--url", f"{url}/mcp", "--suite", "all", "--spec-version", version, "-o", str(tmp_path)]
    async with online(embedded_hub, Echo) as agent, mcp_client(url, token) as client:
        await client.call_tool("ask_agent", {"handle": agent.handle, "message": "make a resource"})
    async with run_suite("server", *wanted, HUB_URL=url, HUB_TOKEN=token) as suite:
        await suite.communicate()
    for scenarios, versions, left_out in read_rows(RUN):
        for scenario in scenarios if version in versions else []:
            with subtests.test(scenario=scenario):
                checks = read_checks(tmp_path, scenario)
                assert any(check.status == "SUCCESS" for check in checks)
                failed = [check for check in checks if check.status in FAILED]
                assert {check.id for check in failed} == set(NAME.findall(left_out)), failed


async def test_the_page_lists_each_scenario_of_the_suite_once() -> None:
    listed = [name for heading in (RUN, LEFT_OUT) for names, *_ in read_rows(heading) for name in names]
    assert sorted(listed) == sorted(await list_scenarios("server"))
    of_authorization = [name for names, *_ in read_rows(OF_AUTHORIZATION) for name in names]
    assert sorted(of_authorization) == sorted(await list_scenarios("authorization"))
