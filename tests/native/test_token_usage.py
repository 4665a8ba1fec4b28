"""Token usage: reported by owners and agents' programs, read in pages."""

from datetime import UTC, datetime, timedelta
from typing import Any

from django.utils import timezone

from accounts.quotas import MEBIBYTE
from agents import jobs
from agents.limits import USAGE_ROW_BYTES
from agents.models import Session, TokenUsage
from tests.native.rows import Person, api, make_session, names
from tests.native.transcripts import lend, post_escaped, use_tokens

USAGE = "/api/v1/token-usage"
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
MODEL = {
    "model": "m1",
    "inputTokens": 5,
    "outputTokens": 6,
    "cacheReadTokens": 7,
    "cacheCreationTokens": 2**63 - 1,
}
REPORT = {"capturedAt": "2026-01-01T12:00:00Z", "ccSessionId": "cc", "reason": "hourly", "models": [MODEL]}


def of(session: Session) -> str:
    return f"/api/v1/sessions/{session.public_id}/token-usage"


def report(token: str, session: Session, **changes: Any) -> Any:
    return post_escaped(api(token), of(session), {**REPORT, **changes})


def test_what_was_reported_is_shown_model_by_model(alice: Person, session: Session) -> None:
    assert report(alice.session, session, models=[MODEL, {"model": "m2"}]).status_code == 201
    body = api(alice.session).get(of(session)).json()
    assert set(body) == {"sessionId", "snapshots", "nextCursor"}
    assert (body["sessionId"], body["nextCursor"]) == (str(session.public_id), None)
    first, second = body["snapshots"]
    assert first.pop("id") < second["id"]
    assert first == {
        "sessionId": str(session.public_id),
        "ccSessionId": "cc",
        "ownerId": alice.user.pk,
        "capturedAt": "2026-01-01T12:00:00.000Z",
        "model": "m1",
        "inputTokens": 5,
        "outputTokens": 6,
        "cacheReadTokens": 7,
        "cacheCreationTokens": 2**63 - 1,
        "reason": "hourly",
    }
    assert (second["model"], second["inputTokens"], second["outputTokens"]) == ("m2", 0, 0)


def test_a_snapshot_that_is_sent_again_is_kept_once(alice: Person) -> None:
    session, other = make_session(alice.user), make_session(alice.user, "other")
    for _ in range(3):
        assert report(alice.session, session).status_code == 201
    assert report(alice.session, session, models=[MODEL, {"model": "m2"}, {"model": "m2"}]).status_code == 201
    assert names(api(alice.session).get(of(session)).json()["snapshots"], "model") == ["m1", "m2"]
    for changes in ({"reason": "final"}, {"ccSessionId": "cc2"}, {"capturedAt": "2026-01-01T13:00:00+00:00"}):
        assert report(alice.session, session, **changes).status_code == 201
    assert report(alice.session, other).status_code == 201
    assert TokenUsage.objects.count() == 6


def test_a_program_reports_with_the_token_its_session_came_with_and_for_no_other_session(alice: Person) -> None:
    credential = alice.user.credentials.get(kind="channel")
    session = make_session(alice.user, credential=credential)
    assert report(alice.channel, session).status_code == 201
    assert report(alice.channel, make_session(alice.user, "other")).status_code == 404
    assert api(alice.channel).get(of(session)).status_code == 401
    assert api(alice.channel).get(USAGE).status_code == 401
    credential.user.credentials.filter(pk=credential.pk).revoke()
    assert report(alice.channel, session).status_code == 401
    assert TokenUsage.objects.count() == 1


def test_reports_fill_their_owners_storage_and_then_are_refused(alice: Person, settings: Any) -> None:
    settings.STORAGE_PER_OWNER_MB = 1
    session = make_session(alice.user)
    most = MEBIBYTE // USAGE_ROW_BYTES
    TokenUsage.objects.bulk_create(rows_of(session, most - 1))
    two = [MODEL, {"model": "m2"}]
    for when in ("2026-01-01T12:00:00Z", "9999-01-01T00:00:00Z"):
        refused = report(alice.session, session, models=two, capturedAt=when)
        assert (refused.status_code, refused.json()["error"]) == (429, "quota_exceeded")
    assert report(alice.session, session).status_code == 201
    assert report(alice.session, session).status_code == 201  # again: nothing new
    assert report(alice.session, session, ccSessionId="cc2").status_code == 429
    assert TokenUsage.objects.count() == most


