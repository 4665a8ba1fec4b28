"""The view of the staff on the whole hub, over REST."""

import uuid
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from accounts.models import Credential, User
from agents.api.admin_figures import EVENTS
from agents.models import Blob, Event, File, OpMessage, PermissionRequest, Session, Share
from tests.native.rows import Person, api, connect, make_agent, make_session, make_turn, names, person
from webhooks.models import Delivery, Subscription

ADMIN = "/api/v1/admin"
SOMEWHERE = uuid.UUID(int=7)
LISTS = ["stats/users/active", "sessions", "shares", "agents", "tokens", "users"]
DAY = timedelta(days=1)


def get(person: Person, path: str) -> Any:
    answer = api(person.session).get(f"{ADMIN}/{path}")
    assert answer.status_code == 200, answer.content
    return answer.json()


def make_events(session: Session, *ages: timedelta, payload: str = "{}") -> list[Event]:
    """One event of each age, oldest first, as the hub would have written them."""
    now = timezone.now()
    return [
        Event.objects.create(session=session, kind="chat", type="reply", payload=payload, ts=now - age)
        for age in sorted(ages, reverse=True)
    ]


def make_permission(session: Session, request_id: str, *, decided: bool = False, **fields: Any) -> None:
    now = timezone.now()
    if decided:
        fields |= {"status": "allowed", "resolved_at": now}
    made = {"requested_at": now, "expires_at": now + timedelta(minutes=10), "tool": "Bash", **fields}
    PermissionRequest.objects.create(session=session, request_id=request_id, **made)


def make_delivery(hook: Subscription, status: str, **fields: Any) -> None:
    made = {"queued_at": timezone.now(), "next_attempt_at": timezone.now(), "type": "chat.event", "payload": "{}"}
    Delivery.objects.create(subscription=hook, status=status, event_id=uuid.uuid4().hex, **(made | fields))


def test_a_query_that_makes_no_sense_is_a_400(staff: Person) -> None:
    for path, query in [
        *((path, "limit=0") for path in LISTS),
        (f"sessions/{SOMEWHERE}/timeline", "limit=0"),
        ("sessions", "q=%00"),
        ("sessions", "offset=-1"),
        ("sessions", "offset=99999999999999999999"),
        ("users", "limit=1e9"),
        ("tokens", "active=perhaps"),
        ("tokens", "kind=session"),
        ("stats/timeseries/events.total", "window=1y"),
    ]:
        answer = api(staff.session).get(f"{ADMIN}/{path}?{query}")
        assert (answer.status_code, answer.json()["error"]) == (400, "validation_failed"), (path, query)


@pytest.mark.parametrize(
    ("path", "message"),
    [
        (f"sessions/{uuid.UUID(int=9)}", "no such session"),
        (f"sessions/{uuid.UUID(int=9)}/timeline", "no such session"),
        *((f"stats/timeseries/{metric}", "") for metric in ("events.none", "%00", "x" * 3000)),
    ],
    ids=["session", "timeline", "metric", "nul", "long"],
)
def test_what_is_not_there_is_a_404(staff: Person, path: str, message: str) -> None:
    answer = api(staff.session).get(f"{ADMIN}/{path}")
    assert (answer.status_code, answer.json()["error"]) == (404, "not_found")
    assert message in answer.json()["message"]


def test_the_overview_of_an_empty_hub_is_all_zeros_but_for_its_staff(staff: Person) -> None:
    body = get(staff, "stats/overview")
    assert body.pop("generatedAt").endswith("Z")
    assert body == {
        "users": {"total": 1, "last7d": 1, "last30d": 1},
        "sessions": {"totalEver": 0, "currentlyConnected": 0, "startedLast24h": 0},
        "events": {"last24h": 0, "last7d": 0},
        "permissionRequests": {"pending": 0, "resolvedLast24h": 0},
        "agentDispatches": {"last24h": 0, "last7d": 0, "topAgents": []},
        "fileUploads": {"last7d": 0, "bytesStored": 0},
        "webhookDeliveries": {"last24h": 0, "succeededLast24h": 0, "failedLast24h": 0},
        "opMessages": {"last7d": 0},
    }


