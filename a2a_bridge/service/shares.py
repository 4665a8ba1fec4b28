"""Shows answers to others: to users, to groups, to everyone who is signed in, or to everyone who has a link.

A share has a copy of what it shows, so it does not depend on the store of the task (docs/adr/0194).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from uuid import UUID

from django.db import IntegrityError, transaction

from a2a_bridge import limits, settings
from a2a_bridge.models import AnswerShare, AnswerShareQuerySet, Thread
from a2a_bridge.wire.shared import join_content, write_content, write_task, write_title
from a2a_bridge.wire.task import State, Task
from accounts.authn import digest
from accounts.models import Group, Membership, User
from agents.models import Agent
from kit import batches
from kit.asgi import RequestRefused
from kit.clock import db_now
from kit.ids import unguessable

LINK_DAYS = 7
MAX_CONTENT_BYTES = 4 * 1024 * 1024
MAX_TASKS = 200  # of a shared thread
ANSWERED = (State.COMPLETED, State.INPUT_REQUIRED, State.AUTH_REQUIRED)

Audience = AnswerShare.Audience


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedShare:
    """The recipients of an answer. `login`: of the user or the group, if the audience is one.

    `days`: None for the default.
    """

    audience: str
    login: str = ""
    days: int | None = None


@dataclass(frozen=True, slots=True)
class SharedThread:
    """A thread with the ids of its tasks in the order in which they were asked."""

    thread: Thread
    task_ids: Sequence[str]


@dataclass(slots=True)
class ThreadCopy:
    """The content of a thread's share, made a task at a time: the tasks of a thread may be far larger.

    `is_answered`: one of the tasks has an answer.
    """

    tasks: list[str] = field(default_factory=list)
    size_bytes: int = 0
    is_answered: bool = False

    def add(self, task: Task) -> None:
        """Add a task as it is now, unless it runs.

        Raises:
            RequestRefused: the tasks are too large together.
        """
        if task.is_running:
            return
        written = write_task(task, len(self.tasks) + 1)
        self.size_bytes += len(written.encode())
        check_size(self.size_bytes)
        self.tasks.append(written)
        self.is_answered = self.is_answered or task.state in ANSWERED


@dataclass(frozen=True, slots=True)
class MadeShare:
    """A share. `token`: of its link, which is not stored; empty without one."""

    share: AnswerShare
    token: str = ""


def share_answer(owner_id: int, task: Task, wanted: WantedShare) -> MadeShare:
    """Share a task of the owner's. A share of the same task with the same recipients is replaced, but for links.

    Raises:
        RequestRefused: the answer cannot be shared, or not with these recipients.
        QuotaExceeded: the owner shares too much.
    """
    check_answered(task)
    share = AnswerShare(
        owner_id=owner_id,
        agent=get_sharing_agent(owner_id, task.handle),
        task_id=task.id,
        context_id=task.context_id,
        title=write_title(task),
        content=write_content([task]),
    )
    return _keep(share, wanted)


def find_thread(owner_id: int, public_id: UUID) -> SharedThread | None:
    """A thread of the owner's with the ids of its tasks; None for those of other users.

    Raises:
        RequestRefused: the thread has too many tasks to be shared.
    """
    thread = Thread.objects.select_related("agent").filter(caller=owner_id, public_id=public_id).first()
    if thread is None:
        return None
    in_order = thread.tasks.order_by("asked_at", "pk").values_list("task_id", flat=True)
    task_ids = list(in_order[: MAX_TASKS + 1])
    if len(task_ids) > MAX_TASKS:
        raise RequestRefused(413, "payload_too_large", f"the thread has over {MAX_TASKS} questions: share answers")
    return SharedThread(thread, task_ids)


def share_thread(owner_id: int, found: SharedThread, copy: ThreadCopy, wanted: WantedShare) -> MadeShare:
    """Share a copy of a thread.

    Raises:
        RequestRefused: the thread cannot be shared, or not with these recipients.
        QuotaExceeded: the owner shares too much.
    """
    if not copy.is_answered:
        raise RequestRefused(409, "conflict", "it has no answer that could be shared")
    thread = found.thread
    share = AnswerShare(
        owner_id=owner_id,
        agent=get_sharing_agent(owner_id, thread.agent.handle),
        context_id=thread.context_id,
        title=thread.title,
        content=join_content(copy.tasks),
    )
    return _keep(share, wanted, thread)


def get_sharing_agent(owner_id: int, handle: str) -> Agent:
    """The agent, if the user may ask it and share its answers.

    Raises:
        RequestRefused: the user may not.
    """
    agent: Agent | None = Agent.objects.askable_by(owner_id).at(handle).first()
    if agent is None:
        raise RequestRefused(404, "not_found", "no such agent: you may not ask it any more")
    if not agent.caller_sharing:
        raise RequestRefused(403, "forbidden", "the agent's owner does not allow its answers to be shared")
    return agent


def check_answered(task: Task) -> None:
    """Check that a task has an answer.

    Raises:
        RequestRefused: the agent works on it, or there is none.
    """
    if task.is_running:
        raise RequestRefused(409, "conflict", "the agent still works on it: share it once it is answered")
    if task.state not in ANSWERED:
        raise RequestRefused(409, "conflict", "it has no answer that could be shared")


def check_size(size_bytes: int) -> None:
    """Check the size of a content.

    Raises:
        RequestRefused: the content is too large to be shared.
    """
    if size_bytes > MAX_CONTENT_BYTES:
        most = MAX_CONTENT_BYTES // 1_048_576
        raise RequestRefused(
            413, "payload_too_large", f"questions, answers and files have over {most} MiB together"
        )


def _keep(share: AnswerShare, wanted: WantedShare, thread: Thread | None = None) -> MadeShare:
    """Write a share, with the row of its thread locked, so that no thread is deleted without its shares."""
    share.content_bytes = len(share.content.encode())
    check_size(share.content_bytes)
    token = unguessable() if wanted.audience == Audience.LINK else ""
    share.audience, share.digest = wanted.audience, digest(token) if token else None
    share.user = _find_recipient(share.owner_id, wanted)
    share.created_at = db_now()
    share.expires_at = share.created_at + timedelta(days=_days_of(wanted))
    try:
        with transaction.atomic():
            if thread and not Thread.objects.select_for_update().filter(pk=thread.pk).exists():
                raise RequestRefused(404, "not_found", "no such thread: it was deleted")
            if not token:
                earlier = AnswerShare.objects.filter(
                    owner=share.owner_id, agent=share.agent, task_id=share.task_id
                )
                earlier = earlier.filter(context_id=share.context_id, audience=share.audience, user=share.user)
                earlier.delete()
            limits.SHARES.check(share.owner_id)
            limits.SHARED_BYTES.check(share.owner_id, share.content_bytes)
            share.save()
    except IntegrityError:  # another request shared the same answer with the same recipients
        raise RequestRefused(409, "conflict", "you share this answer with them already") from None
    return MadeShare(share, token)


def _find_recipient(owner_id: int, wanted: WantedShare) -> User | None:
    if wanted.audience not in (Audience.USER, Audience.GROUP):
        return None
    user = User.objects.named(wanted.login.removeprefix("@"))
    if wanted.audience == Audience.GROUP:
        groups = Membership.objects.asking().filter(user=owner_id).values("group")
        if user is None or not Group.objects.filter(pk=user.pk, pk__in=groups).exists():
            raise RequestRefused(400, "validation_failed", f"login: you are in no group {wanted.login}")
        return user
    if user is None or user.is_service or user.is_group or not user.is_active:
        raise RequestRefused(400, "validation_failed", f"login: no user has the login {wanted.login}")
    if user.pk == owner_id:
        raise RequestRefused(400, "validation_failed", "login: you can read it already")
    return user


def _days_of(wanted: WantedShare) -> int:
    usual = LINK_DAYS if wanted.audience == Audience.LINK else settings.SHARES_KEPT_DAYS
    return min(wanted.days or usual, settings.SHARES_KEPT_DAYS)


def find_shared(user_id: int, share_id: int) -> AnswerShare | None:
    """A share that this user may open: an own one, or one of another user's; None for all others."""
    shares = AnswerShare.objects.open().select_related("owner", "agent")
    own, others = shares.filter(owner=user_id, pk=share_id), shares.shared_with(user_id).filter(pk=share_id)
    found: AnswerShare | None = own.first() or others.first()
    return found


