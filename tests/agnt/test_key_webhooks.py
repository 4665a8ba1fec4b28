"""`/network/webhooks`: the webhooks that an AGNT key owns, and what the owner of its network sees of them."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from accounts.models import Credential
from agnt.models import ApiKey, KeyUsage
from agnt.service.keys import MintedKey, revoke_key
from lab.callers import bearer
from lab.frames import Json
from lab.hub_process import HubProcess
from lab.receivers import receiving
from tests.agnt.network_rows import count_calls, make_key
from tests.agnt.wire import add_venue, envelope, mint, new_login, program, result_of
from tests.native.rows import Person, api, browser
from tests.webhooks import conftest as webhooks_conftest
from tests.webhooks.subscriptions import check_signed, subscribed
from webhooks.models import Delivery, Subscription
from webhooks.service.sending import unseal_secret

HOOKS = "/network/webhooks"
OF_OWNER = "/api/v1/webhooks"
HERE = "http://127.0.0.1:9/hook"
_own_network = webhooks_conftest._own_network


@pytest.fixture
def key(alice: Person) -> MintedKey:
    """A key of alice's network that may book."""
    return make_key(alice.user, "the guide", tier="pro", scope="booking")


def add(key: MintedKey, **body: Any) -> Any:
    return api(key.token).post(HOOKS, {"url": HERE, "events": ["*"], **body}, format="json")


def added(key: MintedKey, **body: Any) -> Json:
    answer = add(key, **body)
    assert answer.status_code == 201, answer.content
    return dict(answer.json())


def test_a_key_makes_its_webhook_and_reads_the_secret_once(alice: Person, key: MintedKey) -> None:
    answer = add(key, events=["booking.cancelled", "booking.no_show"])
    made = answer.json()
    assert (answer.status_code, answer["Cache-Control"]) == (201, "no-store")
    assert made["events"] == ["booking.cancelled", "booking.no_show"]
    assert (made["filters"], made["paused"]) == ({}, False)
    assert (made["keyId"], made["keyName"]) == (str(key.key.public_id), "the guide")
    row = Subscription.objects.get()
    assert (row.owner, row.credential_id) == (alice.user, key.key.credential_id)
    assert unseal_secret(row.secret) == made.pop("signingSecret")
    client = api(key.token)
    assert client.get(f"{HOOKS}/{made['id']}").json() == made
    assert client.get(HOOKS).json() == {"items": [made], "total": 1}


def test_a_key_changes_tries_and_deletes_its_webhook(key: MintedKey) -> None:
    one, client = f"{HOOKS}/{added(key)['id']}", api(key.token)
    changed = client.patch(one, {"url": HERE + "2", "events": ["booking.confirmed"]}, format="json").json()
    assert (changed["url"], changed["events"]) == (HERE + "2", ["booking.confirmed"])
    before = Subscription.objects.get().secret
    rolled = client.post(f"{one}/roll-secret")
    assert rolled["Cache-Control"] == "no-store"
    assert unseal_secret(Subscription.objects.get().secret) == rolled.json()["signingSecret"]
    assert Subscription.objects.get().previous_secret == before
    queued = client.post(f"{one}/test")
    assert (queued.status_code, queued.json()) == (202, {"eventId": Delivery.objects.get().event_id})
    assert client.patch(one, {"paused": True}, format="json").json()["paused"] is True
    assert client.post(f"{one}/test").status_code == 409
    assert client.delete(one).status_code == 204
    assert not Subscription.objects.exists()


WRONG: tuple[Json, ...] = (
    *({"events": events} for events in (["chat.event"], ["booking.*"], ["*", "agent.replied"], [], "*", None)),
    *({"filters": filters} for filters in ({}, None, {"routingName": "@x"})),
    *({"url": url} for url in ("", "ftp://x.example/", None)),
    *({"credential": 1}, {"keyId": "x"}),
)


def test_a_key_hears_of_bookings_alone(key: MintedKey, subtests: pytest.Subtests) -> None:
    one = f"{HOOKS}/{added(key)['id']}"
    for body in WRONG:
        with subtests.test(body=body):
            for answer in (add(key, **body), api(key.token).patch(one, body, format="json")):
                assert (answer.status_code, answer.json()["error"]) == (400, "validation_failed")
                assert next(iter(body)) in answer.json()["message"]
    assert Subscription.objects.get().events == "*"


