"""The page of one ask, and REST for it: who reads what of it, its timeline, a report of a problem."""

import json
import re
import time
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from a2a_bridge.models import Push, PushConfig, RecordedExchange
from a2a_bridge.service import exchange_log
from a2a_bridge.service.ask_spans import MAX_EVENTS
from accounts.groups import add_member, create_group
from agents.models import Agent, Event, FollowUp, PermissionRequest, ProblemNote, QueuedAsk, Turn
from gateway.models import FrameRecord
from tests.native.rows import Person, api, browser, make_agent, make_turn, person
from webhooks.models import Delivery, Subscription

Json = dict[str, Any]


@pytest.fixture
def agent(alice: Person) -> Agent:
    return make_agent(alice.user)


@pytest.fixture
def ask(agent: Agent, bob: Person) -> Turn:
    """An answered question of bob's to alice's agent, ten seconds ago, that took five."""
    asked_at = timezone.now() - timedelta(seconds=10)
    return make_turn(
        agent,
        bob.user,
        question="What is <b>bold</b>?",
        asked_at=asked_at,
        settled_at=asked_at + timedelta(seconds=5),
        latency_ms=5000,
        waited_ms=1500,
        delivered_ms=20,
        first_piece_ms=3000,
        input_tokens=10,
        output_tokens=20,
        cost_microusd=4200,
        task_id="task-of-bob",
    )


def read(who: Person, ask_id: str) -> Json:
    answer = api(who.session).get(f"/api/v1/questions/{ask_id}")
    assert answer.status_code == 200, answer.content
    found: Json = answer.json()
    return found


def status(who: Person, ask_id: str) -> int:
    code: int = api(who.session).get(f"/api/v1/questions/{ask_id}").status_code
    return code


def steps(who: Person, ask: Turn, kind: str) -> list[str]:
    return [one["name"] for one in read(who, ask.chat_id)["steps"] if one["kind"] == kind]


def details(who: Person, ask: Turn) -> str:
    return json.dumps(read(who, ask.chat_id))


def happen(ask: Turn, after_s: float, type_: str, kind: str = "tail", **payload: object) -> Event:
    at = ask.asked_at + timedelta(seconds=after_s)
    return Event.objects.create(
        session_id=ask.session_id, kind=kind, type=type_, payload=json.dumps(payload), ts=at
    )


def record(ask: Turn, **fields: Any) -> RecordedExchange:
    given: Json = {
        "chat_id": ask.chat_id,
        "caller_id": ask.caller_id,
        "protocol": "A2A 1.0 over JSON-RPC",
        "method": "POST",
        "path": "/api/a2a/v1/agents/alice/helper",
        "request_headers": '{"content-type":"application/json"}',
        "request_body": '{"id":1}',
        "request_bytes": 8,
        "status": 200,
        "response_headers": "{}",
        "response_body": '{"result":"reply-words"}',
        "response_bytes": 24,
        "received_at": ask.asked_at,
        "ended_at": ask.settled_at or ask.asked_at,
    }
    return RecordedExchange.objects.create(**given | fields)


# Who.


def test_who_reads_an_ask_and_as_whom(alice: Person, bob: Person, ask: Turn) -> None:
    zoe = person("zoe")
    assert (read(bob, ask.chat_id)["asCaller"], read(bob, ask.chat_id)["asOwner"]) == (True, False)
    assert (read(alice, ask.chat_id)["asCaller"], read(alice, ask.chat_id)["asOwner"]) == (False, True)
    foreign = api(zoe.session).get(f"/api/v1/questions/{ask.chat_id}")
    absent = api(zoe.session).get("/api/v1/questions/absent")
    assert foreign.status_code == absent.status_code == 404
    assert foreign.content == absent.content
    assert api(None).get(f"/api/v1/questions/{ask.chat_id}").status_code == 401
    for bad in ("x" * 65, "%00", "a%0Ab"):
        assert api(bob.session).get(f"/api/v1/questions/{bad}").status_code == 404


def test_an_ask_is_found_by_its_task_for_its_caller_alone(alice: Person, bob: Person, ask: Turn) -> None:
    assert read(bob, "task-of-bob")["id"] == ask.chat_id
    assert status(alice, "task-of-bob") == 404


