"""The rows of a scene that its agents do not make; `scene.make_rows` calls these functions."""

from datetime import datetime, timedelta
from uuid import uuid4

from django.utils import timezone

from accounts.group_invitations import invite_to_group
from accounts.groups import add_member, create_group
from accounts.models import Membership, User
from accounts.tokens import get_or_create_local_user, mint_channel
from agents.core.failure_groups import group_failures, set_state
from agents.models import Agent, CallerBudget, FailureGroup, Favourite
from evaluations.models import (
    MAX_DETAIL_CHARS,
    MAX_HANDLE_CHARS,
    MAX_NAME_CHARS,
    MAX_VERSION_CHARS,
    EvaluationResult,
    EvaluationRun,
    QuestionSet,
    SavedQuestion,
)
from tests.browser import network_rows
from tests.browser.hostile import Hostile
from tests.browser.network_rows import make_network
from tests.browser.team_rows import make_team
from tests.native.rows import make_agent, make_client_grant, make_turn

__all__ = ["make_hostile", "make_scene"]
SLOWEST_MS = (23 * 3600 + 59 * 60) * 1000


def make_scene() -> dict[str, str]:
    """A team, a network, and an agent with a large budget that answered slowly; the ids that paths hold.

    Alice has a client that stays signed in, and one that the hub signed out.
    """
    slow = Agent.objects.get(handle="owner/librarian")
    Agent.objects.filter(pk=slow.pk).update(daily_budget=99999, tags=["books", "search"])
    Favourite.objects.create(user=get_or_create_local_user("alice"), agent=slow)
    make_turn(slow, slow.owner, latency_ms=SLOWEST_MS)
    alice, now = get_or_create_local_user("alice"), timezone.now()
    make_client_grant(alice, app_name="Coding agent", refreshed_at=now)
    make_client_grant(alice, app_name="Copied agent", revoked_at=now, reused_at=now)
    _make_groups(slow)
    failure = _make_failures(slow, alice)
    return {
        "proposal": str(make_team("captain")),
        "slow": str(slow.pk),
        "failure": str(failure),
        **_make_evaluations(slow),
        **make_network("host"),
    }


def make_hostile(login: str, vectors: list[str]) -> dict[str, str]:
    """A network with vectors in every field, and a failure of an agent that said them; their ids."""
    agent, said = Agent.objects.filter(owner__login=login).latest("pk"), Hostile(vectors).text
    _fail(agent, agent.owner, timezone.now(), "agent_failed", said())
    group_failures()
    question_set = QuestionSet.objects.create(agent=agent, name=said(MAX_NAME_CHARS))
    expected = {"expected": "judged", "expectation": said(), "judge": said(MAX_HANDLE_CHARS)}
    saved = SavedQuestion.objects.create(question_set=question_set, position=0, text=said(), **expected)
    run = _run(question_set, "d" * 64, timezone.now(), said(MAX_VERSION_CHARS))
    _add_result(run, saved, "failed", said(), said(MAX_DETAIL_CHARS))
    evaluation = {"set": str(question_set.pk), "saved": str(saved.pk), "evaluation": str(run.pk)}
    return {
        **evaluation,
        "failure": str(agent.failure_groups.latest("pk").pk),
        **network_rows.make_hostile(login, vectors),
    }


def _make_failures(agent: Agent, caller: User) -> int:
    """Failures of an agent over two weeks, one of them resolved and open again; the key of its group."""
    now = timezone.now()
    for back in range(14, 0, -1):
        for number in range(back * 5 % 7):
            said = f"the catalog at https://books.example/{number} did not answer within {number + 2} s"
            _fail(agent, caller, now - timedelta(days=back, minutes=number), "agent_failed", said)
    _fail(agent, agent.owner, now - timedelta(days=2), "agent_failed", "no page 17 in “Walden”")
    _fail(agent, caller, now - timedelta(days=3), "timeout")
    group_failures()
    group: FailureGroup = FailureGroup.objects.get(agent=agent, shape__startswith="the catalog")
    set_state(group.pk, "resolved")
    for number in range(3):
        said = f"the catalog at https://books.example/{number}0 did not answer within {number + 5} s"
        _fail(agent, caller, now + timedelta(seconds=number + 1), "agent_failed", said)
    group_failures()
    return group.pk


