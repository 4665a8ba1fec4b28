"""Tasks, steps and artifacts of the Agent Protocol in the database. A task of another user is absent.

A step is one ask to the agent of its task, whose reply is stored whether or not its client still waits.
"""

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, TypeVar
from uuid import UUID, uuid4

from django.db import transaction
from django.db.models import F, Model, QuerySet, Sum

from accounts import quotas
from accounts.authn import Identity
from agents.core.waiting import RunningTurn
from agents.limits import STORAGE
from agents.models.choices import Outcome
from agents.transcript.files import MAX_NAME_CHARS, clean_mime, clean_name
from agents.transcript.pieces import question_of
from gateway import limits
from gateway.models import ProtocolArtifact, ProtocolStep, ProtocolTask
from gateway.service.client import Gateway
from gateway.service.messages import MessageToAsk
from gateway.service.protocol_shapes import (
    ASKS_INPUT,
    ApiArtifact,
    ApiStep,
    ApiTask,
    NewFile,
    PageOf,
    RequestBody,
    files_of,
    output_of,
    parts_of,
    show_artifacts,
    show_step,
    show_task,
)
from gateway.wire.errors import FrameRefused, failed_turn_error
from gateway.wire.frames import Json
from kit import batches
from kit.asgi import RequestRefused
from kit.async_db import db_call
from kit.clock import db_now
from kit.tasks import start_apart

MAX_UNSENT_BYTES = 524_288  # of uploads that no step gave to the agent yet: a step gives it all of them at once
LOST_AFTER = timedelta(seconds=60)
NO_INPUT = "input: this step needs one, the agent has answered the input of the task"
TASK, STEP, ARTIFACT = "task", "step", "artifact"

Row = TypeVar("Row", bound=Model)


@dataclass(frozen=True, slots=True)
class BegunStep:
    """A step that is about to be asked, and the uploads that it gives to the agent."""

    task: ProtocolTask
    step: ProtocolStep
    uploads: Sequence[ProtocolArtifact]


def absent(what: str) -> RequestRefused:
    """404: the row is absent, or belongs to another user."""
    return RequestRefused(404, "not_found", f"there is no such {what}")


@transaction.atomic
def create_task(owner_id: int, agent: str, wanted: RequestBody) -> ApiTask:
    """A new task.

    Raises:
        QuotaExceeded: its owner has as many tasks, or as many bytes, as a user may have.
    """
    limits.PROTOCOL_TASKS.check(owner_id)
    size = _size_of(wanted)
    _check_room(owner_id, size)
    task = ProtocolTask.objects.create(
        owner_id=owner_id,
        agent=agent,
        input=wanted.input or "",
        additional_input=wanted.additional_input,
        size=size,
    )
    return show_task(task, ())


def list_tasks(owner_id: int, page: PageOf) -> Json:
    """A page of the tasks of a user, newest first."""
    return page.show("tasks", ProtocolTask.objects.filter(owner=owner_id).order_by("-pk"), _show_tasks)


def get_task(owner_id: int, task_id: UUID) -> ApiTask:
    """One task.

    Raises:
        RequestRefused: 404.
    """
    return _show_tasks([find_task(owner_id, task_id)])[0]


def find_task(owner_id: int, task_id: UUID) -> ProtocolTask:
    """The row of a task.

    Raises:
        RequestRefused: 404.
    """
    return _get(ProtocolTask.objects.filter(owner=owner_id, public_id=task_id), TASK)


def list_steps(owner_id: int, task_id: UUID, page: PageOf) -> Json:
    """A page of the steps of a task, oldest first.

    Raises:
        RequestRefused: 404.
    """
    return page.show("steps", _steps_of(find_task(owner_id, task_id)).order_by("pk"), _show_steps)


def get_step(owner_id: int, task_id: UUID, step_id: UUID) -> ApiStep:
    """One step.

    Raises:
        RequestRefused: 404.
    """
    return _show_steps([_get(_steps_of(find_task(owner_id, task_id)).filter(public_id=step_id), STEP)])[0]


