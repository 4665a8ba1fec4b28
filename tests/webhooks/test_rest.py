"""Webhooks over REST."""

import json
from typing import Any

import pytest

from kit.clock import iso
from lab.receivers import receiving
from tests.native.rows import Person, api
from tests.webhooks.subscriptions import NOWHERE, deliver, happen, lease_due, only_delivery, subscribed
from webhooks.models import Delivery, Subscription
from webhooks.service.sending import unseal_secret
from webhooks.service.subscriptions import revise
from webhooks.wire import CATALOG

pytestmark = pytest.mark.django_db
WEBHOOKS = "/api/v1/webhooks"
FIELDS = {
    *("id", "url", "events", "filters", "status", "paused", "consecutiveFailures"),
    *("createdAt", "lastDeliveryAt", "previousSecretUntil", "keyId", "keyName"),
}
HERE = "http://127.0.0.1:9/hook"
DESK = "6f1c2b1e-8f0a-4d4c-9a43-6a3f0c3b1d11"


def add(person: Person, **body: Any) -> Any:
    text = json.dumps({"url": HERE, "events": ["*"], **body})  # the client's own cannot send half a character
    return api(person.session).post(WEBHOOKS, text, content_type="application/json")


@pytest.fixture
def made(alice: Person) -> Any:
    """A webhook for all events."""
    return add(alice).json()


def test_one_subscribes_as_the_command_line_does(alice: Person) -> None:
    body = {"events": ["chat.event", "agent.reply"], "filters": {"routingName": "@proj"}}
    answer = add(alice, **body)
    made = answer.json()
    assert (answer.status_code, set(made)) == (201, FIELDS | {"signingSecret"})
    assert answer["Cache-Control"] == "no-store"
    assert isinstance(made["id"], int)
    assert (made["url"], made["events"], made["filters"]) == (HERE, body["events"], body["filters"])
    assert (made["status"], made["lastDeliveryAt"], made["previousSecretUntil"]) == ("active", None, None)
    assert unseal_secret(Subscription.objects.get().secret) == made["signingSecret"]
    client = api(alice.session)
    for shown in (client.get(f"{WEBHOOKS}/{made['id']}"), client.get(WEBHOOKS)):
        assert made["signingSecret"] not in shown.content.decode()
    made.pop("signingSecret")
    assert client.get(f"{WEBHOOKS}/{made['id']}").json() == made


def test_filters_are_an_object_even_when_empty(alice: Person) -> None:
    for filters in (None, {}, {"sessionId": None}, {"routingName": None}):
        assert add(alice, filters=filters).json()["filters"] == {}
    refused = add(alice, filters={"other": 1})
    assert (refused.status_code, refused.json()["message"]) == (400, "filters.other: there is no such field")


def test_filters_and_names_are_stored_as_events_carry_them_also_names_of_no_catalog(alice: Person) -> None:
    filters = {"sessionId": DESK.upper(), "routingName": "proj"}
    made = add(alice, filters=filters, events=["of.the.future", "of.the.future", "*"]).json()
    assert made["filters"] == {"sessionId": DESK, "routingName": "@proj"}
    assert made["events"] == ["of.the.future", "*"]


REFUSED: list[dict[str, Any]] = [
    *({"url": url} for url in ("", "nonsense", "ftp://x.example/", 7, None, [], "https://\0/", "https://\ud800/")),
    {"url": "https://[::ffff:0x7f.1]/x"},
    *({"url": url} for url in ("http://user:word@127.0.0.1/", "https://" + "a" * 3000 + ".example/")),
    *({"events": events} for events in ([], "", "*", None, {}, [""], [" "], ["a b"], ["a" * 65], ["x\0"])),
    *({"events": events} for events in ([["*"]], [None], ["\ud800"], [f"e{n}" for n in range(51)], 2**70)),
    *({"filters": filters} for filters in ([], "x", 3, {"sessionId": "x"}, {"sessionId": 2**200})),
    *({"filters": filters} for filters in ({"routingName": "@" + "a" * 100}, {"routingName": "\0"}, True)),
]


def test_what_is_wrong_is_said_and_nothing_is_stored(alice: Person, subtests: pytest.Subtests) -> None:
    for body in REFUSED:
        with subtests.test(body=body):
            answer = add(alice, **body)
            assert (answer.status_code, answer.json()["error"]) == (400, "validation_failed")
            assert next(iter(body)) in answer.json()["message"]
    assert not Subscription.objects.exists()