def refusals(alice: Person, key: MintedKey) -> dict[str, Any]:
    """Clients without a live key, by what they come with."""
    revoked, expired = make_key(alice.user, scope="full"), make_key(alice.user, scope="full")
    revoke_key(revoked.key)
    over = timezone.now() - timedelta(seconds=1)
    Credential.objects.filter(pk=expired.key.credential_id).update(expires_at=over)
    by_scheme, by_header, by_cookie = api(None), api(None), api(None)
    by_scheme.credentials(HTTP_AUTHORIZATION=f"Basic {key.token}")
    by_header.credentials(HTTP_X_API_KEY=key.token)
    by_cookie.cookies["cw_session"] = alice.session
    tokens = {"session": alice.session, "app": alice.app, "channel": alice.channel, "empty": ""}
    tokens |= {"revoked": revoked.token, "expired": expired.token, "unknown": "agnt_live_" + "0" * 32}
    clients = {name: api(token) for name, token in tokens.items()}
    return clients | {"none": api(None), "scheme": by_scheme, "header": by_header, "cookie": by_cookie}


def test_without_a_live_key_it_is_one_401(alice: Person, key: MintedKey, subtests: pytest.Subtests) -> None:
    one = f"{HOOKS}/{added(key)['id']}"
    calls = [("get", HOOKS), ("post", HOOKS), ("get", one), ("patch", one), ("delete", one)]
    calls += [("post", f"{one}/test"), ("post", f"{one}/roll-secret")]
    for name, client in refusals(alice, key).items():
        for method, path in calls:
            with subtests.test(credential=name, method=method, path=path):
                if name == "cookie" and method != "get":
                    client.credentials(HTTP_SEC_FETCH_SITE="same-origin")
                answer = getattr(client, method)(path, {}, format="json" if method != "get" else None)
                assert answer.status_code == 401
                said = "want a live AGNT key as Bearer token"
                assert answer.json() == {"error": "unauthorized", "message": said}
                assert (answer["WWW-Authenticate"], answer["X-A2A-Error"]) == ("Bearer", "unauthorized")
    alice.user.is_active = False
    alice.user.save()
    assert api(key.token).get(HOOKS).status_code == 401
    assert Subscription.objects.count() == 1


def test_webhooks_of_others_are_as_absent_as_those_that_are_not(
    alice: Person, bob: Person, key: MintedKey
) -> None:
    others = [added(make_key(alice.user, scope="full"))["id"], added(make_key(bob.user, scope="full"))["id"]]
    others.append(subscribed(alice.user).subscription.pk)
    client = api(key.token)
    assert client.get(HOOKS).json() == {"items": [], "total": 0}
    for webhook_id in (*others, 999_999, 10**30):
        one = f"{HOOKS}/{webhook_id}"
        answers = [client.get(one), client.patch(one, {"paused": True}, format="json"), client.delete(one)]
        answers += [client.post(f"{one}/{call}") for call in ("test", "roll-secret")]
        for answer in answers:
            assert (answer.status_code, answer.json()["message"]) == (404, "no such webhook")
    assert Subscription.objects.filter(paused_at=None).count() == 3


def test_a_key_that_may_not_book_has_no_webhooks(alice: Person) -> None:
    answer = add(make_key(alice.user, tier="pro", scope="query"))
    assert (answer.status_code, answer.json()["error"]) == (403, "scope_denied")
    assert answer["X-A2A-Error"] == "scope_denied"
    assert add(make_key(alice.user, tier="free", scope="full")).status_code == 201


def test_each_key_may_have_ten_beside_those_of_its_owner(alice: Person, key: MintedKey, settings: Any) -> None:
    settings.WEBHOOKS_PER_OWNER = 1
    for _ in range(10):
        added(key)
    answer = add(key)
    assert (answer.status_code, answer.json()["message"]) == (409, "this key has 10 webhooks already")
    assert add(make_key(alice.user, scope="full")).status_code == 201
    subscribed(alice.user)
    assert api(alice.session).post(OF_OWNER, {"url": HERE, "events": ["*"]}, format="json").status_code == 409


def test_calls_count_for_the_day_of_the_key(alice: Person) -> None:
    key = make_key(alice.user, tier="free", scope="full")
    count_calls(key.key, 98)
    client = api(key.token)
    assert client.get(HOOKS)["X-RateLimit-Remaining"] == "1"
    failed = client.get(f"{HOOKS}/1")
    assert (failed.status_code, failed["X-RateLimit-Remaining"]) == (404, "0")
    over = client.get(HOOKS)
    assert (over.status_code, over.json()["error"], over["X-RateLimit-Remaining"]) == (429, "rate_limited", "0")
    assert 0 < int(over["Retry-After"]) <= 86_400
    assert KeyUsage.objects.get().calls == 101
    assert Credential.objects.get(pk=key.key.credential_id).last_used_at is not None


def test_a_key_that_others_could_read_is_refused(key: MintedKey, settings: Any) -> None:
    for query in (f"?key={key.token}", f"?x={key.token}"):
        answer = api(key.token).get(HOOKS + query)
        assert (answer.status_code, answer.json()["error"]) == (400, "invalid_envelope")
    settings.IS_HTTPS = True
    answer = api(key.token).get(HOOKS)
    assert (answer.status_code, answer.json()["error"]) == (403, "tls_required")
    assert api(key.token).get(HOOKS, secure=True).status_code == 200


