"""The pages of sessions and of health, asked of hubs as they run, on either database."""

import pytest

from accounts.authn import COOKIE
from lab.agents import Echo, online
from lab.callers import web
from lab.hub_process import HubProcess
from tests.operators.operator import post

pytestmark = pytest.mark.slow


async def test_pages_answer_on_either_database(hub: HubProcess) -> None:
    owner, chief = hub.mint("owner", "session"), hub.mint("chief", "session", admin=True)
    async with online(hub, Echo) as echo:
        assert (await post(hub.url, f"/sessions/{echo.session_id}/prompt", owner, {"text": "hi"})).is_success
        path = f"/desk/sessions/{echo.session_id}"
        async with web(hub.url, cookies={COOKIE: owner}) as client:
            for part, words in {
                "": "agent online",
                "/rows": "SessionStart",
                "/files": "No files",
                "/delete": "events",
            }.items():
                answer = await client.get(path + part)
                assert answer.status_code == 200, answer.text
                assert words in answer.text
            assert (await client.get("/health")).status_code == 404
        async with web(hub.url, cookies={COOKIE: chief}) as client:
            answer = await client.get("/health")
            assert answer.status_code == 200, answer.text
            assert ("PostgreSQL" if hub.home.is_grown else "SQLite") in answer.text
            assert (await client.get(path)).status_code == 404