def test_the_overview_counts_each_window(alice: Person, bob: Person, staff: Person) -> None:
    now = timezone.now()
    old = make_session(alice.user, "old", started_at=now - 2 * DAY, archived_at=now)
    agent, other = make_agent(alice.user), make_agent(bob.user)
    User.objects.filter(pk=alice.user.pk).update(created_at=now - 8 * DAY)
    connect(agent.session)
    connect(other.session, beat_at=now - timedelta(minutes=1))
    make_events(old, 8 * DAY, 2 * DAY, timedelta(0))
    make_permission(old, "a", decided=True, requested_at=now - 3 * DAY, resolved_at=now - 3 * DAY)
    make_permission(old, "b", decided=True)
    make_permission(old, "c")
    for age, outcome in ((8, "completed"), (2, "failed"), (0, None)):
        make_turn(agent, bob.user, outcome, asked_at=now - age * DAY)
    make_turn(other, bob.user, "denied")
    blob = Blob.objects.create(sha256="0" * 64, size=5, data=b"12345")
    named = {"session": old, "uploader": alice.user, "blob": blob, "filename": "a", "mime": "text/plain"}
    for _ in range(2):
        File.objects.create(sha256=blob.sha256, size=blob.size, expires_at=now, **named)
    OpMessage.objects.create(session=old, author=alice.user, text="hi")
    hook = Subscription.objects.create(owner=alice.user, url="https://hook.example/")
    for status, age in (("failed", 2), ("delivered", 0), ("delivered", 0), ("failed", 0), ("pending", 0)):
        make_delivery(hook, status, queued_at=now - age * DAY)
    body = get(staff, "stats/overview")
    assert body["users"] == {"total": 3, "last7d": 2, "last30d": 3}
    assert body["sessions"] == {"totalEver": 3, "currentlyConnected": 1, "startedLast24h": 2}
    assert body["events"] == {"last24h": 1, "last7d": 2}
    assert body["permissionRequests"] == {"pending": 1, "resolvedLast24h": 1}
    assert body["agentDispatches"] == {
        "last24h": 1,
        "last7d": 2,
        "topAgents": [{"handle": "alice/helper", "count": 2}],
    }
    assert body["fileUploads"] == {"last7d": 2, "bytesStored": 5}
    assert body["webhookDeliveries"] == {"last24h": 4, "succeededLast24h": 2, "failedLast24h": 1}
    assert body["opMessages"] == {"last7d": 1}


def test_rows_somewhat_out_of_order_are_not_missed(alice: Person, subtests: pytest.Subtests) -> None:
    session, now = make_session(alice.user), timezone.now()
    for minutes in (300, 100, 170, 40, 90, 5, 65):
        Event.objects.create(
            session=session, kind="tail", type="Stop", payload="{}", ts=now - timedelta(minutes=minutes)
        )
    for minutes, count in ((400, 7), (200, 6), (80, 3), (60, 2), (20, 1), (1, 0)):
        with subtests.test(minutes=minutes):
            found = EVENTS.since(now - timedelta(minutes=minutes))
            assert found.count() == count


METRICS = ["users.signups", "sessions.created", "events.total", "agent.dispatches", "webhook.deliveries"]


def test_a_timeseries_has_a_point_for_every_bucket(alice: Person, staff: Person) -> None:
    agent, now = make_agent(alice.user), timezone.now()
    make_turn(agent, alice.user)
    make_turn(agent, alice.user, "denied")
    make_events(agent.session, timedelta(0))
    make_delivery(Subscription.objects.create(owner=alice.user, url="https://hook.example/"), "pending")
    User.objects.filter(pk=staff.user.pk).update(created_at=now - 60 * DAY)
    for metric in METRICS:
        for window, bucket, count in [("24h", "hour", 24), ("7d", "day", 7), ("30d", "day", 30)]:
            body = get(staff, f"stats/timeseries/{metric}?window={window}")
            points = body.pop("points")
            assert body.pop("generatedAt"), (metric, window)
            assert body == {"metric": metric, "window": window, "bucket": bucket}, (metric, window)
            starts = [datetime.fromisoformat(point["ts"]) for point in points]
            step = timedelta(hours=1) if bucket == "hour" else DAY
            assert len(starts) == count, (metric, window)
            assert {later - earlier for earlier, later in pairwise(starts)} == {step}, (metric, window)
            assert all(start.tzinfo == UTC and start.minute == 0 for start in starts), (metric, window)
            assert starts[-1] <= timezone.now() < starts[-1] + 2 * step, (metric, window)
            assert sum(point["count"] for point in points) == 1, (metric, window)


def test_a_timeseries_puts_each_row_into_its_bucket(alice: Person, staff: Person) -> None:
    now = timezone.now()
    today = now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    days = [today - 3 * DAY, today - 2 * DAY, today - 2 * DAY + timedelta(hours=23, minutes=59), today - 8 * DAY]
    make_events(make_session(alice.user), *(now - day for day in days))
    points = get(staff, "stats/timeseries/events.total?window=7d")["points"]
    assert [point["count"] for point in points] == [0, 0, 0, 1, 2, 0, 0]