def find_by_link(token: str) -> AnswerShare | None:
    """The share of a link; None for a link that has ended or expired, and for one that never was."""
    found: AnswerShare | None = (
        AnswerShare.objects.open().select_related("owner", "agent").filter(digest=digest(token)).first()
    )
    return found


def list_received(user_id: int) -> AnswerShareQuerySet:
    """What others share with this user, newest first, without the answers."""
    received = AnswerShare.objects.open().shared_with(user_id).select_related("owner", "agent")
    newest: AnswerShareQuerySet = received.order_by("-pk").defer("content")
    return newest


def find_shown(listed: Iterable[AnswerShare]) -> set[int]:
    """The keys of the listed shares that show their answer now."""
    return set(AnswerShare.objects.open().filter(pk__in=[one.pk for one in listed]).values_list("pk", flat=True))


def end_share(owner_id: int, share_id: int) -> bool:
    """Delete a share of this owner; False if the owner has no such share."""
    count, _ = AnswerShare.objects.filter(owner=owner_id, pk=share_id).delete()
    return bool(count)


def end_shares_of_thread(thread: Thread) -> int:
    """Delete what the caller of a thread shares of it; call it in the transaction that deletes the thread."""
    of_thread = AnswerShare.objects.filter(owner=thread.caller_id, agent=thread.agent_id)
    count, _ = of_thread.filter(context_id=thread.context_id).delete()
    return count


def forget_expired() -> int:
    """Delete shares that have expired; returns their number."""
    return batches.delete(AnswerShare.objects.filter(expires_at__lte=db_now()))
