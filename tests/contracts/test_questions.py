"""The questions of a user: the list, its filters and cursors, and the replies of tasks that are kept."""

import time
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest
from django.db import connection

from a2a_bridge.service import my_questions as questions
from a2a_bridge.service.my_questions import QuestionQuery, asked_agents, find_questions, read_query
from a2a_bridge.service.tasks.feed import Feeds
from a2a_bridge.service.tasks.memory import MemoryTaskStore
from a2a_bridge.service.tasks.reader import TaskReader
from a2a_bridge.service.tasks.store import StoresById
from a2a_bridge.surface.api import QuestionList
from a2a_bridge.wire.task import Artifact, State
from accounts.models import Credential
from accounts.open_requests import OpenRequests
from accounts.tokens import TokenLimits, mint
from agents.core.ledger import Ledger
from agents.core.rest_server import RestServer
from agents.models import QueuedAsk, Turn
from agents.transcript.pieces import Part
from hub.request_turns import RequestTurns
from hub.wiring import HubServices
from kit.asgi import HttpRequest
from kit.async_db import db_call
from kit.clock import db_now
from kit.markdown import to_line
from kit.search import SEARCHED_CHARS
from tests.contracts.rows import Published, live_process, published, user
from tests.contracts.stored_tasks import task
from tests.native.rows import make_turn
from tests.plans import plans_of_turns

CURSOR = "9999999999999999.1"
PUBLIC_URL = "http://hub.example"


def texts(login: str = "alice", **query: Any) -> list[str]:
    return [one.text for one in find_questions(user(login).pk, QuestionQuery(**query)).questions]


def ask(agent: Published, question: str, outcome: str | None = "completed", **fields: Any) -> Turn:
    return make_turn(agent.agent, user("alice"), outcome, question=question, **fields)


def wait_in_queue(agent: Published, question: str, home: str) -> None:
    now = db_now()
    QueuedAsk.objects.create(
        agent=agent.agent,
        session=agent.agent.session,
        caller=user("alice"),
        chat_id=f"queued-{question}",
        home=home,
        task_id="task-q",
        question=question,
        queued_at=now,
        waits_until=now + timedelta(minutes=1),
    )