def test_auditors_and_maintainers_of_the_group_that_owns_the_agent_read_it(bob: Person) -> None:
    maker, auditor, member, outsider = (person(login) for login in ("maker", "auditor", "member", "outsider"))
    group = create_group("data-team", "Data", made_by=maker.user)
    add_member(group, auditor.user, "auditor", by=maker.user)
    add_member(group, member.user, "member", by=maker.user)
    ask = make_turn(make_agent(group.account), bob.user)
    assert [status(one, ask.chat_id) for one in (maker, auditor, member, outsider)] == [200, 200, 404, 404]
    assert read(auditor, ask.chat_id)["asOwner"]


def test_an_ask_that_an_agent_made_belongs_to_the_owner_of_that_agent(
    alice: Person, bob: Person, agent: Agent, ask: Turn
) -> None:
    carol = person("carol")
    child = make_turn(
        make_agent(carol.user), bob.user, depth=1, question="secret of alice", source_session=agent.session
    )
    assert [status(one, child.chat_id) for one in (alice, carol, bob)] == [200, 200, 404]


def test_an_ask_that_waits_is_shown_to_its_caller_and_the_owner(alice: Person, bob: Person, agent: Agent) -> None:
    now = timezone.now()
    QueuedAsk.objects.create(
        agent=agent,
        session=agent.session,
        caller=bob.user,
        chat_id="waits",
        home="h",
        task_id="task-waits",
        question="q",
        queued_at=now,
        waits_until=now + timedelta(minutes=1),
    )
    found = read(bob, "task-waits")
    assert (found["id"], found["state"], found["settledAt"]) == ("waits", "queued", None)
    assert [one["kind"] for one in found["steps"]] == ["line"]
    assert read(alice, "waits")["asOwner"]
    assert status(person("zoe"), "waits") == 404
    assert "Waits in line" in browser(bob.session).get("/questions/waits").content.decode()


# The timeline.


def test_the_turn_itself_is_the_frame_of_the_timeline(bob: Person, ask: Turn) -> None:
    shown = {one["kind"]: one for one in read(bob, ask.chat_id)["steps"]}
    assert list(shown) == ["line", "admitted", "delivery", "work", "reply", "end", "usage"]
    assert shown["line"]["endedAt"] == shown["admitted"]["beganAt"]
    assert shown["work"]["beganAt"] == shown["delivery"]["endedAt"]


def test_the_owner_sees_the_agents_work_and_the_caller_does_not(alice: Person, bob: Person, ask: Turn) -> None:
    happen(ask, 1, "PreToolUse", tool_name="Read", tool_use_id="1", tool_input={"file": "secret.txt"})
    happen(ask, 2, "PostToolUse", tool_name="Read", tool_use_id="1")
    happen(ask, 2, "PreToolUse", tool_name="Bash", tool_input={"command": "ls"})
    happen(ask, 2, "task_status", "chat", chatId=ask.chat_id, text="reading on")
    happen(ask, 60, "PreToolUse", tool_name="Later")
    PermissionRequest.objects.create(
        session_id=ask.session_id,
        request_id="p",
        tool="Deploy",
        input_preview="prod",
        requested_at=ask.asked_at + timedelta(seconds=1),
        expires_at=timezone.now(),
    )
    assert steps(alice, ask, "tool") == ["Tool: Read", "Tool: Bash"]
    [read_step] = [one for one in read(alice, ask.chat_id)["steps"] if one["name"] == "Tool: Read"]
    assert (read_step["beganAt"] < read_step["endedAt"], read_step["detail"]) == (True, "secret.txt")
    assert steps(alice, ask, "permission") == ["Asks leave for Deploy"]
    assert steps(bob, ask, "note") == ["Status note"]
    for secret in ("secret.txt", "Bash", "Deploy", "prod", "0.0042"):
        assert secret not in details(bob, ask)
    assert "0.0042" in details(alice, ask)


def test_a_caller_sees_the_requests_that_the_caller_may_decide(bob: Person, ask: Turn) -> None:
    PermissionRequest.objects.create(
        session_id=ask.session_id,
        request_id="p",
        chat_id=ask.chat_id,
        tool="Deploy",
        requested_at=ask.asked_at + timedelta(seconds=1),
        expires_at=timezone.now(),
    )
    assert steps(bob, ask, "permission") == ["Asks leave for Deploy"]


