"""Turns in the admin: read, filtered, searched and exported, and nothing else."""

import asyncio
import csv
import io
from datetime import UTC, datetime
from typing import Any

import pytest
from django.test import AsyncClient, Client

from accounts.authn import COOKIE
from accounts.models import User
from agents.models import Agent, Turn
from kit.csv_text import unescape
from tests.browser.vectors import VECTORS
from tests.native.admin import TURNS
from tests.native.desk import text
from tests.native.formulas import find_formulas
from tests.native.rows import Person, browser, make_agent, make_turn


def test_the_list_of_turns_shows_when_and_the_start_of_what_was_asked(alice: Person) -> None:
    at = datetime(2026, 11, 21, 7, 6, 1, tzinfo=UTC)
    turn = make_turn(make_agent(alice.user), alice.user, "denied", question="x" * 61, asked_at=at)
    page = text(browser(alice.session), TURNS)
    assert "21 Nov 2026, 07:06:01 UTC" in page
    assert "x" * 59 + "…" in page
    assert "x" * 60 not in page
    assert "None" not in text(browser(alice.session), f"{TURNS}{turn.pk}/change/")


def test_turns_can_be_read_and_nothing_else(alice: Person, signed_in: Client) -> None:
    turn = make_turn(make_agent(alice.user), alice.user, question="<script>alert(1)</script>")
    page = text(signed_in, f"{TURNS}{turn.pk}/change/")
    assert "&lt;script&gt;alert(1)" in page
    assert 'name="_save"' not in page
    for url in (f"{TURNS}add/", f"{TURNS}{turn.pk}/delete/"):
        assert signed_in.get(url).status_code == 403
    assert signed_in.post(f"{TURNS}{turn.pk}/change/", {"question": "other"}).status_code == 403
    assert "delete_selected" not in text(signed_in, TURNS)


def test_turns_can_be_filtered_and_searched(alice: Person, bob: Person) -> None:
    one, two = make_agent(alice.user, "one"), make_agent(alice.user, "two")
    make_turn(one, bob.user, question="the weather?")
    make_turn(one, alice.user, "denied", reason="offline")
    make_turn(two, alice.user, "failed", reason="timeout")
    for query, count in [
        ("", 3),
        ("outcome__exact=denied", 1),
        ("why=timeout", 1),
        ("surface__exact=a2a", 3),
        ("q=weather", 1),
        ("q=bob", 1),
        ("agent={one}", 2),
        ("agent=999999", 0),
        ("agent=x", 3),
        (f"agent={10**30}", 3),
    ]:
        answer = browser(alice.session).get(f"{TURNS}?{query.format(one=one.pk)}")
        assert len(answer.context["cl"].result_list) == count, (query, count)


def test_the_agent_filter_names_own_agents_only(alice: Person, bob: Person) -> None:
    make_agent(bob.user, "foreign")
    make_agent(alice.user, "one")
    make_agent(alice.user, "two")
    page = text(browser(alice.session), TURNS)
    assert "@alice/two" in page
    assert "foreign" not in page


ASKED = ["=1+1", "+1", "-1", "@SUM(A1)", "\tx", 'plain, with "quotes"\nand lines']


@pytest.mark.django_db(transaction=True)
def test_turns_leave_as_csv_whose_formulas_are_text(alice: Person, bob: Person, agent: Agent) -> None:
    turns = [make_turn(agent, bob.user, question=question) for question in ASKED]
    turns.append(make_turn(agent, None, "denied", reason="offline", question="-"))
    turns.append(make_turn(make_agent(bob.user), alice.user, question="not hers"))
    with asyncio.Runner() as loop:
        head, body = loop.run(download(alice, turns))
    assert head["Content-Type"] == "text/csv; charset=utf-8"
    assert head["Content-Disposition"] == 'attachment; filename="turns.csv"'
    lines = list(csv.DictReader(io.StringIO(body)))
    assert [line["question"] for line in lines] == ["'-", ASKED[5], "'\tx", "'@SUM(A1)", "'-1", "'+1", "'=1+1"]
    assert (lines[0]["caller"], lines[0]["reason"], lines[0]["outcome"]) == ("(public)", "offline", "denied")
    assert lines[1]["agent"] == "alice/helper"


@pytest.mark.django_db(transaction=True)
def test_no_text_of_exported_turns_begins_a_formula(alice: Person, bob: Person, agent: Agent) -> None:
    Agent.objects.filter(pk=agent.pk).update(handle="=1+1")
    User.objects.filter(pk=bob.user.pk).update(login="@SUM(A1)")
    turns = [make_turn(agent, bob.user, question=vector) for vector in VECTORS]
    with asyncio.Runner() as loop:
        _, body = loop.run(download(alice, turns))
    assert find_formulas(body) == []
    lines = list(csv.DictReader(io.StringIO(body, newline="")))
    assert [unescape(line["question"]) for line in reversed(lines)] == VECTORS
    assert {(line["agent"], line["caller"]) for line in lines} == {("'=1+1", "'@SUM(A1)")}


async def download(person: Person, turns: list[Turn]) -> tuple[Any, str]:
    """Export these turns as the hub serves it, over ASGI."""
    client = AsyncClient()
    client.cookies[COOKIE] = person.session
    chosen = {"action": "export_csv", "_selected_action": [turn.pk for turn in turns]}
    answer = await client.post(TURNS, chosen)
    return answer, b"".join([chunk async for chunk in answer.streaming_content]).decode()
