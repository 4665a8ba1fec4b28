"""Answers that are shared: who reads what, and for how long."""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx

from lab.agents import Echo, TaskPeer, online
from lab.callers import bearer, call, question, send, web
from lab.hub_process import HubProcess

SHARES = "/api/v1/shares"
COSTLY = "note reading | raw report figures | reply the answer"


@asynccontextmanager
async def caller_of(hub: HubProcess, login: str) -> AsyncIterator[httpx.AsyncClient]:
    """A program of a user."""
    async with web(hub.url, headers=bearer(hub.mint(login, "session"))) as client:
        yield client


async def page(hub: HubProcess, path: str, login: str = "") -> httpx.Response:
    """A page in the browser of a user, or of a visitor."""
    cookies = {"cw_session": hub.mint(login, "session")} if login else {}
    async with web(hub.url, cookies=cookies) as client:
        return await client.get(path)


def masked(page: httpx.Response) -> str:
    """The page without its own address and the token of its forms, which differ."""
    return re.sub(r'shared(/|%2F)\d+|csrfmiddlewaretoken" value="\w+"', "", page.text)


async def share(client: httpx.AsyncClient, task_id: str, audience: str = "user", **body: Any) -> dict[str, Any]:
    answer = await client.post(SHARES, json={"taskId": task_id, "audience": audience, **body})
    assert answer.status_code == 201, answer.text
    shared: dict[str, Any] = answer.json()
    return shared


async def test_a_named_user_reads_the_answer_and_no_other_does(embedded_hub: HubProcess) -> None:
    hub = embedded_hub
    hub.mint("rita", "session")
    async with online(hub, TaskPeer) as agent, caller_of(hub, "sally") as sally:
        asked = question(COSTLY)
        asked["message"] |= {"contextId": "my-context", "metadata": {"my": "secret"}}
        answer = await call(
            hub.url, agent.handle, hub.mint("sally", "session"), "SendMessage", asked, version="1.0"
        )
        task = answer.json()["result"]["task"]
        shared = await share(sally, task["id"], login="rita")
        assert (shared["login"], shared["audience"], shared["isShown"]) == ("rita", "user", True)
        assert shared["title"] == COSTLY
        async with caller_of(hub, "rita") as rita, caller_of(hub, "otto") as otto:
            read = await rita.get(f"{SHARES}/{shared['id']}")
            assert read.headers["X-Robots-Tag"] == "noindex"
            told = read.json()
            assert (told["sharedBy"], told["agent"]) == ("sally", agent.handle)
            [kept] = told["tasks"]
            assert kept["history"][0]["parts"] == [{"text": COSTLY}]
            assert kept["artifacts"][0]["parts"][0]["raw"] == "ZmlndXJlcw=="
            for hidden in (task["id"], "my-context", "secret"):
                assert hidden not in read.text, hidden
            [received] = (await rita.get(f"{SHARES}/received")).json()["items"]
            assert received["url"].endswith(f"/shared/{shared['id']}")
            absent = await otto.get(f"{SHARES}/999999")
            refused = await otto.get(f"{SHARES}/{shared['id']}")
            assert (refused.status_code, refused.content) == (404, absent.content)
            assert (await otto.delete(f"{SHARES}/{shared['id']}")).status_code == 404
            assert (await otto.get(f"{SHARES}/received")).json()["total"] == 0
        seen = await page(hub, f"/shared/{shared['id']}", "rita")
        assert seen.status_code == 200
        assert "@sally" in seen.text
        assert task["id"] not in seen.text
        assert (seen.headers["Referrer-Policy"], seen.headers["X-Robots-Tag"]) == (
            "no-referrer",
            "noindex, nofollow",
        )
        for login, text in (("otto", "@otto"), ("", "Sign in")):
            refused, absent = [await page(hub, f"/shared/{one}", login) for one in (shared["id"], 999999)]
            assert refused.status_code == 404
            assert text in refused.text
            assert masked(refused) == masked(absent)


async def test_everyone_who_is_signed_in_reads_what_is_shared_with_everyone(embedded_hub: HubProcess) -> None:
    hub = embedded_hub
    async with online(hub, Echo) as agent, caller_of(hub, "ada") as ada, caller_of(hub, "ben") as ben:
        task = await send(hub.url, agent.handle, "hello", hub.mint("ada", "session"))
        shared = await share(ada, task["id"], "everyone")
        again = await share(ada, task["id"], "everyone", days=1)
        mine = (await ada.get(SHARES)).json()
        assert [one["id"] for one in mine["items"]] == [again["id"]]
        assert again["id"] != shared["id"]
        assert again["id"] in [one["id"] for one in (await ben.get(f"{SHARES}/received")).json()["items"]]
        assert (await ben.get(f"{SHARES}/{again['id']}")).status_code == 200
        async with web(hub.url) as visitor:
            assert (await visitor.get(f"{SHARES}/{again['id']}")).status_code == 401
        assert (await ada.delete(f"{SHARES}/{again['id']}")).status_code == 204
        assert (await ben.get(f"{SHARES}/{again['id']}")).status_code == 404