def test_the_owner_sees_pauses_and_deletes_a_webhook_of_a_key(alice: Person, key: MintedKey) -> None:
    made = added(key)
    secret = made.pop("signingSecret")
    one, client = f"{OF_OWNER}/{made['id']}", api(alice.session)
    mine = subscribed(alice.user).subscription
    listed = client.get(OF_OWNER).json()["items"]
    assert [(row["id"], row["keyId"], row["keyName"]) for row in listed] == [
        (mine.pk, None, None),
        (made["id"], str(key.key.public_id), "the guide"),
    ]
    assert client.get(one).json() == made
    assert client.patch(one, {"paused": True}, format="json").json()["paused"] is True
    assert client.patch(one, {"paused": False}, format="json").json()["paused"] is False
    changes = [
        client.patch(one, body, format="json") for body in ({"url": HERE}, {"paused": True, "events": ["*"]})
    ]
    for refused in (*changes, client.post(f"{one}/test"), client.post(f"{one}/roll-secret")):
        assert (refused.status_code, refused.json()["error"]) == (403, "forbidden")
        assert secret not in refused.content.decode()
    row = Subscription.objects.get(pk=made["id"])
    assert (row.paused_at, unseal_secret(row.secret)) == (None, secret)
    assert client.get(f"{one}/deliveries").json()["total"] == 0
    assert client.delete(one).status_code == 204
    assert Subscription.objects.get() == mine


def test_the_pages_of_the_owner_show_a_webhook_of_a_key(alice: Person, bob: Person, key: MintedKey) -> None:
    made = added(key)
    visitor = browser(alice.session)
    assert "Of the API key the guide" in visitor.get("/webhooks").content.decode()
    assert "the guide" in visitor.get("/admin/webhooks/subscription/").content.decode()
    assert "the guide" not in browser(bob.session).get("/webhooks").content.decode()
    one = f"/webhooks/{made['id']}"
    page = visitor.get(one).content.decode()
    assert "of the API key the guide" in page
    offered = [
        action for action in ("test", "pause", "edit", "roll-secret", "delete") if f'"{one}/{action}"' in page
    ]
    assert offered == ["pause", "delete"]
    for action in ("test", "edit", "roll-secret"):
        assert visitor.post(f"{one}/{action}", {"url": HERE, "events": ["*"]}).status_code == 403
    revoke_key(key.key)
    assert "key ended" in visitor.get(one).content.decode()
    assert visitor.post(f"{one}/pause").status_code == 302
    assert Subscription.objects.get().paused_at is not None
    assert visitor.post(f"{one}/delete").status_code == 302
    assert not Subscription.objects.exists()


def test_many_webhooks_of_keys_leave_the_list_short(alice: Person) -> None:
    keys = [make_key(alice.user, f"key {number}", scope="full") for number in range(11)]
    rows = [
        Subscription(owner=alice.user, credential=one.key.credential, url=HERE, events="*", secret="x")
        for one in keys
        for _ in range(10)
    ]
    subscribed(alice.user, "https://mine.example/")
    Subscription.objects.bulk_create(rows)
    page = browser(alice.session).get("/webhooks").content.decode()
    assert page.count("Of the API key") == 100
    assert "mine.example" in page
    assert "the newest 100 are shown" in page


async def test_a_program_is_told_of_its_booking_once(private_hub: HubProcess) -> None:
    login = new_login()
    asking = program(private_hub, mint(private_hub, login))
    add_venue(private_hub, login, "cafe")
    with receiving() as receiver:
        body = {"url": receiver.url, "events": ["booking.confirmed"]}
        answer = await asking.client.post(HOOKS, json=body, headers=bearer(asking.key.token))
        assert answer.status_code == 201, answer.text
        made = answer.json()
        sent = envelope("booking.confirm", {"venue_id": "cafe"})
        booked, again = await asking.post(sent), await asking.post(sent)
        assert again.headers["idempotent-replay"] == "true"
        tried = await asking.client.post(f"{HOOKS}/{made['id']}/test", headers=bearer(asking.key.token))
        await asyncio.to_thread(receiver.heard, 2)
    await asking.client.aclose()
    told = {body["type"]: body for body in (check_signed(one, made["signingSecret"]) for one in receiver.received)}
    assert told["booking.confirmed"]["data"]["booking_id"] == result_of(booked)["booking_id"]
    assert told["webhook.test"]["eventId"] == tried.json()["eventId"]
    assert len(receiver.received) == 2


def test_deleting_a_key_takes_its_webhooks_along(key: MintedKey) -> None:
    one = added(key)["id"]
    api(key.token).post(f"{HOOKS}/{one}/test")
    Credential.objects.filter(pk=key.key.credential_id).delete()
    assert (ApiKey.objects.count(), Subscription.objects.count(), Delivery.objects.count()) == (0, 0, 0)
