"""Formats that callers demand of replies, by the official client of OpenAI."""

import asyncio
import json
from typing import Any

import openai
import pytest
from pydantic import BaseModel

from lab.agents import Held, TaskPeer, online
from lab.callers import Json, bearer, mint_app, revoke_app, web
from lab.channel_agent import ChannelAgent
from lab.hub_process import HubProcess
from tests.channel.agents import sql
from tests.chat.clients import asking, client_of, read, user

GOOD, BAD = '{"city": "Oslo", "degrees": 7}', '{"city": "Oslo", "degrees": "warm"}'
FENCED = f"```json\n{GOOD}\n```"
SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "degrees": {"type": "integer"}},
    "required": ["city", "degrees"],
    "additionalProperties": False,
}
NAMED = {"name": "weather", "schema": SCHEMA, "strict": True}
FORMAT: Json = {"type": "json_schema", "json_schema": NAMED}
FLAT: Json = {"type": "json_schema", **NAMED}


class Weather(BaseModel):
    """The answer that tests want."""

    city: str
    degrees: int


class Scripted(ChannelAgent):
    """Gives one reply after the other; the last one again and again."""

    def __init__(self, *args: Any, replies: list[str], usage: Json | None = None, **options: Any) -> None:
        super().__init__(*args, **options)
        self.replies = replies
        self.more = {} if usage is None else {"usage": usage}

    async def answer(self, prompt: Json) -> None:
        await self.say(prompt["chatId"], self.replies[min(len(self.prompts), len(self.replies)) - 1])

    async def say(self, chat_id: str, reply: str) -> None:
        """Send a reply."""
        await self.reply(chat_id, reply, **self.more)


class InPieces(Scripted):
    """Streams its replies."""

    async def say(self, chat_id: str, reply: str) -> None:
        await self.chunk(chat_id, reply)
        await self.chunk(chat_id, "", done=True)


async def test_a_reply_is_the_json_alone(hub: HubProcess) -> None:
    async with asking(hub, Scripted, replies=[GOOD, FENCED]) as (agent, client, model):
        asked: dict[str, Any] = {"model": model, "messages": user("weather?")}
        plain = await client.chat.completions.parse(**asked, response_format=Weather)
        fenced = await client.chat.completions.create(**asked, response_format=FORMAT)
        free = await client.chat.completions.create(**asked)
    assert plain.choices[0].message.parsed == Weather(city="Oslo", degrees=7)
    assert fenced.choices[0].message.content == GOOD
    assert free.choices[0].message.content == FENCED
    first, second, third = [prompt["text"] for prompt in agent.prompts]
    assert first.startswith("weather?\n\nAnswer with JSON alone")
    assert json.loads(second.splitlines()[-1]) == SCHEMA
    assert third == "weather?"


async def test_a_bad_reply_is_asked_for_once_more(hub: HubProcess) -> None:
    usage = {"inputTokens": 7, "outputTokens": 3}
    async with asking(hub, Scripted, replies=[BAD, GOOD], usage=usage) as (agent, client, model):
        answer = await client.chat.completions.parse(
            model=model, messages=user("weather?"), response_format=Weather
        )
        audit = sql(hub, f"SELECT surface, outcome FROM agents_turn WHERE agent_id = {agent.agent['id']}")
    assert answer.choices[0].message.parsed == Weather(city="Oslo", degrees=7)
    assert answer.usage is not None
    assert (answer.usage.prompt_tokens, answer.usage.total_tokens) == (14, 20)
    first, second = agent.prompts
    assert first["contextId"] == second["contextId"]
    assert "degrees: 'warm' is not of type 'integer'" in second["text"]
    assert audit == [("chat", "completed")] * 2


