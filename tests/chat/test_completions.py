"""Chat completions and models, by the official client of OpenAI."""

import asyncio
import base64
import json
import re
import sys
from asyncio.subprocess import PIPE
from collections.abc import Sequence
from typing import Any

import openai
import pytest

from lab import ROOT
from lab.agents import Chunker, Echo, Held, TaskPeer, gone, online
from lab.callers import bearer, mint_app, web
from lab.hub_process import HubProcess
from lab.pictures import PIXEL, PIXEL_BASE64
from tests.channel.agents import sql
from tests.chat.clients import asking, client_of, read, user

README = ROOT / "README.md"


async def test_an_agent_answers_as_a_model(hub: HubProcess) -> None:
    async with asking(hub, Echo, usage={"inputTokens": 7, "outputTokens": 3}) as (agent, client, model):
        answer = await client.chat.completions.create(model=model, messages=user("hello"), temperature=0.2)
        assert (answer.model, answer.object) == (model, "chat.completion")
        assert (answer.choices[0].message.content, answer.choices[0].finish_reason) == ("echo: hello", "stop")
        assert answer.usage is not None
        assert (answer.usage.prompt_tokens, answer.usage.total_tokens) == (7, 10)
        assert not hasattr(answer.usage, "estimated")
        last: dict[str, Any] = {"stream": True, "stream_options": {"include_usage": True}}
        stream = await client.chat.completions.create(model=model, messages=user("hello"), **last)
        text, chunks = await read(stream)
        assert (text, chunks[-1].choices, chunks[-1].usage.total_tokens) == ("echo: hello", [], 10)
        surfaces = sql(hub, f"SELECT surface FROM agents_turn WHERE agent_id = {agent.agent['id']}")
        assert model in [one.id async for one in client.models.list()]
    assert surfaces == [("chat",)] * 2


async def test_a_stream_tells_the_text_as_it_comes(hub: HubProcess, alice: str) -> None:
    pieces = ["one ", "two ", "three"]
    async with asking(hub, Chunker, pieces=pieces) as (_, client, model):
        stream = await client.chat.completions.create(model=model, messages=user("count"), stream=True)
        text, chunks = await read(stream)
        assert text == "one two three"
        assert chunks[0].choices[0].delta.role == "assistant"
        assert [one.choices[0].finish_reason for one in chunks[-2:]] == [None, "stop"]
        async with web(hub.urls[0], headers=bearer(alice)) as http:
            asked = {"model": model, "messages": user("count"), "stream": True}
            raw = await http.post("/v1/chat/completions", json=asked)
        assert raw.headers["content-type"] == "text/event-stream"
        assert raw.text.endswith("data: [DONE]\n\n")


async def test_messages_become_one_ask(embedded_hub: HubProcess) -> None:
    earlier: list[Any] = [
        {"role": "system", "content": "Be brief."},
        *user("one"),
        {"role": "assistant", "content": "1"},
        *user("two"),
    ]
    async with asking(embedded_hub, Echo) as (agent, client, model):
        await client.chat.completions.create(model=model, messages=earlier)
        await client.chat.completions.create(model=model, messages=earlier, user="talk-1")
        headers = {"X-Conversation-Id": "talk-1"}
        await client.chat.completions.create(model=model, messages=user("three"), extra_headers=headers)
        whole, second, third = agent.prompts
    assert whole["text"] == "System: Be brief.\n\nUser: one\n\nAssistant: 1\n\nUser: two"
    assert (second["text"], third["text"]) == ("two", "three")
    assert second["contextId"] == third["contextId"] != whole["contextId"]