def test_an_address_to_which_nothing_would_be_sent_is_refused_at_once(
    alice: Person, settings: Any, subtests: pytest.Subtests
) -> None:
    settings.WEBHOOK_ALLOW_PRIVATE = False
    inside = ["http://127.0.0.1:9/", "https://10.0.0.5/x", "https://[::1]/", "http://localhost:9/", NOWHERE]
    for url in (*inside, "https://8.8.8.8:22/", "http://hooks.example/"):
        with subtests.test(url=url):
            answer = add(alice, url=url)
            assert (answer.status_code, answer.json()["error"]) == (400, "validation_failed")
            assert answer.json()["message"].startswith("url: ")
            assert ("WEBHOOK_ALLOW_PRIVATE=1" in answer.json()["message"]) == (url in inside)
    assert add(alice, url="https://8.8.8.8/").status_code == 201


def test_one_may_have_so_many(alice: Person, bob: Person, settings: Any) -> None:
    settings.WEBHOOKS_PER_OWNER = 3
    for _ in range(settings.WEBHOOKS_PER_OWNER):
        subscribed(alice.user)
    answer = add(alice)
    assert (answer.status_code, answer.json()["error"]) == (409, "conflict")
    assert add(bob).status_code == 201


def test_the_list_is_ones_own_newest_first_in_pages(alice: Person, bob: Person) -> None:
    first, second = (add(alice).json()["id"] for _ in range(2))
    add(bob)
    listed = api(alice.app).get(WEBHOOKS).json()
    assert ([one["id"] for one in listed["items"]], listed["total"]) == ([second, first], 2)
    page = api(alice.app).get(f"{WEBHOOKS}?limit=1&offset=1").json()
    assert [one["id"] for one in page["items"]] == [first]


def test_the_catalog_names_everything(alice: Person) -> None:
    items = api(alice.session).get(f"{WEBHOOKS}/events").json()["items"]
    assert [one["type"] for one in items] == [row.type for row in CATALOG]
    assert all(one["fires"] and one["payload"] for one in items)


def test_it_can_be_changed_in_part(alice: Person) -> None:
    made = add(alice, filters={"routingName": "@proj"}).json()
    change = api(alice.session).patch
    one = f"{WEBHOOKS}/{made['id']}"
    assert change(one, {"events": ["chat.event"]}, format="json").json()["events"] == ["chat.event"]
    assert change(one, {"url": HERE + "2"}, format="json").json()["url"] == HERE + "2"
    assert change(one, {}, format="json").json()["filters"] == {"routingName": "@proj"}
    changed = change(one, {"filters": {}}, format="json").json()
    assert (changed["filters"], changed["url"], changed["events"]) == ({}, HERE + "2", ["chat.event"])
    assert change(one, {"url": "x"}, format="json").status_code == 400


def test_deleting_takes_the_deliveries_along(alice: Person, made: Any) -> None:
    happen(alice.user)
    client = api(alice.session)
    assert client.delete(f"{WEBHOOKS}/{made['id']}").status_code == 204
    assert client.delete(f"{WEBHOOKS}/{made['id']}").status_code == 404
    assert not Delivery.objects.exists()


def test_a_test_is_queued_without_a_body(alice: Person) -> None:
    made = add(alice, events=["agent.denied"]).json()
    answer = api(alice.session).post(f"{WEBHOOKS}/{made['id']}/test")
    assert answer.status_code == 202
    one = only_delivery()
    assert (answer.json(), one.type) == ({"eventId": one.event_id}, "webhook.test")


def test_rolling_shows_the_new_secret_once(alice: Person, made: Any) -> None:
    answer = api(alice.session).post(f"{WEBHOOKS}/{made['id']}/roll-secret")
    rolled = answer.json()
    assert (answer.status_code, answer["Cache-Control"]) == (200, "no-store")
    assert set(rolled) == FIELDS | {"signingSecret"}
    assert rolled["signingSecret"] != made["signingSecret"]
    assert rolled["previousSecretUntil"] is not None


def test_deliveries_are_listed_newest_first(alice: Person, made: Any) -> None:
    happen(alice.user)
    happen(alice.user, type="tail.event")
    listed = api(alice.session).get(f"{WEBHOOKS}/{made['id']}/deliveries?limit=1").json()
    row = Delivery.objects.order_by("-pk")[0]
    assert listed == {
        "items": [
            {
                "id": row.pk,
                "eventId": row.event_id,
                "type": "tail.event",
                "agentHandle": None,
                "status": "pending",
                "attempts": 0,
                "queuedAt": iso(row.queued_at),
                "nextAttemptAt": iso(row.queued_at),
                "deliveredAt": None,
                "lastStatus": None,
                "lastError": None,
            }
        ],
        "total": 2,
    }