async def test_a_reply_that_stays_bad_is_an_error_that_clients_do_not_repeat(embedded_hub: HubProcess) -> None:
    async with asking(embedded_hub, Scripted, replies=["It is warm."]) as (agent, client, model):
        patient = client.with_options(max_retries=2)
        chat: dict[str, Any] = {"model": model, "messages": user("weather?"), "response_format": FORMAT}
        with pytest.raises(openai.APIStatusError) as failed:
            await patient.chat.completions.create(**chat)
        assert (failed.value.status_code, failed.value.code) == (424, "invalid_reply_format")
        assert failed.value.response.headers["x-should-retry"] == "false"
        assert "not JSON" in failed.value.message
        with pytest.raises(openai.APIError, match="not JSON"):
            await read(await patient.chat.completions.create(**chat, stream=True))
        response: dict[str, Any] = {"model": model, "input": "weather?", "text": {"format": FLAT}}
        with pytest.raises(openai.APIStatusError) as failed:
            await patient.responses.create(**response)
        assert failed.value.code == "invalid_reply_format"
        events: list[Any] = [event async for event in await client.responses.create(**response, stream=True)]
        assert [(one.type, one.code) for one in events] == [("error", "invalid_reply_format")]
    assert len(agent.prompts) == 8


async def test_a_stream_is_held_back_until_it_is_checked(hub: HubProcess) -> None:
    async with asking(hub, InPieces, replies=["Wait.", FENCED]) as (_, client, model):
        asked: dict[str, Any] = {"messages": user("weather?"), "response_format": FORMAT, "stream": True}
        text, chunks = await read(await client.chat.completions.create(model=model, **asked))
        async with client.responses.stream(model=model, input="weather?", text_format=Weather) as stream:
            types = [event.type async for event in stream]
            last = await stream.get_final_response()
    first, last_chunk = chunks[0].choices[0], chunks[-1].choices[0]
    assert (text, first.delta.role, last_chunk.finish_reason) == (GOOD, "assistant", "stop")
    assert last.output_parsed == Weather(city="Oslo", degrees=7)
    assert (types[0], types[-1]) == ("response.created", "response.completed")


async def test_any_object_will_do_without_a_schema(embedded_hub: HubProcess) -> None:
    async with asking(embedded_hub, Scripted, replies=["[1]", '{"a": 1}']) as (agent, client, model):
        kind: Any = {"type": "json_object"}
        answer = await client.chat.completions.create(model=model, messages=user("a?"), response_format=kind)
        response = await client.responses.create(model=model, input="a?", text={"format": kind})
    assert answer.choices[0].message.content == response.output_text == '{"a": 1}'
    assert len(agent.prompts) == 3
    assert "no JSON object" in agent.prompts[1]["text"]


async def test_a_repeated_key_finds_both_asks(hub: HubProcess, alice: str) -> None:
    async with (
        asking(hub, Scripted, replies=[BAD, GOOD]) as (agent, client, model),
        client_of(hub.urls[0], alice) as other,
    ):
        asked: dict[str, Any] = {"model": model, "messages": user("weather?")}
        asked["extra_headers"] = {"Idempotency-Key": "weather-1"}
        first = await client.chat.completions.create(**asked, response_format=FORMAT)
        again = await other.chat.completions.create(**asked, response_format=FORMAT)
        with pytest.raises(openai.APIStatusError) as reused:
            await other.chat.completions.create(**asked)
        assert reused.value.code == "idempotency_key_reused"
    assert first.choices[0].message.content == again.choices[0].message.content == GOOD
    assert first.id == again.id
    assert len(agent.prompts) == 2


async def test_an_agent_that_asks_back_is_not_checked(embedded_hub: HubProcess) -> None:
    async with asking(embedded_hub, AsksBack) as (agent, client, model):
        answer = await client.chat.completions.create(
            model=model, messages=user("weather?"), response_format=FORMAT
        )
    assert answer.choices[0].message.content == "which city?"
    assert len(agent.prompts) == 1


class AsksBack(TaskPeer):
    """Asks back whatever the question is."""

    async def answer(self, prompt: Json) -> None:
        await super().answer(prompt | {"text": "ask which city?"})


async def test_a_failed_agent_is_not_asked_again(embedded_hub: HubProcess) -> None:
    async with asking(embedded_hub, Fails) as (agent, client, model):
        with pytest.raises(openai.APIStatusError) as failed:
            await client.chat.completions.create(model=model, messages=user("weather?"), response_format=FORMAT)
        assert (failed.value.status_code, failed.value.code) == (424, "agent_failed")
    assert len(agent.prompts) == 1


