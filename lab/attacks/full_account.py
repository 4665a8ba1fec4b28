"""The rows of an account at its limits: tasks, sessions, agents, tokens, push configs."""

from collections.abc import Iterator
from datetime import timedelta

from django.conf import settings
from django.utils import timezone

from a2a_bridge.models import PushConfig
from accounts.models import Credential, User
from agents.models import Agent, Session
from lab.attacks.kinds.costly import MARKDOWN
from lab.bench.seed import write_rows
from lab.bench.thread_rows import seed_threads

TASKS, LONG_THREAD = 10_000, 20
KEPT = timedelta(days=30)


def seed(login: str) -> str:
    """Write the rows of the caller `reader-0`, who is `login`; the id of its thread of expensive Markdown."""
    thread = seed_threads(TASKS, 1, LONG_THREAD, MARKDOWN)["thread"]
    owner = User.objects.get(login=login)
    write_rows(
        Session, (Session(owner=owner, routing_name=f"full-{n}") for n in range(settings.SESSIONS_PER_OWNER))
    )
    write_rows(Agent, _drafts(owner))
    write_rows(Credential, _tokens(owner))
    write_rows(PushConfig, _push_configs(owner))
    return thread


def _drafts(owner: User) -> Iterator[Agent]:
    for session in owner.agent_sessions.order_by("pk")[: settings.AGENTS_PER_OWNER]:
        handle = f"{owner.login}/{session.routing_name}"
        agent = Agent(session=session, owner=owner, handle=handle, handle_key=handle, name=session.routing_name)
        agent.set_status(Agent.Status.DRAFT)
        yield agent


def _tokens(owner: User) -> Iterator[Credential]:
    for number in range(settings.TOKENS_PER_OWNER):
        yield Credential(
            user=owner,
            kind=Credential.Kind.CHANNEL,
            name=f"token {number}",
            prefix="ck_live_full",
            digest=f"{number:064x}",
            source=Credential.Source.MINT,
        )


def _push_configs(owner: User) -> Iterator[PushConfig]:
    for number in range(settings.PUSH_CONFIGS_PER_CALLER):
        yield PushConfig(
            task_id=f"task-{number}",
            config_id="full",
            caller=owner,
            context_id="",
            chat_id=f"chat-{number}",
            url="http://127.0.0.1:9/push",
            sealed="",
            touched_at=timezone.now() + KEPT,
            ended_seq=1,
        )
