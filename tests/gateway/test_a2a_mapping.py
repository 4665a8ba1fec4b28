"""How a message of A2A and a message to a seat say the same (section 15.2)."""

from lab.callers import Json
from lab.hub_process import HubProcess
from tests.gateway.client import EchoSeat, GatewayClient, publish, team
from tests.v1.caller import Caller


class PlainSeat(GatewayClient):
    """An agent that answers with an object, or with an error, as the text says."""

    async def answer(self, message: Json) -> None:
        if "fail" in str(message["content"]["content"]):
            about = {"correlationId": message["metadata"]["correlationId"]}
            await self.send("error", {"message": "I cannot"}, error="AGENT_ERROR", metadata=about)
        else:
            await self.respond(message, {"rows": [1, 2]})


async def test_texts_data_contexts_and_failures_are_translated(embedded_hub: HubProcess) -> None:
    hub = embedded_hub
    async with team(hub, "mapping", plain=PlainSeat, echo=EchoSeat) as (_, echo):
        handles = {one: await publish(hub, "mapping", one) for one in ("plain", "echo")}
        alice = hub.mint("alice", "session")
        callers = {one: Caller(hub.url, handle, alice) for one, handle in handles.items()}
        first = await callers["echo"].send("", parts=[{"text": "see"}, {"data": {"a": 1}}])
        await callers["echo"].send("hi", contextId=first["contextId"])
        seen = echo.of("message")
        assert seen[0]["content"]["content"]["parts"][1]["data"] == {"a": 1}
        assert seen[1]["content"]["content"] == "hi"
        assert {one["content"]["role"] for one in seen} == {"user"}
        assert len({one["sessionId"] for one in seen}) == 1  # one context is one session
        answered = await callers["plain"].send("hi")
        assert answered["status"]["state"] == "TASK_STATE_COMPLETED"
        assert answered["artifacts"][0]["parts"][0]["data"] == {"rows": [1, 2]}
        failed = await callers["plain"].send("fail")
        assert (failed["status"]["state"], "I cannot" in str(failed["status"])) == ("TASK_STATE_FAILED", True)
    offline = await callers["echo"].send("hi")
    assert (offline["status"]["state"], "offline" in str(offline["status"])) == ("TASK_STATE_FAILED", True)
