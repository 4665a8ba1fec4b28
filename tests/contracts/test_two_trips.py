"""A plain send takes two trips to the ledger: one finds its caller and its agent and decides, the other settles.

The agents are connected in rows only: a turn that is admitted ends at once, as not delivered.
"""

import asyncio
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import msgspec
import pytest

from accounts.models import Credential
from accounts.tokens import mint
from agents.models import Turn
from hub.caller_rate import CallerRate
from hub.wiring import HubServices
from kit.asgi import REFUSED_AFTER_S, HttpRequest
from kit.async_db import db_call
from lab.waiting import eventually
from tests.contracts.rows import Published, ask, live_process, published, user

pytestmark = [pytest.mark.django_db(transaction=True)]
V1_MESSAGE = {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "hi"}]}
V03_MESSAGE = {"messageId": "m", "role": "user", "kind": "message", "parts": [{"kind": "text", "text": "hi"}]}
WAYS: dict[str, tuple[str, str, Any]] = {
    "hub": ("", "SendMessage", V1_MESSAGE),
    "1.0": ("1.0", "SendMessage", V1_MESSAGE),
    "0.3": ("0.3", "message/send", V03_MESSAGE),
    "hub, streamed": ("", "SendStreamingMessage", V1_MESSAGE),
    "1.0, streamed": ("1.0", "SendStreamingMessage", V1_MESSAGE),
    "HTTP+JSON": ("1.0", "", V1_MESSAGE),
}


@dataclass
class Hub:
    """A hub without sockets, one agent, and one caller."""

    hub_services: HubServices
    agent: Published
    token: str

    @property
    def trips(self) -> int:
        """The number of pieces of work that the ledger took."""
        return int(self.hub_services.counts.batches.sum)

    async def post(self, body: bytes, *, version: str = "", rest: str = "", **changed: str) -> tuple[int, Any]:
        """The status and the JSON of an answer; of a stream its last frame. `changed`: headers, the `handle`."""
        handle = changed.pop("handle", self.agent.ref.handle)
        named = {"authorization": f"Bearer {self.token}", "a2a-version": version} | changed
        headers = [(name.encode(), value.encode()) for name, value in named.items() if value]
        scope = {"type": "http", "method": "POST", "path": "/", "headers": headers, "query_string": b""}
        sent: list[Any] = []
        messages = [{"type": "http.request", "body": body}]

        async def receive() -> dict[str, Any]:
            return messages.pop() if messages else await asyncio.Future()

        async def send(message: Any) -> None:
            sent.append(message)

        request = HttpRequest(scope, receive)
        if rest:
            await self.hub_services.http_json(request, handle, rest, send)
        else:
            await self.hub_services.bridge(request, handle, send)
        text = b"".join(message.get("body", b"") for message in sent).strip()
        return sent[0]["status"], msgspec.json.decode(text.rpartition(b"data: ")[2])

    async def ask(self, way: str) -> tuple[int, Any]:
        version, method, message = WAYS[way]
        if not method:
            return await self.post(msgspec.json.encode({"message": message}), version=version, rest="message:send")
        return await self.post(rpc(method, message), version=version)


def rpc(method: str, message: Any) -> bytes:
    return msgspec.json.encode({"jsonrpc": "2.0", "id": 1, "method": method, "params": {"message": message}})


def rows() -> list[tuple[str | None, str]]:
    return list(Turn.objects.order_by("pk").values_list("outcome", "reason"))


@pytest.fixture
async def hub() -> AsyncIterator[Hub]:
    hub_services = HubServices()

    def prepare() -> tuple[Published, str]:
        live_process(hub_services.process_id)
        return published(), mint(user("alice"), Credential.Kind.SESSION, "test").token

    yield Hub(hub_services, *await db_call(prepare)())
    await hub_services.dispatcher.drain(0)
    if hub_services.exchange_log is not None:  # its rows refer to those that the end of the test deletes
        await hub_services.exchange_log.close()
    hub_services.ledger.close()


@pytest.mark.parametrize("way", WAYS)
async def test_a_plain_send_takes_two_trips(hub: Hub, way: str) -> None:
    status, answer = await hub.ask(way)
    assert (status, b"offline" in msgspec.json.encode(answer)) == (200, True)
    assert await db_call(rows)() == [("failed", "not_delivered")]
    assert hub.trips == 2
    assert (await db_call(Credential.objects.get)(name="test", kind="session")).last_used_at is not None


async def test_a_send_over_the_rate_takes_one_and_no_claim_and_is_answered_later(hub: Hub) -> None:
    hub.hub_services.dispatcher._limits = CallerRate(1)
    await hub.ask("hub")
    began = time.monotonic()
    status, answer = await hub.ask("hub")
    assert time.monotonic() - began >= REFUSED_AFTER_S
    assert status == 200
    assert "over your rate limit" in msgspec.json.encode(answer).decode()
    assert await db_call(rows)() == [("failed", "not_delivered"), ("denied", "rate_limited")]
    assert await db_call(lambda: Turn.objects.holding().exists())() is False
    assert hub.trips == 3


async def test_a_draining_hub_takes_no_send_of_a_caller_it_finds(hub: Hub) -> None:
    await hub.hub_services.dispatcher.drain(0)
    assert (await hub.ask("hub"))[0] == 503
    assert (await hub.post(rpc("SendMessage", V1_MESSAGE), authorization="Bearer cw_sess_no"))[0] == 401
    assert await db_call(rows)() == []


BAD = {
    "no JSON": b"{",
    "no method": rpc("Dance", V1_MESSAGE),
    "no params": rpc("SendMessage", {}),
    "sound": rpc("SendMessage", V1_MESSAGE),
}


async def test_of_several_errors_the_agents_comes_first_then_the_callers(hub: Hub) -> None:
    for body in BAD.values():
        nowhere, unknown = {"handle": "ada/none"}, {"authorization": "Bearer cw_sess_no"}
        wrong_type = {"content-type": "text/plain"}
        assert (await hub.post(body, **nowhere, **unknown, **wrong_type))[0] == 404, body
        assert (await hub.post(body, **unknown, **wrong_type))[0] == 415, body
        status, answer = await hub.post(body, **unknown)
        assert (status, answer["id"]) == (401, None), body
        status, answer = await hub.post(body, version="9.9")
        assert answer["error"]["code"] == (-32700 if body == BAD["no JSON"] else -32009), body
        assert await db_call(rows)() == [], body


async def test_a_caller_cut_off_while_it_is_found_leaves_nothing_open(hub: Hub) -> None:
    async def is_over() -> bool:
        return await db_call(rows)() in ([], [("failed", "not_delivered")])

    asking = asyncio.ensure_future(hub.ask("hub"))
    await asyncio.sleep(0)  # it is with the ledger now
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    await eventually(is_over, "nothing is open")
    one = await db_call(ask)(hub.agent, "bob")
    assert (await hub.hub_services.ledger.admit(one)).ask is one
