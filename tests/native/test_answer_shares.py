"""Shared answers as rows: pages of their owner, links that are guessed, limits, and their end."""

import json
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone
from msgspec import structs

from a2a_bridge import jobs
from a2a_bridge.models import AnswerShare, StoredTask, Thread, ThreadTask
from a2a_bridge.service import shares
from a2a_bridge.service.shares import MadeShare, ThreadCopy, WantedShare, share_answer
from a2a_bridge.service.threads import changes
from a2a_bridge.wire.shared import join_content, write_content, write_title
from a2a_bridge.wire.task import Artifact, Message, Role, State, Task
from accounts.groups import add_member, create_group
from accounts.models import Membership
from accounts.quotas import QuotaExceeded
from agents.models import Agent
from agents.transcript.callers_files import address_of
from agents.transcript.pieces import Part, Usage
from kit.asgi import RequestRefused
from tests.native.rows import Person, api, browser, make_agent

pytestmark = pytest.mark.django_db


def said(role: Role, text: str = "", **part: Any) -> Message:
    return Message("m", role, (Part(text=text, **part),) if text else (Part(**part),))


def make_task(agent: Agent, caller: Person, **fields: Any) -> Task:
    """An answered task."""
    task = Task(
        id="task-1",
        caller_id=caller.user.pk,
        handle=agent.handle,
        context_id="my-context",
        chat_id="my-chat",
        home="h",
        state=State.COMPLETED,
        updated_at="2026-11-01T00:00:00.000Z",
        history=(said(Role.USER, "How <b>long</b>?"),),
        artifacts=(Artifact("reply-1", (Part(text="A year."),)),),
    )
    return structs.replace(task, **fields)


def make_share(owner: Person, audience: str = "link", *, slug: str = "helper", **wanted: Any) -> MadeShare:
    agent = Agent.objects.filter(handle=f"{owner.user.login}/{slug}").first() or make_agent(owner.user, slug)
    return share_answer(owner.user.pk, make_task(agent, owner), WantedShare(audience=audience, **wanted))


def test_a_share_has_no_notes_decisions_metadata_usage_or_ids(alice: Person) -> None:
    task = make_task(
        make_agent(alice.user),
        alice,
        usage=Usage(1, 2, 3),
        metadata={"my": "metadata"},
        message=said(Role.AGENT, "done", metadata={"my": "note"}),
        turns=2,
        history=(
            said(Role.USER, "first", metadata={"my": "part"}),
            said(Role.AGENT, "reading"),
            said(Role.AGENT, "may I use the shell?"),
            said(Role.USER, data={"requestId": "r", "decision": "approve"}),
            said(Role.AGENT, "which one?"),
            said(Role.USER, "the second"),
        ),
        artifacts=(
            Artifact(
                "reply-1", (Part(text="It is this."),), metadata={"my": "artifact"}, extensions=("https://e",)
            ),
        ),
    )
    [shown] = json.loads(write_content([task]))
    assert [one["parts"][0]["text"] for one in shown["history"]] == ["first", "which one?", "the second"]
    assert shown["artifacts"] == [{"artifactId": "reply-1", "parts": [{"text": "It is this."}]}]
    text = json.dumps(shown)
    for hidden in ("my", "usage", "shell", "reading", "approve", "task-1", "https://e"):
        assert hidden not in text, hidden


def test_a_share_has_the_names_of_kept_files_alone_and_addresses_elsewhere_as_sent(alice: Person) -> None:
    kept = Part(url=address_of(7), filename="plan.pdf", media_type="application/pdf")
    elsewhere = Part(url="https://elsewhere.example/a.png", media_type="image/png")
    asked = Message("m", Role.USER, (Part(text="see"), kept, elsewhere))
    [shown] = json.loads(write_content([make_task(make_agent(alice.user), alice, history=(asked,))]))
    _, note, outside = shown["history"][0]["parts"]
    assert note == {"text": "File that is not shared: plan.pdf, application/pdf", "mediaType": "text/plain"}
    assert outside == {"url": "https://elsewhere.example/a.png", "mediaType": "image/png"}


@pytest.mark.parametrize(
    ("message", "title"),
    [
        (said(Role.USER, "two\nlines\0 of it"), "two lines of it"),
        (said(Role.USER, "x" * 300), "x" * 200),
        (said(Role.USER, raw="YQ==", filename="a.pdf"), "a.pdf"),
        (said(Role.USER, data={"a": 1}), "(no text)"),
    ],
)
def test_the_title_is_the_beginning_of_the_question(alice: Person, message: Message, title: str) -> None:
    assert write_title(make_task(make_agent(alice.user), alice, history=(message,))) == title