def test_rows_go_by_when_they_were_written_whatever_they_say(alice: Person, session: Session) -> None:
    for moment in ("9999-01-01T00:00:00Z", "2001-01-01T00:00:00Z"):
        assert report(alice.session, session, capturedAt=moment).status_code == 201
    assert jobs.forget_events(90) == 0
    TokenUsage.objects.update(written_at=timezone.now() - timedelta(days=91))
    new = report(alice.session, session, capturedAt="2001-01-02T00:00:00Z")
    assert (new.status_code, jobs.forget_events(90)) == (201, 2)
    assert TokenUsage.objects.get().captured_at.year == 2001


def rows_of(session: Session, count: int) -> list[TokenUsage]:
    common: dict[str, Any] = {"session": session, "owner": session.owner, "model": "m", "reason": "hourly"}
    return [TokenUsage(cc_session_id=str(n), captured_at=NOON, **common) for n in range(count)]


def test_a_report_that_makes_no_sense_is_a_400(alice: Person) -> None:
    for changes in [
        {"models": []},
        {"models": [MODEL] * 101},
        {"models": "m1"},
        {"models": [5]},
        {"models": [{"inputTokens": 1}]},
        {"models": [{"model": "m", "inputTokens": -1}]},
        {"models": [{"model": "m", "inputTokens": 2**63}]},
        {"models": [{"model": "m", "inputTokens": 1e400}]},
        {"models": [{"model": "m\0"}]},
        {"ccSessionId": "\ud800"},
        {"ccSessionId": "x" * 129},
        {"capturedAt": "yesterday"},
        {"capturedAt": 5},
        {"capturedAt": "0001-01-01T00:00:00+14:00"},
        {"capturedAt": "9999-12-31T23:59:59-14:00"},
        {"reason": "sometimes"},
    ]:
        answer = report(alice.session, make_session(alice.user), **changes)
        assert (answer.status_code, answer.json()["error"]) == (400, "validation_failed"), changes
        assert not TokenUsage.objects.exists(), changes


def test_since_and_until_choose_by_time(alice: Person, session: Session) -> None:
    for hours in range(4):
        use_tokens(session, captured_at=NOON + timedelta(hours=hours), model=f"m{hours}")
    query = "?since=2026-01-01T13:00:00Z&until=2026-01-01T14:00:00Z"
    assert names(api(alice.session).get(of(session) + query).json()["snapshots"], "model") == ["m1", "m2"]
    assert names(api(alice.session).get(USAGE + query).json()["rows"], "model") == ["m1", "m2"]


def test_the_cursor_walks_all_rows_of_ones_own_once(alice: Person, bob: Person) -> None:
    mine = [use_tokens(make_session(alice.user, f"s{number}"))[0].pk for number in range(5)]
    theirs = make_session(bob.user)
    use_tokens(theirs, 2)
    lend(theirs, alice.user, "approver")
    walked, cursor = [], 0
    while cursor is not None:
        body = api(alice.session).get(f"{USAGE}?limit=2&cursor={cursor}").json()
        assert set(body) == {"rows", "nextCursor"}
        walked += names(body["rows"], "id")
        cursor = body["nextCursor"]
    assert walked == mine
    assert api(alice.session).get(f"{USAGE}?limit=5").json()["nextCursor"] is None  # a full page, and no next one


def test_staff_may_name_another_owner_and_others_may_not(alice: Person, bob: Person, staff: Person) -> None:
    row = use_tokens(make_session(alice.user))[0]
    query = f"{USAGE}?ownerId={alice.user.pk}"
    assert names(api(staff.session).get(query).json()["rows"], "id") == [row.pk]
    assert api(staff.session).get(USAGE).json()["rows"] == []
    assert names(api(alice.session).get(query).json()["rows"], "id") == [row.pk]
    refused = api(bob.session).get(query)
    assert (refused.status_code, refused.json()["error"]) == (403, "forbidden")


def test_a_query_that_makes_no_sense_is_a_400(alice: Person) -> None:
    for query in ["limit=0", "cursor=-1", "cursor=99999999999999999999", "ownerId=x", "since=soon", "until=%00"]:
        assert api(alice.session).get(f"{USAGE}?{query}").status_code == 400, query
