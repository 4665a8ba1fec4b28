"""The health of the gateway: over HTTP for the caller's team, and on the command line."""

import asyncio
import re

from lab.callers import Json, bearer, web
from lab.hub_process import HubProcess, StartHub
from lab.hub_storage import MakeStorage, run_command
from lab.waiting import eventually
from tests.gateway.client import team

UNAUTHORIZED: Json = {"error": "Unauthorized", "status": 401}
ASKS_FOR_JSON = {"Accept": "application/json"}


async def read(hub: HubProcess, path: str, token: str) -> Json:
    async with web(hub.url, headers=bearer(token)) as client:
        answer = await client.get(path)
        assert answer.status_code == 200, answer.text
        return answer.json()


async def test_a_team_sees_which_of_its_agents_are_connected(embedded_hub: HubProcess) -> None:
    caller = embedded_hub.mint("watched", "session")
    async with team(embedded_hub, "watched", "alpha") as (alpha_seat,):
        for token in (embedded_hub.mint("watched", "channel"), caller):
            health = await read(embedded_hub, "/health", token)
            assert (health["status"], health["running"], health["connectedAgents"]) == ("ok", True, 1)
            assert health["agents"] == ["alpha"]
            assert embedded_hub.url == f"http://{health['host']}:{health['port']}"
            assert health.keys() >= {"timestamp", "version", "uptime", "redisConnected", "pendingResponses"}
        asked = await alpha_seat.request("gateway.status")
        assert asked.keys() == health.keys()
        assert (asked["status"], asked["agents"], asked["redisConnected"]) == ("ok", ["alpha"], False)
        assert await read(embedded_hub, "/agents", caller) == {"connected": ["alpha"], "count": 1}
        alpha = await read(embedded_hub, "/agent-status/alpha", caller)
        assert (alpha["agentId"], alpha["status"], alpha["metadata"]["queued"]) == ("alpha", "online", 0)
        assert alpha["connectionState"] == 1
        assert alpha["registeredAt"] <= alpha["lastSeen"] + 1
        assert alpha["timeSinceLastSeenMs"] >= 0

    async def has_left() -> bool:
        return (await read(embedded_hub, "/agents", caller))["count"] == 0

    await eventually(has_left, "the agent has left")
    statuses = await read(embedded_hub, "/agent-status", caller)
    assert (statuses["totalAgents"], statuses["onlineCount"], statuses["offlineCount"]) == (1, 0, 1)
    assert [(one["status"], one["connectionState"]) for one in statuses["agents"]] == [("offline", 3)]


async def test_the_health_of_a_team_is_its_owners_alone(embedded_hub: HubProcess) -> None:
    async with team(embedded_hub, "keeper", "hidden"):
        stranger = embedded_hub.mint("stranger", "session")
        assert (await read(embedded_hub, "/agents", stranger))["connected"] == []
        assert (await read(embedded_hub, "/health", stranger))["agents"] == []
        assert (await read(embedded_hub, "/agent-status", stranger))["agents"] == []
        async with web(embedded_hub.url, headers=bearer(stranger)) as client:
            foreign, absent = await client.get("/agent-status/hidden"), await client.get("/agent-status/nothing")
            no_name = await client.get("/agent-status/%00")  # no text of PostgreSQL holds it
        assert (foreign.status_code, foreign.json()) == (absent.status_code, absent.json())
        assert (no_name.status_code, no_name.json()) == (absent.status_code, absent.json())
        assert (absent.status_code, absent.json()["error"]) == (404, "Not found")


async def test_health_is_read_with_a_live_token_alone(embedded_hub: HubProcess) -> None:
    token = embedded_hub.mint("watched", "session")
    cookie = {"Cookie": f"cw_session={token}"}
    async with web(embedded_hub.url) as client:
        for path in ("/health", "/agents", "/agent-status", "/agent-status/alpha"):
            for headers in (bearer("cw_sess_unknown"), {"Authorization": "Basic eA=="}, ASKS_FOR_JSON, cookie):
                answer = await client.get(path, headers=ASKS_FOR_JSON | headers)
                assert (answer.status_code, answer.json()) == (401, UNAUTHORIZED), headers
        answer = await client.post("/agent-status", json={}, headers=bearer(token))
        assert (answer.status_code, answer.json()["status"]) == (405, 405)
        pages = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}  # of browsers, as before
        assert (await client.get("/health", headers=pages)).status_code == 404
        directory = await client.get("/agents", headers=pages)
        assert (directory.status_code, directory.headers["content-type"].partition(";")[0]) == (200, "text/html")


async def test_the_command_says_healthy_while_a_hub_runs_and_down_after(
    start_hub: StartHub, make_storage: MakeStorage
) -> None:
    hub = start_hub(make_storage("embedded"))
    settings = {**hub.home.env, "PUBLIC_URL": "https://other.example", "PORT": "1", "GATEWAY": "0"}
    async with team(hub, "watched", "alpha"):
        done = run_command(settings, "gateway", "status", "--deep", "--login", "watched")
    lines = dict(line.split(": ", 1) for line in done.stdout.splitlines())
    assert done.returncode == 0, done.stdout + done.stderr
    assert (lines["running"], lines["connected agents"], lines["status"]) == ("yes", "1", "healthy")
    assert (lines["address"], lines["port"]) == (hub.url, hub.url.rpartition(":")[2])
    assert lines["processes"] == "1"
    assert re.fullmatch(r"ok, \d+ ms", lines["database"])
    assert re.fullmatch(r"ok, \d+ ms", lines["session store"])
    assert lines["agent alpha"].startswith("online, last heartbeat")
    assert (lines["redis"], lines["oldest pending correlation"]) == ("not used", "none")
    assert run_command(settings, "gateway", "status", "--deep", "--login", "unknown").returncode == 2
    serving = hub.home.folder / "serving"
    other, dead = hub.url.replace("127.0.0.1", "localhost"), "http://127.0.0.1:1"
    (serving / "other").write_text(other)
    (serving / "dead").write_text(dead)  # as a process that was killed leaves it
    done = run_command(settings, "gateway", "status")
    said = done.stdout.splitlines()
    assert (done.returncode, said[0], said[-1]) == (1, "running: yes", "status: degraded")
    assert {f"address: {hub.url}", f"address: {other}", f"address: {dead}, no answer"} <= {*said}
    for name in ("other", "dead"):
        (serving / name).unlink()
    hub.kill9()  # its heartbeat is recent for a while
    done = run_command(settings, "gateway", "status")
    said = done.stdout.splitlines()
    assert (done.returncode, said[0], said[-1]) == (2, f"running: no: no answer at {hub.url}", "status: down")
    await asyncio.to_thread(hub.serve, 0)
    assert run_command(settings, "gateway", "status").returncode == 0
    hub.terminate()  # in order: the hub deletes its row of a process
    assert await hub.exit_code() == 0
    done = run_command(settings, "gateway", "status")
    assert (done.returncode, done.stdout.splitlines()[-1]) == (2, "status: down")
