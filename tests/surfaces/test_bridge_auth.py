"""Authentication of callers: Bearer tokens, and the cookie of our own pages only."""

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


async def check_answered(hub: HubProcess, handle: str, **headers: str) -> None:
    response = await ask(hub, handle, **headers)
    assert response.json()["result"]["status"]["state"] == "COMPLETED", headers


async def test_without_a_callers_token_the_answer_is_401_and_a_jsonrpc_error(embedded_hub: HubProcess) -> None:
    async with online(embedded_hub, Echo) as agent:
        check_401(await ask(embedded_hub, agent.handle))
        for text in ("Bearer cw_sess_" + "0" * 32, "Bearer", "Basic YTpi", "cw_sess_x", "Bearer cw_pat_old"):
            check_401(await ask(embedded_hub, agent.handle, Authorization=text))
        check_401(await ask(embedded_hub, agent.handle, **bearer(embedded_hub.mint("alice", "channel"))))
        for cookie in ["cw_session=", "cw_session", "\\=;;=,", 'cw_session="x']:
            check_401(await ask(embedded_hub, agent.handle, Cookie=cookie, Origin=embedded_hub.url))
        assert agent.prompts == []


async def test_session_and_app_tokens_ask_and_the_cookie_from_our_own_origin(embedded_hub: HubProcess) -> None:
    hub, cookie = embedded_hub, f"cw_session={embedded_hub.mint('alice', 'session')}"
    async with online(hub, Echo) as agent:
        for kind in ("session", "app"):
            await check_answered(hub, agent.handle, **bearer(hub.mint("alice", kind)))
        await check_answered(
            hub, agent.handle, **bearer(hub.mint("alice", "app")), Origin="https://elsewhere.example"
        )
        await check_answered(hub, agent.handle, Cookie=cookie, Origin=hub.url)
        await check_answered(hub, agent.handle, Cookie=cookie, Sec_Fetch_Site="same-origin")
        assert {prompt["askerUser"] for prompt in agent.prompts} == {"alice"}


async def test_the_cookie_is_refused_from_anywhere_else(embedded_hub: HubProcess) -> None:
    url, cookie = embedded_hub.url, f"cw_session={embedded_hub.mint('alice', 'session')}"
    origins = ("https://evil.example", "null", "", f"{url}/", f"{url}0", url.replace("http:", "https:"))
    foreign: list[dict[str, str]] = [{}, *({"Origin": one} for one in origins)]
    foreign += [{"Sec_Fetch_Site": one} for one in ("same-site", "cross-site", "none")]
    foreign += [{"Origin": "https://evil.example", "Sec_Fetch_Site": "same-origin"}]
    async with online(embedded_hub, Echo) as agent:
        for headers in foreign:
            response = await ask(embedded_hub, agent.handle, Cookie=cookie, **headers)
            assert (response.status_code, "error" in response.json()) == (403, True), headers
        assert agent.prompts == []


async def test_a_limited_token_asks_only_where_it_may(embedded_hub: HubProcess, subtests: pytest.Subtests) -> None:
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
            with subtests.test(token=text, statuses=statuses):
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