def test_asks_of_the_agent_are_nested_for_those_who_may_know_of_them(
    alice: Person, bob: Person, agent: Agent, ask: Turn
) -> None:
    carol = person("carol")
    opened, hidden = make_agent(carol.user, "open"), make_agent(carol.user, "hidden", access="limited")
    common: Json = {"depth": 1, "source_session": agent.session, "asked_at": ask.asked_at + timedelta(seconds=1)}
    first = make_turn(opened, bob.user, question="child words", **common)
    make_turn(hidden, bob.user, question="child words", **common)
    deeper = common | {"depth": 2, "source_session": opened.session}
    make_turn(make_agent(person("dave").user, "deep"), bob.user, **deeper)
    make_turn(opened, bob.user, **common | {"asked_at": ask.asked_at + timedelta(hours=1)})
    assert steps(bob, ask, "child") == ["Asks @carol/open", "Asks @dave/deep"]
    assert steps(alice, ask, "child") == ["Asks @carol/open", "Asks @carol/hidden", "Asks @dave/deep"]
    found = {one["name"]: one for one in read(alice, ask.chat_id)["steps"]}
    assert (found["Asks @carol/open"]["level"], found["Asks @dave/deep"]["level"]) == (1, 2)
    assert found["Asks @carol/open"]["id"] == first.chat_id
    assert found["Asks @dave/deep"]["id"] is None
    assert "child words" not in details(bob, ask)


def test_pushes_are_the_callers_and_webhooks_the_owners(alice: Person, bob: Person, ask: Turn) -> None:
    config = PushConfig.objects.create(
        task_id="task-of-bob",
        config_id="c",
        caller=bob.user,
        url="https://receiver.example/secret-path",
        touched_at=ask.asked_at,
    )
    Push.objects.create(config=config, seq=3, payload="{}", status="failed", attempts=5, queued_at=ask.settled_at)
    hook = Subscription.objects.create(
        owner=alice.user, url="https://hook.example/secret-hook", events="*", secret="sealed"
    )
    Delivery.objects.create(
        subscription=hook,
        event_id="e",
        type="agent.replied",
        payload=json.dumps({"routeId": ask.chat_id}),
        status="delivered",
        attempts=2,
        last_status=204,
        queued_at=ask.settled_at,
        delivered_at=ask.settled_at,
    )
    assert (steps(bob, ask, "push"), steps(bob, ask, "webhook")) == (["Push of event 3"], [])
    assert (steps(alice, ask, "push"), steps(alice, ask, "webhook")) == ([], ["Webhook agent.replied"])
    assert "delivered to hook.example, 2 attempts, HTTP 204" in details(alice, ask)
    for secret in ("secret-path", "secret-hook"):
        assert secret not in details(bob, ask) + details(alice, ask)


def test_follow_ups_and_refusals_have_their_steps(alice: Person, bob: Person, agent: Agent, ask: Turn) -> None:
    FollowUp.objects.create(chat_id=ask.chat_id, agent=agent, caller=bob.user, text="t", sent_at=timezone.now())
    assert steps(bob, ask, "follow_up") == ["Follow-up"]
    denied = make_turn(agent, bob.user, "denied", reason="busy")
    assert [one["kind"] for one in read(bob, denied.chat_id)["steps"]] == ["end"]
    assert read(bob, denied.chat_id)["why"]


def test_frames_of_the_gateway_are_shown_to_their_own_team(alice: Person, bob: Person, agent: Agent) -> None:
    ask = make_turn(agent, bob.user, surface="gateway", context_id="session-1", settled_at=timezone.now())
    for team, source, session in (
        (bob.user, "bobs-client", "session-1"),
        (alice.user, "alices-seat", "session-1"),
        (bob.user, "bobs-other", "session-2"),
    ):
        FrameRecord.objects.create(
            owner=team,
            at=ask.asked_at,
            source=source,
            destination="helper",
            type="message",
            outcome="served",
            bytes=120,
            latency_ms=3,
            session_id=session,
        )
    assert steps(bob, ask, "frame") == ["Frame message of bobs-client"]
    assert steps(alice, ask, "frame") == ["Frame message of alices-seat"]


# Request and response.


def test_exchanges_are_read_by_both_and_only_of_the_asks_own_caller(alice: Person, bob: Person, ask: Turn) -> None:
    record(ask)
    record(ask, caller_id=alice.user.pk, request_body="of another account")
    for one in (alice, bob):
        [exchange] = read(one, ask.chat_id)["exchanges"]
        assert exchange["responseBody"] == '{"result":"reply-words"}'