async def test_files_go_both_ways(embedded_hub: HubProcess) -> None:
    token = embedded_hub.mint("alice", "session")
    picture = f"data:image/png;base64,{PIXEL_BASE64}"
    asked = user([{"type": "text", "text": "see"}, {"type": "image_url", "image_url": {"url": picture}}])
    steps = "say see: | raw notes hello | url plan https://example.com/plan.pdf"
    async with (
        online(embedded_hub, Echo, agent={"defaultInputModes": ["text/plain", "image/*"]}) as agent,
        online(embedded_hub, TaskPeer) as maker,
        client_of(embedded_hub.url, token) as client,
    ):
        with pytest.raises(openai.APIStatusError) as refused:
            await client.chat.completions.create(model=f"agent/{maker.handle}", messages=asked)
        assert "content[1] is not supported: the agent takes text/plain, application/json" in str(refused.value)
        assert (refused.value.status_code, maker.prompts) == (400, [])
        await client.chat.completions.create(model=f"agent/{agent.handle}", messages=asked)
        note = 'file (part 2), as the caller sent it, not in this text: "image/png", '
        text = agent.prompts[0]["text"]
        assert re.fullmatch(re.escape(f"see\n\n{note}{len(PIXEL)} bytes, ") + r"fileId=\d+", text), text
        part = agent.prompts[0]["parts"][1]
        assert (base64.b64decode(part["raw"]), part["mediaType"]) == (PIXEL, "image/png")
        model = f"agent/{maker.handle}"
        asked_back = await client.chat.completions.create(model=model, messages=user("ask which one?"))
        assert asked_back.choices[0].message.content == "which one?"
        answer = await client.chat.completions.create(model=model, messages=user(steps))
        stream = await client.chat.completions.create(model=model, messages=user(steps), stream=True)
        text, _ = await read(stream)
    content = answer.choices[0].message.content or ""
    assert content.startswith("see:")
    assert "(<https://example.com/plan.pdf>)" in content
    assert f"/agents/{maker.handle}?task={answer.id}" in content
    assert text.partition("?task=")[0] == content.partition("?task=")[0]


async def test_refusals_are_errors_of_openai(hub: HubProcess, alice: str, bob: str) -> None:
    async with online(hub, Held) as agent, client_of(hub.urls[-1], bob) as client:
        model = f"agent/{agent.handle}"
        async with client_of(hub.urls[0], alice) as first:
            call = asyncio.create_task(first.chat.completions.create(model=model, messages=user("wait")))
            await agent.heard("prompt")
            with pytest.raises(openai.RateLimitError) as busy:
                await client.chat.completions.create(model=model, messages=user("me too"))
            assert (busy.value.code, busy.value.response.headers["retry-after"]) == ("busy", "2")
            agent.release.set()
            assert (await call).choices[0].message.content == "echo: wait"
    await gone(hub, agent)
    async with client_of(hub.urls[-1], bob) as client:
        for is_stream in (False, True):
            with pytest.raises(openai.InternalServerError) as offline:
                await client.chat.completions.create(model=model, messages=user("there?"), stream=is_stream)
            assert (offline.value.status_code, offline.value.code) == (503, "agent_offline")
            assert offline.value.response.headers["retry-after"] == "2"


async def test_a_failure_is_an_error_that_clients_do_not_repeat(embedded_hub: HubProcess) -> None:
    async with asking(embedded_hub, TaskPeer) as (agent, client, model):
        asked: dict[str, Any] = {"model": model, "messages": user("say well | fail no disk")}
        with pytest.raises(openai.APIStatusError) as failed:
            await client.with_options(max_retries=2).chat.completions.create(**asked)
        assert (failed.value.status_code, failed.value.code) == (424, "agent_failed")
        assert "no disk" in failed.value.message
        with pytest.raises(openai.APIError, match="no disk"):
            await read(await client.chat.completions.create(**asked, stream=True))
        assert len(agent.prompts) == 2