@transaction.atomic
def begin_step(owner_id: int, task_id: UUID, wanted: RequestBody, wait_s: float) -> BegunStep:
    """Note a step that is about to be asked. The first one without an input has that of its task.

    Raises:
        RequestRefused: 404, 409 while another step runs, 422 without an input.
        QuotaExceeded: the task has as many steps, or its owner as many bytes, as one may have.
    """
    quotas.lock_owner(owner_id)  # one after another: steps of a task, and what they add to the bytes of its owner
    task = find_task(owner_id, task_id)
    now = db_now()
    task.steps.exclude(pk__in=task.steps.kept(now)).delete()
    if task.steps.filter(status=ProtocolStep.Status.RUNNING).exists():
        raise RequestRefused(409, "conflict", "a step of this task runs")
    limits.STEPS.check_number(task.steps.count())
    last = task.steps.order_by("-pk").first()
    text = wanted.input or ("" if last else task.input)
    if not text.strip():
        raise RequestRefused(422, "validation_failed", NO_INPUT)
    size = _size_of(wanted)
    _check_room(owner_id, size)
    public_id = uuid4()
    step = ProtocolStep.objects.create(
        task=task,
        public_id=public_id,
        input=text,
        additional_input=wanted.additional_input,
        agent_task_id=last.agent_task_id if last and last.asks_input else str(public_id),
        until=now + timedelta(seconds=wait_s) + LOST_AFTER,
    )
    _add_size(task, size, now)
    uploads = task.artifacts.filter(agent_created=False, was_sent=False).order_by("pk")
    return BegunStep(task, step, list(uploads))


@transaction.atomic
def finish_step(begun: BegunStep, output: str, asks_input: bool, files: Iterable[NewFile]) -> ApiStep:
    """Store the reply of a step; of files beyond the limit of a task none is kept.

    Raises:
        RequestRefused: 404, the task was erased meanwhile.
    """
    task, step = begun.task, begun.step
    step.status, step.output, step.asks_input = ProtocolStep.Status.COMPLETED, output, asks_input
    fields = {"status": step.status, "output": output, "asks_input": asks_input}
    if not ProtocolStep.objects.filter(pk=step.pk).update(**fields):
        raise absent(TASK)
    room = limits.ARTIFACTS.most - ProtocolArtifact.objects.filter(task=task).count()
    kept = [one for _, one in zip(range(room), files, strict=False)]
    made = [_store(task, one, step=step, agent_created=True, was_sent=True) for one in kept]
    _add_size(task, len(output.encode()) + sum(one.size for one in made), db_now())
    return show_step(step, made)


def drop_step(step: ProtocolStep) -> None:
    """Forget a step that was refused or failed."""
    ProtocolStep.objects.filter(pk=step.pk).delete()


def mark_sent(begun: BegunStep, chat_id: str) -> None:
    """Note the turn of a step, and that the agent was given its uploads."""
    ProtocolStep.objects.filter(pk=begun.step.pk).update(chat_id=chat_id)
    ProtocolArtifact.objects.filter(pk__in=[one.pk for one in begun.uploads]).update(was_sent=True)


@transaction.atomic
def add_artifact(owner_id: int, task_id: UUID, file: NewFile) -> ApiArtifact:
    """Store an upload; the next step gives it to the agent.

    Raises:
        RequestRefused: 404; 413 with more than MAX_UNSENT_BYTES that wait for a step.
        QuotaExceeded: the task has as many artifacts, or its owner as many bytes, as one may have.
    """
    quotas.lock_owner(owner_id)
    task = find_task(owner_id, task_id)
    limits.ARTIFACTS.check_number(task.artifacts.count())
    size = len(file.data)
    waiting = task.artifacts.filter(agent_created=False, was_sent=False)
    if _sum(waiting) + size > MAX_UNSENT_BYTES:
        text = f"a step gives its agent at most {MAX_UNSENT_BYTES} bytes of artifacts"
        raise RequestRefused(413, "payload_too_large", text)
    _check_room(owner_id, size)
    artifact = _store(task, file)
    _add_size(task, size, db_now())
    return show_artifacts([artifact])[0]


def list_artifacts(owner_id: int, task_id: UUID, page: PageOf) -> Json:
    """A page of the artifacts of a task, oldest first.

    Raises:
        RequestRefused: 404.
    """
    rows = find_task(owner_id, task_id).artifacts.defer("data").order_by("pk")
    return page.show("artifacts", rows, show_artifacts)


def get_artifact(owner_id: int, task_id: UUID, artifact_id: UUID) -> ProtocolArtifact:
    """One artifact with its bytes.

    Raises:
        RequestRefused: 404.
    """
    return _get(find_task(owner_id, task_id).artifacts.filter(public_id=artifact_id), ARTIFACT)


def forget_tasks(kept_days: int) -> int:
    """Delete tasks that were not used for so long; returns the number of rows."""
    return batches.delete(ProtocolTask.objects.filter(used_at__lt=db_now() - timedelta(days=kept_days)), 20)


