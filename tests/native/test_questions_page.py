"""`/questions/all`: what the visitor asked, and what the page says where there is none."""

import pytest

from a2a_bridge.service import my_questions as questions
from tests.native.rows import Person, browser, make_agent, make_turn


def page_of(person: Person, query: str = "", status: int = 200) -> str:
    answer = browser(person.session).get(f"/questions/all{query}")
    assert answer.status_code == status
    return answer.content.decode()


def test_it_shows_state_latency_and_a_link_to_the_task(alice: Person, bob: Person) -> None:
    agent = make_agent(bob.user, "helper")
    make_turn(agent, alice.user, question="How <b>long</b>?", latency_ms=912_600, task_id="task-1")
    make_turn(agent, alice.user, "denied", question="And now?", reason="busy", repeats=3)
    text = page_of(alice)
    assert "How &lt;b&gt;long&lt;/b&gt;?" in text
    assert "15 min 13 s" in text
    assert 'href="/agents/bob/helper?task=task-1"' in text
    assert '<span class="badge">refused</span> The agent was answering another caller. 3 times.' in text
    assert "How" not in page_of(bob)


def test_a_cancel_of_ones_own_and_a_polite_refusal_are_no_failures(alice: Person, bob: Person) -> None:
    agent = make_agent(bob.user, "helper")
    for reason in ("canceled", "rejected", "timeout"):
        make_turn(agent, alice.user, "failed", reason=reason, task_id=f"task-{reason}")
    make_turn(agent, alice.user, "denied", reason="budget_exhausted", task_id="task-b")
    make_turn(agent, alice.user, reason="input_required", task_id="task-i")
    text = page_of(alice)
    for shown in (
        '<span class="badge">canceled</span> You canceled this.',
        '<span class="badge">declined</span> The agent declined to answer.',
        '<span class="badge bad">no answer</span> The agent did not answer in time.',
        '<span class="badge">refused</span> The agent had answered as many questions as it takes in a day.',
        '<span class="badge good">asked back</span>',
        'data-end="^canceled by its caller$"',
    ):
        assert shown in text.replace("\\ ", " "), shown  # re.escape writes spaces so


def test_a_state_leaves_out_the_others(alice: Person, bob: Person) -> None:
    agent = make_agent(bob.user, "helper")
    for outcome, reason in (("completed", "input_required"), ("failed", "rejected"), ("failed", "canceled")):
        make_turn(agent, alice.user, outcome, reason=reason, question=f"this one {reason}")
    for state, shown in (("input_required", "input_required"), ("rejected", "rejected"), ("canceled", "canceled")):
        text = page_of(alice, f"?state={state}")
        assert (f"this one {shown}" in text, text.count("this one")) == (True, 1)


def test_a_question_is_shown_without_its_markup(alice: Person) -> None:
    make_turn(make_agent(alice.user), alice.user, question="# Why\n\n**this** `a < b`?")
    assert '<p class="said">Why this a &lt; b?</p>' in page_of(alice)


def test_an_agent_that_is_not_open_any_more_is_no_link(alice: Person, bob: Person) -> None:
    agent = make_agent(bob.user, "helper", access="private")
    make_turn(agent, alice.user, task_id="task-1")
    text = page_of(alice)
    assert "@bob/helper" in text
    assert "/agents/bob/helper" not in text
    assert "You may not ask this agent any more" in text


def test_empty_lists_say_what_to_do_next(alice: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "Find an agent to ask" in page_of(alice)
    assert "Clear the search" in page_of(alice, "?q=unknown")
    monkeypatch.setattr(questions, "SEARCHED", 1)
    agent = make_agent(alice.user)
    for _ in range(3):
        make_turn(agent, alice.user)
    text = page_of(alice, "?q=unknown")
    assert "There are older ones" in text
    assert "Older questions" in text


def test_a_wrong_query_is_named_and_all_is_shown(alice: Person) -> None:
    make_turn(make_agent(alice.user), alice.user, question="the only one")
    text = page_of(alice, "?day=yesterday&tz=Nowhere", 400)
    assert 'role="alert"' in text
    assert "the only one" in text