@pytest.mark.parametrize("protocol", ["Chat completions", "Responses", "A form of later"])
def test_the_caller_alone_reads_requests_of_which_the_agent_got_a_part(
    alice: Person, bob: Person, ask: Turn, protocol: str
) -> None:
    body = '{"messages":[{"role":"system","content":"history-words"}],"tools":[],"metadata":{}}'
    record(ask, protocol=protocol, path="/v1/x", request_body=body, request_bytes=len(body))
    [own], [owners] = (read(one, ask.chat_id)["exchanges"] for one in (bob, alice))
    assert (own["requestBody"], owners["requestBody"]) == (body, None)
    assert owners["responseBody"] == '{"result":"reply-words"}'
    assert "history-words" in read(bob, ask.chat_id)["curl"]
    assert "history-words" not in details(alice, ask)
    page = browser(alice.session).get(f"/questions/{ask.chat_id}").content.decode()
    assert "history-words" not in page
    assert "Only the caller reads them" in page
    assert "reply-words" in page
    page = browser(bob.session).get(f"/questions/{ask.chat_id}").content.decode()
    assert "history-words" in page
    assert "Only the caller reads them" not in page


@pytest.mark.parametrize(
    "protocol", ["A2A 1.0 over JSON-RPC", "The hub's own dialect over HTTP+JSON", "MCP", "AGNT"]
)
def test_the_owner_reads_no_host_of_pushes_and_no_context(
    alice: Person, bob: Person, ask: Turn, protocol: str
) -> None:
    Turn.objects.filter(pk=ask.pk).update(context_id="context-of-bob")
    push = {"url": "https://receiver.example/…", "...": "(left out)"}
    body = json.dumps({"said": "question-words", "configuration": {"taskPushNotificationConfig": push}})
    record(ask, protocol=protocol, request_body=body, request_bytes=len(body.encode()))
    for one, sees in ((bob, True), (alice, False)):
        page = browser(one.session).get(f"/questions/{ask.chat_id}").content.decode()
        for text in (details(one, ask), page):
            assert "question-words" in text
            assert ("receiver.example" in text) is sees
            assert ("context-of-bob" in text) is sees


def test_a_caller_who_may_not_ask_any_more_reads_no_response(bob: Person, agent: Agent, ask: Turn) -> None:
    record(ask)
    Agent.objects.filter(pk=agent.pk).update(access="limited")
    [exchange] = read(bob, ask.chat_id)["exchanges"]
    assert (exchange["requestBody"], exchange["responseBody"]) == ('{"id":1}', None)
    page = browser(bob.session).get(f"/questions/{ask.chat_id}").content.decode()
    assert "reply-words" not in page
    assert "You may not ask this agent any more" in page


def test_old_orphaned_and_surplus_exchanges_are_deleted(settings: Any, bob: Person, ask: Turn) -> None:
    long_ago = timezone.now() - timedelta(days=31)
    record(ask, received_at=long_ago)
    blank = make_turn(ask.agent, bob.user, question="")
    record(ask, chat_id=blank.chat_id, received_at=timezone.now() - timedelta(hours=1))
    record(ask, chat_id="gone", received_at=timezone.now() - timedelta(hours=1))
    kept = [record(ask, received_at=timezone.now() - timedelta(hours=1)) for _ in range(3)]
    assert exchange_log.forget_old() == 3
    assert list(RecordedExchange.objects.order_by("pk")) == kept
    settings.EXCHANGES_PER_CALLER = 2
    assert exchange_log.trim() == 1
    assert list(RecordedExchange.objects.order_by("pk")) == kept[1:]


# The page.


def test_the_page_is_for_those_who_may_read_the_ask(alice: Person, bob: Person, ask: Turn) -> None:
    address = f"/questions/{ask.chat_id}"
    record(ask, request_body="<script>", response_body="not json")
    page = browser(bob.session).get(address).content.decode()
    assert "&lt;b&gt;bold" in page
    assert "<script>&" not in page
    assert f"?again={ask.chat_id}" in page
    assert "Report a problem" in page
    owned = browser(alice.session).get(address).content.decode()
    assert "Report a problem" not in owned
    assert f"/desk/agents/{ask.agent_id}/audit" in owned
    assert browser(person("zoe").session).get(address).status_code == 404
    assert browser(None).get(address).status_code == 302
    assert browser(bob.session).get("/questions/task-of-bob").headers["Location"] == address


