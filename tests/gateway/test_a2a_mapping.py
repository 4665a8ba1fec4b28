"""How a message of A2A and a message to a seat say the same (section 15.2)."""

from typing import Any

from lab.callers import Json, bearer, call, question, send, web
from lab.hub_process import HubProcess
from tests.gateway.client import EchoSeat, GatewayClient
from tests.gateway.test_messages import publish


class PlainSeat(GatewayClient):
    """An agent that answers with an object, or with an error, as the text says."""

    async def answer(self, message: Json) -> None:
        about = {"correlationId": message["metadata"]["correlationId"]}
        if "fail" in str(message["content"]["content"]):
            await self.send("error", {"message": "I cannot"}, error="AGENT_ERROR", metadata=about)
        else:
            await self.send("response", {"result": {"rows": [1, 2]}}, metadata=about)


async def ask(hub: HubProcess, handle: str, **message: Any) -> Json:
    """Ask over A2A; the task."""
    params = question("hi")
    params["message"] |= message
    answer = (await call(hub.url, handle, hub.mint("alice", "session"), "SendMessage", params)).json()
    task: Json = answer["result"]
    return task


async def test_texts_data_contexts_and_failures_are_translated(embedded_hub: HubProcess) -> None:
    hub, token = embedded_hub, embedded_hub.mint("mapping", "channel")
    plain = PlainSeat(hub.url, token, agentId="plain")
    async with plain, EchoSeat(hub.url, token, agentId="echo") as echo:
        await plain.find("auth-response")
        await echo.find("auth-response")
        handles = {one: await publish(hub, "mapping", one) for one in ("plain", "echo")}
        parts = [{"text": "see"}, {"data": {"a": 1}}]
        first = await ask(hub, handles["echo"], parts=parts)
        await ask(hub, handles["echo"], contextId=first["contextId"])
        seen = [one for one in echo.frames if one["type"] == "message"]
        assert seen[0]["content"]["content"]["parts"][1]["data"] == {"a": 1}
        assert {one["content"]["role"] for one in seen} == {"user"}
        assert len({one["sessionId"] for one in seen}) == 1  # one context is one session
        answered = await ask(hub, handles["plain"])
        (artifact,) = answered["artifacts"]
        assert artifact["parts"][0]["data"] == {"rows": [1, 2]}
        failed = await send(hub.url, handles["plain"], "fail", hub.mint("alice", "session"))
        assert failed["status"]["state"] == "FAILED"
        assert "I cannot" in str(failed["status"])
    offline = await send(hub.url, handles["echo"], "hi", hub.mint("alice", "session"))
    assert (offline["status"]["state"], "offline" in str(offline["status"])) == ("FAILED", True)
    async with web(hub.url, headers=bearer(hub.mint("alice", "session"))) as client:
        body = {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": question("hi")}
        unknown = await client.post("/api/a2a/v1/agents/mapping/unknown", json=body)
        assert (unknown.status_code, "error" in unknown.json()) == (404, True)
