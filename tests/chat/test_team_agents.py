"""`/agent/{name}`: the agents of a team as models, by the official client of OpenAI."""

from typing import Any

import openai
import pytest

from lab.callers import Json, bearer, web
from lab.hub_process import HubProcess, StartHub
from lab.hub_storage import MakeStorage
from lab.waiting import eventually
from tests.chat.clients import client_of, read, user
from tests.gateway.client import EchoSeat, GatewayClient, team


class FailingSeat(GatewayClient):
    """An agent that answers each message with an error."""

    async def answer(self, message: Json) -> None:
        content = {"error": "AGENT_ERROR", "message": "not today"}
        await self.send("error", content, error="AGENT_ERROR", metadata=message["metadata"])


class ForgetfulSeat(GatewayClient):
    """An agent whose first reply has not the format that was asked for."""

    async def answer(self, message: Json) -> None:
        if message["type"] == "message":
            said = '{"n": 1}' if "Your last answer" in message["content"]["content"] else "one"
            about = {"correlationId": message["metadata"]["correlationId"]}
            await self.send("message", {"role": "agent", "content": said}, agent=message["from"], metadata=about)


def team_client(hub: HubProcess, name: str, owner: str) -> openai.AsyncOpenAI:
    """A client whose base address is an agent of the owner's team."""
    return client_of(f"{hub.urls[-1]}/agent/{name}", hub.mint(owner, "session"))


async def test_an_agent_of_the_team_answers_unpublished(hub: HubProcess) -> None:
    async with (
        team(hub, "passthrough", steward=EchoSeat) as (seat,),
        team_client(hub, "steward", "passthrough") as client,
    ):
        answer = await client.chat.completions.create(model="minimax/MiniMax-M2.7", messages=user("hello"))
        assert (answer.model, answer.object) == ("agent/steward", "chat.completion")
        assert (answer.choices[0].message.content, answer.choices[0].finish_reason) == ("echo: hello", "stop")
        got = await seat.find("message")
        assert (got["from"], got["content"]["content"]) == ("passthrough", "hello")
        stream = await client.chat.completions.create(model="x", messages=user("count"), stream=True, user="s-1")
        text, chunks = await read(stream)
        assert (text, chunks[0].choices[0].delta.role) == ("echo: count", "assistant")
        assert chunks[-1].choices[0].finish_reason == "stop"
        named = await seat.find("message", lambda frame: frame["content"]["content"] == "count")
        assert named["sessionId"] == "s-1"
        async with client_of(hub.url, hub.mint("passthrough", "session")) as plain:
            virtual = await plain.chat.completions.create(model="agent/steward", messages=user("hi"))
            assert (virtual.model, virtual.choices[0].message.content) == ("agent/steward", "echo: hi")
        async with web(hub.url, headers=bearer(hub.mint("passthrough", "app"))) as http:
            for path in ("/agent/steward", "/agent/steward/v1/chat/completions"):
                # LiteLLM names no model.
                raw = await http.post(path, json={"messages": user("raw"), "stream": True})
                assert (raw.status_code, raw.headers["content-type"]) == (200, "text/event-stream")
                assert raw.text.endswith("data: [DONE]\n\n")


async def test_why_there_is_no_answer_is_told_as_by_openai(embedded_hub: HubProcess) -> None:
    hub, token = embedded_hub, embedded_hub.mint("refusing", "channel")
    async with (
        team(hub, "refusing", "sentinel", examiner=FailingSeat) as (busy, _),
        web(hub.url, headers=bearer(hub.mint("refusing", "session"))) as client,
    ):
        async with team(hub, "refusing", "dreamer"):
            pass
        await busy.sees("dreamer", "offline")
        await busy.send("status", {"status": "busy"})
        await busy.ask("status", {})
        async with team_client(hub, "nothing", "refusing") as official:
            with pytest.raises(openai.NotFoundError) as caught:
                await official.chat.completions.create(model="x", messages=user("hello"))
            assert caught.value.code == "model_not_found"
        body = {"messages": user("hello")}
        for name, wanted, status, code in [
            ("examiner", body, 424, "agent_failed"),
            ("sentinel", body, 429, "agent_busy"),
            ("dreamer", body, 503, "agent_offline"),
            ("absent", body, 404, "model_not_found"),
            ("No Name", body, 404, "model_not_found"),
            ("examiner", {}, 400, "invalid_request"),
            ("examiner", body | {"user": "x" * 129}, 400, "invalid_request"),
        ]:
            answer = await client.post(f"/agent/{name}", json=wanted)
            assert (answer.status_code, answer.json()["error"]["code"]) == (status, code), (name, answer.text)
        assert (await client.get("/agent/examiner")).status_code == 405
        headers = bearer(hub.mint("stranger", "session"))
        assert (await client.post("/agent/examiner", json=body, headers=headers)).status_code == 404
        virtual = body | {"model": "agent/absent"}
        answer = await client.post("/v1/chat/completions", json=virtual)
        assert answer.json()["error"]["code"] == "model_not_found"
        for headers in ({"authorization": ""}, bearer(token), bearer("cw_sess_unknown")):
            answer = await client.post("/agent/examiner", json=body, headers=headers)
            assert (answer.status_code, answer.json()["error"]["code"]) == (401, "invalid_api_key")


async def test_a_reply_in_a_format_is_checked(embedded_hub: HubProcess) -> None:
    hub, kind = embedded_hub, {"type": "object", "required": ["n"]}
    wanted: Any = {"type": "json_schema", "json_schema": {"name": "n", "schema": kind}}
    async with (
        team(hub, "formatted", steward=ForgetfulSeat) as (seat,),
        team_client(hub, "steward", "formatted") as client,
    ):
        asked: dict[str, Any] = {"model": "x", "messages": user("a number"), "response_format": wanted}
        answer = await client.chat.completions.create(**asked)
        text, _ = await read(await client.chat.completions.create(**asked, stream=True, user="s-2"))
        assert answer.choices[0].message.content == text == '{"n": 1}'
        assert [frame.get("sessionId") for frame in seat.of("message")] == [None, None, "s-2", "s-2"]


async def test_streams_beyond_a_callers_share_are_refused(make_storage: MakeStorage, start_hub: StartHub) -> None:
    hub = start_hub(make_storage("embedded"), STREAMS_PER_CALLER=1)
    body, headers = {"messages": user("hello"), "stream": True}, bearer(hub.mint("streaming", "session"))
    async with team(hub, "streaming", "steward") as (seat,), web(hub.url, headers=headers) as http:
        async with http.stream("POST", "/agent/steward", json=body) as first:
            assert first.status_code == 200
            for virtual in (False, True):
                path = "/v1/chat/completions" if virtual else "/agent/steward"
                refused = await http.post(path, json=body | {"model": "agent/steward"})
                assert (refused.status_code, refused.json()["error"]["code"]) == (429, "too_many_streams")
            assert len(seat.of("message")) <= 1

        async def has_room() -> bool:
            async with http.stream("POST", "/agent/steward", json=body) as again:
                return again.status_code == 200

        await eventually(has_room, "a stream may be opened again")
