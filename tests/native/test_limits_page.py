"""The table of per-account limits: the page for staff, and its line in the docs."""

from typing import Any

import pytest

from hub.pages import ACCOUNTS_A_PAGE, COLUMNS
from tests.native.rows import Person, browser, make_agent, make_session, person

pytestmark = pytest.mark.django_db


def rows(staff: Person, query: str = "") -> list[str]:
    """The logins of the table of use, in its order."""
    answer: Any = browser(staff.session).get(f"/limits{query}")
    assert answer.status_code == 200, answer.content
    return [login for login, _ in answer.context["accounts"]]


def test_accounts_are_sorted_by_what_they_use(staff: Person, alice: Person, bob: Person, settings: Any) -> None:
    settings.AGENTS_PER_OWNER = 1
    make_agent(alice.user)
    for name in ("one", "two", "three"):
        make_session(bob.user, name)
    assert rows(staff) == ["bob", "alice"]
    assert rows(staff, "?by=agents") == ["alice"]
    assert "alice" in rows(staff, "?by=live+tokens")
    assert rows(staff, "?by=password") == ["bob", "alice"]
    page = browser(staff.session).get("/limits?by=agents").content.decode()
    assert page.count(">full<") == 1


def test_the_list_comes_in_pages(staff: Person) -> None:
    for number in range(ACCOUNTS_A_PAGE + 1):
        make_session(person(f"owner-{number}").user, "desk")
    assert len(rows(staff)) == ACCOUNTS_A_PAGE
    assert len(rows(staff, "?page=2")) == len(rows(staff, "?page=99")) == 1


def test_every_use_can_be_sorted_by(staff: Person, alice: Person) -> None:
    make_agent(alice.user)
    for by in sorted(COLUMNS):
        rows(staff, f"?by={by}")
