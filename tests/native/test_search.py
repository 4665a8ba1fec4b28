"""The words of a search, and the agents that have them."""

from agents.links.channel.refusals import askable_agents
from kit.search import stem
from tests.native.rows import Person, api, make_agent


def test_forms_of_a_word_have_one_stem() -> None:
    for forms in [
        ("book", "books", "booking", "bookings", "booked"),
        ("translate", "translates", "translating"),
        ("BOOK", "BOOKING"),
    ]:
        assert len({stem(one) for one in forms}) == 1, forms


def test_a_short_word_is_its_own_stem() -> None:
    for word in ["us", "news", "red", "a", "%", "_"]:
        assert stem(word) == word, word


def test_an_agent_is_found_by_all_words_in_any_order(alice: Person) -> None:
    make_agent(alice.user, "tables", name="Books for the evening", tagline="Tables in town")
    for text, is_found in [
        ("", True),
        ("tables books", True),
        ("BOOKINGS, table", True),
        ("@ALICE/tables evening", True),
        ("books chairs", False),
        ("bookings %", False),
    ]:
        over_rest = api(alice.session).get("/api/v1/agents", {"q": text}).json()["items"]
        assert len(over_rest) == len(askable_agents(alice.user.pk, text)) == is_found, (text, is_found)
