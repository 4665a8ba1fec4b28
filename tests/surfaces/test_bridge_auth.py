"""Who may ask: Bearer tokens, and the cookie of our own pages only."""

import httpx
import pytest

from tests.callers import Json, bearer, envelope, question, rpc_path, web
from tests.hub_process import HubProcess
from tests.peers import Echo, online


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
