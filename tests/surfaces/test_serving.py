"""Steps of an operator: the demo and its curl, refusals to start, health, the second hub, the second signal."""

import asyncio
import json
import shlex
import signal
import time
from contextlib import suppress
from itertools import pairwise
from pathlib import Path

import httpx
import pytest
from django.core.management import CommandError, call_command

from accounts.models import User
from kit.asgi import REFUSED_AFTER_S
from lab.agents import Echo, Stall, online
from lab.callers import bearer, envelope, question, rpc_path, web
from lab.hub_process import HubProcess, StartHub
from lab.hub_storage import MakeStorage, manage, run_command
from lab.processes import free_port
from lab.waiting import eventually
from tests.http_json import client, refusal


def start_and_fail(tmp_path: Path, **env: str) -> str:
    """All that a hub says that must not start, and does not."""
    settings = {"DATA_DIR": str(tmp_path), "PORT": str(free_port())} | env
    done = run_command(settings, "serve", within_s=60)
    said = done.stdout + done.stderr
    assert done.returncode != 0
    assert "Traceback" not in said
    return said


async def test_the_demos_curl_gets_its_answer_and_a_restart_makes_its_token_anew(
    make_storage: MakeStorage, start_hub: StartHub
) -> None:
    hub = start_hub(make_storage("embedded"), DEMO=1, DEV_LOGIN=1)
    said = hub.programs[0].output
    command = said[said.index("curl ") :].replace("\\\n", " ").strip()
    _, _, url, *arguments = shlex.split(command)
    headers = dict(each.split(": ") for flag, each in pairwise(arguments) if flag == "-H")
    body = arguments[arguments.index("-d") + 1]
    async with web(hub.url) as client:
        task = (await client.post(url, content=body, headers=headers)).json()["result"]
    assert task["status"]["state"] == "COMPLETED"
    assert task["history"][-1]["parts"] == [{"text": "hello"}]
    hub.terminate()
    assert await hub.exit_code() == 0
    hub.serve(0)
    new = next(word for word in hub.programs[0].output.split() if word.startswith("cw_sess_"))
    async with web(hub.url) as client:
        card = (await client.get(f"{rpc_path('demo/echo')}/agent-card.json")).json()
        assert card["_clawborrator"]["online"] is True
        me = "/api/v1/me"
        assert (await client.get(me, headers=headers)).status_code == 401
        assert (await client.get(me, headers=bearer(new))).json()["githubLogin"] == "you"


@pytest.mark.parametrize(
    ("env", "sentence"),
    [
        ({"DEV_LOGIN": "1", "PUBLIC_URL": "https://hub.example"}, "DEV_LOGIN=1 signs visitors in as any user"),
        ({"PORT": "eighty"}, "want a whole number"),
        ({"PUBLIC_URL": "hub.example/path"}, "want an address"),
        ({"HOST": "0.0.0.0"}, "set PUBLIC_URL"),
        ({"DRAIN_S": "-1"}, "must be above zero"),
        ({"DEMO": "yes"}, "want 0 or 1"),
        ({"LOG_LEVEL": "loud"}, "want one of"),
        ({"REDIS_URL": "redis://127.0.0.1/0"}, "go together"),
        ({"DATA_DIR": "/proc/nowhere"}, "cannot write there"),
    ],
)
def test_a_bad_setting_stops_the_start_and_is_named(tmp_path: Path, env: dict[str, str], sentence: str) -> None:
    said = start_and_fail(tmp_path, **env)
    assert sentence in said
    assert next(iter(env)) in said
    assert len(said.strip().splitlines()) == 1


def test_a_second_hub_on_the_same_data_is_refused(embedded_hub: HubProcess) -> None:
    said = start_and_fail(embedded_hub.home.folder)
    assert "another hub runs on" in said


def test_a_taken_port_is_named(embedded_hub: HubProcess, tmp_path: Path) -> None:
    said = start_and_fail(tmp_path, PORT=embedded_hub.url.rpartition(":")[2])
    assert "cannot listen on 127.0.0.1" in said


def test_state_is_private_to_its_owner(embedded_hub: HubProcess) -> None:
    folder = embedded_hub.home.folder
    assert folder.stat().st_mode & 0o077 == 0
    assert (folder / "secret_key").stat().st_mode & 0o077 == 0


