"""The rows of `lab.bench.threads`: threads of several callers, read into the index as the hub does it."""

from collections.abc import Iterator
from datetime import datetime, timedelta

from django.db import connection, transaction
from django.utils import timezone

from a2a_bridge.models import StoredTask, Thread
from a2a_bridge.service.tasks.stored import VERSION, encode
from a2a_bridge.service.threads.indexing import index_all
from a2a_bridge.wire.task import Artifact, Message, Role, State, Task
from accounts import tokens
from accounts.models import Credential, User
from agents.models import Agent, Turn
from agents.models.choices import Outcome, Surface
from agents.transcript.pieces import Part
from lab.bench.seed import add_agents, write_rows

A_THREAD = 5
TOPICS = 10
QUESTION = "Question number {number} about topic{topic}: why does the build of last night fail?"
ANSWER = (
    "The **build** of last night failed at step {number}:\n\n- topic{topic} was not compiled\n"
    "- the cache was old\n\n"
    "```sh\nmake clean\nmake all\n```\n\nRun it again; see the log of the build for the reason. "
)


def seed_threads(questions: int, callers: int, long_thread: int, answer: str = ANSWER) -> dict[str, str]:
    """Write so many questions with their answers; the token of the first caller, and the id of its long thread.

    `answer`: to the questions of the long thread.
    """
    with transaction.atomic():
        people = [tokens.get_or_create_local_user(f"reader-{number}") for number in range(callers)]
        [agent] = add_agents(1)
        Agent.objects.filter(pk=agent.pk).update(status=Agent.Status.PUBLISHED, access=Agent.Access.PUBLIC)
        write_rows(Turn, _turns(people, agent, questions, long_thread))
        write_rows(StoredTask, _tasks(people, agent, questions, long_thread, answer))
    index_all()
    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE" if connection.vendor == "postgresql" else "ANALYZE")
    return {
        "session_token": tokens.mint(people[0], Credential.Kind.SESSION, "bench").token,
        "thread": str(Thread.objects.get(caller=people[0], context_id="long").public_id),
    }


def _places(people: list[User], questions: int, long_thread: int) -> Iterator[tuple[int, User, str, datetime]]:
    """The number, caller, context and time of each question; the last ones are one long thread."""
    now = timezone.now()
    for number in range(questions):
        caller = people[number % len(people)]
        context = f"context-{caller.pk}-{number // len(people) // A_THREAD}"
        if number >= questions - long_thread:
            caller, context = people[0], "long"
        yield number, caller, context, now - timedelta(seconds=60 * (questions - number))


def _turns(people: list[User], agent: Agent, questions: int, long_thread: int) -> Iterator[Turn]:
    for number, caller, context, at in _places(people, questions, long_thread):
        yield Turn(
            chat_id=f"chat-{number}",
            agent=agent,
            session_id=agent.session_id,
            caller=caller,
            surface=Surface.A2A,
            question=QUESTION.format(number=number, topic=number % TOPICS),
            asked_at=at,
            outcome=Outcome.COMPLETED,
            settled_at=at,
            released_at=at,
            task_id=f"task-{number}",
            context_id=context,
        )


def _tasks(
    people: list[User], agent: Agent, questions: int, long_thread: int, answer: str
) -> Iterator[StoredTask]:
    for number, caller, context, at in _places(people, questions, long_thread):
        texts = {"number": number, "topic": number % TOPICS}
        answered = (answer if context == "long" else ANSWER).format(**texts)
        asked = Message(f"m-{number}", Role.USER, (Part(text=QUESTION.format(**texts)),))
        task = Task(
            id=f"task-{number}",
            caller_id=caller.pk,
            handle=agent.handle,
            context_id=context,
            chat_id=f"chat-{number}",
            home="bench",
            state=State.COMPLETED,
            updated_at=at.isoformat(),
            history=(asked,),
            artifacts=(Artifact("reply-1", (Part(text=answered),)),),
        )
        snapshot = encode(task).decode()
        yield StoredTask(
            id=task.id,
            caller=caller,
            handle=task.handle,
            context_id=context,
            chat_id=task.chat_id,
            home=task.home,
            state=task.state,
            has_ended=True,
            updated_at=at,
            seq=1,
            snapshot=snapshot,
            snapshot_seq=1,
            snapshot_bytes=len(snapshot),
            events_bytes=0,
            schema_version=VERSION,
        )
