"""The developer reference says all there is: every method, code, refusal, failure, frame and setting."""

import html
import json
import re
from typing import Any

import pytest
from django.test import Client

from a2a_bridge.surface.addresses import ADDRESSES
from a2a_bridge.surface.pages import MAX_FOUND
from a2a_bridge.surface.reference import errors
from a2a_bridge.surface.reference.contents import PAYLOADS, Language, reference
from a2a_bridge.wire import errors as bridge_errors
from a2a_bridge.wire.dialects.dialect import STREAMS, Operation
from a2a_bridge.wire.task import State
from a2a_bridge.wire.versions import DIALECTS
from accounts.middleware import PAGE_POLICY
from agents.core.errors import REFUSALS
from agents.links.channel import frames
from agents.models.choices import TurnFailure
from agents.transcript.announcements import FROM_LIVE
from lab.settings_page import all_declarations
from tests.native.rows import Person, browser, connect, make_agent
from tests.repository.test_docs import error_codes


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
    wanted = [name for dialect in DIALECTS for name in dialect.methods]
    wanted += [f"/{address.path}" for address in ADDRESSES]
    wanted += [
        *PAYLOADS,
        *map(str, error_codes().values()),
        *map(str, TurnFailure),
        *(one.name for one in all_declarations()),
    ]
    wanted += [denied.reason for denied in REFUSALS]
    wanted += [*frames.FROM_AGENT, *(str(frame.__struct_config__.tag) for frame in frames.TO_AGENT)]
    for word in wanted:
        assert word in page, word
        assert word in text, word
    for message in FROM_LIVE:
        assert str(message.__struct_config__.tag) in page


def test_the_text_is_plain_and_the_same_with_any_token(text: str, settings: Any) -> None:
    answer = Client().get("/llms.txt", headers={"Authorization": "Bearer unknown"})
    assert (answer["Content-Type"], answer.content.decode()) == ("text/plain; charset=utf-8", text)
    assert "&" not in text.replace("&&", ""), "a character is escaped as in HTML"
    assert f"POST {settings.PUBLIC_URL}/api/a2a/v1/agents/OWNER/SLUG" in text


def test_a_socket_has_the_scheme_of_sockets(db: None, settings: Any) -> None:
    for public in ["http://hub.example:8787", "https://hub.example"]:
        settings.PUBLIC_URL = public
        said = Client().get("/llms.txt").content.decode()
        assert f"WebSocket ws{public.removeprefix('http')}/channel" in said, public


def languages() -> list[Language]:
    return reference("http://hub").languages


def test_every_dialect_that_is_registered_has_its_words_and_the_shapes_of_its_parameters() -> None:
    for one in DIALECTS:
        assert one.description.about, f"{one.name} has no words"
        for method in one.methods.values():
            is_card = method.operation is Operation.SHOW_CARD
            assert (method.params is None) is (method.sample is None) is is_card, method.name


def test_a_dialect_has_a_renderer_for_each_of_its_methods_and_no_other() -> None:
    for one in DIALECTS:
        operations = {method.operation for method in one.methods.values()}
        pushes = operations & {Operation.CREATE_PUSH, Operation.GET_PUSH}
        assert (one.render_page is not None) == (Operation.LIST in operations)
        assert (one.render_push is not None) == bool(pushes)
        assert (one.render_push_page is not None) == (Operation.LIST_PUSH in operations)


def test_samples_are_what_the_dialect_says() -> None:
    for dialect, language in zip(DIALECTS, languages(), strict=True):
        for method in language.methods:
            request = json.loads(method.request)
            assert request["method"] == method.name
            operation = dialect.methods[method.name].operation
            refuses = dialect.name == "0.3" and operation is Operation.SHOW_CARD
            if not refuses:
                dialect.methods[method.name].read(request.get("params"))
            if operation in STREAMS:
                frames = [frame.splitlines() for frame in method.answer.split("\n\n")]
                assert all(frame[-1].startswith("data: {") for frame in frames)
                assert {len(frame) for frame in frames} == ({2} if dialect.replays else {1})
            else:
                answer = json.loads(method.answer)
                assert ("error" if refuses else "result") in answer, method.name
                assert answer["id"] == request["id"]


def test_the_ids_of_a_stream_go_up_and_name_its_task() -> None:
    version_1 = next(one for one in languages() if one.version == "1.0")
    stream = next(one for one in version_1.methods if one.name == "SendStreamingMessage")
    ids = re.findall(r"^id: task-cf8d\.(\d+)$", stream.answer, re.MULTILINE)
    assert list(map(int, ids)) == list(range(len(ids)))
    assert len(ids) > 3


def test_every_state_is_written_as_each_dialect_writes_it() -> None:
    rows = reference("http://hub").states
    assert len(rows) == len(State)
    columns = dict(
        zip((one.key for one in languages()), zip(*(words for words, _ in rows), strict=True), strict=True)
    )
    assert set(columns["v1-0"]) == {f"TASK_STATE_{state.name}" for state in State}
    assert set(columns["v0-3"]) == {state.value.replace("_", "-") for state in State}
    assert set(columns["hub"]) == {state.name for state in State} - {"SUBMITTED"}