async def test_who_may_ask_and_list_models(embedded_hub: HubProcess, subtests: pytest.Subtests) -> None:
    alice, owner = embedded_hub.mint("alice", "session"), embedded_hub.mint("owner", "session")
    async with online(embedded_hub, Echo, agent={"access": "private"}) as agent:
        model = f"agent/{agent.handle}"
        async with client_of(embedded_hub.url, owner) as client:
            assert model in [one.id async for one in client.models.list()]
            assert (await client.models.retrieve(model)).id == model  # the client sends its slashes as %2F
            async with web(embedded_hub.url, headers=bearer(owner)) as http:
                assert (await http.get(f"/v1/models/{model}")).json()["owned_by"] == "owner"
            await client.chat.completions.create(model=model, messages=user("hello"))
        async with client_of(embedded_hub.url, alice) as client:
            assert model not in [one.id async for one in client.models.list()]
            for name in (model, "agent/owner/absent", "gpt-4o", "agent/a/b/c"):
                with subtests.test(model=name):
                    with pytest.raises(openai.NotFoundError) as absent:
                        await client.chat.completions.create(model=name, messages=user("hello"))
                    assert absent.value.code == "model_not_found"
                    with pytest.raises(openai.NotFoundError) as unknown_model:
                        await client.models.retrieve(name)
                    assert unknown_model.value.body == absent.value.body
        async with client_of(embedded_hub.url, "no-token") as client:
            for call in (
                client.models.list(),
                client.models.retrieve(model),
                client.chat.completions.create(model=model, messages=user("hello")),
                client.chat.completions.create(model="gpt-4o", messages=[]),
            ):
                with pytest.raises(openai.AuthenticationError) as unknown:
                    await call
                assert unknown.value.code == "invalid_api_key"
        assert len(agent.prompts) == 1
    limits = {"scopes": ["publish"], "format": "jwt", "expires_in": 600}
    publishes = await mint_app(embedded_hub.url, alice, "publishes", **limits)
    async with client_of(embedded_hub.url, publishes) as client:
        with pytest.raises(openai.PermissionDeniedError):
            await client.models.list()


SEE = {"role": "user", "content": "see"}
SOUND = {"model": "agent/a/b", "messages": user("hi")}
FROM_A_FILE = {"type": "image_url", "image_url": {"url": "file:///etc/passwd"}}
BAD: Sequence[tuple[Any, str]] = [
    (SOUND | {"model": 1}, "model"),
    ({"model": "agent/a/b"}, "messages"),
    (SOUND | {"messages": []}, "messages"),
    (SOUND | {"messages": user("")}, "messages"),
    (SOUND | {"messages": [{"role": "assistant", "content": "hi"}]}, "messages"),
    (SOUND | {"messages": [{"role": "boss", "content": "hi"}]}, "role"),
    (SOUND | {"messages": user([{"type": "video", "video": "x"}])}, "type"),
    (SOUND | {"n": 2}, "n"),
    (SOUND | {"tool_choice": "required"}, "tool_choice"),
    (SOUND | {"tool_choice": {"type": "function", "function": {"name": "f"}}}, "tool_choice"),
    (SOUND | {"user": "a\u0007"}, "user"),
    (SOUND | {"messages": user([{"type": "text", "text": "see"}, FROM_A_FILE])}, "image_url"),
    ([], "object"),
]
BAD_RESPONSES: Sequence[tuple[dict[str, Any], str]] = [
    ({}, "input"),
    ({"input": ""}, "input"),
    ({"input": []}, "input"),
    ({"input": 7}, "input"),
    ({"input": "hi", "instructions": ["be"]}, "instructions"),
    ({"input": "", "instructions": "be brief"}, "input"),
    ({"input": [{"type": "item_reference", "id": "msg_1"}]}, "input"),
    ({"input": [{"role": "boss", "content": "hi"}]}, "role"),
    ({"input": [{"role": "user", "content": [{"type": "input_audio"}]}]}, "type"),
    ({"input": [{"role": "user", "content": [{"type": "input_image", "file_id": "file-1"}]}]}, "image_url"),
    ({"input": "hi", "conversation": ""}, "conversation"),
    ({"input": "hi", "conversation": "a", "previous_response_id": "b"}, "previous_response_id"),
    ({"input": "hi", "previous_response_id": "\u0007"}, "previous_response_id"),
    ({"input": "hi", "tool_choice": "required"}, "tool_choice"),
    ({"input": "hi", "background": True}, "background"),
    ({"input": "hi", "prompt": {"id": "pmpt_1"}}, "prompt"),
    (
        {"input": [SEE, {"role": "user", "content": [{"type": "input_file", "file_url": "file:///etc/passwd"}]}]},
        "input[1].content[0].file_url",
    ),
]


async def test_a_bad_body_is_an_error_that_names_the_field(
    embedded_hub: HubProcess, subtests: pytest.Subtests
) -> None:
    async with web(embedded_hub.url, headers=bearer(embedded_hub.mint("alice", "session"))) as http:
        cases = [("/v1/chat/completions", *one) for one in BAD]
        cases += [("/v1/responses", {"model": "agent/a/b", **body}, named) for body, named in BAD_RESPONSES]
        for path, body, named in cases:
            with subtests.test(path=path, body=body):
                answer = await http.post(path, json=body)
                assert answer.status_code == 400, answer.text
                error = answer.json()["error"]
                assert (error["type"], named in error["message"]) == ("invalid_request_error", True), error


