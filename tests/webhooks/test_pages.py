"""The pages of webhooks: forms that work without scripts; no user sees another's webhooks."""

import html
import re
from typing import Any

import pytest

from accounts.middleware import PAGE_POLICY
from kit.clock import db_now
from kit.markdown import SECTION_ID
from kit.outbox import AttemptResult
from tests.native.rows import Person, browser, person
from tests.webhooks.subscriptions import end_lease, happen, lease_due, subscribed
from webhooks.models import Delivery, Subscription
from webhooks.service.sending import unseal_secret
from webhooks.surface import pages
from webhooks.surface.pages import HOWTO, verify_recipes
from webhooks.wire import CATALOG, STAFF_ACTED, TEST

pytestmark = pytest.mark.django_db
HERE = "http://127.0.0.1:9/hook"


@pytest.fixture
def own(alice: Person) -> Subscription:
    return subscribed(alice.user).subscription


def read(person: Person, path: str = "", **query: str) -> str:
    answer = browser(person.session).get(f"/webhooks{path}", query)
    assert answer.status_code == 200, answer.content
    assert answer["Content-Security-Policy"] == PAGE_POLICY
    assert "no-store" in answer["Cache-Control"]
    return html.unescape(answer.content.decode())


def post(person: Person, path: str = "", **fields: Any) -> Any:
    return browser(person.session).post(f"/webhooks{path}", fields, follow=True)


def test_the_catalog_is_offered(alice: Person) -> None:
    chief = person("chief", is_staff=True)
    for reader, left_out in ((alice, {TEST, STAFF_ACTED}), (chief, {TEST})):
        page = read(reader)
        for row in CATALOG:
            assert (f'value="{row.type}"' in page) == (row.type not in left_out)


def test_subscribing_shows_the_secret_this_once(alice: Person) -> None:
    answer = post(alice, url=HERE, events=["chat.event", "agent.replied"], routing_name="proj", session_id="")
    own = Subscription.objects.get()
    assert (own.owner, own.url, own.event_names) == (alice.user, HERE, ["chat.event", "agent.replied"])
    assert (own.routing_name, own.session_id) == ("@proj", "")
    secret = unseal_secret(own.secret)
    assert secret in answer.content.decode()
    assert "no-store" in answer["Cache-Control"]
    assert secret not in read(alice)
    assert secret not in read(alice, f"/{own.pk}")


def test_what_is_wrong_is_said_beside_its_field(alice: Person, subtests: pytest.Subtests) -> None:
    """`test_rest.py` has what each field may hold."""
    wrong: dict[str, tuple[str, Any]] = {
        "url": ("url", "http://127.0.0.1\0"),
        "events": ("events", []),
        "session": ("session_id", "1"),
        "name": ("routing_name", "\0"),
    }
    for field, (name, value) in wrong.items():
        with subtests.test(field=field):
            answer = post(alice, **{"url": HERE, "events": ["*"], name: value})
            page = answer.content.decode()
            assert answer.status_code == 400
            assert f'id="{field}-error"' in page
            assert len(re.findall('role="alert"', page)) == 1
            assert field == "url" or f'value="{HERE}"' in page  # what was typed stays
    assert not Subscription.objects.exists()


def test_one_too_many_is_refused(alice: Person, settings: Any) -> None:
    settings.WEBHOOKS_PER_OWNER = 1
    subscribed(alice.user)
    answer = post(alice, url=HERE, events=["*"])
    assert answer.status_code == 409
    assert "delete one first" in answer.content.decode()


def test_a_test_is_queued_and_listed(alice: Person) -> None:
    own = subscribed(alice.user, events="chat.event").subscription
    page = post(alice, f"/{own.pk}/test").content.decode()
    delivery = Delivery.objects.get()
    assert delivery.type == TEST
    assert page.count(delivery.event_id) >= 2
    assert "data-moving" in read(alice, f"/{own.pk}/deliveries")


def test_a_delivery_says_how_it_went(alice: Person, own: Subscription) -> None:
    happen(alice.user)
    Delivery.objects.update(
        status="failed", attempts=7, next_attempt_at=None, last_status=500, last_error="<b>refused</b>"
    )
    page = browser(alice.session).get(f"/webhooks/{own.pk}").content.decode()
    for words in ("failed", ">7<", "HTTP 500", "&lt;b&gt;refused", "given up"):
        assert words in page
    assert "data-moving" not in page


