"""`/palette`: what the command palette finds for whom, and its script."""

from typing import Any

import pytest
from django.utils import timezone

from a2a_bridge.models import Thread
from hub.palette import PAGES
from lab import ROOT
from tests.native.rows import Person, browser, make_agent

MAX_SCRIPT_BYTES = 8_192


def found(person: Person | None, typed: str = "") -> dict[str, list[dict[str, Any]]]:
    """The lines by group."""
    answer = browser(person.session if person else None).get("/palette", {"q": typed})
    assert answer.status_code == 200
    return {group["name"]: group["items"] for group in answer.json()["groups"]}


def titles(lines: list[dict[str, Any]]) -> list[str]:
    return [one["title"] for one in lines]


def test_agents_pages_and_documents_are_found_by_words(alice: Person, bob: Person) -> None:
    make_agent(bob.user, "planner", name="Trip planner", tagline="Costs of a trip")
    lines = found(alice, "cost")
    assert lines["Agents"] == [{"title": "Trip planner", "detail": "@bob/planner", "url": "/agents/bob/planner"}]
    assert titles(lines["Pages"])[0] == "Costs"
    assert len(lines["Documents"]) == 6
    assert all(one["url"].startswith("/docs/") for one in lines["Documents"])


def test_own_threads_are_found_by_their_titles(
    alice: Person, bob: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = timezone.now()
    agent = make_agent(bob.user, "planner", name="Planner")
    for person, title in ((alice, "A trip to Rome"), (alice, "Taxes"), (bob, "Rome by night")):
        Thread.objects.create(
            caller=person.user, agent=agent, context_id=title, title=title, began_at=at, last_asked_at=at
        )
    lines = found(alice, "rome")["Threads"]
    assert [(one["title"], one["detail"]) for one in lines] == [("A trip to Rome", "with @bob/planner")]
    assert titles(found(alice)["Threads"]) == ["Taxes", "A trip to Rome"]
    assert "Threads" not in found(None)


def test_without_words_all_pages_of_the_visitor_are_shown(alice: Person, staff: Person) -> None:
    assert "Health" in titles(found(staff)["Pages"])
    assert "Health" not in titles(found(alice)["Pages"])
    assert titles(found(alice)["Pages"])[0] == "My questions"
    assert titles(found(None)["Pages"]) == ["Agents", "Try A2A", "Docs", "API", "Home"]


def test_agents_of_others_that_are_not_open_are_absent(alice: Person, bob: Person) -> None:
    make_agent(bob.user, "secret", name="Secret planner", access="private")
    assert "Agents" not in found(alice, "planner")
    assert titles(found(bob, "planner")["Agents"]) == ["Secret planner"]


@pytest.mark.parametrize(
    "typed", ["\0", "%", "x" * 5000, "a b c d e f g h", "' OR 1=1 --", "no-such-word-anywhere"]
)
def test_odd_words_find_nothing_or_something_and_never_fail(alice: Person, typed: str) -> None:
    found(alice, typed)


def test_every_page_of_the_palette_opens(staff: Person) -> None:
    for line in found(staff)["Pages"]:
        assert browser(staff.session).get(line["url"]).status_code == 200, line


def test_the_pages_have_different_titles_and_the_script_is_small() -> None:
    assert len({one.title for one in PAGES}) == len(PAGES)
    assert (ROOT / "static/js/palette.js").stat().st_size < MAX_SCRIPT_BYTES
