"""The note an agent gets on what was asked elsewhere in its name, without waiting."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from agents.links.channel.requests import ReplyNotes
from agents.models import Connection
from agents.transcript.announcements import AgentFrame
from kit.async_db import db_call
from tests.carrying import carrying
from tests.contracts.rows import Published, published

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def carried() -> Iterator[list[Any]]:
    """The messages to processes, in order."""
    sent: list[Any] = []
    with carrying(sent.extend):
        yield sent


async def test_it_goes_to_the_connection_wherever_it_is(carried: list[Any]) -> None:
    notes = ReplyNotes()
    agent: Published = await db_call(published)()
    here = agent.ref.session_id
    await notes.route_reply(here, chat_id="c1", from_name="alice/helper", text="done", origin="mcp")
    ((process, message),) = carried
    assert isinstance(message, AgentFrame)
    frame = json.loads(bytes(message.frame))
    assert process == "home-process"
    assert frame | {"ts": ""} == {
        "type": "route_reply",
        "routeId": "c1",
        "fromName": "alice/helper",
        "text": "done",
        "ts": "",
        "origin": "mcp",
    }
    await db_call(Connection.objects.all().delete)()
    await notes.route_reply(here, chat_id="c2", from_name="alice/helper", text="to no caller", origin="operator")
    assert len(carried) == 1
