"""Frames to all agents of a team, and requests of services: of the gateway, and of an agent."""

import asyncio

from lab.frames import Json
from lab.hub_process import HubProcess
from tests.channel.agents import sql
from tests.gateway.client import EchoSeat, GatewayClient, code_of


async def test_services_answer_requests(embedded_hub: HubProcess) -> None:
    token = embedded_hub.mint("asks-services", "channel")
    async with EchoSeat(embedded_hub.url, token, agentId="coder") as seat:
        for number, (content, wanted) in enumerate(
            [
                ({"service": "agents.get", "params": {"name": "coder"}}, "coder"),
                ({"service": "agents.get", "params": {"name": "absent"}}, 3001),
                ({"service": "agents.get"}, 2002),
            ]
        ):
            about = {"correlationId": f"r-{number}"}
            await seat.send("request", content, metadata=about)
            shown = (await seat.find("response", lambda frame, about=about: frame["metadata"] == about))["content"]
            found = shown["error"]["code"] if "error" in shown else shown["result"]["agent"]["name"]
            assert found == wanted
        await seat.send("request", {"service": "nope"}, metadata={"correlationId": "r-9"})
        assert code_of(await seat.find("error"))[0] == 2005


async def test_a_broadcast_reaches_the_other_agents_of_the_team(hub: HubProcess) -> None:
    token, foreign = hub.mint("broadcaster", "channel"), hub.mint("bystander", "channel")
    here, far = hub.url, hub.urls[-1]
    async with (
        GatewayClient(here, token, agentId="steward") as steward,
        GatewayClient(far, token, agentId="alpha") as alpha,
        GatewayClient(here, token, agentId="beta") as beta,
        GatewayClient(here, foreign, agentId="stranger") as stranger,
    ):
        await beta.shake_hands(supportedMessageTypes=["message"])
        for one in (steward, alpha, stranger):
            await one.find("auth-response")
        about = {"correlationId": "b-1"}
        await steward.send("broadcast", {"message": "stop", "scope": "all"}, id="m-1", metadata=about)
        result = (await steward.find("response"))["content"]["result"]
        wanted = [{"agentId": name, "success": True} for name in ("alpha", "beta")]
        assert result == {"success": True, "totalSent": 2, "results": wanted}
        told = await alpha.find("broadcast")
        assert (told["from"], told["id"], told["content"]) == (
            "steward",
            "m-1",
            {"message": "stop", "scope": "all"},
        )
        assert (await beta.find("message"))["content"] == {"role": "agent", "content": "stop"}
        await steward.send("message", {"role": "agent", "content": "go on"}, agent="broadcast")
        assert (await alpha.find("broadcast", lambda frame: frame is not told))["content"]["message"] == "go on"
        await stranger.send("broadcast", {"message": "mine"})
        assert (await stranger.find("response"))["content"]["result"]["totalSent"] == 0
        assert not [one for one in stranger.frames if one["type"] == "broadcast"]


async def test_a_user_who_is_halted_as_a_caller_broadcasts_nothing(embedded_hub: HubProcess) -> None:
    token = embedded_hub.mint("halted-caller", "channel")
    alpha, beta = (GatewayClient(embedded_hub.url, token, agentId=name) for name in ("alpha", "beta"))
    async with alpha, beta:
        await asyncio.gather(alpha.find("auth-response"), beta.find("auth-response"))
        sql(
            embedded_hub,
            "INSERT INTO agents_halt (kind, user_id, by_staff, reason, made_at)"
            " SELECT 'caller', id, true, '', CURRENT_TIMESTAMP FROM accounts_user WHERE login = 'halted-caller'",
        )
        for number, (type_name, content) in enumerate(
            (("broadcast", {"message": "stop"}), ("message", {"role": "agent", "content": "stop"}))
        ):
            about = {"correlationId": f"c-{number}", "requiresResponse": True}
            await alpha.send(type_name, content, agent="broadcast", metadata=about)
            assert code_of(await alpha.reply(f"c-{number}", "response")) == (5004, "halted")
        assert [one for one in beta.frames if one["type"] in ("broadcast", "message")] == []


class ServingSeat(GatewayClient):
    """An agent that adds the numbers of a request."""

    async def answer(self, message: Json) -> None:
        numbers = message["content"]["params"]["numbers"]
        about = {"correlationId": message["metadata"]["correlationId"]}
        content = {"result": {"sum": sum(numbers)}} if numbers else {"error": {"message": "nothing to add"}}
        await self.send("response", content, metadata=about)


async def test_a_request_is_served_by_an_agent(embedded_hub: HubProcess) -> None:
    token = embedded_hub.mint("serves-requests", "channel")
    async with (
        ServingSeat(embedded_hub.url, token, agentId="adder") as adder,
        GatewayClient(embedded_hub.url, token, agentId="asker") as asker,
    ):
        await adder.find("auth-response")
        for key, numbers in (("q-1", [1, 2]), ("q-2", [])):
            content = {"service": "add", "params": {"numbers": numbers}}
            await asker.send("request", content, agent="adder", metadata={"correlationId": key})
        asked = await adder.find("request")
        assert (asked["from"], asked["content"]) == ("asker", {"service": "add", "params": {"numbers": [1, 2]}})
        answers = {key: await asker.reply(key, "response") for key in ("q-1", "q-2")}
        assert (answers["q-1"]["from"], answers["q-1"]["content"]) == ("adder", {"result": {"sum": 3}})
        failed = answers["q-2"]["content"]
        assert (failed["error"]["code"], failed["error"]["message"], "result" in failed) == (
            3004,
            "nothing to add",
            False,
        )
        await asker.send("request", {"service": "add"}, agent="absent", metadata={"correlationId": "q-3"})
        assert (await asker.reply("q-3", "response"))["content"]["error"]["code"] == 3001
