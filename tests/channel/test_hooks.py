"""`POST /api/channel/event`: hooks over many connections, what they free, and what is refused."""

import asyncio
import json
import uuid
from typing import Any

import httpx

from lab.callers import bearer, web
from lab.hub_process import HubProcess
from lab.waiting import eventually
from tests.channel.agents import agent, asking, events_of, hook, sql

PATH = "/api/channel/event"
A2A_JSON = "application/a2a+json"


async def test_hooks_over_many_connections_at_once_are_all_kept(hub: HubProcess) -> None:
    async with agent(hub, "owner", at=-1) as mine:

        async def turn(number: int) -> None:
            for name in ["PreToolUse", "PostToolUse"]:
                answer = await hook(hub, "owner", mine, name, at=number % 2 - 1, n=number, text="ä😀")
                assert (answer.status_code, answer.json()) == (202, {"ok": True})

        await asyncio.gather(*(turn(number) for number in range(25)))
        kept = [(type_, payload["n"]) for kind, type_, payload in events_of(hub, mine) if "n" in payload]
        assert sorted(kept) == sorted((name, n) for name in ["PreToolUse", "PostToolUse"] for n in range(25))
        for number in range(25):  # those of one turn came one after the other
            assert kept.index(("PreToolUse", number)) < kept.index(("PostToolUse", number))


async def test_chat_hooks_are_events_and_settle_nothing(embedded_hub: HubProcess) -> None:
    hub = embedded_hub
    async with agent(hub, "owner") as mine, agent(hub, "bob") as other:
        await other.request("dispatch", handle=mine.handle, prompt="?", mode="ask")
        prompt = await mine.heard("prompt")
        for fields in [{"text": "not for you"}, {"text": "forged", "chatId": prompt["chatId"]}]:
            assert (await hook(hub, "owner", mine, "reply", kind="chat", at=-1, **fields)).status_code == 202
        await mine.reply(prompt["chatId"], "the answer")
        assert (await other.heard("route_response"))["reply"] == "the answer"
        texts = [payload.get("text") for kind, type_, payload in events_of(hub, mine) if type_ == "reply"]
        assert texts == ["not for you", "forged", "the answer"]


async def test_a_payload_comes_back_as_it_was_sent(embedded_hub: HubProcess) -> None:
    hub = embedded_hub
    payload = {"tool_name": "Bash", "deep": [{"a": [None, True, 1.5, "\0"]}]}
    async with agent(hub, "owner") as mine:
        assert (await hook(hub, "owner", mine, "PreToolUse", **payload)).status_code == 202
        assert events_of(hub, mine)[-1] == ("tail", "PreToolUse", payload)
        await post(hub, mine, payload="just text")
        assert events_of(hub, mine)[-1][2] == {"value": "just text"}
        await post(hub, mine)
        assert events_of(hub, mine)[-1][2] == {}


async def test_a_type_that_no_database_keeps_is_mended(hub: HubProcess) -> None:
    async with agent(hub, "owner") as mine:
        await mine.send(type="tail_event", eventType="a\0" + "x" * 100, payload={}, ts=None)

        async def is_kept() -> bool:
            return ("tail", "a\ufffd" + "x" * 61 + "…", {}) in events_of(hub, mine)

        await eventually(is_kept, "the event is in the transcript")


async def post(hub: HubProcess, mine: Any, **fields: Any) -> httpx.Response:
    event = {"sessionId": mine.session_id, "kind": "tail", "type": "Notification"} | fields
    body = json.dumps({name: value for name, value in event.items() if value is not ...})
    headers = bearer(hub.mint("owner", "channel")) | {"Content-Type": "application/json"}
    async with web(hub.url) as client:
        return await client.post(PATH, content=body, headers=headers)


WRONG: list[dict[str, Any]] = [
    *({"sessionId": one} for one in (..., "nonsense", 5)),
    *({"kind": one} for one in (..., "other")),
    *({"type": one} for one in ("", "x" * 65, "a\0b", "a\ud800b", 5)),
    {"ts": 5},
    {"payload": float("nan")},
]
PAYLOADS = (  # these could not be shown
    "9" * 5000,
    "[" * 500 + "]" * 500,
    '{}, "kind": "chat"',
    '{"a": {"b": 1, "b": 2}}',
    '{"n": 1e999}',
)
NO_EVENTS = (b"", b"[]", b"null", b"{", b"\xff", b"[" * 100_000, b'{"payload":' * 20_000)


