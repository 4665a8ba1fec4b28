"""Groups under concurrent requests: a maintainer stays, and members never exceed the budget of their group."""

import asyncio
from contextlib import AsyncExitStack
from typing import Any
from uuid import uuid4

import httpx

from lab.agents import Echo, online
from lab.callers import bearer, envelope, failed_text, question, rpc_path, web
from lab.hub_process import HubProcess

BUDGET = 8
MEMBERS = 4
REST_S = 0.02  # between two asks of one member
V = "/api/v1/groups"
GROUP_SPENT = f"your group hit its daily budget ({BUDGET})"


async def make_team(client: httpx.AsyncClient, tokens: dict[str, str]) -> str:
    """A group of the first of these users; its slug."""
    slug, head = f"team-{uuid4().hex[:8]}", next(iter(tokens.values()))
    made = await client.post(V, json={"slug": slug, "name": "Team"}, headers=bearer(head))
    assert made.status_code == 201, made.text
    for login in tokens:
        body = {"role": "maintainer" if login == next(iter(tokens)) else "member"}
        added = await client.put(f"{V}/{slug}/members/{login}", json=body, headers=bearer(head))
        assert added.status_code == 200, added.text
    return slug


async def test_of_two_maintainers_who_remove_each_other_one_stays(hub: HubProcess) -> None:
    tokens = {login: hub.mint(login, "session") for login in ("anne", "bert")}
    async with web(hub.urls[0]) as first, web(hub.urls[-1]) as second:
        for _ in range(3):
            slug = await make_team(first, tokens)
            path, staff = f"/api/v1/admin/accounts/bert/groups/{slug}", hub.mint("root", "session", admin=True)
            made = await first.put(path, json={"role": "maintainer"}, headers=bearer(staff))
            assert made.status_code == 200, made.text
            answers = await asyncio.gather(
                first.delete(f"{V}/{slug}/members/bert", headers=bearer(tokens["anne"])),
                second.delete(f"{V}/{slug}/members/anne", headers=bearer(tokens["bert"])),
            )
            # Who lost the race is not in the group any more, or would leave it without a maintainer.
            assert sorted(one.status_code for one in answers) in ([204, 404], [204, 409]), answers
            found = [await first.get(f"{V}/{slug}/members", headers=bearer(token)) for token in tokens.values()]
            [left] = [one.json()["items"] for one in found if one.status_code == 200]
            assert [one["role"] for one in left] == ["maintainer"]


async def ask_until_spent(client: httpx.AsyncClient, handle: str, token: str) -> int:
    """Ask until the budget of the group is spent; the number of answers."""
    answered = 0
    while True:
        body: Any = envelope("SendMessage", question("mine?"))
        response = await client.post(rpc_path(handle), json=body, headers=bearer(token))
        task = response.json()["result"]
        if task["status"]["state"] == "COMPLETED":
            answered += 1
        elif GROUP_SPENT in failed_text(task):
            return answered
        await asyncio.sleep(REST_S)


async def test_members_who_ask_at_once_never_exceed_the_budget_of_their_group(hub: HubProcess) -> None:
    tokens = {f"racer-{number}": hub.mint(f"racer-{number}", "session") for number in range(MEMBERS)}
    async with web(hub.urls[0]) as client:
        slug = await make_team(client, tokens)
    async with AsyncExitStack() as stack:
        limits = {"callerBudgets": {slug: BUDGET}, "concurrencyCap": 20}
        agent = await stack.enter_async_context(online(hub, Echo, agent=limits))
        clients = [await stack.enter_async_context(web(url)) for url in (hub.urls[0], hub.urls[-1])]
        asking = [
            ask_until_spent(clients[number % 2], agent.handle, token)
            for number, token in enumerate(tokens.values())
        ]
        answered = await asyncio.gather(*asking)
        assert sum(answered) == BUDGET
