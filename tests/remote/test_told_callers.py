"""A remote server is told who asks, when its owner wants that: in each request, for this server alone."""

import asyncio
import json
import re
import time
from typing import Any

import pytest
from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import ECKey, KeySet

from accounts import signing
from accounts.models import SigningKey, User
from agents.links.remote.client import CALLER_HEADER, CALLER_JWT_TYP
from agents.models import RemoteServer
from kit.async_db import db_call
from lab import ROOT
from tests.native.rows import Person, api, browser
from tests.remote.caller import Caller, publish_far, server_of
from tests.remote.cards import serving_card
from tests.remote.servers import Asked, Json, as_http, card_03, card_10, in_full, raw_server, sdk_server

PAGE = (ROOT / "docs" / "howto" / "publish-a-remote-agent.md").read_text()
HUB = "https://hub.example"
NAME = CALLER_HEADER.lower()


@pytest.fixture(autouse=True)
def public_url(settings: Any) -> None:
    settings.PUBLIC_URL = HUB


def who_asks(token: str, jwks: Json, hub: str, address: str) -> Json:
    """The steps of docs/howto/publish-a-remote-agent.md for servers, as they are written there."""
    (code,) = [block for block in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL) if "def who_asks" in block]
    exec(code, names := {})
    claims: Json = names["who_asks"](token, jwks, hub, address)
    return claims


@pytest.mark.parametrize("binding", ["JSONRPC", "HTTP+JSON"])
async def test_the_official_server_verifies_who_asks(caller: Caller, binding: str) -> None:
    async with sdk_server(binding) as far:
        agent = await caller.publish(far.url, tells=True)
        assert (await caller.ask(agent, "hello", login="alice")).text == "echo: hello"
        assert (await caller.ask(agent, "hello", login="bob")).text == "echo: hello"
        keys = await db_call(signing.public_keys)()
        told = [who_asks(token, keys, HUB, f"{far.url}/a2a") for token in far.seen.callers]
        users = {user.login: str(user.pk) async for user in User.objects.all()}
        assert [(one["login"], one["sub"], one["agent"]) for one in told] == [
            (login, users[login], agent.handle) for login in ("alice", "bob")
        ]
        assert abs(told[0]["iat"] - time.time()) < 30
        assert told[0]["exp"] - told[0]["iat"] == 60
        assert told[0]["jti"] != told[1]["jti"]
        for wrong in ((HUB, "https://other.example/"), ("https://other.example", f"{far.url}/a2a")):
            with pytest.raises(JoseError):
                who_asks(far.seen.callers[0], keys, *wrong)
        others = {"keys": [ECKey.generate_key("P-256").as_dict(private=False) | {"kid": keys["keys"][0]["kid"]}]}
        with pytest.raises(JoseError):
            who_asks(far.seen.callers[0], others, HUB, f"{far.url}/a2a")
        for one in far.seen.requests:
            assert (NAME in one["headers"]) == one["path"].startswith("/a2a"), one["path"]


def test_an_older_token_or_one_for_something_else_is_refused(db: None) -> None:
    claims = {"iss": HUB, "aud": "https://far.example/", "sub": "1", "exp": int(time.time()) - 31}
    for changed, header in (({}, {"typ": CALLER_JWT_TYP}), ({"exp": int(time.time()) + 60}, {"typ": "JWT"})):
        token = signing.sign(_json({**claims, **changed}), header)
        keys = signing.public_keys()
        with pytest.raises((JoseError, PermissionError)):
            who_asks(token, keys, HUB, "https://far.example/")


class Working:
    """Answers that it works, and ends when it is looked at; of either version."""

    def __init__(self, version: str) -> None:
        self.is_older = version == "0.3"

    async def answer(self, asked: Asked, writer: asyncio.StreamWriter) -> None:
        method = asked.json["method"]
        state = "working" if method in ("message/send", "SendMessage") else "completed"
        status = {"state": state if self.is_older else f"TASK_STATE_{state.upper()}"}
        task = {"id": "t", "contextId": "c", "status": status}
        is_sent = method == "SendMessage"
        writer.write(
            in_full(asked, {"task": task} if is_sent else {"kind": "task", **task} if self.is_older else task)
        )