async def test_tokens_that_an_agent_does_not_report_are_estimated(embedded_hub: HubProcess) -> None:
    token = embedded_hub.mint("alice", "session")
    async with online(embedded_hub, Echo) as agent, web(embedded_hub.url, headers=bearer(token)) as http:
        model = f"agent/{agent.handle}"
        chat = await http.post("/v1/chat/completions", json={"model": model, "messages": user("hello you")})
        response = await http.post("/v1/responses", json={"model": model, "input": "hello you"})
        last = {"stream": True, "stream_options": {"include_usage": True}}
        body = {"model": model, "messages": user("hello you"), **last}
        stream = await http.post("/v1/chat/completions", json=body)
    known = {"total_tokens": 7, "estimated": True}  # of 9 and 15 characters
    assert chat.json()["usage"] == {"prompt_tokens": 3, "completion_tokens": 4} | known
    assert ({"input_tokens": 3, "output_tokens": 4} | known).items() <= response.json()["usage"].items()
    for answer in (chat, response):
        assert answer.headers["x-clawbridge-usage"] == "estimated"
    chunk = json.loads(stream.text.split("data: ")[-2])
    assert (chunk["choices"], chunk["usage"]) == ([], chat.json()["usage"])


async def test_an_unknown_address_is_refused_in_the_form_of_openai(embedded_hub: HubProcess) -> None:
    async with client_of(embedded_hub.url, embedded_hub.mint("alice", "session")) as client:
        with pytest.raises(openai.NotFoundError) as refused:
            await client.embeddings.create(model="agent/a/b", input="hi")
        assert refused.value.code == "unknown_url"
        assert "/v1/chat/completions" in refused.value.message


async def test_a_request_of_another_form_is_refused(embedded_hub: HubProcess) -> None:
    path = "/v1/chat/completions"
    async with web(embedded_hub.url, headers=bearer(embedded_hub.mint("alice", "session"))) as http:
        wrong = await http.get(path)
        assert (wrong.status_code, wrong.headers["allow"]) == (405, "POST")
        assert (await http.post(path, content=b"{}", headers={"content-type": "text/x"})).status_code == 415
        assert (await http.get("/v1/models", params={"limit": "0"})).status_code == 400
        first = (await http.get("/v1/models", params={"limit": "1"})).json()
        rest = await http.get("/v1/models", params={"after": first["data"][0]["id"] if first["data"] else ""})
        assert first["data"][:1] != rest.json()["data"][:1] or not first["data"]


async def test_the_line_of_the_readme_works(embedded_hub: HubProcess) -> None:
    line = next(line for line in README.read_text().splitlines() if "openai.OpenAI()" in line)
    async with online(embedded_hub, Echo) as agent:
        command = (
            line.replace("http://127.0.0.1:8787", embedded_hub.url)
            .replace("cw_sess_…", embedded_hub.mint("alice", "session"))
            .replace("python3", sys.executable)
            .replace("demo/echo", agent.handle)
        )
        process = await asyncio.create_subprocess_shell(command, stdout=PIPE)
        said, _ = await process.communicate()
    assert said == b"echo: hello\n"


async def test_a_token_that_is_unknown_is_refused_before_the_model_also_in_one_packet(
    embedded_hub: HubProcess,
) -> None:
    """The hub answers a request that arrives whole without a task."""
    body = b'{"model":"agent/owner/absent","messages":[{"role":"user","content":"hello"}]}'
    head = (
        b"POST /v1/chat/completions HTTP/1.1\r\nhost: h\r\nauthorization: Bearer no-token\r\nconnection: close\r\n"
    )
    host, port = embedded_hub.url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(b"%bcontent-type: application/json\r\ncontent-length: %d\r\n\r\n%b" % (head, len(body), body))
    answer = await asyncio.wait_for(reader.read(-1), 10)
    writer.close()
    assert answer.startswith(b"HTTP/1.1 401 ")
