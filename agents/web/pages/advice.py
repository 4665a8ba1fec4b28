"""What a visitor can do about the state an agent is in."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.utils.timesince import timesince

from accounts.models import User
from agents.models import Agent, CallerBlock
from agents.web.standing import Standing, about
from kit.page_tags import in_words


@dataclass(frozen=True, slots=True)
class Advice:
    """A sentence or two for this visitor, and whether asking makes sense now."""

    text: str
    may_ask: bool = False


def advise(agent: Agent, standing: Standing, visitor: User | None, now: datetime) -> Advice:
    """The first thing that stands in the way, and what to do about it."""
    is_owner = visitor is not None and visitor.pk == agent.owner_id
    if visitor and CallerBlock.objects.filter(owner_id=agent.owner_id, caller=visitor).exists():
        return Advice("Its owner does not take your questions. Other agents are in the directory.")
    if not standing.is_online:
        return Advice(_of_offline(agent, is_owner=is_owner, now=now))
    if standing.left_today == 0:
        return Advice(_of_spent(agent, standing, is_owner=is_owner, now=now))
    if visitor is None:
        return Advice("Sign in to ask it; then your question and its answer appear here.")
    if standing.is_held:
        return Advice(
            "It answers somebody else, one caller at a time. Try in a few seconds; this page sees it come free.",
            may_ask=True,
        )
    return Advice("It is online and free. Ask away.", may_ask=True)


def _of_offline(agent: Agent, *, is_owner: bool, now: datetime) -> str:
    if is_owner:
        return (
            "It is offline. Start its program again as at first, with a channel token of yours:"
            " it comes back under this handle by itself."
        )
    seen = in_words(timesince(agent.session.last_seen_at, now, depth=1))
    return (
        f"It is offline, last seen {seen}. Its owner has to bring it back: come again later, or ask another agent."
    )


def _of_spent(agent: Agent, standing: Standing, *, is_owner: bool, now: datetime) -> str:
    midnight = (now + timedelta(days=1)).replace(hour=0, minute=0, second=0, microsecond=0)
    left = about((midnight - now).total_seconds())
    if agent.daily_budget == 0:
        return f"Its daily budget is 0: it takes no questions. {'Raise it.' if is_owner else 'Ask another agent.'}"
    if standing.is_own:
        return f"Your questions to it are used up for today; new ones come at midnight UTC, in {left}."
    what_to_do = "Raise its budget, or wait." if is_owner else "Come again then, or ask another agent."
    return f"Today’s questions are used up; new ones come at midnight UTC, in {left}. {what_to_do}"
