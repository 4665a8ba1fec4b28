"""A catalog stays bounded: thousands of agents are catalogs of catalogs, and none is listed twice or lost."""

from typing import Any

import pytest
from django.test import Client

from a2a_bridge.surface import catalog
from a2a_bridge.surface.catalog import CATALOG
from accounts.models import User
from agents.models import Agent, Session
from tests.native.rows import Person

pytestmark = pytest.mark.django_db
ROOT = "/.well-known/ai-catalog.json"
PAGE = 20


@pytest.fixture(autouse=True)
def _small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalog, "PAGE", PAGE)


def make_many(owner: User, count: int) -> set[str]:
    """Public agents, so many; their handles."""
    sessions = Session.objects.bulk_create(Session(owner=owner, routing_name=f"s-{n}") for n in range(count))
    handles = [f"{owner.login}/S-{n}" for n in range(count)]
    Agent.objects.bulk_create(
        Agent(owner=owner, session=one, handle=handle, handle_key=handle.lower(), name=handle, status="published")
        for one, handle in zip(sessions, handles, strict=True)
    )
    return set(handles)


def listed(path: str) -> list[dict[str, Any]]:
    answer = Client().get(path)
    assert answer.status_code == 200
    entries: list[dict[str, Any]] = answer.json()["entries"]
    return entries


def handle_of(entry: dict[str, Any]) -> str:
    return str(entry["url"]).partition("/agents/")[2].removesuffix("/.well-known/agent-card.json")


def test_a_page_of_agents_is_one_catalog(alice: Person) -> None:
    handles = make_many(alice.user, PAGE)
    assert {handle_of(entry) for entry in listed(ROOT)} == handles


@pytest.mark.parametrize("count", [PAGE + 1, 2 * PAGE, 2 * PAGE + 7])
def test_more_are_catalogs_that_hold_each_agent_once(alice: Person, settings: Any, count: int) -> None:
    handles = make_many(alice.user, count)
    nested = listed(ROOT)
    assert {entry["type"] for entry in nested} == {CATALOG}
    assert len({entry["identifier"] for entry in nested}) == len(nested) == -(-count // PAGE)
    parts = [listed(entry["url"].removeprefix(settings.PUBLIC_URL)) for entry in nested]
    assert max(map(len, parts)) == PAGE
    found = [handle_of(entry) for part in parts for entry in part]
    assert len(found) == len(set(found)) == count
    assert set(found) == handles
    assert listed(nested[0]["url"].removeprefix(settings.PUBLIC_URL).replace("ai-catalog", "ard")) == parts[0]


def test_an_agent_published_after_the_parts_were_read_is_in_one_of_them(alice: Person, settings: Any) -> None:
    make_many(alice.user, PAGE + 1)
    first = listed(ROOT)[0]["url"].removeprefix(settings.PUBLIC_URL)
    session = Session.objects.create(owner=alice.user, routing_name="new")
    Agent.objects.create(
        owner=alice.user,
        session=session,
        handle="alice/S-0a",
        handle_key="alice/s-0a",
        name="n",
        status="published",
    )
    assert "alice/S-0a" in map(handle_of, listed(first))
    assert len(listed(first)) == PAGE + 1