async def test_a_wrong_event_is_400_and_not_kept(embedded_hub: HubProcess) -> None:
    headers = bearer(embedded_hub.mint("owner", "channel"))
    async with agent(embedded_hub, "owner") as mine, web(embedded_hub.url, headers=headers) as client:
        answers = [await post(embedded_hub, mine, **fields) for fields in WRONG]
        start = f'{{"sessionId": "{mine.session_id}", "kind": "tail", "type": "X", "payload": '
        bodies = (*(start + payload + "}" for payload in PAYLOADS), *NO_EVENTS)
        answers += [await client.post(PATH, content=body) for body in bodies]
        for answer in answers:
            assert (answer.status_code, answer.json()["error"]) == (400, "validation_failed"), answer.text
        assert events_of(embedded_hub, mine) == []


async def test_whose_token_it_is_comes_before_what_it_says(embedded_hub: HubProcess) -> None:
    hub = embedded_hub
    async with agent(hub, "owner") as mine, web(hub.url) as client:
        event = {"sessionId": mine.session_id, "kind": "tail", "type": "Stop"}
        for headers in [{}, bearer("ck_live_no"), bearer(hub.mint("owner", "session"))]:
            answer = await client.post(PATH, json=event, headers=headers)
            assert (answer.status_code, answer.json()["error"]) == (401, "unauthorized")
            assert answer.headers["WWW-Authenticate"] == "Bearer"
            assert (await client.post(PATH, content=b"{", headers=headers)).status_code == 401
        others = bearer(hub.mint("alice", "channel"))
        absent = event | {"sessionId": str(uuid.uuid4())}
        answers = [await client.post(PATH, json=one, headers=others) for one in (event, absent)]
        assert [one.status_code for one in answers] == [404, 404]
        assert answers[0].json() == answers[1].json()
        another = bearer(hub.mint_again("owner", "channel"))
        assert (await client.post(PATH, json=event, headers=another)).status_code == 404
        assert events_of(hub, mine) == []


async def test_the_form_of_the_request_is_checked(embedded_hub: HubProcess) -> None:
    async with web(embedded_hub.url) as client:
        wrong = await client.get(PATH)
        assert (wrong.status_code, wrong.headers["Allow"]) == (405, "POST")
        assert (await client.post(PATH, content=b"{}", headers={"Content-Type": "text/plain"})).status_code == 415
        assert (await client.post(PATH, content=b"{}", headers={"Content-Type": A2A_JSON})).status_code == 401
        assert (await client.post(PATH, content=b" " * 1_100_000)).status_code == 413


async def test_an_event_of_a_deleted_session_is_no_crash(embedded_hub: HubProcess) -> None:
    hub = embedded_hub
    async with agent(hub, "owner", publishes=False) as mine:
        mine_only = "(SELECT id FROM agents_session WHERE public_id = ?)"
        public_id = (mine.session_id or "").replace("-", "")
        sql(hub, f"DELETE FROM agents_connection WHERE session_id IN {mine_only}", public_id)
        sql(hub, "DELETE FROM agents_session WHERE public_id = ?", public_id)
        assert (await post(hub, mine)).status_code == 404


async def test_tokens_of_each_turn_are_added_up(embedded_hub: HubProcess) -> None:
    hub = embedded_hub
    used = {"input_tokens": 10, "output_tokens": 2, "cache_read_input_tokens": 3, "cache_creation_input_tokens": 4}
    usage = {"grain": "turn", "model": "m-1", "usage": used, "turn_messages": 5, "cc_session_id": "cc-turns"}
    negative = {**usage, "usage": {"input_tokens": -1}}
    odd: list[Any] = [5, {**usage, "grain": "session"}, negative, {**usage, "model": "\0"}]
    async with agent(hub, "owner") as mine:
        for told in [usage, *odd, usage]:
            assert (await hook(hub, "owner", mine, "Stop", token_usage=told)).status_code == 202
        columns = "input_tokens, output_tokens, cache_read_tokens, cache_creation_tokens"
        rows_ = sql(
            hub, f"SELECT {columns} FROM agents_tokenusage WHERE cc_session_id = ? ORDER BY id", "cc-turns"
        )
        assert rows_ == [(10, 2, 3, 4), (20, 4, 6, 8)]


async def test_an_event_that_cannot_be_kept_costs_neither_the_socket_nor_its_prompts(
    embedded_hub: HubProcess,
) -> None:
    hub, refusal = embedded_hub, "WHEN NEW.type = 'Unkept' BEGIN SELECT RAISE(ABORT, 'refused'); END"
    async with agent(hub, "owner") as mine, asking(hub, "alice", mine) as prompt:
        sql(hub, f"CREATE TRIGGER refuse BEFORE INSERT ON agents_event {refusal}")
        await mine.send(type="tail_event", eventType="Unkept", payload={})
        lost = await mine.heard("error")
        sql(hub, "DROP TRIGGER refuse")
        assert lost["code"] == "unavailable"
        await mine.reply(prompt["chatId"], "still here")
        assert await mine.peers() is not None
        assert [frame["type"] for frame in mine.frames].count("bye") == 0
