"""The developer reference says all there is: every method, code, refusal, failure, frame and setting."""

import html
import re

import pytest
from django.test import Client

from a2a_bridge import errors as bridge_errors
from a2a_bridge.reference import errors, lines
from a2a_bridge.reference.contents import reference
from a2a_bridge.versions import HUB
from accounts.middleware import PAGE_POLICY
from agents.links.channel import frames
from agents.live import FROM_LIVE
from agents.types import Failure
from tests.house.test_docs import error_codes, read_variables
from tests.native.house import Person, browser, connect, make_agent


@pytest.fixture
def page(db: None) -> str:
    answer = Client().get("/demos/a2a/")
    assert answer.status_code == 200
    assert answer["Content-Security-Policy"] == PAGE_POLICY
    return html.unescape(answer.content.decode())


@pytest.fixture
def text(db: None) -> str:
    return Client().get("/llms.txt").content.decode()


def test_page_and_text_say_all_there_is(page: str, text: str) -> None:
    wanted = [*HUB.methods, *map(str, error_codes().values()), *map(str, Failure), *read_variables()]
    wanted += [denied.reason for denied in bridge_errors.DENIED_TEXT]
    wanted += [*frames.FROM_AGENT, *(str(frame.__struct_config__.tag) for frame in frames.TO_AGENT)]
    for word in wanted:
        assert word in page, word
        assert word in text, word
    for message in FROM_LIVE:
        assert str(message.__struct_config__.tag) in page


def test_every_refusal_is_known_by_its_text_and_says_what_to_do() -> None:
    for denied, refusal in zip(bridge_errors.DENIED_TEXT, errors.refusals(), strict=True):
        assert refusal.advice, f"{denied.__name__} has no advice in a2a_bridge/reference/errors.py"
        text = refusal.text.replace("owner/slug", "alice/notes").replace("N", "12")
        found = [one for one in errors.refusals() if re.search(one.pattern, text)]
        assert found == [refusal]


def test_every_failure_is_known_by_its_text() -> None:
    for failure in Failure:
        text = bridge_errors.failure_text(failure, 7.5)
        assert any(re.search(one.pattern, text) for one in errors.failures())


def test_params_are_named_with_their_paths_and_bounds() -> None:
    fields = {field.name: field for field in reference("http://hub").languages[0].methods[0].params}
    assert fields["message.messageId"].type == "text, 1 to 128 characters"
    assert fields["message.messageId"].required
    assert fields["message.role"].type == '"ROLE_USER"'
    assert fields["message.parts[].text"].type == "text"
    assert not fields["message.parts[].text"].required


def test_a_missing_heading_is_not_passed_over() -> None:
    with pytest.raises(LookupError):
        lines.rows("errors.md", "Nothing of the kind")


def test_a_cell_is_text_but_for_its_code() -> None:
    assert lines.html("`<b>` <i> & `a|b`") == "<code>&lt;b&gt;</code> &lt;i&gt; &amp; <code>a|b</code>"


def test_the_wanted_agent_comes_first_if_the_visitor_may_ask_it(alice: Person, bob: Person) -> None:
    for slug in ("one", "two"):
        connect(make_agent(alice.user, slug).session)
    make_agent(alice.user, "mine", access="private")
    make_agent(alice.user, "draft", "draft")

    def listed(token: str | None, wanted: str = "") -> list[str]:
        answer = browser(token).get("/demos/a2a/", {"agent": wanted})
        return re.findall(r'<option value="([^"]+)">', answer.content.decode())

    assert listed(None) == ["alice/one", "alice/two"]
    assert listed(None, "@Alice/TWO") == ["alice/two", "alice/one"]
    assert listed(bob.session, "alice/mine") == ["alice/one", "alice/two"]
    assert listed(alice.session, "alice/mine") == ["alice/mine", "alice/one", "alice/two"]
    assert listed(None, "alice/draft") == ["alice/one", "alice/two"]


@pytest.mark.parametrize("wanted", ["\0", "\ud800", "'", "x" * 5000, "alice/one\n", "%00", "/"])
def test_a_hostile_address_finds_nobody(db: None, wanted: str) -> None:
    answer = Client().get("/demos/a2a/", {"agent": wanted.encode(errors="surrogatepass")})
    assert answer.status_code == 200


def test_the_address_without_a_slash_leads_there(db: None) -> None:
    answer = Client().get("/demos/a2a?agent=a/b")
    assert (answer.status_code, answer["Location"]) == (302, "/demos/a2a/?agent=a/b")
