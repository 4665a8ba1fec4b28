"""The directory of agents: what a person finds, over REST, on pages and over the channel."""

import pytest

from agents.links.channel.refusals import askable_agents
from agents.models import Agent
from agents.pages.directory import find
from tests.native.rows import Person, api, make_agent

BOOKS = "alice/books"
# What a person asks, and which agents are found, in this order.
ASKED = [
    ("bookkeeping accounting", [BOOKS]),
    ("BOOKS", [BOOKS]),
    ("@alice/books", [BOOKS]),
    ("invoices, please!", [BOOKS]),
    ("taxes for freelancers", [BOOKS]),
    ("translator", ["alice/traducao", "alice/travel"]),
    ("tradução", ["alice/traducao"]),
    ("PORTUGUESE translations", ["alice/traducao"]),
    ("trip to Lisbon", ["alice/travel"]),
    ("trav", ["alice/travel"]),
    ("ravel", []),
    ("draft", []),
    ("secret", []),
    ("astrology", []),
    ("%", []),
    ("", [BOOKS, "alice/traducao", "alice/travel"]),
]
HOSTILE = ['"', "*", "'", "\\", "AND", "NEAR(", "name:", "^a", "a:*", "!a", "<->", "'a':*B", "☕", "x" * 200]


@pytest.fixture(autouse=True)
def agents(alice: Person) -> None:
    skill = {"id": "vat", "name": "Tax returns", "description": "For freelancers", "tags": ["invoice"]}
    make_agent(alice.user, "books", name="Ledger", tagline="Bookkeeping for small firms", skills=[skill])
    make_agent(alice.user, "traducao", name="Tradução", tagline="A translator of Portuguese")
    make_agent(alice.user, "travel", tagline="Plans trips", description="To **Lisbon**, with a translator")
    make_agent(alice.user, "draft", status="draft")
    make_agent(alice.user, "hidden", tagline="Secret bookkeeping", access="private")


@pytest.mark.parametrize(("text", "expected"), ASKED)
def test_a_person_finds_agents(bob: Person, text: str, expected: list[str]) -> None:
    over_rest = api(bob.session).get("/api/v1/agents", {"q": text}).json()["items"]
    assert [one["handle"].removeprefix("@") for one in over_rest] == expected
    assert [one.handle for one in askable_agents(bob.user.pk, text)] == expected
    assert [one.handle for one in find(bob.user.pk, text)] == expected


def test_agents_with_some_of_the_words_are_found_when_none_has_all(bob: Person) -> None:
    found = api(bob.session).get("/api/v1/agents", {"q": "invoices trip"}).json()["items"]
    assert {one["handle"] for one in found} == {"alice/travel", BOOKS}  # databases rank them differently


def test_hostile_queries_are_plain_words(bob: Person) -> None:
    for text in HOSTILE:
        assert api(bob.session).get("/api/v1/agents", {"q": text}).status_code == 200, text
    assert [one.handle for one in find(bob.user.pk, '"ledger* NOT (')] == [BOOKS]


def test_the_index_follows_each_change(alice: Person, bob: Person) -> None:
    def found(text: str) -> list[str]:
        return [one.handle for one in find(bob.user.pk, text)]

    Agent.objects.filter(handle=BOOKS).update(tagline="Payroll", skills=[])
    assert (found("bookkeeping"), found("invoice"), found("payroll")) == ([], [], [BOOKS])
    Agent.objects.filter(handle=BOOKS).update(access="private")
    assert found("payroll") == []
    assert [one.handle for one in find(alice.user.pk, "payroll")] == [BOOKS]
    Agent.objects.filter(handle=BOOKS).delete()
    assert make_agent(alice.user, "payroll").handle in found("payroll")
