"""`/questions`: what the visitor asked of agents; the page's script adds the replies of tasks that are kept."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.gzip import gzip_page
from django.views.decorators.http import require_safe

from a2a_bridge.service.my_questions import (
    SEARCHED,
    AskedQuestion,
    QuestionQuery,
    asked_agents,
    find_questions,
    read_query,
)
from a2a_bridge.surface.reference.errors import failures, refusals
from accounts.models import User
from agents.core.explanations import OUTCOME_LABELS, explain
from agents.core.reasons import Explanation
from agents.models.choices import Failure, Interruption, Outcome
from agents.web.desk import require_owner
from clawbridge.shapes import QuestionState

SHOWN_CHARS = 400
STATES: dict[QuestionState, str] = {
    "queued": "waiting",
    "open": OUTCOME_LABELS[None],
    "input_required": explain(Outcome.COMPLETED, Interruption.INPUT_REQUIRED).label,
    "auth_required": explain(Outcome.COMPLETED, Interruption.AUTH_REQUIRED).label,
    "completed": OUTCOME_LABELS[Outcome.COMPLETED],
    "rejected": explain(Outcome.FAILED, Failure.REJECTED).label,
    "canceled": explain(Outcome.FAILED, Failure.CANCELED).label,
    "failed": OUTCOME_LABELS[Outcome.FAILED],
    "denied": OUTCOME_LABELS[Outcome.DENIED],
}
NO_TASK = "It was not asked over A2A: its reply is not kept here."
NOT_OPEN = "You may not ask this agent any more, so its reply is not shown."
FILTERS = ("q", "agent", "state", "day")


@dataclass(frozen=True, slots=True)
class QuestionRow:
    """One question as the page shows it. `note`: why it has no reply; empty where the script looks for one."""

    question: AskedQuestion

    @property
    def state(self) -> str:
        """How it stands, in a word or two."""
        return STATES["queued"] if self.question.state == "queued" else self._explanation.label

    @property
    def colour(self) -> str:
        """The class of its badge."""
        return (
            "good" if self.question.outcome == Outcome.COMPLETED else "bad" if self._explanation.is_fault else ""
        )

    @property
    def why(self) -> str:
        """Why the question was refused, or not answered."""
        return self._explanation.caller if self._has_no_answer else ""

    @property
    def end_pattern(self) -> str:
        """A regular expression for the text of the task, which `why` replaces; empty when there is a reply."""
        return _end_patterns().get(self.question.reason, "") if self._has_no_answer else ""

    @property
    def _has_no_answer(self) -> bool:
        return self.question.outcome in (Outcome.FAILED, Outcome.DENIED)

    @property
    def _explanation(self) -> Explanation:
        return explain(self.question.outcome, self.question.reason)

    @property
    def page(self) -> str:
        """The address of the agent's page."""
        return reverse("agent-page", args=self.question.handle.split("/", 1))

    @property
    def note(self) -> str:
        """Why the question has no reply; empty where the script looks for one."""
        if not self.question.is_askable:
            return NOT_OPEN
        return "" if self.question.task_id else NO_TASK


@cache
def _end_patterns() -> Mapping[str, str]:
    """For each reason, a regular expression for the text of a task without a reply."""
    return {one.reason: one.pattern for one in (*refusals(), *failures())}


@never_cache
@gzip_page
@require_safe
@require_owner
def my_questions(request: HttpRequest, asker: User) -> HttpResponse:
    """A page of questions, newest first; with the query of `GET /api/v1/questions`."""
    given, error = {name: str(value) for name, value in request.GET.items()}, ""
    try:
        query = read_query(given)
    except ValueError as wrong:
        query, error = QuestionQuery(), f"Nothing was searched, so all questions are shown. {wrong}"
    page = find_questions(asker.pk, query)
    kept = {name: value for name in (*FILTERS, "tz") if (value := given.get(name)) and not error}
    context = {
        "rows": [QuestionRow(one) for one in page.questions if query.state in (None, one.state)],
        "query": query,
        "typed": given,
        "error": error,
        "agents": asked_agents(asker.pk),
        "states": STATES,
        "older": urlencode({**kept, "before": page.next}) if page.next else "",
        "newest": urlencode(kept),
        "here_query": urlencode({**kept, "before": query.before} if query.before else kept),
        "searched": f"{SEARCHED:,}",
        "shown_chars": SHOWN_CHARS,
    }
    return render(request, "questions.html", context, status=400 if error else 200)