async def test_a_link_shows_the_answer_until_it_ends_and_then_looks_like_none(embedded_hub: HubProcess) -> None:
    hub = embedded_hub
    async with online(hub, Echo) as agent, caller_of(hub, "linda") as linda:
        task = await send(hub.url, agent.handle, "hello", hub.mint("linda", "session"))
        shared = await share(linda, task["id"], "link")
        token = shared["url"].rpartition("/")[2]
        assert len(bytes.fromhex(token)) == 16
        assert (await linda.get(SHARES)).json()["items"][0]["url"] is None
        opened = await page(hub, f"/s/{token}")
        assert opened.status_code == 200
        assert "echo: hello" in opened.text
        assert opened.headers["Referrer-Policy"] == "no-referrer"
        async with web(hub.url) as visitor:
            told = (await visitor.get(f"/api/v1/shared-links/{token}")).json()
            assert told["tasks"][0]["artifacts"][0]["parts"] == [{"text": "echo: hello"}]
            assert (await linda.delete(f"{SHARES}/{shared['id']}")).status_code == 204
            ended, absent = [await page(hub, f"/s/{one}") for one in (token, "0" * 32)]
            assert ended.status_code == 404
            assert "Ask the person who sent it for a new link" in ended.text
            assert ended.text.replace(token, "T") == absent.text.replace("0" * 32, "T")
            answers = [await visitor.get(f"/api/v1/shared-links/{one}") for one in (token, "0" * 32)]
            assert answers[0].content == answers[1].content


async def test_what_cannot_be_shared_is_named(embedded_hub: HubProcess) -> None:
    hub = embedded_hub
    async with online(hub, TaskPeer) as agent, caller_of(hub, "nora") as nora, caller_of(hub, "olaf") as olaf:
        failed = await send(hub.url, agent.handle, "fail", hub.mint("nora", "session"))
        done = await send(hub.url, agent.handle, "reply yes", hub.mint("nora", "session"))
        for client, body, status, text in (
            (nora, {"taskId": "task-unknown", "audience": "link"}, 404, "no such task"),
            (olaf, {"taskId": done["id"], "audience": "link"}, 404, "no such task"),
            (nora, {"taskId": failed["id"], "audience": "link"}, 409, "no answer"),
            (nora, {"taskId": done["id"], "audience": "user", "login": "unknown-login"}, 400, "unknown-login"),
            (nora, {"taskId": done["id"], "audience": "user", "login": "nora"}, 400, "you can read it"),
            (nora, {"taskId": done["id"], "audience": "user"}, 400, "login"),
            (nora, {"taskId": done["id"], "audience": "link", "login": "olaf"}, 400, "login"),
            (nora, {"taskId": done["id"], "audience": "all"}, 400, "all"),
            (nora, {"taskId": done["id"], "audience": "link", "days": 0}, 400, "days"),
            (nora, {"taskId": done["id"], "audience": "link", "more": 1}, 400, "more"),
        ):
            answer = await client.post(SHARES, json=body)
            assert (answer.status_code, text in answer.json()["message"]) == (status, True), answer.text
        async with web(hub.url) as visitor:
            body = {"taskId": done["id"], "audience": "link"}
            assert (await visitor.post(SHARES, json=body)).status_code == 401


async def test_an_owner_may_forbid_sharing_also_of_what_is_shared(embedded_hub: HubProcess) -> None:
    hub = embedded_hub
    async with online(hub, Echo) as agent, caller_of(hub, "sam") as sam, caller_of(hub, "tim") as tim:
        task = await send(hub.url, agent.handle, "hello", hub.mint("sam", "session"))
        shared = await share(sam, task["id"], login="@tim")
        link = await share(sam, task["id"], "link")
        async with caller_of(hub, agent.handle.partition("/")[0]) as owner:
            found = await owner.get(f"/api/v1/agents/by-handle/{agent.handle}")
            agent_path = f"/api/v1/agents/{found.json()['id']}"
            changed = await owner.patch(agent_path, json={"callerSharing": False})
            assert changed.json()["callerSharing"] is False
            assert (await tim.get(f"{SHARES}/{shared['id']}")).status_code == 404
            assert (await page(hub, link["url"].removeprefix(hub.url))).status_code == 404
            assert {one["isShown"] for one in (await sam.get(SHARES)).json()["items"]} == {False}
            refused = await sam.post(SHARES, json={"taskId": task["id"], "audience": "everyone"})
            assert (refused.status_code, refused.json()["error"]) == (403, "forbidden")
            await owner.patch(agent_path, json={"callerSharing": True})
            assert (await tim.get(f"{SHARES}/{shared['id']}")).status_code == 200