def test_the_most_active_users_come_first(alice: Person, bob: Person, staff: Person) -> None:
    hers, his = make_session(alice.user), make_session(bob.user)
    make_session(bob.user, "another")
    make_events(hers, 9 * DAY, *[8 * DAY] * 5, DAY)
    make_events(his, DAY, timedelta(0))
    body = get(staff, "stats/users/active")
    assert body == {
        "users": [
            {"userId": bob.user.pk, "githubLogin": "bob", "sessionCount": 2, "eventsLast7d": 2},
            {"userId": alice.user.pk, "githubLogin": "alice", "sessionCount": 1, "eventsLast7d": 1},
        ],
        "limit": 10,
    }
    assert names(get(staff, "stats/users/active?limit=1")["users"], "githubLogin") == ["bob"]
    assert get(staff, "stats/users/active?limit=5000")["limit"] == 50


def test_sessions_of_all_users_show_what_hangs_on_them(alice: Person, bob: Person, staff: Person) -> None:
    agent = make_agent(alice.user)
    connect(agent.session)
    Share.objects.create(session=agent.session, user=bob.user, role="viewer", shared_by=alice.user)
    make_session(bob.user, "notes", host="box", cwd="/srv", archived_at=timezone.now())
    body = get(staff, "sessions")
    assert body["total"] == 2
    notes, helper = body["items"]
    assert set(helper) == {
        *("id", "ownerLogin", "routingName", "cwd", "host", "startedAt", "lastSeenAt", "archivedAt"),
        *("managedByMachineId", "connected", "shareCount", "agentHandle"),
    }
    assert (helper["id"], helper["ownerLogin"]) == (str(agent.session.public_id), "alice")
    assert (helper["connected"], helper["shareCount"], helper["agentHandle"]) == (True, 1, "alice/helper")
    assert (helper["cwd"], helper["host"], helper["archivedAt"]) == (None, None, None)
    assert (notes["routingName"], notes["cwd"], notes["host"]) == ("@notes", "/srv", "box")
    assert (notes["connected"], notes["shareCount"], notes["agentHandle"]) == (False, 0, None)
    assert notes["archivedAt"].endswith("Z")
    assert get(staff, f"sessions/{helper['id']}") == helper


def test_sessions_are_found_by_name_owner_place_and_id(alice: Person, bob: Person, staff: Person) -> None:
    notes = make_session(alice.user, "notes", host="box", cwd="/srv")
    make_session(bob.user, "cook")
    for text in ("NOTE", "@notes", "alice", "BOX", "/srv", str(notes.public_id), notes.public_id.hex):
        assert names(get(staff, f"sessions?q={text}")["items"], "routingName") == ["@notes"], text
    assert get(staff, "sessions?q=nothing") == {"items": [], "total": 0}
    assert get(staff, "sessions?q=")["total"] == 2


def test_a_timeline_merges_events_and_permission_requests_oldest_first(alice: Person, staff: Person) -> None:
    session, now = make_session(alice.user), timezone.now()
    first, second, last = make_events(
        session, timedelta(hours=3), timedelta(hours=3), timedelta(hours=1), payload='{"text":"hi"}'
    )
    make_permission(session, "r1", requested_at=now - timedelta(hours=2))
    make_events(make_session(alice.user, "other"), timedelta(0))
    path = f"sessions/{session.public_id}/timeline"
    body = get(staff, path)
    items = body.pop("items")
    assert body == {"sessionId": str(session.public_id), "sessionRoute": "@helper", "ownerLogin": "alice"}
    assert names(items, "kind") == ["event", "event", "permission", "event"]
    assert [item["data"].get("id") for item in items] == [first.pk, second.pk, None, last.pk]
    assert items[0]["data"] == {"id": first.pk, "kind": "chat", "type": "reply", "payload": {"text": "hi"}}
    assert items[2]["data"]["requestId"] == "r1"
    assert items[2]["data"]["status"] == "pending"
    assert names(get(staff, f"{path}?limit=2")["items"], "kind") == ["permission", "event"]


def test_an_unreadable_payload_is_shown_as_text(alice: Person, staff: Person) -> None:
    for payload in ["not JSON", '{"a":NaN}', '{"a":' + "9" * 5000 + "}", "[" * 3000]:
        session = make_session(alice.user)
        make_events(session, timedelta(0), payload=payload)
        [item] = get(staff, f"sessions/{session.public_id}/timeline")["items"]
        assert item["data"]["payload"] == {"text": payload}, payload