def test_a_failed_attempt_says_when_the_next_one_is(alice: Person, own: Subscription) -> None:
    happen(alice.user)
    (leased,) = lease_due()
    end_lease(leased, AttemptResult(is_success=False, status=500))
    page = read(alice, f"/{own.pk}")
    row = page.partition("data-event")[2].partition("</tr>")[0]
    next_at = Delivery.objects.get().next_attempt_at
    assert next_at is not None
    for words in ("pending", "HTTP 500", f'datetime="{next_at:%Y-%m-%dT%H:%M:%S}'):
        assert words in row
    assert "1 failure in a row." in page
    assert "data-moving" in page


def test_a_replay_starts_it_over(alice: Person, own: Subscription) -> None:
    happen(alice.user)
    delivery = Delivery.objects.get()
    Delivery.objects.update(status="delivered", delivered_at=db_now(), next_attempt_at=None, attempts=1)
    assert "sent again" in post(alice, f"/{own.pk}/replay", delivery=str(delivery.pk)).content.decode()
    delivery.refresh_from_db()
    assert (delivery.status, delivery.attempts) == ("pending", 0)
    lease_due()
    assert "being sent" in post(alice, f"/{own.pk}/replay", delivery=str(delivery.pk)).content.decode()


def test_a_delivery_that_is_not_there_is_not_found(alice: Person, bob: Person) -> None:
    own, others = subscribed(alice.user).subscription, subscribed(bob.user)
    happen(bob.user)
    theirs = Delivery.objects.get(subscription=others.subscription).pk
    for delivery in ("", "0", "x", "-1", "9" * 40, "\0", "١", str(theirs)):
        assert post(alice, f"/{own.pk}/replay", delivery=delivery).status_code == 404, delivery


def test_a_new_secret_is_shown_this_once(alice: Person) -> None:
    own = subscribed(alice.user)
    page = post(alice, f"/{own.subscription.pk}/roll-secret").content.decode()
    fresh = Subscription.objects.get()
    assert unseal_secret(fresh.secret) in html.unescape(page)
    assert unseal_secret(fresh.secret) != own.secret
    assert "also signs until" in page


def test_a_link_or_a_form_of_another_site_does_nothing(alice: Person, own: Subscription) -> None:
    client = browser(alice.session, enforce_csrf_checks=True)
    for verb in ("test", "edit", "pause", "resume", "roll-secret", "delete", "replay"):
        assert client.post(f"/webhooks/{own.pk}/{verb}").status_code == 403
        assert client.get(f"/webhooks/{own.pk}/{verb}").status_code == 405
    assert Subscription.objects.get().secret == own.secret


def test_a_webhook_is_changed_by_the_form_that_made_it(alice: Person) -> None:
    own = subscribed(alice.user, HERE, events="agent.reply of.the.future", routing_name="@proj").subscription
    page = read(alice, f"/{own.pk}")
    for box in ('value="agent.replied" checked', 'value="of.the.future" checked', 'value="@proj"'):
        assert box in page
    fields = {"url": HERE + "2", "events": ["chat.event", "of.the.future"], "routing_name": "", "session_id": ""}
    assert "Saved." in post(alice, f"/{own.pk}/edit", **fields).content.decode()
    own.refresh_from_db()
    assert (own.url, own.event_names, own.routing_name) == (HERE + "2", ["chat.event", "of.the.future"], "")
    refused = post(alice, f"/{own.pk}/edit", **fields | {"url": "http://x y/", "events": ["tail.event"]})
    page = refused.content.decode()
    assert refused.status_code == 400
    for words in ('id="url-error"', '<details class="panel" open>', 'value="tail.event" checked'):
        assert words in page
    own.refresh_from_db()
    assert own.url == HERE + "2"


def test_a_refused_address_names_the_setting(alice: Person, settings: Any) -> None:
    settings.WEBHOOK_ALLOW_PRIVATE = False
    page = post(alice, url=HERE, events=["*"]).content.decode()
    assert re.search(r'id="url-error" role="alert">127.0.0.1 is this machine[^<]* WEBHOOK_ALLOW_PRIVATE=1<', page)


