"""Decides for every link whether an agent's owner or a stranger asks (docs/adr/0151).

An agent that asks another one acts for the user who asked first. Agents of one owner that ask each other for that
owner are no strangers; an agent of the same owner that passes on the question of another user asks for that user.
"""

from django.db.models import Case, F, Q, Value, When

from agents.core.types import Ask


def is_own(ask: Ask, owner_id: int) -> bool:
    """True if the owner of the asked agent asks, directly or only through the owner's agents."""
    return ask.caller_id == owner_id and not ask.passed_by_stranger


def is_own_turn() -> Case:
    """`is_own` as an expression for stored turns.

    A turn stores only the last session that passed it on, unless that session was deleted.
    """
    passed_by_own = Q(depth=0) | Q(source_session__owner=F("session__owner"))
    return Case(When(passed_by_own, caller=F("session__owner"), then=Value(True)), default=Value(False))


def isolates(*, is_own: bool, is_isolated_agent: bool, is_chain_lost: bool = False) -> bool:
    """True if an agent reaches no other session while it works on a question.

    `is_isolated_agent`: its owner isolates it for questions of strangers. `is_chain_lost`: agents passed the
    question on, and the hub does not know which agents.
    """
    return not is_own and (is_isolated_agent or is_chain_lost)


def is_progress(ask: Ask, owner_id: int) -> bool:
    """True if an agent tells a session of its own owner something about that session's question.

    The agent waits for no reply, so no two agents wait for each other.
    """
    return ask.tells and ask.target.session_id in ask.chain and is_own(ask, owner_id)
