"""Frames to all agents of a team, and requests of services: of the gateway, and of an agent."""

from lab.frames import Json
from lab.hub_process import HubProcess
from tests.channel.agents import sql
from tests.gateway.client import GatewayClient, code_of, team


async def test_services_answer_requests(embedded_hub: HubProcess) -> None:
    async with team(embedded_hub, "asks-services", "coder") as (seat,):
        assert (await seat.request("agents.get", name="coder"))["agent"]["name"] == "coder"
        for content, code in (
            ({"service": "agents.get", "params": {"name": "absent"}}, 3001),
            ({"service": "agents.get"}, 2002),
            ({"service": "nope"}, 2005),
        ):
            assert code_of(await seat.ask("request", content))[0] == code


async def test_a_broadcast_reaches_the_other_agents_of_the_team(hub: HubProcess) -> None:
    async with (
        team(hub, "broadcaster", "steward", "alpha", "beta") as (steward, alpha, beta),
        team(hub, "bystander", "stranger") as (stranger,),
    ):
        await beta.shake_hands(supportedMessageTypes=["message"])
        content = {"message": "stop", "scope": "all"}
        result = (await steward.ask("broadcast", content, id="m-1"))["content"]["result"]
        wanted = [{"agentId": name, "success": True} for name in ("alpha", "beta")]
        assert result == {"success": True, "totalSent": 2, "results": wanted}
        told = await alpha.find("broadcast")
        assert (told["from"], told["id"], told["content"]) == ("steward", "m-1", content)
        assert (await beta.find("message"))["content"] == {"role": "agent", "content": "stop"}
        await steward.tell("broadcast", "go on")
        assert (await alpha.find("broadcast", lambda frame: frame is not told))["content"]["message"] == "go on"
        assert (await stranger.ask("broadcast", {"message": "mine"}))["content"]["result"]["totalSent"] == 0
        assert stranger.of("broadcast") == []


async def test_a_user_who_is_halted_as_a_caller_broadcasts_nothing(embedded_hub: HubProcess) -> None:
    async with team(embedded_hub, "halted-caller", "alpha", "beta") as (alpha, beta):
        sql(
            embedded_hub,
            "INSERT INTO agents_halt (kind, user_id, by_staff, reason, made_at)"
            " SELECT 'caller', id, true, '', CURRENT_TIMESTAMP FROM accounts_user WHERE login = 'halted-caller'",
        )
        assert code_of(await alpha.ask("broadcast", {"message": "stop"})) == (5004, "halted")
        assert code_of(await alpha.send_message("broadcast", "stop")) == (5004, "halted")
        assert beta.of("broadcast", "message") == []


class ServingSeat(GatewayClient):
    """An agent that adds the numbers of a request."""

    async def answer(self, message: Json) -> None:
        numbers = message["content"]["params"]["numbers"]
        about = {"correlationId": message["metadata"]["correlationId"]}
        content = {"result": {"sum": sum(numbers)}} if numbers else {"error": {"message": "nothing to add"}}
        await self.send("response", content, metadata=about)


async def test_a_request_is_served_by_an_agent(embedded_hub: HubProcess) -> None:
    async with team(embedded_hub, "serves-requests", "asker", adder=ServingSeat) as (asker, adder):
        contents = [{"service": "add", "params": {"numbers": numbers}} for numbers in ([1, 2], [])]
        added, failed = [await asker.ask("request", content, agent="adder") for content in contents]
        asked = await adder.find("request")
        assert (asked["from"], asked["content"]) == ("asker", contents[0])
        assert (added["from"], added["content"]) == ("adder", {"result": {"sum": 3}})
        assert (code_of(failed)[0], failed["content"]["error"]["message"]) == (3004, "nothing to add")
        assert "result" not in failed["content"]
        assert code_of(await asker.ask("request", {"service": "add"}, agent="absent"))[0] == 3001
