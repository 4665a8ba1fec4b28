"""The agents of a team: roles, statuses, workspaces, teams as data, and what their owner changes."""

import asyncio
import io
import json
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from accounts.models import User
from accounts.tokens import get_or_create_local_user
from agents.models import Session
from gateway.service.seat import GATEWAY_LINK
from gateway.service.team_rules import (
    DEFAULT_TEAM,
    READ_EVERY_S,
    BadTeamFile,
    RulesCache,
    change_policy,
    read_team,
)
from kit.async_db import db_call
from lab.callers import bearer, web
from lab.frames import Json
from lab.hub_process import HubProcess
from lab.hub_storage import manage
from tests.gateway.client import EchoSeat, GatewayClient, code_of, owner_of, team
from tests.gateway.test_channels import subscribed


async def listed(client: GatewayClient) -> dict[str, Json]:
    """The agents that discovery lists, by name."""
    found = await client.ask("discovery", {"action": "list"})
    return {one["name"]: one for one in found["content"]["agents"]}


async def test_a_status_decides_whether_an_agent_takes_messages(hub: HubProcess) -> None:
    async with team(hub, "moody", "alpha", beta=EchoSeat) as (alpha, beta):

        async def send_while(status: str) -> Json:
            await beta.send("status", {"status": status})
            await beta.discover()  # it is stored
            assert (await alpha.discover())["beta"] == status
            return await alpha.send_message("beta", "hi")

        assert code_of(await send_while("error")) == (3004, "status_error")
        assert code_of(await send_while("busy")) == (3003, "status_busy")
        assert (await send_while("idle"))["content"]["content"] == "echo: hi"
        await beta.send("status", {"status": "error"})
        await beta.discover()
        shown = await alpha.ask("status", {})
        statuses = {one["agent"]: one["status"] for one in shown["content"]["agents"]}
        assert statuses == {"alpha": "online", "beta": "error"}
    async with team(hub, "moody", "alpha") as (alpha,):
        await alpha.sees("beta", "offline")
        assert code_of(await alpha.send_message("beta", "hi"))[0] == 3002
        async with team(hub, "moody", beta=EchoSeat):  # who comes back is online
            assert (await alpha.send_message("beta", "hi"))["content"]["content"] == "echo: hi"


async def test_only_an_agent_sets_a_status_and_only_its_own(embedded_hub: HubProcess) -> None:
    async with team(embedded_hub, "selves", "alpha") as (alpha,), owner_of(embedded_hub, "selves") as owner:
        wanted: list[tuple[GatewayClient, Json, int]] = [
            (alpha, {"agent": "beta", "status": "idle"}, 5004),
            (owner, {"agent": "alpha", "status": "idle"}, 5004),
            (owner, {"status": "idle"}, 5004),
            (alpha, {"status": "offline"}, 2005),
            (alpha, {"status": "asleep"}, 2005),
            (alpha, {"agent": "alpha"}, 2002),
        ]
        codes = [code_of(await who.ask("status", content))[0] for who, content, _ in wanted]
        assert codes == [code for *_, code in wanted]
        assert (await listed(alpha))["alpha"]["status"] == "online"


async def test_discovery_names_the_gateway_as_a_service(embedded_hub: HubProcess) -> None:
    async with owner_of(embedded_hub, "service") as client:
        found = await client.ask("discovery", {"action": "services"})
        assert {one["name"]: one for one in found["content"]["agents"]} == await listed(client)
        (service,) = found["content"]["services"]
        assert service["serviceId"] == "gateway"
        assert service["endpoint"].startswith("ws")
        assert service["endpoint"].endswith("/gateway")
        assert {"agents.get", "agents.list"} <= set(service["capabilities"])
        async with web(embedded_hub.url) as http:
            assert (await http.get("/" + service["healthEndpoint"].split("/", 3)[3])).status_code == 200


