"""`/desk/bulk`: publish, unpublish, halt or resume agents that were chosen on the desk, after one more look."""

from collections.abc import Iterable
from dataclasses import dataclass

from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import render

from accounts.models import User
from agents.core.bulk_changes import MOST_AT_ONCE, BulkAction, BulkReport, Result, change_agents, preview_change
from agents.web.desk import owner_form
from kit.ids import read_row_id


@dataclass(frozen=True, slots=True)
class Words:
    """How the page speaks of an action: `done` of an agent, `means` of all."""

    verb: str
    done: str
    same: str
    means: str


WORDS = {
    BulkAction.PUBLISH: Words(
        "Publish", "published", "published already", "Callers can ask a published agent, as its access says."
    ),
    BulkAction.UNPUBLISH: Words(
        "Unpublish", "unpublished", "a draft already", "A draft is closed to callers; its settings and log stay."
    ),
    BulkAction.HALT: Words(
        "Halt",
        "halted",
        "halted already",
        "A halted agent takes no questions, open ones end, and it cannot connect until you resume it.",
    ),
    BulkAction.RESUME: Words("Resume", "resumed", "not halted", "A resumed agent can connect and be asked again."),
}
KEPT = "halted by an administrator, who has to lift that"


@owner_form
def bulk(request: HttpRequest, owner: User) -> HttpResponse:
    """GET shows what would change, POST does it and reports; agents that are not the owner's are left out."""
    given = request.POST if request.method == "POST" else request.GET
    agent_ids, action = read_agent_ids(given.getlist("agent")), _read_action(given)
    if action is None or not agent_ids:
        return render(request, "desk/bulk.html", {"report": None})
    is_done = request.method == "POST"
    report = (change_agents if is_done else preview_change)(owner, agent_ids, action)
    context = {
        "action": action.value,
        "words": WORDS[action],
        "report": report if report.results else None,
        "lines": _lines(report, WORDS[action], is_done=is_done),
        "is_done": is_done,
    }
    return render(request, "desk/bulk.html", context)


def read_agent_ids(given: Iterable[str]) -> list[int]:
    """The ids among these texts, each once, at most MOST_AT_ONCE."""
    texts = list(dict.fromkeys(given))[:MOST_AT_ONCE]
    return [found for text in texts if (found := read_row_id(text)) is not None]


def _read_action(given: QueryDict) -> BulkAction | None:
    return next((one for one in BulkAction if one == given.get("action")), None)


def _lines(report: BulkReport, words: Words, *, is_done: bool) -> list[tuple[str, str, bool]]:
    """For each agent its handle, what becomes of it in words, and whether that is a change."""
    said = {
        Result.CHANGED: words.done if is_done else f"will be {words.done}",
        Result.SAME: words.same,
        Result.KEPT: KEPT,
    }
    return [(one.agent.handle, said[one.result], one.result is Result.CHANGED) for one in report.results]