def _fail(agent: Agent, caller: User, at: datetime, reason: str, said: str | None = None) -> None:
    make_turn(
        agent,
        caller,
        "failed",
        reason=reason,
        chat_id=str(uuid4()),
        failure_text=said,
        question="Which page has the pond?",
        asked_at=at,
        settled_at=at,
        released_at=at,
        latency_ms=5_000,
    )


def _make_evaluations(agent: Agent) -> dict[str, str]:
    """A set of saved questions with a run for each of three versions of the card, and an empty set; their ids."""
    question_set = QuestionSet.objects.create(agent=agent, name="Opening hours", schedule="daily", asks_spent=5)
    QuestionSet.objects.create(agent=agent, name="Nothing yet", runs_on_new_card=True)
    wanted = [
        ("When do you open on a Sunday?", "contains", "ten", "", "We open at ten."),
        ("How many books may I borrow? Answer with a number.", "matches", "^[0-9]+$", "", "Twelve"),
        ("Which books of Thoreau do you have? As JSON.", "json_schema", '{"type": "array"}', "", '["Walden"]'),
        ("May I bring my dog?", "judged", "Says no, and why.", "alice/echo", "No: of the other readers."),
    ]
    saved = [
        SavedQuestion(question_set=question_set, position=at, text=text, expected=kind, expectation=what, judge=by)
        for at, (text, kind, what, by, _) in enumerate(wanted)
    ]
    SavedQuestion.objects.bulk_create(saved)
    now, run = timezone.now(), None
    SavedQuestion.objects.exclude(pk=saved[1].pk).update(revised_at=now - timedelta(days=9))
    for back, states in (
        (2, ("not_passed", "failed", "not_passed", "passed")),
        (1, ("passed", "passed", "not_passed", "left_out")),
        (0, ("passed", "not_passed", "passed", "passed")),
    ):
        run = _run(question_set, f"{9 - back}c41" * 16, now + timedelta(seconds=5) - timedelta(days=back), "")
        for question, state, (*_, answer) in zip(saved, states, wanted, strict=True):
            _add_result(run, question, state, answer, "" if state == "passed" else "the answer is not as expected")
    assert run is not None
    return {"set": str(question_set.pk), "saved": str(saved[3].pk), "evaluation": str(run.pk)}


def _run(question_set: QuestionSet, digest: str, at: datetime, version: str) -> EvaluationRun:
    return EvaluationRun.objects.create(
        question_set=question_set,
        cause="card",
        card_digest=digest,
        card_version=version,
        started_at=at,
        ended_at=at + timedelta(minutes=1),
    )


def _add_result(run: EvaluationRun, question: SavedQuestion, state: str, answer: str, detail: str) -> None:
    agent = run.question_set.agent
    turn = make_turn(agent, agent.owner, chat_id=str(uuid4()), surface="evaluation", question=question.text)
    EvaluationResult.objects.create(
        run=run,
        question=question,
        state=state,
        asked=turn.chat_id,
        answer=answer,
        detail=detail,
        ended_at=run.ended_at,
    )


def _make_groups(limited: Agent) -> None:
    """A group of the owner with an agent, a budget, tokens and a link to join, and a group with nothing."""
    owner, alice = limited.owner, get_or_create_local_user("alice")
    team = create_group("data-team", "Data platform", made_by=owner)
    create_group("quiet-team", "Quiet", made_by=owner)
    add_member(team, alice, Membership.Role.AUDITOR, by=owner)
    add_member(team, get_or_create_local_user("bob"), by=owner)
    add_member(team, get_or_create_local_user("keeper"), Membership.Role.MAINTAINER, by=None)
    make_agent(team.account, "pipelines", tagline="Says why a pipeline is late")
    CallerBudget.objects.create(agent=limited, caller=team.account, daily_budget=50)
    team.account.acted_by = owner
    mint_channel(team.account, "build server", user_agent="")
    invite_to_group(team, Membership.Role.MEMBER, by=owner)
