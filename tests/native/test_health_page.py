"""The health of the hub in numbers, for its staff alone."""

import html
import logging
import re
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from agents.core.errors import Denied
from agents.models import Agent, Connection, Process
from agents.models.choices import TurnFailure
from hub import logs
from kit.page_tags import moment
from tests.native.rows import Person, browser, connect, make_agent, make_turn
from tests.pushes.rows import config_of, push_of
from tests.webhooks.subscriptions import happen, make_due, subscribed
from webhooks.models import Delivery
from webhooks.service.outbox import pause_sending

pytestmark = pytest.mark.django_db


def read(person: Person) -> str:
    answer = browser(person.session).get("/health")
    assert answer.status_code == 200
    return re.sub(r"\s+", " ", html.unescape(answer.content.decode()))


def number(page: str, name: str) -> str:
    """The number under a heading, and what stands below it."""
    (found,) = re.findall(rf"<dt>{name}</dt><dd>(.*?)</dd><dd class=\"hint\">(.*?)</dd>", page)
    return " ".join(found).replace("\xa0", " ").strip()


def count_of(page: str, reason: str) -> int:
    (found,) = re.findall(rf"<code>{reason}</code></th><td class=\"number\">(\d+)<", page)
    return int(found)


def test_it_says_where_tasks_are(staff: Person, settings: Any) -> None:
    for store, place in (("memory", "in this process"), ("redis", "in Redis"), ("journal", "in the database")):
        settings.TASK_STORE = store
        assert f", tasks {place}." in read(staff)


def test_it_says_that_sending_is_paused(staff: Person) -> None:
    assert "resume_sending" not in read(staff)
    pause, _ = pause_sending("a copy of <Monday>")
    at = moment(pause.paused_at, "minute")
    assert f"Webhooks and pushes are not sent since {at}: a copy of <Monday>." in read(staff)


def test_it_counts_who_is_there(alice: Person, staff: Person, agent: Agent) -> None:
    connect(agent.session)
    gone = make_agent(alice.user, "gone")
    connect(gone.session)
    dead = Process.objects.filter(connections__session=gone.session)
    dead.update(beat_at=timezone.now() - timedelta(seconds=90), host="<b>dead</b>")
    page = read(staff)
    assert number(page, "Agents connected") == "1"
    assert Connection.objects.count() == 2
    assert '<span class="state on">alive' in page
    assert '<span class="state off">dead' in page
    assert re.search(r"9\d s ago", page)
    assert "&lt;b&gt;dead" in browser(staff.session).get("/health").content.decode()


def test_it_counts_turns_and_why_they_ended(bob: Person, staff: Person, agent: Agent) -> None:
    hour = timezone.now() - timedelta(minutes=61)
    make_turn(agent, bob.user, None)
    make_turn(agent, bob.user, released_at=timezone.now())
    make_turn(agent, bob.user, "failed", reason="timeout", released_at=timezone.now())
    make_turn(agent, bob.user, "failed", reason="timeout", released_at=None)
    make_turn(agent, bob.user, "denied", reason="busy", repeats=4, released_at=timezone.now())
    make_turn(agent, bob.user, "denied", reason="busy", released_at=hour, asked_at=hour)
    page = read(staff)
    assert number(page, "Open turns").startswith("1")
    assert number(page, "Agents not free yet").startswith("1")
    assert (count_of(page, "timeout"), count_of(page, "busy"), count_of(page, "cycle")) == (2, 4, 0)
    assert "8 asked, 1 answered, 2 not answered, 4 refused." in page
    for reason in [*map(str, TurnFailure), *(str(denied.reason) for denied in Denied.__subclasses__())]:
        count_of(page, reason)


def test_it_says_how_long_deliveries_wait(alice: Person, staff: Person) -> None:
    assert number(read(staff), "Deliveries waiting") == "0 none is due"
    subscribed(alice.user)
    for _ in range(3):
        happen(alice.user)
    make_due()
    first = Delivery.objects.order_by("pk")[:1].get()
    Delivery.objects.filter(pk=first.pk).update(next_attempt_at=timezone.now() - timedelta(seconds=300))
    page = read(staff)
    assert re.fullmatch(r"3 longest due: 30\d s", number(page, "Deliveries waiting"))
    Delivery.objects.filter(pk=first.pk).update(status="failed", next_attempt_at=None)
    assert number(read(staff), "Deliveries failed").startswith("1")
    Delivery.objects.update(queued_at=timezone.now() - timedelta(days=2))
    assert number(read(staff), "Deliveries failed").startswith("0")


def test_pushes_of_tasks_are_counted_for_themselves(alice: Person, staff: Person) -> None:
    config = config_of(alice)
    push_of(config)
    push_of(config, status="failed", next_attempt_at=None)
    page = read(staff)
    assert [number(page, f"{what} waiting")[0] for what in ("Deliveries", "Pushes")] == ["0", "1"]
    assert [number(page, f"{what} failed")[0] for what in ("Deliveries", "Pushes")] == ["0", "1"]


def test_it_counts_what_was_logged_but_never_says_it(staff: Person) -> None:
    counts, logger = logs.ErrorCounts(level=logging.ERROR), logging.getLogger("hub.counted")
    logger.addHandler(counts)
    try:
        logger.error("hub.broke_down")
        logger.error("a secret of a user: %s", "whsec_x")
        logger.warning("hub.warned")
    finally:
        logger.removeHandler(counts)
    page = read(staff)
    assert count_of(page, "hub.broke_down") >= 1
    assert count_of(page, "hub.counted") >= 1
    assert "secret of a user" not in page
    assert "hub.warned" not in page


def test_it_names_database_and_version(staff: Person, settings: Any) -> None:
    page = read(staff)
    assert re.search(r"Version 0\.\d+\.\d+ on (SQLite|PostgreSQL), tasks in ", page)
    assert re.match(r"\d+(\.\d)? [KMG]B", number(page, "Database"))


def test_it_costs_the_same_queries_however_much_there_is(
    alice: Person, staff: Person, django_assert_num_queries: Any
) -> None:
    client = browser(staff.session)
    client.get("/health")
    for slug in ("one", "two"):
        agent = make_agent(alice.user, slug)
        connect(agent.session)
        make_turn(agent, alice.user, released_at=timezone.now())
        with django_assert_num_queries(18):
            client.get("/health")
