"""An AGNT key is refused where tokens of other kinds are accepted."""

import pytest

from accounts.authn import AGENT_KINDS, CALLER_KINDS, digest
from lab.agents import Echo, online
from lab.callers import bearer, call, question, web
from lab.channel_agent import dial
from lab.hub_process import HubProcess
from tests.agnt.wire import mint, new_login
from tests.channel.agents import sql
from tests.gateway.client import GatewayClient
from tests.operators.operator import Operator
from tests.surfaces.test_channel_socket import frames_until_closed


def test_the_kind_is_among_no_callers() -> None:
    assert "agnt" not in (*CALLER_KINDS, *AGENT_KINDS)


@pytest.fixture(scope="module", params=["as it is made", "without its scope"])
def refused_key(request: pytest.FixtureRequest, embedded_hub: HubProcess) -> str:
    """A key with all rights; surfaces refuse it by its kind, also if it had the scopes of every other token."""
    token = mint(embedded_hub, new_login(), "enterprise", "full").token
    if request.param != "as it is made":
        sql(embedded_hub, "UPDATE accounts_credential SET scopes = '' WHERE digest = ?", digest(token))
    return token


async def test_a_key_is_refused_over_http(embedded_hub: HubProcess, refused_key: str) -> None:
    reads = ("api/v1/me", "api/v1/tokens", "api/v1/sessions", "api/v1/admin/users", "api/v1/network/keys")
    reads += ("v1/models", "health", "agents", "ap/v1/agent/tasks")
    async with web(embedded_hub.url, headers=bearer(refused_key)) as client:
        answers = [await client.get(f"/{path}") for path in reads]
        posts = ("api/v1/tokens/channel", "api/channel/event", "api/v1/gateway/fipa")
        answers += [await client.post(f"/{path}", json={"name": "x"}) for path in posts]
    assert [one.url.path for one in answers if one.status_code != 401] == []


async def test_a_key_asks_no_agent(embedded_hub: HubProcess, refused_key: str) -> None:
    async with online(embedded_hub, Echo) as agent:
        answer = await call(embedded_hub.url, agent.handle, refused_key, "SendMessage", question("hi"))
    assert answer.status_code == 401, answer.text


async def test_a_key_opens_no_page(embedded_hub: HubProcess, refused_key: str) -> None:
    async with web(embedded_hub.url, headers={"Cookie": f"cw_session={refused_key}"}) as client:
        for path in ("/account", "/admin/", "/desk"):
            answer = await client.get(path)
            assert answer.status_code == 302, path
            assert "signin" in answer.headers["location"] or "login" in answer.headers["location"]


async def test_a_key_opens_no_socket(embedded_hub: HubProcess, refused_key: str) -> None:
    socket = await dial(embedded_hub.url.replace("http", "ws", 1) + "/channel", refused_key)
    assert [frame["code"] for frame in await frames_until_closed(socket)] == ["auth_failed"]
    async with Operator(embedded_hub.url, refused_key) as operator:
        assert (await operator.heard("error"))["code"] == "auth_failed"
    async with GatewayClient(embedded_hub.url, refused_key) as client:
        error = (await client.find("error"))["content"]
    assert error["code"] == 5002