def test_the_page_lists_what_one_shares_and_ends_it(alice: Person, bob: Person) -> None:
    assert "You share no answers" in browser(alice.session).get("/shares").content.decode()
    made = make_share(alice, "user", login="bob")
    link = make_share(alice)
    page = browser(alice.session).get("/shares").content.decode()
    assert page.count("How &lt;b&gt;long&lt;/b&gt;?") >= 2
    assert "@bob" in page
    assert link.token not in page
    assert f'href="/shared/{made.share.pk}"' in browser(bob.session).get("/shares").content.decode()
    refused = browser(bob.session).post(f"/shares/{made.share.pk}/end")
    assert (refused.status_code, AnswerShare.objects.count()) == (302, 2)
    browser(alice.session).post(f"/shares/{made.share.pk}/end")
    assert not AnswerShare.objects.filter(pk=made.share.pk).exists()
    assert browser(bob.session).get(f"/shared/{made.share.pk}").status_code == 404


def test_an_answer_in_a_page_is_data_and_no_markup(alice: Person) -> None:
    agent = make_agent(alice.user)
    hostile = make_task(agent, alice, artifacts=(Artifact("reply-1", (Part(text="</script><script>x()"),)),))
    made = share_answer(alice.user.pk, hostile, WantedShare(audience="link"))
    page = browser().get(f"/s/{made.token}").content.decode()
    assert "x()" in page
    assert "</script><script>x" not in page


def test_an_expired_link_looks_like_one_that_never_was_and_its_copy_is_deleted(alice: Person, bob: Person) -> None:
    made, kept = make_share(alice, days=1), make_share(alice, "user", login="bob")
    AnswerShare.objects.filter(pk=made.share.pk).update(expires_at=timezone.now())
    expired, absent = [browser(REMOTE_ADDR="203.0.113.9").get(f"/s/{one}") for one in (made.token, "0" * 32)]
    assert expired.status_code == 404
    assert expired.content == absent.content
    assert "it expired" in browser(alice.session).get("/shares").content.decode()
    assert jobs.forget_shares() == 1
    assert list(AnswerShare.objects.all()) == [kept.share]


def test_how_long_a_share_lasts(alice: Person, bob: Person, settings: Any) -> None:
    settings.SHARES_KEPT_DAYS = 30
    for audience, days, lasts in (("link", None, 7), ("everyone", None, 30), ("link", 90, 30), ("everyone", 2, 2)):
        share = make_share(alice, audience, days=days).share
        assert share.expires_at - share.created_at == timedelta(days=lasts), audience


