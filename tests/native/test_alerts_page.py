"""The page of alerts: what an owner is told of, and the address for mails, which its owner confirms."""

import re
from contextlib import suppress
from typing import Any

import pytest
from django.core import mail as outbox_mail
from django.test import Client

from accounts.errors import TooFast
from accounts.models import User
from accounts.throttle import CONFIRMATIONS_PER_DAY, CONFIRMATIONS_PER_HOUR
from agents import jobs
from agents.core.mail import set_address
from agents.models import AlertAddress, AlertRule, Mail
from tests.attempts import Attempts
from tests.native.desk import text
from tests.native.rows import Person, browser
from tests.rates import age_counts

pytestmark = pytest.mark.usefixtures("mails_are_sent")

FORM = {
    "offline": "on",
    "offline_threshold": "10",
    "budget_threshold": "80",
    "failures": "on",
    "failures_threshold": "30",
    "email": "",
}


def rules(owner: User) -> dict[str, int]:
    return dict(AlertRule.objects.filter(owner=owner).values_list("kind", "threshold"))


def confirmation() -> str:
    """The address in the mail that was sent last."""
    link = re.search(r"\S+/desk/alerts\?confirm=(\S+)", str(outbox_mail.outbox[-1].body))
    assert link is not None
    return link[1]


def test_alerts_are_switched_on_changed_and_off(alice: Person, signed_in: Client) -> None:
    assert signed_in.post("/desk/alerts", FORM).status_code == 302
    assert rules(alice.user) == {"offline": 10, "failures": 30}
    page = text(signed_in, "/desk/alerts")
    assert page.count(" checked") == 2
    assert 'value="30"' in page
    signed_in.post("/desk/alerts", {"budget": "on", "budget_threshold": "90"})
    assert rules(alice.user) == {"budget": 90}


def test_what_makes_no_sense_is_said_and_not_saved(alice: Person) -> None:
    for wrong in [
        {"offline_threshold": "0"},
        {"offline_threshold": ""},
        {"offline_threshold": "10081"},
        {"failures_threshold": "101"},
        {"failures_threshold": "9" * 4000},
        {"budget_threshold": "many"},
        {"email": "no-address"},
        {"email": "a@example.org\nBcc: b@example.org"},
        {"email": '"a\x0cBcc: x"@example.org'},
        {"email": '"a\x01"@example.org'},
    ]:
        answer = browser(alice.session).post("/desk/alerts", FORM | wrong)
        assert answer.status_code == 400, wrong
        assert "Not saved" in answer.content.decode(), wrong
        assert rules(alice.user) == {}, wrong


def test_an_address_is_mailed_to_once_its_owner_confirmed_it(alice: Person, bob: Person) -> None:
    client = browser(alice.session)
    client.post("/desk/alerts", FORM | {"email": "alice@example.org"})
    assert "Not confirmed yet" in text(client, "/desk/alerts")
    assert jobs.send_mails() == 1
    assert outbox_mail.outbox[-1].to == ["alice@example.org"]
    token = confirmation()
    text(client, "/desk/alerts", confirm=token)
    assert AlertAddress.objects.get().confirmed_at is None, "a look confirms nothing: mail scanners look"
    browser(bob.session).post("/desk/alerts", {"confirm": token})
    assert AlertAddress.objects.get().confirmed_at is None
    client.post("/desk/alerts", {"confirm": token})
    assert AlertAddress.objects.get().confirmed_at is not None
    assert "Confirmed." in text(client, "/desk/alerts")
    AlertAddress.objects.update(email="other@example.org", confirmed_at=None)
    client.post("/desk/alerts", {"confirm": token})
    assert AlertAddress.objects.get().confirmed_at is None


@pytest.mark.attack
def test_a_hub_mails_few_links(alice: Person, signed_in: Client, attempts: Attempts) -> None:
    for number in range(CONFIRMATIONS_PER_HOUR):
        assert signed_in.post("/desk/alerts", FORM | {"email": f"to-{number}@example.org"}).status_code == 302
    other = FORM | {"email": "other@example.org", "offline_threshold": "99"}
    answer = signed_in.post("/desk/alerts", other)
    assert answer.status_code == 429
    assert "at most 5 links an hour and 10 a day" in answer.content.decode()
    assert signed_in.post("/desk/alerts", FORM).status_code == 302
    assert signed_in.post("/desk/alerts", other).status_code == 429, "emptying it is no way around"
    assert rules(alice.user)["offline"] == 10
    others = [FORM | {"email": f"victim-{number}@example.org"} for number in range(attempts.number(20, 144))]
    assert {signed_in.post("/desk/alerts", one).status_code for one in others} == {429}
    sent = Mail.objects.count()
    times = CONFIRMATIONS_PER_HOUR + len(others) + 2
    attempts.count("mailing strangers by confirmations of an address", times, sent - CONFIRMATIONS_PER_HOUR)
    assert sent == CONFIRMATIONS_PER_HOUR


@pytest.mark.attack
def test_a_hub_mails_few_links_on_each_day(alice: Person, attempts: Attempts) -> None:
    """More mails than an hour allows are asked for in each hour of two days."""
    tries, sent = CONFIRMATIONS_PER_HOUR + 1, [0]
    for hour in range(48):
        for number in range(tries):
            with suppress(TooFast):
                set_address(alice.user, f"to-{hour}-{number}@example.org")
        sent.append(Mail.objects.count())
        age_counts(3601)
    in_a_day = [sent[hour + 24] - sent[hour] for hour in range(25)]
    too_many = max(0, max(in_a_day) - CONFIRMATIONS_PER_DAY)
    attempts.count("mailing strangers by confirmations of an address", 48 * tries, too_many)
    assert sent[:3] == [0, CONFIRMATIONS_PER_HOUR, CONFIRMATIONS_PER_DAY]
    assert in_a_day == [CONFIRMATIONS_PER_DAY] * 25


def test_a_second_save_of_an_address_mails_no_second_link(alice: Person, signed_in: Client) -> None:
    for threshold in (10, 20):
        form = FORM | {"email": "alice@example.org", "offline_threshold": str(threshold)}
        assert signed_in.post("/desk/alerts", form).status_code == 302
    assert rules(alice.user)["offline"] == 20
    assert Mail.objects.count() == 1


def test_a_hub_without_mail_says_so(alice: Person, settings: Any, signed_in: Client) -> None:
    settings.SENDS_MAIL = False
    assert "This hub sends no mail" in text(signed_in, "/desk/alerts")
    signed_in.post("/desk/alerts", FORM | {"email": "alice@example.org"})
    assert not AlertAddress.objects.exists()
