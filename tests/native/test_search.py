"""The words of a search, and the agents that have them."""

import pytest

from agents.links.channel.refusals import askable_agents
from kit.search import stem
from tests.native.rows import Person, api, make_agent


@pytest.mark.parametrize(
    "forms",
    [
        ("book", "books", "booking", "bookings", "booked"),
        ("translate", "translates", "translating"),
        ("BOOK", "BOOKING"),
    ],
)
def test_forms_of_a_word_have_one_stem(forms: tuple[str, ...]) -> None:
    assert len({stem(one) for one in forms}) == 1


@pytest.mark.parametrize("word", ["us", "news", "red", "a", "%", "_"])
def test_a_short_word_is_its_own_stem(word: str) -> None:
    assert stem(word) == word


@pytest.mark.parametrize(
    ("text", "is_found"),
    [
        ("", True),
        ("tables books", True),
        ("BOOKINGS, table", True),
        ("@ALICE/tables evening", True),
        ("books chairs", False),
        ("bookings %", False),
    ],
)
def test_an_agent_is_found_by_all_words_in_any_order(text: str, *, is_found: bool, alice: Person) -> None:
    make_agent(alice.user, "tables", name="Books for the evening", tagline="Tables in town")
    over_rest = api(alice.session).get("/api/v1/agents", {"q": text}).json()["items"]
    assert len(over_rest) == len(askable_agents(alice.user.pk, text)) == is_found