def test_the_number_and_the_size_of_shares_have_limits(
    alice: Person, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.SHARES_PER_OWNER = 1
    make_share(alice)
    with pytest.raises(QuotaExceeded, match="you share 1 answers"):
        make_share(alice)
    monkeypatch.setattr(shares, "MAX_CONTENT_BYTES", 10)
    with pytest.raises(RequestRefused) as refused:
        make_share(alice)
    assert refused.value.status == 413


def test_members_of_a_group_read_what_is_shared_with_it_and_auditors_do_not(
    alice: Person, bob: Person, carol: Person
) -> None:
    group = create_group("readers", "Readers", made_by=alice.user)
    with pytest.raises(RequestRefused, match="you are in no group"):
        make_share(bob, "group", login="readers")
    add_member(group, bob.user, Membership.Role.MEMBER, by=alice.user)
    add_member(group, carol.user, Membership.Role.AUDITOR, by=alice.user)
    made_by = make_agent(alice.user, "asked")
    page = browser(bob.session).get(f"/agents/{made_by.handle}").content.decode()
    assert '<option value="readers">Readers (@readers)</option>' in page
    assert "share-group" not in browser(carol.session).get(f"/agents/{made_by.handle}").content.decode()
    share = make_share(alice, "group", login="@readers").share
    assert (share.user_id, share.audience) == (group.pk, "group")
    assert api(bob.session).get(f"/api/v1/shares/{share.pk}").status_code == 200
    assert api(carol.session).get(f"/api/v1/shares/{share.pk}").status_code == 404
    assert f"/shared/{share.pk}" in browser(bob.session).get("/shares").content.decode()
    Membership.objects.filter(user=bob.user).delete()
    assert api(bob.session).get(f"/api/v1/shares/{share.pk}").status_code == 404
    with pytest.raises(RequestRefused, match="no user has the login"):
        make_share(alice, "user", login="readers")


def test_a_thread_is_shared_as_it_is_and_ends_with_it(alice: Person, bob: Person) -> None:
    agent = make_agent(alice.user)
    at = timezone.now()
    thread = Thread.objects.create(
        caller=alice.user, agent=agent, context_id="my-context", title="Trip", began_at=at, last_asked_at=at
    )
    assert shares.find_thread(bob.user.pk, thread.public_id) is None
    found = shares.find_thread(alice.user.pk, thread.public_id)
    assert found is not None
    tasks = [make_task(agent, alice), make_task(agent, alice, state=State.FAILED), make_task(agent, alice)]
    running = make_task(agent, alice, state=State.WORKING)
    to = WantedShare(audience="user", login="bob")
    with pytest.raises(RequestRefused, match="no answer"):
        shares.share_thread(alice.user.pk, found, copy_of(running), to)
    share = shares.share_thread(alice.user.pk, found, copy_of(*tasks, running), to).share
    assert (share.title, share.is_of_thread, len(json.loads(share.content))) == ("Trip", True, 3)
    page = browser(bob.session).get(f"/shared/{share.pk}").content.decode()
    assert page.count("A year.") == 3
    answer = share_answer(alice.user.pk, tasks[0], to).share
    assert AnswerShare.objects.filter(pk__in=[share.pk, answer.pk]).count() == 2
    changes.delete(thread)
    assert not AnswerShare.objects.exists()
    assert browser(bob.session).get(f"/shared/{share.pk}").status_code == 404


def make_thread(caller: Person, agent: Agent, *task_ids: str) -> Thread:
    at = timezone.now()
    thread = Thread.objects.create(
        caller=caller.user, agent=agent, context_id="my-context", title="Trip", began_at=at, last_asked_at=at
    )
    columns: dict[str, Any] = {"handle": agent.handle, "context_id": "my-context", "state": "completed"}
    numbers = dict.fromkeys(("seq", "snapshot_seq", "snapshot_bytes", "events_bytes", "schema_version"), 1)
    for one in task_ids:
        StoredTask.objects.create(
            id=one, caller=caller.user, chat_id=one, has_ended=True, updated_at=at, **columns, **numbers
        )
        ThreadTask.objects.create(thread=thread, task_id=one, asked_at=at, whose="w", question="", answer="")
    return thread


def copy_of(*tasks: Task) -> ThreadCopy:
    copy = ThreadCopy()
    for task in tasks:
        copy.add(task)
    return copy


def test_a_thread_with_too_many_tasks_is_refused_before_any_is_read(alice: Person) -> None:
    thread = make_thread(alice, make_agent(alice.user), *(f"t{number}" for number in range(201)))
    with pytest.raises(RequestRefused, match="over 200 questions") as refused:
        shares.find_thread(alice.user.pk, thread.public_id)
    assert refused.value.status == 413


def test_the_copy_of_a_thread_is_refused_at_its_first_task_too_much(alice: Person) -> None:
    third = Artifact("reply-1", (Part(text="x" * (shares.MAX_CONTENT_BYTES // 3)),))
    task = make_task(make_agent(alice.user), alice, metadata={"not": "x" * 1000}, artifacts=(third,))
    copy = copy_of(task, task)
    with pytest.raises(RequestRefused) as refused:
        copy.add(task)
    assert (refused.value.status, len(copy.tasks)) == (413, 2)
    assert [one["id"] for one in json.loads(join_content(copy.tasks))] == ["answer-1", "answer-2"]


def test_a_thread_that_was_deleted_meanwhile_gets_no_share(alice: Person) -> None:
    agent = make_agent(alice.user)
    found = shares.find_thread(alice.user.pk, make_thread(alice, agent).public_id)
    assert found is not None
    changes.delete(found.thread)
    with pytest.raises(RequestRefused, match="it was deleted") as refused:
        shares.share_thread(alice.user.pk, found, copy_of(make_task(agent, alice)), WantedShare(audience="link"))
    assert (refused.value.status, AnswerShare.objects.count()) == (404, 0)


def test_a_running_task_is_not_shared(alice: Person) -> None:
    task = make_task(make_agent(alice.user), alice, state=State.WORKING)
    with pytest.raises(RequestRefused, match="still works"):
        share_answer(alice.user.pk, task, WantedShare(audience="link"))


def test_a_suspended_owner_shows_nothing(alice: Person, bob: Person) -> None:
    made = make_share(alice, "user", login="bob")
    assert api(bob.session).get(f"/api/v1/shares/{made.share.pk}").status_code == 200
    alice.user.is_active = False
    alice.user.save()
    assert api(bob.session).get(f"/api/v1/shares/{made.share.pk}").status_code == 404


def test_the_admin_shows_ones_own_shares_without_links(alice: Person, bob: Person) -> None:
    made = make_share(alice)
    address = f"/admin/a2a_bridge/answershare/{made.share.pk}/change/"
    assert "How" in browser(alice.session).get("/admin/a2a_bridge/answershare/").content.decode()
    assert "digest" not in browser(alice.session).get(address).content.decode()
    assert browser(bob.session).get(address).status_code == 302
