"""Two administrators who take each other's rights away at once: one of them stays."""

import asyncio

import httpx
import psycopg

from lab.callers import web
from lab.hub_process import StartHub
from lab.hub_storage import MakeStorage
from lab.waiting import eventually
from tests.channel.agents import sql

CSRF = "c" * 32
WAITING = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"


async def take_rights(client: httpx.AsyncClient, token: str, of: int) -> httpx.Response:
    """Send the form of a user's page without the tick at staff."""
    cookies = {"Cookie": f"cw_session={token}; csrftoken={CSRF}"}
    form = {"is_active": "on", "csrfmiddlewaretoken": CSRF}
    return await client.post(f"/admin/accounts/user/{of}/change/", data=form, headers=cookies)


async def test_of_two_administrators_who_take_each_others_rights_one_stays(
    make_storage: MakeStorage, start_hub: StartHub
) -> None:
    hub = start_hub(make_storage("grown"))
    tokens = [hub.mint(login, "session", admin=True) for login in ("ann", "bob")]
    [[ann], [bob]] = sql(hub, "SELECT id FROM accounts_user WHERE is_staff ORDER BY login")
    with psycopg.connect(hub.home.env["DATABASE_URL"]) as lock:
        lock.execute("SELECT id FROM accounts_user WHERE is_staff ORDER BY id FOR NO KEY UPDATE")
        async with web(hub.urls[0]) as first, web(hub.urls[-1]) as second:
            asked = [
                asyncio.create_task(take_rights(first, tokens[0], bob)),
                asyncio.create_task(take_rights(second, tokens[1], ann)),
            ]

            async def both_wait() -> bool:
                return sql(hub, WAITING) == [(2,)]

            await eventually(both_wait, "both forms wait for the rows of the administrators")
            lock.commit()
            answers = await asyncio.gather(*asked)
    assert sorted(answer.status_code for answer in answers) == [200, 302]
    [refused] = [answer.text for answer in answers if answer.status_code == 200]
    assert "You have no staff rights any more" in refused
    assert sql(hub, "SELECT count(*) FROM accounts_user WHERE is_staff AND is_active") == [(1,)]