def test_deliveries_are_listed_by_status_event_and_agent(alice: Person, made: Any) -> None:
    happen(alice.user)
    Delivery.objects.update(status="failed", next_attempt_at=None)
    happen(alice.user, type="agent.replied", payload={"handle": "alice/Counter", "reply": "3"})

    def listed(query: str) -> list[str]:
        answer = api(alice.session).get(f"{WEBHOOKS}/{made['id']}/deliveries?{query}")
        assert answer.status_code == 200, answer.content
        return [one["type"] for one in answer.json()["items"]]

    assert listed("status=failed") == listed("type=chat.event") == ["chat.event"]
    assert listed("agent=@ALICE/counter") == listed("agent=alice/Counter&status=pending") == ["agent.replied"]
    assert listed("agent=bob/counter") == listed("status=failed&type=agent.replied") == []
    for wrong in ("status=lost", "type=a%00b"):
        refused = api(alice.session).get(f"{WEBHOOKS}/{made['id']}/deliveries?{wrong}")
        assert refused.status_code == 400
        assert refused.json()["message"].startswith(wrong.partition("=")[0])


def test_a_delivery_shows_what_was_sent_and_answered(alice: Person, bob: Person) -> None:
    with receiving(lambda _: 418) as receiver:
        receiver.answer_body = b"no \0 caf\xe9 " + b"x" * 5_000
        made = add(alice, url=receiver.url).json()
        happen(alice.user, payload={"handle": "alice/counter", "question": "h\u00e4?"})
        deliver()
        sent = json.loads(receiver.received[0].body)
    address = f"{WEBHOOKS}/{made['id']}/deliveries/{only_delivery().pk}"
    shown = api(alice.session).get(address).json()
    assert (shown["payload"], shown["agentHandle"], shown["lastStatus"]) == (sent["payload"], "alice/counter", 418)
    assert shown["lastResponse"] == "no \ufffd caf\ufffd " + "x" * (1024 - 10)
    assert api(bob.session).get(address).status_code == 404
    others = f"{WEBHOOKS}/{add(alice).json()['id']}/deliveries/{only_delivery().pk}"
    assert api(alice.session).get(others).status_code == 404  # of another webhook


def test_a_change_of_a_webhook_that_is_deleted_meanwhile_changes_nothing(alice: Person, made: Any) -> None:
    """Looking at the URL takes seconds, in which its owner may delete it."""
    own = Subscription.objects.get(pk=made["id"])
    api(alice.session).delete(f"{WEBHOOKS}/{own.pk}")
    assert not revise(own, {"url": HERE})
    assert not Subscription.objects.exists()


def test_a_pause_is_kept_as_it_began(alice: Person) -> None:
    path = f"{WEBHOOKS}/{add(alice, paused=True).json()['id']}"
    began = Subscription.objects.get().paused_at
    api(alice.session).patch(path, {"paused": True}, format="json")
    assert Subscription.objects.get().paused_at == began


def test_while_it_is_paused_nothing_is_queued_or_sent(alice: Person) -> None:
    with receiving() as receiver:
        made = add(alice, url=receiver.url).json()
        happen(alice.user)
        one = f"{WEBHOOKS}/{made['id']}"
        client = api(alice.session)
        paused = client.patch(one, {"paused": True}, format="json").json()
        assert (paused["paused"], paused["events"], paused["status"]) == (True, ["*"], "active")
        assert (happen(alice.user), deliver()) == (0, 0)
        for path in ("test", f"deliveries/{only_delivery().pk}/replay"):
            refused = client.post(f"{one}/{path}")
            assert refused.status_code == 409
            assert refused.json()["message"] == "the webhook is paused: resume it first"
        assert client.patch(one, {"paused": False}, format="json").json()["paused"] is False
        assert (happen(alice.user), deliver()) == (1, 2)
        assert len(receiver.received) == 2


def test_a_delivery_is_sent_again_but_not_while_it_is_being_sent(alice: Person, made: Any) -> None:
    happen(alice.user)
    one = only_delivery()
    replay = f"{WEBHOOKS}/{made['id']}/deliveries/{one.pk}/replay"
    lease_due()
    answer = api(alice.session).post(replay)
    assert (answer.status_code, answer.json()["error"]) == (409, "conflict")
    Delivery.objects.update(status="failed", next_attempt_at=None, attempts=7)
    answer = api(alice.session).post(replay)
    assert (answer.status_code, answer.json()) == (202, {"eventId": one.event_id})
    assert (only_delivery().status, only_delivery().attempts) == ("pending", 0)


def test_a_delivery_of_another_webhook_is_absent(alice: Person) -> None:
    first = add(alice).json()
    happen(alice.user)
    second = add(alice).json()
    delivery = Delivery.objects.get(subscription=first["id"])
    for path in (f"{second['id']}/deliveries/{delivery.pk}", f"{first['id']}/deliveries/{10**30}"):
        assert api(alice.session).post(f"{WEBHOOKS}/{path}/replay").status_code == 404