def test_every_refusal_is_known_by_its_text_and_says_what_to_do() -> None:
    for refusal in errors.refusals():
        assert refusal.then, f"{refusal.reason} has no advice in agents/core/errors.py"
        for text in refusal.texts:
            said = text.replace("owner/slug", "alice/notes").replace("N", "12")
            assert [one for one in errors.refusals() if re.search(one.pattern, said)] == [refusal]


def test_every_failure_is_known_by_its_text() -> None:
    for failure in TurnFailure:
        text = bridge_errors.failure_text(failure, 7.5)
        assert any(re.search(one.pattern, text) for one in errors.failures())


def test_params_are_named_with_their_paths_and_bounds() -> None:
    fields = {field.name: field for field in reference("http://hub").languages[0].methods[0].params}
    assert fields["message.messageId"].type == "text, 1 to 128 characters"
    assert fields["message.messageId"].required
    assert fields["message.role"].type == '"ROLE_USER"'
    assert fields["message.parts[].text"].type == "text"
    assert not fields["message.parts[].text"].required
    [version_1] = [one for one in languages() if one.version == "1.0"]
    fields = {field.name: field for field in version_1.methods[0].params}
    assert fields["message.extensions"].type == "list of text"
    assert fields["message.role"].type == "text or whole number"
    assert fields["configuration.taskPushNotificationConfig.authentication.scheme"].required
    assert not [field for field in fields.values() if "null" in field.type]


def test_a_missing_heading_is_not_passed_over() -> None:
    with pytest.raises(LookupError):
        errors.rows("errors.md", "Nothing of the kind")


def test_a_cell_is_text_but_for_its_code() -> None:
    assert errors.html("`<b>` <i> & `a|b`") == "<code>&lt;b&gt;</code> &lt;i&gt; &amp; <code>a|b</code>"


LISTED = re.compile(r'data-choice="[^"]*"(?: aria-current="true")?>@([^<]+)</a>')
PICKED = re.compile(r'id="about-handle">@([^<]+)<')


def test_the_wanted_agent_is_picked_if_the_visitor_may_ask_it(alice: Person, bob: Person) -> None:
    make_agent(alice.user, "asleep")
    for slug in ("one", "two"):
        connect(make_agent(alice.user, slug).session)
    make_agent(alice.user, "mine", access="private")
    make_agent(alice.user, "draft", "draft")

    def read(token: str | None, **query: str) -> tuple[list[str], list[str]]:
        text = browser(token).get("/demos/a2a/", query).content.decode()
        return PICKED.findall(text), LISTED.findall(text)

    askable = ["alice/one", "alice/two", "alice/asleep"]
    assert read(None) == (["alice/one"], askable)
    assert read(None, agent="@Alice/TWO") == (["alice/two"], askable)
    assert read(bob.session, agent="alice/mine") == (["alice/one"], askable)
    assert read(alice.session, agent="alice/mine") == (["alice/mine"], [*askable, "alice/mine"])
    assert read(None, agent="alice/draft") == (["alice/one"], askable)
    assert read(None, agent="alice/two", q="ASLEEP") == (["alice/two"], ["alice/asleep"])
    assert read(None, q="unknown") == (["alice/one"], [])


def test_the_page_stays_small_with_many_agents_and_finds_each(alice: Person) -> None:
    def size() -> int:
        return len(Client().get("/demos/a2a/").content)

    for number in range(MAX_FOUND):
        make_agent(alice.user, f"n{number:03}", tagline="x" * 100)
    before = size()
    for number in range(MAX_FOUND, 60):
        make_agent(alice.user, f"n{number:03}", tagline="x" * 100)
    assert size() - before < 100
    for address in ("/demos/a2a/", "/demos/a2a/agents"):
        assert LISTED.findall(Client().get(address, {"q": "n042"}).content.decode()) == ["alice/n042"]
    text = Client().get("/demos/a2a/agents").content.decode()
    assert len(LISTED.findall(text)) == MAX_FOUND
    assert f"60 agents, the first {MAX_FOUND} are listed." in text


def test_a_hostile_address_finds_no_agent(db: None) -> None:
    for wanted in ["\0", "\ud800", "'", "x" * 5000, "alice/one\n", "%00", "/"]:
        for address in ("/demos/a2a/", "/demos/a2a/agents"):
            for name in ("agent", "q"):
                answer = Client().get(address, {name: wanted.encode(errors="surrogatepass")})
                assert answer.status_code == 200, wanted


def test_the_address_without_a_slash_leads_there(db: None) -> None:
    answer = Client().get("/demos/a2a?agent=a/b")
    assert (answer.status_code, answer["Location"]) == (302, "/demos/a2a/?agent=a/b")