def test_a_paused_webhook_waits_until_it_is_resumed(alice: Person, own: Subscription) -> None:
    happen(alice.user)
    page = post(alice, f"/{own.pk}/pause").content.decode()
    assert "Paused since" in page
    assert "data-moving" not in page
    assert "Send a test" not in page
    assert 'class="badge">paused' in read(alice)
    assert "Not sent: the webhook is paused" in post(alice, f"/{own.pk}/test").content.decode()
    delivery = str(Delivery.objects.get().pk)
    assert "resume it" in read(alice, f"/{own.pk}/deliveries/{delivery}")
    assert "is paused" in post(alice, f"/{own.pk}/replay", delivery=delivery).content.decode()
    assert (lease_due(), happen(alice.user)) == ([], 0)
    assert "Resumed" in post(alice, f"/{own.pk}/resume").content.decode()
    assert len(lease_due()) == 1


def test_deliveries_are_filtered_and_the_filter_stays(alice: Person, own: Subscription) -> None:
    for _ in range(pages.SHOWN + 1):
        happen(alice.user, type="agent.replied", payload={"handle": "alice/counter"})
    happen(alice.user)
    page = read(alice, f"/{own.pk}", agent="alice/counter", event="agent.replied", status="pending")
    assert "<code>chat.event" not in page.partition('id="deliveries"')[2].partition("</table>")[0]
    for chosen in ("<option selected>pending", "<option selected>agent.replied", 'value="alice/counter" selected'):
        assert chosen in page
    query = "status=pending&event=agent.replied&agent=alice%2Fcounter"
    assert f'data-address="/webhooks/{own.pk}/deliveries?{query}"' in page
    (older,) = re.findall(rf"\?({re.escape(query)}&before=\d+)", page)
    answer = browser(alice.session).get(f"/webhooks/{own.pk}?{older}").content.decode()
    assert len(re.findall("data-event", answer)) == 1
    assert "No delivery matches" in read(alice, f"/{own.pk}", status="failed", agent="\0")


def test_a_delivery_has_a_page_with_what_was_sent_and_answered(
    alice: Person, own: Subscription, bob: Person
) -> None:
    happen(alice.user, payload={"text": "<b>h\u00e4</b>" + "x" * 100_000})
    delivery = Delivery.objects.get()
    Delivery.objects.update(status="failed", next_attempt_at=None, last_status=500, last_response="<i>broken</i>")
    path = f"/webhooks/{own.pk}/deliveries/{delivery.pk}"
    page = browser(alice.session).get(path).content.decode()
    for words in ("HTTP 500", "&lt;i&gt;broken&lt;/i&gt;", "&lt;b&gt;h\u00e4&lt;/b&gt;", delivery.event_id):
        assert words in page
    assert len(page) < 60_000
    assert browser(bob.session).get(path).status_code == 404
    answer = post(alice, f"/{own.pk}/replay", delivery=str(delivery.pk), **{"from": "delivery"})
    assert answer.redirect_chain == [(path, 302)]
    assert "data-moving" in answer.content.decode()


def test_older_deliveries_are_a_page_on(alice: Person, own: Subscription) -> None:
    for _ in range(pages.SHOWN + 5):
        happen(alice.user)
    first = read(alice, f"/{own.pk}")
    (before,) = re.findall(r"\?before=(\d+)", first)
    second = read(alice, f"/{own.pk}", before=before)
    rows = [re.findall(r'data-event="([^"]+)"', page) for page in (first, second)]
    assert [len(some) for some in rows] == [pages.SHOWN, 5]
    assert len({*rows[0], *rows[1]}) == pages.SHOWN + 5


def test_the_recipes_are_those_of_the_howto(alice: Person, own: Subscription) -> None:
    assert "def is_ours" in verify_recipes()
    in_page = f"](/docs/receive-webhooks#{SECTION_ID}"
    assert in_page in verify_recipes()
    assert verify_recipes().replace(in_page, "](#") in HOWTO.read_text()
    page, howto = read(alice, f"/{own.pk}"), browser().get("/docs/receive-webhooks").content.decode()
    anchors = re.findall(r'href="/docs/receive-webhooks#([^"]+)"', page)
    assert anchors
    assert all(f'id="{anchor}"' in howto for anchor in anchors)
    assert "def is_ours(secret: str" in re.sub(r"<[^>]+>", "", page)  # code has marks