def test_mint_token_prints_the_json_and_nothing_else(embedded_hub: HubProcess) -> None:
    said = manage(embedded_hub.home.env, "mint_token", "--login", "Nina", "--kind", "app", "--json")
    minted = json.loads(said)
    assert set(minted) == {"token", "login", "kind"}
    assert minted["token"].startswith("cw_app_")
    assert (minted["login"], minted["kind"]) == ("Nina", "app")
    again = json.loads(
        manage(embedded_hub.home.env, "mint_token", "--login", "nina", "--kind", "session", "--json")
    )
    assert again["login"] == "Nina"  # the first holder keeps it, in whatever case


@pytest.mark.django_db
@pytest.mark.parametrize("login", ["", "a b", "-x", "x" * 40, "../x"])
def test_mint_token_refuses_what_is_no_login(login: str) -> None:
    with pytest.raises(CommandError, match="login"):
        call_command("mint_token", f"--login={login}", "--kind=app", "--json")
    assert not User.objects.exists()


async def test_a_draining_hub_is_alive_and_not_ready_and_a_second_signal_ends_it(
    make_storage: MakeStorage, start_hub: StartHub
) -> None:
    hub = start_hub(make_storage("embedded"), DRAIN_S=60)
    token = hub.mint("alice", "session")
    async with online(hub, Stall) as agent, web(hub.url) as client:
        assert (await client.get("/readyz")).status_code == 200
        body = envelope("SendMessage", question("hold"))
        asking = asyncio.create_task(client.post(rpc_path(agent.handle), json=body, headers=bearer(token)))
        await agent.heard("prompt")
        hub.terminate()

        async def draining() -> bool:
            return (await client.get("/readyz")).status_code == 503

        await eventually(draining, "503 of /readyz")
        assert (await client.get("/livez")).status_code == 200
        await asyncio.sleep(0.6)  # a repeat of the same signal within half a second counts as one
        hub.programs[0].send_signal(signal.SIGINT)
        await hub.exit_code(within_s=20)
        with suppress(httpx.HTTPError):  # it may be told that the agent's channel went away
            assert (await asking).json()["result"]["status"]["state"] == "FAILED"


async def test_a_browser_elsewhere_may_ask_with_a_bearer_token(embedded_hub: HubProcess) -> None:
    async with online(embedded_hub, Echo) as agent, web(embedded_hub.url) as client:
        preflight = await client.options(rpc_path(agent.handle), headers={"Origin": "https://elsewhere.example"})
        assert preflight.status_code == 204
        allowed = {name.strip() for name in preflight.headers["access-control-allow-headers"].split(",")}
        assert allowed >= {"Authorization", "Content-Type", "A2A-Version", "A2A-Extensions", "X-A2A-Extensions"}
        assert preflight.headers["access-control-allow-origin"] == "*"
        assert "access-control-allow-credentials" not in preflight.headers


async def test_streams_beyond_a_callers_share_get_429_by_either_binding_and_ask_nothing(
    make_storage: MakeStorage, start_hub: StartHub
) -> None:
    hub = start_hub(make_storage("embedded"), STREAMS_PER_CALLER=1, TEST_TIME_SCALE="1")
    token, other = hub.mint("alice", "session"), question("another")
    body = envelope("SendStreamingMessage", question("hold"))
    async with online(hub, Stall) as agent, web(hub.url) as http, client(hub.url, agent.handle, token) as alice:
        async with http.stream("POST", rpc_path(agent.handle), json=body, headers=bearer(token)):
            await agent.heard("prompt")
            again, began = envelope("SendStreamingMessage", other), time.monotonic()
            refused = await http.post(rpc_path(agent.handle), json=again, headers=bearer(token))
            over_http = await alice.call("POST", "message:stream", json=other)
            assert time.monotonic() - began >= 2 * 0.9 * REFUSED_AFTER_S
        assert (refused.status_code, refused.json()["error"]["code"]) == (429, -32014)
        assert refusal(over_http, 429, "TOO_MANY_STREAMS")["status"] == "RESOURCE_EXHAUSTED"
        assert len(agent.prompts) == 1