def test_shares_of_all_users_are_listed(alice: Person, bob: Person, staff: Person, session: Session) -> None:
    share = Share.objects.create(session=session, user=bob.user, role="approver", shared_by=alice.user)
    body = get(staff, "shares")
    assert body["items"][0].pop("createdAt").endswith("Z")
    shown = {
        **{"id": share.pk, "sessionId": str(session.public_id), "sessionRoute": "@helper"},
        **{"subjectLogin": "bob", "grantorLogin": "alice", "role": "approver"},
    }
    assert body == {"items": [shown], "total": 1}


def test_agents_of_all_users_are_listed_drafts_and_deleted_too(alice: Person, bob: Person, staff: Person) -> None:
    online = make_agent(alice.user, "open", access="private")
    connect(online.session)
    make_agent(bob.user, "draft", "draft")
    gone = make_agent(bob.user, "gone")
    connect(gone.session)
    gone.soft_delete()
    body = get(staff, "agents")
    assert body["total"] == 3
    assert names(body["items"]) == ["bob/gone", "bob/draft", "alice/open"]
    assert set(body["items"][0]) == {
        *("id", "handle", "ownerLogin", "tagline", "isolated", "liveView", "publicAsk", "access", "sessionRoute"),
        *("online", "status", "deletedAt", "dailyBudgetQueries", "concurrencyCap", "createdAt"),
    }
    assert names(body["items"], "online") == [False, False, True]
    assert [item["deletedAt"] is None for item in body["items"]] == [False, True, True]


def test_tokens_of_all_users_are_listed_without_their_text(alice: Person, staff: Person) -> None:
    Credential.objects.filter(prefix=alice.app[:14]).revoke()
    body = get(staff, "tokens")
    assert (body["total"], body["returned"]) == (4, 4)
    token = next(item for item in body["items"] if item["userLogin"] == "alice" and item["kind"] == "app")
    assert set(token) == {
        *("id", "kind", "name", "prefix", "userId", "userLogin", "createdAt", "lastUsedAt", "revokedAt"),
        *("active", "appName", "machineId"),
    }
    assert (token["active"], token["prefix"]) == (False, alice.app[:14])
    assert alice.app not in str(body)
    totals = {"active=true": 3, "active=false": 1, "kind=channel": 2, "kind=app&active=true": 1}
    assert {query: get(staff, f"tokens?{query}")["total"] for query in totals} == totals
    page = get(staff, "tokens?limit=1")
    assert (page["total"], page["returned"]) == (4, 1)


def test_users_are_listed_in_snake_case(alice: Person, staff: Person) -> None:
    User.objects.filter(pk=alice.user.pk).update(github_id=77, is_service=True, avatar_url="https://a.example/x")
    body = get(staff, "users")
    assert body["total"] == 2
    hers = next(item for item in body["items"] if item["github_login"] == "alice")
    assert hers.pop("created_at").endswith("Z")
    assert hers == {
        **{"id": alice.user.pk, "github_login": "alice", "avatar_url": "https://a.example/x"},
        **{"is_admin": False, "is_service": True, "identities": ["github", "service"], "github_id": 77},
    }
    root = next(item for item in body["items"] if item["github_login"] == "root")
    assert (root["is_admin"], root["is_service"], root["identities"], root["github_id"]) == (True, False, [], None)


def test_lists_come_in_pages(alice: Person, staff: Person) -> None:
    for number in range(3):
        session = make_session(alice.user, f"s{number}")
        friend = person(f"friend-{number}")
        Share.objects.create(session=session, user=friend.user, role="viewer", shared_by=alice.user)
    for path, most in [("sessions", 200), ("shares", 500), ("users", 500), ("tokens", 500)]:
        whole = get(staff, path)
        pages = [get(staff, f"{path}?limit=1&offset={start}") for start in range(whole["total"] + 1)]
        assert [item for page in pages for item in page["items"]] == whole["items"], path
        assert get(staff, f"{path}?limit={most * 10}")["items"] == whole["items"], path


def test_a_list_costs_the_same_queries_for_one_row_and_for_many(alice: Person, staff: Person) -> None:
    def costs() -> dict[str, int]:
        counted = {}
        for path in ("sessions", "agents", "shares", "tokens", "users"):
            with CaptureQueriesContext(connection) as queries:
                get(staff, path)
            counted[path] = len(queries)
        return counted

    def grow(number: int) -> None:
        friend = person(f"friend-{number}")
        agent = make_agent(friend.user, f"a{number}")
        connect(agent.session)
        Share.objects.create(session=agent.session, user=alice.user, role="viewer", shared_by=friend.user)

    grow(0)
    get(staff, "users")
    before = costs()
    for number in range(1, 6):
        grow(number)
    assert costs() == before