def test_asking_again_fills_the_form_with_ones_own_question(alice: Person, bob: Person, ask: Turn) -> None:
    address = f"/agents/alice/helper?again={ask.chat_id}"
    assert "What is &lt;b&gt;bold" in browser(bob.session).get(address).content.decode()
    for other in (alice, person("zoe")):
        assert "bold" not in browser(other.session).get(address).content.decode()


def test_a_trace_is_linked_where_the_operator_has_a_ui(settings: Any, bob: Person, ask: Turn) -> None:
    Turn.objects.filter(pk=ask.pk).update(traceparent=f"00-{'ab' * 16}-{'cd' * 8}-01")
    settings.TRACE_UI_URL = "https://traces.example/t/{trace_id}"
    assert read(bob, ask.chat_id)["traceUrl"] == f"https://traces.example/t/{'ab' * 16}"
    assert (
        f"https://traces.example/t/{'ab' * 16}"
        in browser(bob.session).get(f"/questions/{ask.chat_id}").content.decode()
    )


def test_an_ask_of_500_events_is_one_bounded_page(alice: Person, ask: Turn) -> None:
    for number in range(MAX_EVENTS + 20):
        happen(ask, number / 200, "PreToolUse", tool_name=f"Tool{number}", tool_input={"command": "x" * 200})
    client = browser(alice.session)
    client.get(f"/questions/{ask.chat_id}")
    began = time.perf_counter()
    page = client.get(f"/questions/{ask.chat_id}")
    took_s = time.perf_counter() - began
    assert took_s < 3  # ten times what it may take
    with CaptureQueriesContext(connection) as few:
        page = client.get(f"/questions/{ask.chat_id}")
    assert page.status_code == 200
    assert len(few) < 120
    assert len(page.content) < 120_000
    assert "Page 1 of 3" in re.sub(r"\s+", " ", page.content.decode())
    assert len([one for one in read(alice, ask.chat_id)["steps"] if one["kind"] == "tool"]) == MAX_EVENTS


# Reports of problems.


def test_who_reports_a_problem(alice: Person, bob: Person, ask: Turn) -> None:
    address = f"/api/v1/questions/{ask.chat_id}/problem"
    hook = Subscription.objects.create(
        owner=alice.user, url="https://hook.example", events="problem.reported", secret="sealed"
    )
    assert api(person("zoe").session).post(address, {"text": "x"}, format="json").status_code == 404
    assert api(alice.session).post(address, {"text": "x"}, format="json").status_code == 404
    assert api(bob.session).post(address, {"text": "  "}, format="json").status_code == 400
    assert api(bob.session).post(address, {"text": "x" * 2001}, format="json").status_code == 400
    made = api(bob.session).post(address, {"text": "It is <wrong>."}, format="json")
    assert (made.status_code, made.json()["text"]) == (201, "It is <wrong>.")
    assert api(bob.session).post(address, {"text": "again"}, format="json").status_code == 409
    [delivery] = Delivery.objects.filter(subscription=hook)
    told = json.loads(delivery.payload)
    assert (told["note"], told["routeId"], told["askerLogin"]) == ("It is <wrong>.", ask.chat_id, "bob")
    audit = browser(alice.session).get(f"/desk/agents/{ask.agent_id}/audit?problem=reported").content.decode()
    assert "It is &lt;wrong&gt;." in audit
    assert read(alice, ask.chat_id)["problem"]["text"] == "It is <wrong>."


def test_a_problem_is_reported_on_the_page_once(bob: Person, ask: Turn) -> None:
    address, client = f"/questions/{ask.chat_id}", browser(bob.session)
    refused = client.post(address, {"note": " "})
    assert (refused.status_code, "Write what was wrong." in refused.content.decode()) == (400, True)
    assert client.post(address, {"note": "Too short"}).headers["Location"] == address
    page = client.get(address).content.decode()
    assert "Too short" in page
    assert "Report a problem" not in page
    client.post(address, {"note": "Other words"})
    assert [one.text for one in ProblemNote.objects.all()] == ["Too short"]