async def test_a_team_is_loaded_from_data(embedded_hub: HubProcess) -> None:
    hub = embedded_hub
    async with owner_of(hub, "loaded") as client, team(hub, "loaded", "alpha"):
        assert (await listed(client))["alpha"]["role"] == "agent"
        said = await asyncio.to_thread(manage, hub.home.env, "load_team", "--login", "loaded")
        assert "12 agents of the file are enrolled, 11 of them are new" in said
        said = await asyncio.to_thread(manage, hub.home.env, "load_team", "--login", "loaded")
        assert "0 of them are new" in said
        agents = await listed(client)
        assert len(agents) == 12
        assert agents["alpha"] == {
            "name": "alpha",
            "role": "triad-member",
            "status": "online",
            "active": True,
            "workspace": "~/.openclaw/agents/alpha",
        }
        assert (agents["historian"]["role"], agents["historian"]["status"]) == ("historical", "offline")
        assert code_of(await client.send_message("historian", "hi"))[0] == 3002
        workspaces = (await client.ask("workspace", {"action": "list"}))["content"]["workspaces"]
        assert [one["name"] for one in workspaces] == sorted(agents)


async def test_workspaces_are_those_of_the_own_team(embedded_hub: HubProcess) -> None:
    async with team(embedded_hub, "spaces", "alpha") as (alpha,), team(embedded_hub, "other-spaces", "gamma"):
        shown = {
            "name": "alpha",
            "path": "~/.openclaw/agents/alpha",
            "sessions": 0,
            "status": "online",
            "role": "agent",
        }
        for asked in ({"action": "list"}, *({"action": "get", "name": one} for one in ("alpha", "@spaces/alpha"))):
            assert (await alpha.ask("workspace", asked))["content"] == {"workspaces": [shown]}
        for asked, code in (
            ({"name": "gamma"}, 3001),
            ({"name": "@spaces/absent"}, 3001),
            ({"name": "@other-spaces/gamma"}, 5004),
            ({"name": "@other-spaces/absent"}, 5004),
            ({}, 2002),
            ({"action": "drop"}, 2005),
        ):
            assert code_of(await alpha.ask("workspace", {"action": "get", **asked}))[0] == code


async def test_commands_show_agents_and_restart_them(two_process_hub: HubProcess) -> None:
    hub = two_process_hub

    def command(*words: str) -> str:
        return manage(hub.home.env, "gateway_agent", *words, "--login", "commanded")

    async with owner_of(hub, "commanded") as watcher, team(hub, "commanded", "coder") as (seat,):
        await subscribed(watcher, "agent:status")
        assert (await asyncio.to_thread(command, "list")).split()[:4] == ["coder", "online", "agent", "active"]
        await asyncio.to_thread(command, "restart", "coder")
        assert (await seat.find("disconnect"))["content"]["reason"] == "error"
        await seat.closed()
        await watcher.find("status", lambda one: one["content"]["status"] == "offline")
    async with team(hub, "commanded", "coder"):
        pass


@pytest.mark.django_db
def test_commands_show_one_agent_and_its_settings() -> None:
    owner = User.objects.create(login="commanded")
    Session.objects.create(owner=owner, routing_name="coder", link=GATEWAY_LINK)

    def command(*words: str) -> str:
        out = io.StringIO()
        call_command("gateway_agent", *words, "--login", "commanded", stdout=out)
        return out.getvalue()

    assert command("list") == command("status", "coder")
    assert command("status", "coder").split()[:4] == ["coder", "offline", "agent", "active"]
    shown = json.loads(command("config", "coder", "get"))
    assert shown == {"name": "coder", "role": "agent", "active": True, "config": {}}
    with pytest.raises(CommandError, match="3001"):
        command("status", "absent")
    with pytest.raises(CommandError, match="3002"):
        command("restart", "coder")


