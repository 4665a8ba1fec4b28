"""nginx and Caddy, with the files of `deploy/`: streams come at once, sockets stay, callers are told apart."""

import asyncio
import re
import shutil
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from deploy.stack.proxy import NGINX as NGINX_OF_STACK
from deploy.stack.proxy import proxy
from hub.server import KEEP_ALIVE_S
from lab.agents import Echo, Held, online
from lab.callers import TLS, bearer, envelope, question, reply_text, rpc_path, send, web
from lab.hub_process import HubProcess
from lab.hub_storage import MakeStorage
from lab.processes import free_port
from tests.deploy.files import DEPLOY

IDLE_S = re.compile(r"keepalive(?:_timeout)? (\d+)s")
START = "/api/v1/auth/oauth/start"
NGINX = (DEPLOY / "nginx" / "nginx.conf").read_text() + (DEPLOY / "nginx" / "locations.conf").read_text()
CADDY = (DEPLOY / "Caddyfile").read_text()


@pytest.mark.parametrize("text", [NGINX, CADDY, NGINX_OF_STACK], ids=["nginx", "Caddy", "run-stack"])
def test_a_proxy_gives_up_an_idle_connection_before_the_hub(text: str) -> None:
    """Otherwise it sends a question into a connection that the hub closes at that moment: 502."""
    assert [int(found) < KEEP_ALIVE_S for found in IDLE_S.findall(text)] == [True]


@dataclass(frozen=True)
class Front:
    hub: HubProcess
    url: str


@pytest.fixture(scope="module", params=["nginx", "caddy"])
def front(
    request: pytest.FixtureRequest, make_storage: MakeStorage, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Front]:
    program = shutil.which(request.param)
    if program is None:
        pytest.skip(f"{request.param} is not installed")
    settings = {"GITHUB_CLIENT_ID": "app", "GITHUB_CLIENT_SECRET": "secret", "SIGNIN_RATE_PER_MINUTE": 20}
    address = f"127.0.0.1:{free_port()}"
    hub = HubProcess.start(
        make_storage("embedded"), TRUSTED_PROXIES="127.0.0.1", PUBLIC_URL=f"http://{address}", **settings
    )
    folder: Path = tmp_path_factory.mktemp("proxy")
    running = proxy(program, folder, address, [hub.url.removeprefix("http://")])
    try:
        running.start()
        yield Front(hub, f"http://{address}")
    finally:
        running.stop()
        hub.stop()


@pytest.fixture
def alice(front: Front) -> str:
    return front.hub.mint("alice", "session")


async def test_agents_and_callers_come_through(front: Front, alice: str) -> None:
    through = HubProcess(front.hub.home, [front.url], front.hub.programs, _env=front.hub._env)
    async with online(through, Echo) as agent:
        assert reply_text(await send(front.url, agent.handle, "hello", alice))


async def test_an_event_comes_before_the_stream_ends(front: Front, alice: str) -> None:
    async with online(front.hub, Held) as agent, web(front.url) as client:
        body = envelope("SendStreamingMessage", question("hello"))
        async with client.stream("POST", rpc_path(agent.handle), json=body, headers=bearer(alice)) as answer:
            lines = answer.aiter_lines()
            async with asyncio.timeout(30):
                while "WORKING" not in await anext(lines):
                    pass
            agent.release.set()
            assert [one async for one in lines if "COMPLETED" in one]


async def test_figures_stay_inside(front: Front) -> None:
    async with web(front.hub.url) as client:
        assert (await client.get("/metrics")).status_code == 200
    async with web(front.url) as client:
        assert (await client.get("/metrics")).status_code == 404
        assert (await client.get("/readyz")).status_code == 200


async def test_a_file_passes_and_more_does_not(front: Front) -> None:
    async with web(front.url) as client:
        fitting = await client.post("/api/channel/files", content=b"x" * 10_000_000)
        assert fitting.status_code == 401  # the hub's own word
        with suppress(httpx.WriteError):  # it may be cut while it still sends
            assert (await client.post("/api/channel/files", content=b"x" * 12_000_000)).status_code == 413


def test_a_caller_cannot_choose_an_address(front: Front) -> None:
    with httpx.Client(base_url=front.url, trust_env=False, verify=TLS, timeout=30) as client:
        made_up = [{"X-Forwarded-For": f"203.0.113.{number}"} for number in range(21)]
        assert [client.get(START, headers=one).status_code for one in made_up] == [302] * 20 + [429]


@pytest.mark.parametrize(
    ("text", "needed"),
    [
        (NGINX, ["proxy_buffering off", "proxy_read_timeout 300s", "client_max_body_size 11m", "$remote_addr"]),
        (NGINX, ["proxy_next_upstream error;", "Upgrade $http_upgrade", "location = /metrics", "gzip off"]),
        (CADDY, ["flush_interval -1", "health_uri /readyz", "max_size 11MB", "handle /metrics", "{remote_host}"]),
    ],
    ids=["nginx", "nginx again", "Caddy"],
)
def test_the_files_say_what_streams_and_sockets_need(text: str, needed: list[str]) -> None:
    assert not [one for one in needed if one not in text]
