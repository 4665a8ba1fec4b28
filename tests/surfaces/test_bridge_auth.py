"""Who may ask: Bearer tokens, and the cookie of our own pages only."""

import httpx
import pytest

from lab.agents import Echo, online
from lab.callers import Json, bearer, envelope, question, rpc_path, web
from lab.hub_process import HubProcess
from tests.operators.operator import Operator


async def ask(hub: HubProcess, handle: str, **headers: str) -> httpx.Response:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    body = envelope("SendMessage", question("hello"))
    async with web(hub.url) as client:
        return await client.post(rpc_path(handle), json=body, headers=named)


def check_401(response: httpx.Response) -> None:
    assert response.status_code == 401
    assert response.headers["www-authenticate"].split()[0] == "Bearer"
    answer: Json = response.json()
    assert set(answer) == {"jsonrpc", "error", "id"}
    assert isinstance(answer["error"]["code"], int)
    assert isinstance(answer["error"]["message"], str)


async def test_without_a_token_the_answer_is_401_and_a_jsonrpc_error(embedded_hub: HubProcess) -> None:
    async with online(embedded_hub, Echo) as agent:
        check_401(await ask(embedded_hub, agent.handle))
        assert agent.prompts == []


@pytest.mark.parametrize(
    "authorization",
    ["Bearer cw_sess_" + "0" * 32, "Bearer", "Basic YTpi", "cw_sess_x", "Bearer cw_pat_old"],
)
async def test_a_token_that_is_none_is_401(embedded_hub: HubProcess, authorization: str) -> None:
    async with online(embedded_hub, Echo) as agent:
        check_401(await ask(embedded_hub, agent.handle, Authorization=authorization))


async def test_an_agents_token_asks_no_questions(embedded_hub: HubProcess) -> None:
    async with online(embedded_hub, Echo) as agent:
        check_401(await ask(embedded_hub, agent.handle, **bearer(embedded_hub.mint("alice", "channel"))))


@pytest.mark.parametrize("kind", ["session", "app"])
async def test_session_and_app_tokens_ask(embedded_hub: HubProcess, kind: str) -> None:
    async with online(embedded_hub, Echo) as agent:
        response = await ask(embedded_hub, agent.handle, **bearer(embedded_hub.mint("alice", kind)))
        assert response.json()["result"]["status"]["state"] == "COMPLETED"
        assert agent.prompts[0]["askerUser"] == "alice"


async def test_the_cookie_asks_from_our_own_origin(embedded_hub: HubProcess) -> None:
    cookie = f"cw_session={embedded_hub.mint('alice', 'session')}"
    async with online(embedded_hub, Echo) as agent:
        response = await ask(embedded_hub, agent.handle, Cookie=cookie, Origin=embedded_hub.url)
        assert response.json()["result"]["status"]["state"] == "COMPLETED"


async def test_the_cookie_asks_when_the_browser_says_same_origin(embedded_hub: HubProcess) -> None:
    cookie = f"cw_session={embedded_hub.mint('alice', 'session')}"
    async with online(embedded_hub, Echo) as agent:
        response = await ask(embedded_hub, agent.handle, Cookie=cookie, Sec_Fetch_Site="same-origin")
        assert response.json()["result"]["status"]["state"] == "COMPLETED"


FOREIGN = [
    {},
    {"Origin": "https://evil.example"},
    {"Origin": "null"},
    {"Origin": ""},
    {"Sec_Fetch_Site": "same-site"},
    {"Sec_Fetch_Site": "cross-site"},
    {"Sec_Fetch_Site": "none"},
    {"Origin": "https://evil.example", "Sec_Fetch_Site": "same-origin"},
]


@pytest.mark.parametrize("headers", FOREIGN, ids=str)
async def test_the_cookie_is_refused_from_anywhere_else(embedded_hub: HubProcess, headers: dict[str, str]) -> None:
    cookie = f"cw_session={embedded_hub.mint('alice', 'session')}"
    async with online(embedded_hub, Echo) as agent:
        response = await ask(embedded_hub, agent.handle, Cookie=cookie, **headers)
        assert response.status_code == 403
        assert "error" in response.json()
        assert agent.prompts == []


async def test_a_near_miss_of_our_origin_is_refused(embedded_hub: HubProcess) -> None:
    cookie = f"cw_session={embedded_hub.mint('alice', 'session')}"
    near = [embedded_hub.url + "/", embedded_hub.url + "0", embedded_hub.url.replace("http:", "https:")]
    async with online(embedded_hub, Echo) as agent:
        for origin in near:
            assert (await ask(embedded_hub, agent.handle, Cookie=cookie, Origin=origin)).status_code == 403


async def test_a_bearer_token_needs_no_origin(embedded_hub: HubProcess) -> None:
    token = bearer(embedded_hub.mint("alice", "session"))
    async with online(embedded_hub, Echo) as agent:
        response = await ask(embedded_hub, agent.handle, **token, Origin="https://elsewhere.example")
        assert response.json()["result"]["status"]["state"] == "COMPLETED"


async def test_a_broken_cookie_is_401(embedded_hub: HubProcess) -> None:
    async with online(embedded_hub, Echo) as agent:
        for cookie in ["cw_session=", "cw_session", "\\=;;=,", 'cw_session="x']:
            check_401(await ask(embedded_hub, agent.handle, Cookie=cookie, Origin=embedded_hub.url))


async def test_a_limited_token_asks_only_where_it_may(embedded_hub: HubProcess) -> None:
    hub = embedded_hub
    async with online(hub, Echo) as agent, online(hub, Echo) as other, web(hub.url) as client:

        async def token(**limits: object) -> str:
            headers, body = bearer(hub.mint("alice", "session")), {"name": "limited", **limits}
            made = await client.post("/api/v1/auth/apps/mint", json=body, headers=headers)
            return str(made.json()["token"])

        asks, reads = await token(scopes=["ask"]), await token(scopes=["read", "publish", "admin"])
        signed = await token(scopes=[f"ask:{agent.handle}"], expires_in=600, format="jwt")
        one, all_of_it = await token(agent=agent.handle), await token(scopes=["publish", "ask", "read"])
        for text, statuses in (
            (asks, [200, 200]),
            (reads, [403, 403]),
            (one, [200, 403]),
            (signed, [200, 403]),
            (signed.rpartition(".")[0] + ".", [401, 401]),
            (all_of_it, [200, 200]),
        ):
            answers = [await ask(hub, handle, **bearer(text)) for handle in (agent.handle, other.handle)]
            assert [answer.status_code for answer in answers] == statuses
            assert all(a.status_code != 403 or a.json()["error"]["code"] == -32017 for a in answers)
        for text, status in ((asks, 404), (reads, 403), (one, 403)):
            body = {"prompt": "hi", "mode": "ask"}
            routed = await client.post("/api/v1/peers/unknown%2Fnothing/route", json=body, headers=bearer(text))
            assert routed.status_code == status, routed.text
        for text, code in ((asks, "auth_failed"), (reads, "auth_failed"), (one, "auth_failed")):
            async with Operator(hub.url, text) as operator:
                assert (await operator.heard("error"))["code"] == code
        async with Operator(hub.url, all_of_it) as operator:
            await operator.send("subscribe", sessionId="00000000-0000-4000-8000-000000000000")
            assert (await operator.heard("error"))["code"] == "not_found"
