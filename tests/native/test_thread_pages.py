"""The pages of threads: the list with its search, one thread, and its forms."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone
from msgspec import structs

from a2a_bridge.models import RecordedExchange, StoredTask, Thread, ThreadTask
from a2a_bridge.service.tasks.stored import VERSION, encode
from a2a_bridge.service.threads import changes, exporting, indexing
from a2a_bridge.wire.task import Artifact, Message, Role, State, Task
from agents.models import Agent, File, Turn
from agents.transcript import callers_files, mentions
from agents.transcript.callers_files import address_of
from agents.transcript.files import Upload
from agents.transcript.pieces import Part
from kit.clock import iso
from tests.native.rows import Person, browser, make_agent, make_turn

ABSENT = "00000000-0000-4000-8000-000000000000"


def ask(
    person: Person,
    agent: Agent,
    question: str,
    answer: str = "An **answer**.",
    *,
    context: str = "c-1",
    ago: int = 0,
) -> Task:
    """A question with its answer, as the journal has them."""
    at = timezone.now() - timedelta(minutes=ago)
    number = Turn.objects.count()
    turn = make_turn(
        agent, person.user, question=question, asked_at=at, task_id=f"task-{number}", context_id=context
    )
    task = Task(
        id=f"task-{number}",
        caller_id=person.user.pk,
        handle=agent.handle,
        context_id=context,
        chat_id=turn.chat_id,
        home="h",
        state=State.COMPLETED,
        updated_at=iso(at),
        history=(Message("m", Role.USER, (Part(text=question),)),),
        artifacts=(Artifact("reply-1", (Part(text=answer),)),),
    )
    keep(task)
    return task


def keep(task: Task, **columns: Any) -> None:
    snapshot = encode(task).decode()
    numbers = dict.fromkeys(("seq", "snapshot_seq", "snapshot_bytes", "events_bytes"), 1)
    values: dict[str, Any] = {
        "caller_id": task.caller_id,
        "handle": task.handle,
        "context_id": task.context_id,
        "chat_id": task.chat_id,
        "home": "h",
        "state": task.state,
        "has_ended": task.is_terminal,
        "updated_at": task.updated_at,
        "snapshot": snapshot,
        "schema_version": VERSION,
        "is_indexed": False,
    }
    StoredTask.objects.update_or_create(id=task.id, defaults=values | numbers | columns)


def page_of(person: Person, path: str = "/questions", status: int = 200) -> str:
    answer = browser(person.session).get(path)
    assert answer.status_code == status, answer.content.decode()
    return answer.content.decode()


def thread_of(person: Person) -> Thread:
    page_of(person)
    return Thread.objects.get(caller=person.user)


@pytest.fixture
def helper(bob: Person) -> Agent:
    return make_agent(bob.user, "helper")


def test_the_list_shows_title_agent_and_last_answer(alice: Person, helper: Agent) -> None:
    ask(alice, helper, "How <b>long</b> is it?", ago=2)
    ask(alice, helper, "And now?", "# Two\n\n*hours*")
    text = page_of(alice)
    assert "How &lt;b&gt;long&lt;/b&gt; is it?" in text
    assert "@bob/helper" in text
    assert "2 questions" in text
    assert "Two hours" in text
    assert "An answer" not in text


def test_a_search_marks_the_words_that_it_found(alice: Person, helper: Agent) -> None:
    ask(alice, helper, "Where do I begin?", "With the *manual* of <the> `hub`.")
    text = page_of(alice, "/questions?q=manuals")
    assert "With the <mark>manual</mark> of &lt;the" in text
    assert "Clear the search" in text
    assert "No thread like this" in page_of(alice, "/questions?q=unheard-of")
    assert "No threads yet" not in page_of(alice, "/questions?state=archived")


def test_a_thread_shows_its_questions_with_answers_to_render_and_the_ask_box(alice: Person, helper: Agent) -> None:
    task = ask(alice, helper, "What <i>now</i>?", "**This** <script>alert(1)</script>")
    text = page_of(alice, f"/questions/threads/{thread_of(alice).public_id}")
    assert "What &lt;i&gt;now&lt;/i&gt;?" in text
    assert "data-markdown>**This** &lt;script&gt;" in text
    assert f'id="{task.id}"' in text
    assert 'data-context="c-1"' in text
    assert 'id="ask"' in text


def test_a_thread_whose_agent_is_closed_is_read_and_not_continued(alice: Person, helper: Agent) -> None:
    ask(alice, helper, "What now?")
    Agent.objects.filter(pk=helper.pk).update(access="private")
    text = page_of(alice, f"/questions/threads/{thread_of(alice).public_id}")
    assert "**answer**" in text
    assert "You may not ask this agent any more" in text
    assert 'id="ask"' not in text


def test_a_failure_says_why_and_a_task_that_waits_has_a_way_to_answer_it(alice: Person, helper: Agent) -> None:
    failed = ask(alice, helper, "What now?", ago=1)
    why = Message("w", Role.AGENT, (Part(text="agent channel offline"),))
    keep(Task(**_fields(failed) | {"state": State.FAILED, "artifacts": (), "message": why}))
    asking = ask(alice, helper, "Which?")
    back = Message("q", Role.AGENT, (Part(text="Which one?"),))
    keep(Task(**_fields(asking) | {"state": State.INPUT_REQUIRED, "artifacts": (), "message": back}))
    text = page_of(alice, f"/questions/threads/{thread_of(alice).public_id}")
    assert "agent channel offline" in text
    assert "not answered" in text
    assert "Which one?" in text
    assert f'href="/agents/bob/helper?task={asking.id}">Answer the agent' in text


def _fields(task: Task) -> dict[str, Any]:
    return {name: getattr(task, name) for name in task.__struct_fields__}


def test_a_question_under_way_is_shown_and_keeps_its_thread_from_deletion(alice: Person, helper: Agent) -> None:
    ask(alice, helper, "First?")
    thread = thread_of(alice)
    make_turn(helper, alice.user, None, question="Still open?", context_id="c-1", task_id="task-open")
    text = page_of(alice, f"/questions/threads/{thread.public_id}")
    assert "Still open?" in text
    assert "Follow the answer" in text
    answer = browser(alice.session).post(f"/questions/threads/{thread.public_id}/change", {"act": "delete"})
    assert (answer.status_code, "is being answered" in answer.content.decode()) == (409, True)
    assert Thread.objects.exists()


def test_a_thread_is_renamed_archived_put_back_and_deleted(alice: Person, helper: Agent) -> None:
    ask(alice, helper, "First?")
    thread = thread_of(alice)
    address = f"/questions/threads/{thread.public_id}"
    post = browser(alice.session).post
    assert post(f"{address}/change", {"act": "rename", "title": "  Dinner  "})["Location"] == address
    assert "Dinner" in page_of(alice)
    assert post(f"{address}/change", {"act": "rename", "title": " "}).status_code == 400
    assert post(f"{address}/change", {"act": "rename", "title": "x" * 201}).status_code == 400
    assert post(f"{address}/change", {"act": "burn"}).status_code == 400
    assert post(f"{address}/change", {"act": "archive"}).status_code == 302
    assert "Dinner" not in page_of(alice)
    assert "Dinner" in page_of(alice, "/questions?state=archived")
    assert post(f"{address}/change", {"act": "restore"}).status_code == 302
    assert "Dinner" in page_of(alice)
    assert post(f"{address}/change", {"act": "delete"})["Location"] == "/questions"
    assert not StoredTask.objects.exists()
    assert Turn.objects.exists()  # the records of the agent's owner
    page_of(alice, address, 404)


def test_no_page_shows_a_thread_of_another_user(alice: Person, bob: Person, helper: Agent) -> None:
    ask(alice, helper, "A secret?")
    own = thread_of(alice).public_id
    assert "A secret" not in page_of(bob)
    for thread_id in (str(own), ABSENT, "x", "1"):
        for path in ("", "/export", "/export?form=json"):
            answer = browser(bob.session).get(f"/questions/threads/{thread_id}{path}")
            assert (answer.status_code, b"secret" in answer.content) == (404, False), path
            if thread_id == ABSENT:
                assert browser(None).get(f"/questions/threads/{own}{path}").status_code == 302
        for act in ("rename", "archive", "delete"):
            answer = browser(bob.session).post(
                f"/questions/threads/{thread_id}/change", {"act": act, "title": "theirs"}
            )
            assert answer.status_code == 404, act
    thread = Thread.objects.get()
    assert (thread.title, thread.archived_at) == ("A secret?", None)


def test_a_long_thread_is_read_in_parts_and_its_page_stays_small(alice: Person, helper: Agent) -> None:
    for number in range(60):
        ask(alice, helper, f"Question {number}?", "word " * 400, ago=100 - number)
    thread = thread_of(alice)
    path = f"/questions/threads/{thread.public_id}"
    seen = 0
    while path:
        text = page_of(alice, path)
        assert len(text) < 80_000
        seen += text.count('class="turn kept"')
        _, _, rest = text.partition('rel="prev" href="')
        path = f"/questions/threads/{thread.public_id}{rest.partition(chr(34))[0]}" if rest else ""
    assert seen == 60


def test_a_huge_answer_is_cut_on_the_page_and_whole_in_the_file(alice: Person, helper: Agent) -> None:
    ask(alice, helper, "All of it?", "long " * 50_000)
    address = f"/questions/threads/{thread_of(alice).public_id}"
    text = page_of(alice, address)
    assert "This is the beginning" in text
    assert len(text) < 100_000
    assert "".join(exporting.pieces(Thread.objects.get(), "markdown")).count("long ") == 50_000


def test_words_and_threads_go_with_their_tasks(alice: Person, helper: Agent) -> None:
    ask(alice, helper, "First?")
    thread_of(alice)
    StoredTask.objects.all().delete()
    assert not ThreadTask.objects.exists()
    assert indexing.delete_empty() == 1


def test_a_thread_that_got_a_task_again_is_not_deleted_as_an_empty_one(alice: Person, helper: Agent) -> None:
    ask(alice, helper, "First?")
    thread = thread_of(alice)
    empty = Thread.objects.create(
        caller=alice.user,
        agent=helper,
        context_id="c-2",
        title="Empty",
        began_at=timezone.now(),
        last_asked_at=timezone.now(),
    )
    assert indexing.delete_if_empty([thread.pk, empty.pk]) == 1  # found empty by a reader that was slower
    assert list(Thread.objects.all()) == [thread]
    assert ThreadTask.objects.count() == 1


def test_a_thread_with_a_task_is_not_deleted_without_it(alice: Person, helper: Agent) -> None:
    ask(alice, helper, "First?")
    thread = thread_of(alice)
    assert not changes.delete_if_without_tasks(thread)
    assert ThreadTask.objects.filter(thread=thread).exists()
    StoredTask.objects.all().delete()
    assert changes.delete_if_without_tasks(thread)
    assert changes.delete_if_without_tasks(thread)  # another request has deleted it
    assert not Thread.objects.exists()


def test_a_task_that_was_not_read_yet_is_deleted_with_its_thread(alice: Person, helper: Agent) -> None:
    ask(alice, helper, "First?")
    thread = thread_of(alice)
    ask(alice, helper, "Second?")  # has ended, and no job has read it
    changes.delete(thread)
    assert indexing.index_all() == 0
    assert not StoredTask.objects.exists()
    assert not Thread.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_of_a_thread_that_is_deleted_while_tasks_are_read_into_it_no_task_is_kept_unlisted(
    alice: Person, helper: Agent
) -> None:
    for number in range(5):
        ask(alice, helper, "First?", ago=number)
        thread = thread_of(alice)
        ask(alice, helper, "Second?")

        def read() -> None:
            try:
                indexing.index_all()
            finally:
                connection.close()

        with ThreadPoolExecutor(1) as reader:
            reading = reader.submit(read)
            changes.delete(thread)
            reading.result()
        indexing.index_all()
        assert StoredTask.objects.count() == ThreadTask.objects.count()
        StoredTask.objects.all().delete()
        indexing.delete_empty()


def test_the_records_of_a_thread_are_deleted_with_it(alice: Person, bob: Person, helper: Agent) -> None:
    task = ask(alice, helper, "First?")
    other = ask(alice, helper, "Elsewhere?", context="c-2")
    earlier = make_turn(helper, alice.user, question="Before?", context_id="c-1", task_id=task.id)
    moment = timezone.now()
    for caller, chat_id in (
        (alice, task.chat_id),
        (alice, earlier.chat_id),
        (alice, other.chat_id),
        (bob, task.chat_id),
    ):
        RecordedExchange.objects.create(
            chat_id=chat_id,
            caller=caller.user,
            request_headers="{}",
            response_headers="{}",
            request_bytes=0,
            response_bytes=0,
            status=200,
            received_at=moment,
            ended_at=moment,
        )
    page_of(alice)
    changes.delete(Thread.objects.get(context_id="c-1"))
    kept = RecordedExchange.objects.values_list("caller", "chat_id")
    assert set(kept) == {(alice.user.pk, other.chat_id), (bob.user.pk, task.chat_id)}


def test_texts_with_nul_and_tasks_that_cannot_be_read_do_not_stop_the_others(alice: Person, helper: Agent) -> None:
    ask(alice, helper, "a\0b?", "nul \0 here")
    broken = ask(alice, helper, "broken", context="c-2")
    StoredTask.objects.filter(pk=broken.id).update(snapshot="{")
    later = ask(alice, helper, "later", context="c-3")
    StoredTask.objects.filter(pk=later.id).update(schema_version=VERSION + 1)
    assert indexing.index_all() == 3
    assert indexing.index_all() == 0
    assert [one.context_id for one in Thread.objects.all()] == ["c-1"]
    assert "nul" in page_of(alice, "/questions?q=nul")


def test_a_hub_without_the_journal_lists_single_questions(alice: Person, helper: Agent, settings: Any) -> None:
    settings.TASK_STORE = "memory"
    make_turn(helper, alice.user, question="only a turn")
    assert "only a turn" in page_of(alice)


def test_a_thread_links_its_files_and_takes_them_along_when_it_is_deleted(alice: Person, helper: Agent) -> None:
    checked = callers_files.check_upload(Upload(filename="plan.txt", mime="text/plain", data=b"the plan"))
    file = callers_files.add(alice.user, checked)
    agents = {"agent_id": helper.pk, "context_id": "c-1"}
    mentions.clone_mentioned_files(helper.session_id, [file.pk], alice.user.pk, chat_id="chat", **agents)
    task = ask(alice, helper, "What does it say?")
    named = Part(url=address_of(file.pk), filename="plan.txt", media_type="text/plain")
    asked = Message("m", Role.USER, (Part(text="What does it say?"), named))
    StoredTask.objects.all().delete()
    keep(structs.replace(task, history=(asked,)))
    indexing.index_all()
    thread = Thread.objects.get()
    address = f"/questions/threads/{thread.public_id}"
    assert (
        f'href="/api/v1/files/{file.pk}/content" download' in browser(alice.session).get(address).content.decode()
    )
    assert browser(alice.session).post(f"{address}/change", {"act": "delete"}).status_code == 302
    assert not File.objects.live().exists()
    assert browser(alice.session).get(f"/api/v1/files/{file.pk}/content").status_code == 404