@pytest.mark.ledger
@pytest.mark.django_db
class TestTheList:
    def test_it_is_of_all_agents_newest_first_and_ones_own_alone(self) -> None:
        ask(published(), "first")
        ask(published(), "second", "denied", reason="busy")
        make_turn(published().agent, user("bob"), question="of bob")
        assert texts() == ["second", "first"]
        assert texts("bob") == ["of bob"]

    def test_what_agents_asked_onward_and_asks_to_sessions_are_left_out(self) -> None:
        one = published()
        ask(one, "of an agent", depth=1)
        Turn.objects.filter(pk=ask(one, "to a session").pk).update(agent=None)
        assert texts() == []

    def test_filters_leave_out_the_others(self) -> None:
        one, other = published(), published()
        ask(one, "How do LIFETIMES work in Rust?")
        ask(one, "Rust or Go?", None)
        ask(
            other,
            "lifetimes of stars",
            "failed",
            reason="timeout",
            asked_at=datetime(2026, 3, 1, 23, 30, tzinfo=UTC),
        )
        assert texts(q="lifetimes") == ["How do LIFETIMES work in Rust?", "lifetimes of stars"]
        assert texts(q="rust lifetimes") == ["How do LIFETIMES work in Rust?"]
        assert texts(q="100%") == []
        assert texts(agent=f"@{other.agent.handle.upper()}") == ["lifetimes of stars"]
        assert texts(state="open") == ["Rust or Go?"]
        assert texts(state="failed") == ["lifetimes of stars"]
        assert texts(state="queued") == []
        day = datetime(2026, 3, 1).date()  # noqa: DTZ001
        assert texts(day=day) == ["lifetimes of stars"]
        assert texts(day=day, tz="Europe/Berlin") == []
        assert texts(day=day + timedelta(days=1), tz="Europe/Berlin") == ["lifetimes of stars"]
        assert asked_agents(user("alice").pk) == sorted([one.agent.handle, other.agent.handle])

    def test_states_tell_how_a_turn_ended_and_filter(self) -> None:
        agent = published()
        ends = {
            "open": (None, ""),
            "input_required": ("completed", "input_required"),
            "auth_required": ("completed", "auth_required"),
            "completed": ("completed", ""),
            "rejected": ("failed", "rejected"),
            "canceled": ("failed", "agent_canceled"),
            "failed": ("failed", "agent_failed"),
            "denied": ("denied", "busy"),
        }
        for state, (outcome, reason) in ends.items():
            ask(agent, state, outcome, reason=reason, task_id=f"task-{state}")
        found = find_questions(user("alice").pk, QuestionQuery()).questions
        assert [(one.text, one.state) for one in found] == [(state, state) for state in reversed(ends)]
        # Of a task that waited, the store knows whether it still does.
        may_be = {
            "completed": {"input_required", "auth_required"},
            "canceled": {"input_required", "auth_required"},
        }
        for state in ends:
            assert set(texts(state=state)) == {state} | may_be.get(state, set())
        assert texts(task="task-rejected") == ["rejected"]

    def test_letters_beyond_ascii_are_found_in_any_case(self) -> None:
        ask(published(), "Über den Wolken, ÄRGER")
        assert texts(q="über") == texts(q="Ärger ÜBER") == ["Über den Wolken, ÄRGER"]

    def test_of_long_questions_the_beginning_is_searched(self) -> None:
        """Each page looks at 10,000 questions, which may be a megabyte each."""
        beginning = "needle".rjust(SEARCHED_CHARS)
        ask(published(), f"{beginning} thread")
        assert len(texts(q="needle")) == 1
        assert texts(q="thread") == []

    def test_those_that_wait_in_a_process_that_lives_come_first_once(self) -> None:
        agent = published()
        ask(agent, "asked")
        wait_in_queue(agent, "waiting", live_process().pk)
        wait_in_queue(agent, "lost", "a-dead-process")
        assert texts() == ["waiting", "asked"]
        assert texts(state="queued") == ["waiting"]
        assert texts(before=CURSOR) == ["asked"]
        assert texts(q="wait") == ["waiting"]

    def test_pages_follow_each_other_without_a_gap(self) -> None:
        agent = published()
        for number in range(5):
            ask(agent, f"question {number}")
        found, before = [], None
        while True:
            page = find_questions(user("alice").pk, QuestionQuery(limit=2, before=before))
            found.append([one.text[-1] for one in page.questions])
            if (before := page.next) is None:
                break
        assert found == [["4", "3"], ["2", "1"], ["0"]]

    def test_a_search_reads_so_many_rows_and_says_where_it_goes_on(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(questions, "SEARCHED", 2)
        agent = published()
        for text in ("sought", "other", "other", "sought", "other"):
            ask(agent, text)
        first = find_questions(user("alice").pk, QuestionQuery(q="sought"))
        assert [one.text for one in first.questions] == ["sought"]
        second = find_questions(user("alice").pk, QuestionQuery(q="sought", before=first.next))
        assert (second.questions, second.next is None) == ([], False)
        third = find_questions(user("alice").pk, QuestionQuery(q="sought", before=second.next))
        assert ([one.text for one in third.questions], third.next) == (["sought"], None)

    def test_a_long_question_is_cut(self) -> None:
        ask(published(), "ä" * 5000)
        [one] = find_questions(user("alice").pk, QuestionQuery()).questions
        assert (len(one.text), one.is_cut) == (4000, True)

    def test_no_list_reads_all_turns(self) -> None:
        agent, now = published(), db_now()
        askers = [user(f"asker{number}") for number in range(40)]
        Turn.objects.bulk_create(
            Turn(
                agent=agent.agent,
                session=agent.agent.session,
                caller=askers[number % 40],
                outcome="completed",
                surface="a2a",
                question="what?",
                asked_at=now,
                settled_at=now,
                chat_id=f"many-{number}",
            )
            for number in range(4000)
        )
        if connection.vendor == "postgresql":
            with connection.cursor() as cursor:
                cursor.execute("ANALYZE agents_turn")
        asker = user("asker7").pk
        with plans_of_turns() as plans:
            for query in ({}, {"q": "what"}, {"agent": "a/b"}, {"state": "failed"}, {"before": CURSOR}):
                find_questions(asker, QuestionQuery(**query))
            asked_agents(asker)
        assert len(plans) >= 6
        # A caller's few turns may be read by the other index, and sorted.
        assert [plan for plan in plans if "by_caller" not in plan or "Seq Scan on agents_turn" in plan] == []
        assert "turn_of_agents_by_caller" in plans[0]


class TestTheQueryString:
    def test_its_values_are_read_and_what_no_field_has_is_left_out(self) -> None:
        given = {"q": " two\x00words ", "state": "", "day": "2026-03-01", "limit": "5", "utm": "x"}
        assert read_query(given) == QuestionQuery(
            q="two words",
            day=datetime(2026, 3, 1).date(),  # noqa: DTZ001
            limit=5,
        )

    @pytest.mark.parametrize(
        "given",
        [
            {"state": "lost"},
            {"day": "yesterday"},
            {"limit": "0"},
            {"limit": "51"},
            {"before": "1"},
            {"before": "1" * 18 + ".1"},
            {"q": "x" * 201},
            {"day": "2026-03-01", "tz": "../../etc/passwd"},
            {"day": "2026-03-01", "tz": "Europe"},
            {"day": "9999-12-31"},
        ],
    )
    def test_what_is_wrong_is_said(self, given: dict[str, str]) -> None:
        with pytest.raises(ValueError, match=r"\w"):
            read_query(given)


class Served:
    """The list over HTTP, its tasks in a store of this test."""

    def __init__(self, ledger: Ledger) -> None:
        self.store = MemoryTaskStore(time.monotonic)
        reader = TaskReader(StoresById(self.store, {}), Feeds(), reply_wait_s=60)
        http = RestServer(ledger, OpenRequests(), PUBLIC_URL, ["https://app.example"])
        self._list = QuestionList(reader, http, to_line, RequestTurns().call)

    async def get(self, token: str, query: str = "", method: str = "GET", **headers: str) -> tuple[int, Any, Any]:
        """Status, headers and the decoded body."""
        named = {"authorization": f"Bearer {token}", **headers} if token else headers
        scope = {
            "type": "http",
            "method": method,
            "path": "/api/v1/questions",
            "headers": [(name.encode(), value.encode()) for name, value in named.items()],
            "query_string": query.encode(),
        }
        sent: list[Any] = []

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": b""}

        async def send(message: Any) -> None:
            sent.append(message)

        await self._list(HttpRequest(scope, receive), send)
        return sent[0]["status"], dict(sent[0]["headers"]), msgspec.json.decode(sent[1]["body"])


@pytest.fixture
async def served(transactional_db: None) -> AsyncIterator[Served]:
    ledger = HubServices().ledger
    yield Served(ledger)
    await db_call(ledger.close)()


def token_of(login: str, **fields: Any) -> str:
    return mint(user(login), Credential.Kind.APP, "test", **fields).token


def asked_three(task_ids: tuple[str, str, str]) -> tuple[int, str, str]:
    """A kept task, one that is gone, and one with an agent that is not open to its caller any more."""
    agent, closed = published(), published(access="private")
    turns = [
        ask(agent, "kept?", task_id=task_ids[0], latency_ms=120, chat_id="c-kept"),
        ask(agent, "gone?", "failed", task_id=task_ids[1], reason="timeout", chat_id="c-gone"),
        ask(closed, "closed?", task_id=task_ids[2], chat_id="c-closed"),
    ]
    assert all(turns)
    return user("alice").pk, token_of("alice"), agent.agent.handle


async def test_a_reply_is_there_as_long_as_its_task_then_state_and_latency(served: Served) -> None:
    caller_id, token, handle = await db_call(asked_three)(("task-1", "task-2", "task-3"))
    reply = Artifact("reply-1", (Part(text="**yes** " * 300),))
    for number, chat_id in ((1, "c-kept"), (3, "c-closed")):
        kept = task(
            f"task-{number}", caller_id=caller_id, chat_id=chat_id, state=State.COMPLETED, artifacts=(reply,)
        )
        await served.store.put(kept)
    status, headers, body = await served.get(token)
    closed, gone, kept_one = body["items"]
    assert (status, headers[b"cache-control"]) == (200, b"no-store")
    assert kept_one["reply"] == ("**yes** " * 300)[:2000]
    assert kept_one["replyPreview"] == f"{('yes ' * 100).strip()}…"
    assert (kept_one["isKept"], kept_one["replyIsCut"], kept_one["latencyMs"]) == (True, True, 120)
    assert kept_one["url"] == f"{PUBLIC_URL}/agents/{handle}?task=task-1"
    assert (gone["isKept"], gone["reply"], gone["replyPreview"], gone["url"]) == (False, None, None, None)
    assert (gone["state"], gone["reason"], gone["taskId"]) == ("failed", "timeout", "task-2")
    assert (closed["isKept"], closed["reply"]) == (False, None)


async def test_a_task_waits_until_it_is_answered_canceled_or_gone(served: Served) -> None:
    names = ("waits", "canceled", "answered", "gone")

    def rows() -> tuple[int, str]:
        agent = published()
        for name in names:
            ask(agent, name, reason="input_required", task_id=f"task-{name}", chat_id=f"c-{name}")
        return user("alice").pk, token_of("alice")

    caller_id, token = await db_call(rows)()
    for name, state, chat_id in (
        ("waits", State.INPUT_REQUIRED, "c-waits"),
        ("canceled", State.CANCELED, "c-canceled"),
        ("answered", State.INPUT_REQUIRED, "c-later"),
    ):
        await served.store.put(task(f"task-{name}", caller_id=caller_id, chat_id=chat_id, state=state))
    wanted = {"input_required": ["waits"], "canceled": ["canceled"], "completed": ["gone", "answered"]}
    for state, found in wanted.items():
        _, _, body = await served.get(token, f"state={state}")
        assert [(one["question"], one["state"]) for one in body["items"]] == [(name, state) for name in found]


async def test_of_a_task_of_several_turns_the_last_has_the_reply(served: Served) -> None:
    def rows() -> tuple[int, str]:
        agent = published()
        ask(agent, "which?", reason="input_required", task_id="task-1", chat_id="c-1")
        ask(agent, "that one", task_id="task-1", chat_id="c-2")
        return user("alice").pk, token_of("alice")

    caller_id, token = await db_call(rows)()
    replies = tuple(Artifact(f"reply-{number}", (Part(text=f"reply {number}"),)) for number in (1, 2))
    await served.store.put(
        task(caller_id=caller_id, chat_id="c-2", state=State.COMPLETED, turns=2, artifacts=replies)
    )
    _, _, body = await served.get(token)
    assert [(one["reply"], one["isKept"]) for one in body["items"]] == [("reply 2", True), (None, True)]


async def test_who_may_read_it_and_what_is_refused(served: Served) -> None:
    def tokens() -> tuple[str, str, str]:
        channel = mint(user("alice"), Credential.Kind.CHANNEL, "test").token
        return token_of("alice"), token_of("alice", limits=TokenLimits(scopes=("ask",))), channel

    reads, asks, channel = await db_call(tokens)()
    assert (await served.get(""))[0] == 401
    assert (await served.get(channel))[0] == 401
    assert (await served.get(asks))[0] == 403
    assert (await served.get(reads, method="POST"))[0] == 405
    status, _, body = await served.get(reads, "day=tomorrow")
    assert (status, body["error"]) == (400, "validation_failed")
    assert body["message"] == "day: want a date such as 2026-03-01"
    wrong = {"q": "q" * 201, "agent": "a" * 201, "state": "x", "tz": "t" * 65, "before": "x", "limit": "0"}
    for name, value in wrong.items():
        _, _, body = await served.get(reads, f"{name}={value}")
        assert body["message"].startswith(f"{name}: want "), name
    assert (await served.get(reads, "&".join(f"a{n}=1" for n in range(200))))[0] == 400
    status, headers, body = await served.get(reads, origin="https://app.example")
    assert (status, body) == (200, {"items": [], "next": None})
    assert headers[b"access-control-allow-origin"] == b"https://app.example"