async def test_an_owner_changes_agents_and_rules_by_rest(embedded_hub: HubProcess) -> None:
    token = embedded_hub.mint("ruled", "channel")
    headers = bearer(embedded_hub.mint("ruled", "session"))
    stranger = bearer(embedded_hub.mint("stranger", "session"))
    async with (
        web(embedded_hub.url) as http,
        team(embedded_hub, "ruled", "alpha", "beta") as (alpha, beta),
    ):
        names = (await http.get("/api/v1/team/agents", headers=headers)).json()
        assert {one["name"]: one["status"] for one in names["items"]} == {"alpha": "online", "beta": "online"}
        change = {"role": "triad_member", "config": {"model": "m"}, "maySendTo": ["alpha", "alpha"]}
        changed = await http.patch("/api/v1/team/agents/beta", json=change, headers=headers)
        assert (changed.status_code, changed.json()["maySendTo"]) == (200, ["alpha"]), changed.text
        assert (await listed(alpha))["beta"]["role"] == "triad-member"
        bad: list[Json] = [{"role": "Big Boss"}, {"maySendTo": ["No One"]}, {"config": {"x": "x" * 20_000}}]
        bad += [{"name": "gamma"}, {"status": "online"}]
        answers = [await http.patch("/api/v1/team/agents/beta", json=one, headers=headers) for one in bad]
        assert [one.status_code for one in answers] == [400] * len(bad)
        for path in ("/api/v1/team/agents/beta", "/api/v1/team/agents/absent"):
            answer = await http.patch(path, json={"role": "x"}, headers=stranger)
            assert (answer.status_code, answer.json()["message"]) == (404, "no such agent")
        # An inactive agent is disconnected, and is not let in again.
        await http.patch("/api/v1/team/agents/beta", json={"active": False}, headers=headers)
        await beta.closed()
        async with GatewayClient(embedded_hub.url, token, agentId="beta") as beta:
            assert await beta.closed() == 1013
            assert code_of(beta.frames[-1]) == (1001, "not_active")
        shown = (await listed(alpha))["beta"]
        assert (shown["role"], shown["status"], shown["active"]) == ("triad-member", "offline", False)
        assert (await http.delete("/api/v1/team/agents/beta", headers=headers)).status_code == 204
        async with team(embedded_hub, "ruled", "beta"):
            pass
        policy = (await http.get("/api/v1/team/policy", headers=headers)).json()
        assert (policy["members"], policy["queuesMessages"]) == (["alpha", "beta", "charlie"], False)
        change = {"queuesMessages": True, "members": ["alpha"], "sessionTtlS": 60}
        changed = await http.patch("/api/v1/team/policy", json=change, headers=headers)
        assert changed.json() == policy | change
        assert (await http.get("/api/v1/team/policy", headers=headers)).json() == policy | change
        assert (await http.get("/api/v1/team/policy", headers=stranger)).json() == policy
        bad = [{"members": []}, {"members": ["No One"]}, {"steward": "No One"}, {"threshold": "x"}]
        bad += [{"sessionTtlS": 0}]
        answers = [await http.patch("/api/v1/team/policy", json=one, headers=headers) for one in bad]
        assert [one.status_code for one in answers] == [400] * len(bad)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[]", "no team file"),
        ('{"agents": [{"role": "x"}]}', "missing"),
        ('{"agents": [{"name": "Alpha"}]}', "is no name"),
        ('{"agents": [{"name": "a", "role": "Big Boss"}]}', "is no role"),
        ('{"agents": [{"name": "a"}, {"name": "a"}]}', "once"),
        ('{"agents": [{"name": "a", "boss": true}]}', "unknown field"),
        ("[" * 100_000, "no team file"),
    ],
)
def test_a_team_file_that_is_refused(tmp_path: Path, text: str, reason: str) -> None:
    path = tmp_path / "team.json"
    path.write_text(text)
    with pytest.raises(BadTeamFile, match=reason):
        read_team(path)


def test_the_default_team_has_twelve_agents_and_roles_are_spelled_as_on_the_wire(tmp_path: Path) -> None:
    agents = read_team(DEFAULT_TEAM)
    assert (len(agents), agents[0].name) == (12, "main")
    path = tmp_path / "team.json"
    path.write_text('{"agents": [{"name": "arbiter", "role": "triad_member"}]}')
    assert [one.role for one in read_team(path)] == ["triad-member"]


@pytest.mark.django_db(transaction=True)
async def test_frames_that_come_at_once_share_one_look_at_the_rules() -> None:
    now = [0.0]
    owner = await db_call(get_or_create_local_user)("owner")
    rules = RulesCache(lambda: now[0])
    found = await asyncio.gather(*(rules.get(owner.pk) for _ in range(50)))
    assert len({id(one) for one in found}) == 1
    await db_call(change_policy)(owner.pk, {"requires_signature": True})
    assert not (await rules.get(owner.pk)).demands_signature
    now[0] = READ_EVERY_S
    leaves = asyncio.create_task(rules.get(owner.pk))
    await asyncio.sleep(0)
    leaves.cancel()  # costs the others nothing
    assert (await rules.get(owner.pk)).demands_signature