@pytest.mark.parametrize(("card", "version"), [(card_10(streams=False), "1.0"), (card_03(streams=False), "0.3")])
async def test_each_request_has_a_token_of_its_own(caller: Caller, card: Json, version: str) -> None:
    async with raw_server(Working(version).answer, card=card) as far:
        agent = await caller.publish(far.card_url, tells=True)
        await caller.ask(agent, "hello")
        tokens = [one["headers"][NAME] for one in far.seen.requests]
        keys = KeySet.import_key_set(await db_call(signing.public_keys)())
        told = [jwt.decode(token, keys, algorithms=["ES256"]).claims for token in tokens]
        assert len(told) == 2
        assert len({one["jti"] for one in told}) == 2
        assert {one["aud"] for one in told} == {f"{far.url}/a2a"}


async def test_without_the_switch_no_server_is_told(caller: Caller) -> None:
    async with sdk_server() as told, sdk_server() as other:
        await caller.publish(told.url, tells=True)
        agent = await caller.publish(other.url)
        await caller.ask(agent, "hello")
        assert [NAME in one["headers"] for one in other.seen.requests] == [False] * len(other.seen.requests)
        await RemoteServer.objects.filter(session_id=agent.session_id).aupdate(tells_caller=True)
        await caller.ask(agent, "hello")
        assert NAME in other.seen.requests[-1]["headers"]


async def test_a_redirect_takes_the_token_nowhere(caller: Caller) -> None:
    async def elsewhere(asked: Asked, writer: asyncio.StreamWriter) -> None:
        writer.write(as_http(b"", status="307 Go", more=f"Location: {other.url}/a2a\r\n"))

    async def answer(asked: Asked, writer: asyncio.StreamWriter) -> None:
        writer.write(as_http(b"{}"))

    async with raw_server(answer) as other, raw_server(elsewhere) as far:
        agent = await caller.publish(far.card_url, tells=True)
        assert (await caller.ask(agent, "hello")).reason == "agent_failed"
        assert [NAME in one["headers"] for one in far.seen.requests] == [True]
        assert other.seen.requests == []


async def test_what_cannot_be_signed_is_not_sent(caller: Caller) -> None:
    async with sdk_server() as far:
        agent = await caller.publish(far.url, tells=True)
        await db_call(signing.public_keys)()
        await SigningKey.objects.aupdate(sealed="unreadable")
        asked = len(far.seen.requests)
        for _ in range(6):
            assert (await caller.ask(agent, "hello")).reason == "not_delivered"
        assert {one["path"] for one in far.seen.requests[asked:]} <= {"/.well-known/agent-card.json"}
        assert (await server_of(agent)).retry_at is None


# By REST and on the desk.


@pytest.mark.parametrize(
    ("column", "member"), [("tells_caller", "tellsCaller"), ("requires_task", "requiresTask")]
)
def test_an_owner_switches_it_on_and_off(alice: Person, column: str, member: str) -> None:
    client = api(alice.session)
    with serving_card() as url:
        made = publish_far(alice, url).json()
        assert made["remote"][member] is False
        desk, fields = f"/desk/agents/{made['id']}/remote", {"card_url": url, "auth": "keep", "action": "save"}
        assert browser(alice.session).post(desk, {**fields, column: "on"}).status_code == 302
        assert getattr(RemoteServer.objects.get(), column)
        assert "checked" in browser(alice.session).get(desk).content.decode().split(f'name="{column}"')[1][:80]
    path = f"/api/v1/agents/{made['id']}"  # its server is away now, and the switch still moves
    for wanted in (False, True):
        answer = client.patch(path, {"remote": {member: wanted}}, format="json")
        assert answer.json()["remote"][member] is wanted
        assert getattr(RemoteServer.objects.get(), column) is wanted


def _json(value: Any) -> bytes:
    return json.dumps(value).encode()