class Fails(TaskPeer):
    """Fails whatever the question is."""

    async def answer(self, prompt: Json) -> None:
        await super().answer(prompt | {"text": "fail no disk"})


async def test_for_a_caller_that_left_an_agent_is_not_asked_again(embedded_hub: HubProcess) -> None:
    async with asking(embedded_hub, Held) as (agent, client, model):
        asked: dict[str, Any] = {"model": model, "messages": user("weather?")}
        call = asyncio.create_task(client.chat.completions.create(**asked, response_format=FORMAT))
        await agent.heard("prompt")
        call.cancel()
        await asyncio.gather(call, return_exceptions=True)
        stream = await client.chat.completions.create(**asked, response_format=FORMAT, stream=True)
        await agent.heard("prompt", count=2)
        await stream.close()
        agent.release.set()
        await client.chat.completions.create(**asked)
    assert len(agent.prompts) == 3


async def test_a_token_that_is_revoked_ends_the_answer(embedded_hub: HubProcess) -> None:
    session = embedded_hub.mint("carol", "session")
    name = "formats, soon revoked"
    async with online(embedded_hub, Held) as agent:
        async with client_of(embedded_hub.url, await mint_app(embedded_hub.url, session, name)) as client:
            asked: dict[str, Any] = {"model": f"agent/{agent.handle}", "messages": user("weather?")}
            stream = await client.chat.completions.create(**asked, response_format=FORMAT, stream=True)
            whole = asyncio.create_task(client.chat.completions.create(**asked, response_format=FORMAT))
            await agent.heard("prompt", count=2)
            await revoke_app(embedded_hub.url, session, name)
            with pytest.raises(openai.APIError) as ended:
                await read(stream)
            assert ended.value.code == "invalid_api_key"
            with pytest.raises(openai.AuthenticationError):
                await whole
        agent.release.set()
    assert len(agent.prompts) == 2


async def test_a_refused_repair_is_not_repeated_by_clients(embedded_hub: HubProcess) -> None:
    asks_once: Json = {"callerBudgetQueries": 1}
    async with asking(embedded_hub, Scripted, agent=asks_once, replies=[BAD, GOOD]) as (agent, client, model):
        patient = client.with_options(max_retries=2)
        with pytest.raises(openai.APIStatusError) as failed:
            await patient.chat.completions.create(model=model, messages=user("weather?"), response_format=FORMAT)
        assert (failed.value.status_code, failed.value.code) == (424, "invalid_reply_format")
        assert "could not be asked again" in failed.value.message
    assert len(agent.prompts) == 1


def named(schema: Any) -> Json:
    """A format with that schema."""
    return {"type": "json_schema", "json_schema": {"name": "a", "schema": schema}}


UNSOUND: list[tuple[Json, str]] = [
    ({"type": "grammar"}, "response_format"),
    ({"type": "json_schema"}, "json_schema"),
    ({"type": "json_schema", "json_schema": {"name": "no name", "schema": {}}}, "json_schema.name"),
    (named([]), "response_format.json_schema.schema"),
    (named({"type": "text"}), "response_format.json_schema.schema"),
]


async def test_an_unsound_format_is_refused_and_named(embedded_hub: HubProcess) -> None:
    token = embedded_hub.mint("alice", "session")
    async with (
        online(embedded_hub, Scripted, replies=[GOOD]) as agent,
        web(embedded_hub.url, headers=bearer(token)) as http,
    ):
        model = f"agent/{agent.handle}"
        for wanted, field in UNSOUND:
            body = {"model": model, "messages": user("hi"), "response_format": wanted}
            answer = await http.post("/v1/chat/completions", json=body)
            assert (answer.status_code, field in answer.json()["error"]["message"]) == (400, True), answer.text
            stranger = await http.post("/v1/chat/completions", json=body, headers=bearer("no-token"))
            assert stranger.status_code == 401
        flat = {"type": "json_schema", "name": "a", "schema": {"type": "text"}}
        answer = await http.post("/v1/responses", json={"model": model, "input": "hi", "text": {"format": flat}})
        assert (answer.status_code, answer.json()["error"]["param"]) == (400, "text.format.schema")
    assert not agent.prompts