def _get(rows: QuerySet[Row], what: str) -> Row:
    found = rows.first()
    if found is None:
        raise absent(what)
    return found


def _steps_of(task: ProtocolTask) -> "QuerySet[ProtocolStep]":
    rows: QuerySet[ProtocolStep] = task.steps.kept(db_now())
    return rows


def _show_tasks(tasks: Sequence[ProtocolTask]) -> list[ApiTask]:
    artifacts = _artifacts_by("task_id", ProtocolArtifact.objects.filter(task__in=tasks))
    return [show_task(one, artifacts[one.pk]) for one in tasks]


def _show_steps(steps: Sequence[ProtocolStep]) -> list[ApiStep]:
    artifacts = _artifacts_by("step_id", ProtocolArtifact.objects.filter(step__in=steps))
    return [show_step(one, artifacts[one.pk]) for one in steps]


def _artifacts_by(column: str, rows: QuerySet[ProtocolArtifact]) -> dict[Any, list[ProtocolArtifact]]:
    found: dict[Any, list[ProtocolArtifact]] = defaultdict(list)
    for one in rows.defer("data").order_by("pk"):
        found[getattr(one, column)].append(one)
    return found


def _store(task: ProtocolTask, file: NewFile, **fields: Any) -> ProtocolArtifact:
    return ProtocolArtifact.objects.create(
        task=task,
        file_name=clean_name(file.name)[:MAX_NAME_CHARS],
        relative_path=file.relative_path,
        mime=clean_mime(file.mime),
        size=len(file.data),
        data=file.data,
        **fields,
    )


def _check_room(owner_id: int, size: int) -> None:
    held = ProtocolTask.objects.filter(owner=owner_id).aggregate(held=Sum("size", default=0))["held"]
    STORAGE.check(owner_id, held + size)


def _sum(rows: QuerySet[ProtocolArtifact]) -> int:
    return int(rows.aggregate(held=Sum("size", default=0))["held"])


def _size_of(wanted: RequestBody) -> int:
    return len((wanted.input or "").encode()) + len(str(wanted.additional_input or "").encode())


def _add_size(task: ProtocolTask, size: int, now: datetime) -> None:
    ProtocolTask.objects.filter(pk=task.pk).update(size=F("size") + size, used_at=now)


class StepRunner:
    """Asks the agents of tasks. `reply_wait_s`: how long an agent may take that has no wait of its own."""

    def __init__(self, gateway: Gateway, reply_wait_s: float) -> None:
        self.router = gateway.router
        self._start = gateway.link.start
        self._reply_wait_s = reply_wait_s

    async def begin(
        self, identity: Identity, task_id: UUID, wanted: RequestBody, traceparent: str
    ) -> asyncio.Future[ApiStep | FrameRefused]:
        """Ask; the future of the step, once its reply is stored, or of the reason why there is none.

        Raises:
            FrameRefused, RequestRefused, QuotaExceeded: nothing was sent.
        """
        router, task = self.router, await db_call(find_task)(identity.user_id, task_id)
        found = await router.find_addressee(task.agent, identity.user_id)
        wait_s = found.reply_wait_s(self._reply_wait_s)
        begun = await db_call(begin_step)(identity.user_id, task_id, wanted, wait_s)
        parts = parts_of(begun.step.input, begun.uploads)
        text = question_of(parts, "") or begun.step.input
        try:
            running = await router.ask(
                identity,
                task.agent,
                MessageToAsk(text, parts, begun.step.agent_task_id),
                message_id=str(begun.step.public_id),
                session_id=str(begun.task.public_id),
                wait_s=wait_s,
                traceparent=traceparent,
            )
        except FrameRefused:
            await db_call(drop_step)(begun.step)
            raise
        return start_apart(self._start, self._finish(begun, running), "step")

    async def _finish(self, begun: BegunStep, running: RunningTurn) -> ApiStep | FrameRefused:
        """Store the reply of a step; returns the step, or the reason why there is no reply."""
        await db_call(mark_sent)(begun, running.ask.chat_id)
        settled = await asyncio.shield(running.settled)
        if settled.outcome is not Outcome.COMPLETED:
            await db_call(drop_step)(begun.step)
            return failed_turn_error(settled.reason, settled.own_words)
        asks_input = settled.reason in ASKS_INPUT
        output, files = output_of(settled, running.pieces), list(files_of(running.pieces))
        return await db_call(finish_step)(begun, output, asks_input, files)
