"""Responses, by the official client of OpenAI."""

import base64
from typing import Any

import openai
import pytest

from lab.agents import Chunker, Echo, TaskPeer, online
from lab.hub_process import HubProcess
from lab.pictures import PIXEL, PIXEL_BASE64
from tests.chat.clients import asking, client_of, user

IN_ORDER = [
    "response.created",
    "response.in_progress",
    "response.output_item.added",
    "response.content_part.added",
    "response.output_text.delta",
    "response.output_text.delta",
    "response.output_text.done",
    "response.content_part.done",
    "response.output_item.done",
    "response.completed",
]


async def test_an_agent_answers_as_a_response_and_goes_on_with_it(hub: HubProcess) -> None:
    async with asking(hub, Echo, usage={"inputTokens": 7, "outputTokens": 3}) as (agent, client, model):
        first = await client.responses.create(model=model, input="one", instructions="Be brief.")
        second = await client.responses.create(
            model=model, input=[{"role": "user", "content": "two"}], previous_response_id=first.id
        )
        assert second.conversation is not None
        third = await client.responses.create(model=model, input="three", conversation=second.conversation.id)
        earlier: list[Any] = [
            {"role": "user", "content": "one"},
            *[one.model_dump() for one in first.output],
            {"role": "user", "content": [{"type": "input_text", "text": "four"}]},
        ]
        await client.responses.create(model=model, input=earlier)
        texts = [prompt["text"] for prompt in agent.prompts]
        contexts = [prompt["contextId"] for prompt in agent.prompts]
    assert (first.status, first.model) == ("completed", model)
    assert first.output_text == "echo: System: Be brief.\n\nUser: one"
    assert first.usage is not None
    assert (first.usage.input_tokens, first.usage.total_tokens) == (7, 10)
    assert (second.output_text, second.previous_response_id) == ("echo: two", first.id)
    assert third.output_text == "echo: three"
    assert texts[3] == f"User: one\n\nAssistant: {first.output_text}\n\nUser: four"
    assert contexts[0] == contexts[1] == contexts[2] != contexts[3]


async def test_a_response_is_read_while_its_task_is_kept(hub: HubProcess, alice: str, bob: str) -> None:
    async with (
        asking(hub, TaskPeer) as (_, client, model),
        client_of(hub.urls[0], alice) as later,
        client_of(hub.urls[0], bob) as other,
    ):
        made = await client.responses.create(model=model, input="say well")
        assert (await later.responses.retrieve(made.id)).model_dump() == made.model_dump()
        completion = await client.chat.completions.create(model=model, messages=user("say so"))
        assert (await later.responses.retrieve(completion.id)).output_text == "so"
        stream = await client.responses.create(model=model, input="say well | fail no disk", stream=True)
        events: list[Any] = [event async for event in stream]
        failed = await later.responses.retrieve(events[0].response.id)
        assert failed.error is not None
        assert (failed.status, failed.error.code) == ("failed", "agent_failed")
        bodies = []
        for caller, response_id in ((other, made.id), (later, "task-0")):
            with pytest.raises(openai.NotFoundError) as refused:
                await caller.responses.retrieve(response_id)
            bodies.append(refused.value.body)
        assert refused.value.code == "response_not_found"
        assert bodies[0] == bodies[1]


async def test_the_events_of_a_response_come_in_their_order(hub: HubProcess) -> None:
    async with (
        asking(hub, Chunker, pieces=["one ", "two"]) as (_, client, model),
        client.responses.stream(model=model, input="count") as stream,
    ):
        events: list[Any] = [event async for event in stream]
        last = await stream.get_final_response()
    assert last.output_text == "one two"
    types = [event.type for event in events]
    deltas = [event.delta for event in events if event.type == "response.output_text.delta"]
    assert "".join(deltas) == "one two"
    missing = IN_ORDER.count("response.output_text.delta") - len(deltas)  # two pieces may come as one
    assert types == [*IN_ORDER[:4], *IN_ORDER[4 + missing :]]
    assert [event.sequence_number for event in events] == list(range(len(events)))


async def test_a_failure_ends_the_stream_of_a_response(embedded_hub: HubProcess) -> None:
    async with asking(embedded_hub, TaskPeer) as (_, client, model):
        asked: dict[str, Any] = {"model": model, "input": "say well | fail no disk"}
        events: list[Any] = [event async for event in await client.responses.create(**asked, stream=True)]
        assert events[-1].type == "response.failed"
        assert (events[-1].response.status, events[-1].response.error.code) == ("failed", "agent_failed")
        assert "no disk" in events[-1].response.error.message
        with pytest.raises(openai.APIStatusError) as failed:
            await client.responses.create(**asked)
        assert (failed.value.status_code, failed.value.code) == (424, "agent_failed")


async def test_who_may_continue_a_response(embedded_hub: HubProcess) -> None:
    async with (
        asking(embedded_hub, Echo) as (agent, hers, model),
        online(embedded_hub, Echo) as other,
        client_of(embedded_hub.url, embedded_hub.mint("bob", "session")) as his,
        client_of(embedded_hub.url, "no-token") as unknown,
    ):
        first = await hers.responses.create(model=model, input="mine")
        absent = f"task-{'0' * 32}"
        bodies = []
        others = f"agent/{other.handle}"
        for client, named, answer_id in ((his, model, first.id), (hers, others, first.id), (hers, model, absent)):
            with pytest.raises(openai.BadRequestError) as refused:
                await client.responses.create(model=named, input="more", previous_response_id=answer_id)
            bodies.append(refused.value.body)
        assert bodies[0] == bodies[1] == bodies[2]
        assert refused.value.code == "previous_response_not_found"
        assert refused.value.param == "previous_response_id"
        with pytest.raises(openai.AuthenticationError):
            await unknown.responses.create(model=model, input="more", previous_response_id=first.id)
        with pytest.raises(openai.NotFoundError):
            await hers.responses.create(model="agent/owner/absent", input="hello")
        assert len(agent.prompts) == 1
        assert not other.prompts


async def test_files_of_a_response_reach_the_agent(embedded_hub: HubProcess) -> None:
    data = f"data:image/png;base64,{PIXEL_BASE64}"
    content: list[Any] = [
        {"type": "input_text", "text": "see"},
        {"type": "input_image", "image_url": data, "detail": "auto"},
        {"type": "input_file", "file_url": "https://example.com/plan.pdf", "filename": "plan.pdf"},
    ]
    asked: list[Any] = [{"role": "user", "content": content}]
    takes = {"defaultInputModes": ["text/plain", "image/png", "application/octet-stream"]}
    async with (
        asking(embedded_hub, Echo, agent=takes) as (agent, client, model),
        online(embedded_hub, Echo) as text_only,
    ):
        with pytest.raises(openai.APIStatusError) as refused:
            await client.responses.create(model=f"agent/{text_only.handle}", input=asked)
        assert "input[0].content[1] is not supported: the agent takes text/plain" in str(refused.value)
        assert not text_only.prompts
        await client.responses.create(model=model, input=asked)
        _, image, file = agent.prompts[0]["parts"]
    assert (base64.b64decode(image["raw"]), image["mediaType"]) == (PIXEL, "image/png")
    assert (file["url"], file["filename"]) == ("https://example.com/plan.pdf", "plan.pdf")
