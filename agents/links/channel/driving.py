"""The caller for whom an agent works: the caller drives the session until the turn is over (section 6.3)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Self

from django.db import transaction
from django.db.models import Q, QuerySet
from msgspec import Struct

from agents.core.ask_starter import AskingUser
from agents.core.post import PostedPrompt
from agents.core.registration import AgentRegistration, Refusal, Registered, register_connections
from agents.core.trust import is_own_turn, isolates
from agents.models import Agent, Event, Session, Turn
from agents.models.choices import AGENTS_OWN_WORDS, Outcome, TurnFailure
from agents.transcript.pieces import Usage
from kit.clock import db_now
from kit.durations import seconds

LONGEST_TURN_S = seconds(900.0)
MAX_UNFINISHED = 100


class OpenPrompt(Struct, gc=False):
    """A prompt of a connection: the part of its reply that has come, and until when the agent works for its
    caller.

    `waited_until`: when its caller stops waiting. `taken_until`: the same, but a cancel does not shorten it; a
    reply is accepted until a minute later. `drives_until`: when the agent stops working for its caller.

    `ends_with_turn`: the sender of a tell waits for no reply, so the end of the agent's turn ends the turn of the
    prompt.
    `turn`: the chat id of its turn; empty when that turn ended before the agent came back to it.
    `stops`: how many `Stop` events end this prompt: one for each prompt given earlier, and its own.

    `is_failed`: the reply passed a cap and was reported as failed, but the agent has not finished it.
    `is_wanted`: its caller has not canceled it. `usage`: the usage of the turn, from the last frame that had one.
    """

    prompt: PostedPrompt
    waited_until: float
    taken_until: float
    drives_until: float
    ends_with_turn: bool = False
    turn: str = ""
    stops: int = 1
    is_answered: bool = False
    is_failed: bool = False
    is_wanted: bool = True
    pieces: int = 0
    size_bytes: int = 0
    usage: Usage | None = None
    open_artifacts: frozenset[str] = frozenset()  # mostly empty: a set for each prompt would take 200 bytes

    def is_waited_for(self, now: float) -> bool:
        """True if the asker still waits for the reply; the sender of a tell never does."""
        return not self.prompt.tells and not self.is_answered and self.waited_until > now

    def is_over(self, now: float) -> bool:
        """True if the agent's work on the prompt is over when the agent's program ends a turn."""
        return self.is_answered or (self.stops <= 0 and (self.prompt.tells or self.waited_until <= now))


@dataclass(frozen=True, slots=True)
class ActingFor:
    """The user on whose behalf an agent acts now: the caller that drives its session, else its owner.

    `session_id`: the agent's own session; `isolated`: the agent may reach no other session. The asker's `parent`
    is the turn in which the agent acts. `is_certain`: the agent said for which prompt it acts, or its hooks say
    that it works on this prompt and on nothing else.
    """

    asker: AskingUser
    session_id: int
    isolated: bool = False
    is_certain: bool = True

    @classmethod
    def owner(cls, user_id: int, login: str, session_id: int) -> Self:
        """The owner of an agent, for whom the agent acts while no caller drives its session."""
        return cls(AskingUser(user_id=user_id, login=login, chain=(session_id,)), session_id)

    def is_for(self, owner_id: int) -> bool:
        """True if the agent acts for that owner, and no stranger passed the question on."""
        return self.asker.user_id == owner_id and not self.asker.passed_by_stranger


def find_acting_for(
    owner: ActingFor,
    driving: Mapping[str, OpenPrompt],
    chat_id: str,
    now: float,
    *,
    has_hooks: bool,
    knows_turns: bool,
) -> ActingFor:
    """Find the user on whose behalf the agent works: `owner` when it works on no prompt.

    `chat_id`: the prompt for which the agent says that it asks. Without a chat id, it is the prompt that a program
    with hooks works on, or the last prompt whose caller waits.
    If the agent has prompts of several callers and one of these is not over, the hub cannot tell for whom the
    agent asks, so the agent is isolated. A prompt of the agent's owner counts as over if the owner does not wait
    for its reply.
    """
    if not driving:
        return owner
    drives = list(driving.values())
    at_work = driving.get(chat_id) or _most_likely(drives, now, has_hooks=has_hooks)
    prompt = at_work.prompt
    others = [one for one in drives if one.prompt.asker_id != prompt.asker_id]
    is_mixed = any(not one.prompt.is_own or one.is_waited_for(now) for one in others)
    # 2: the program still works on another turn; 0: the prompt's own turn has ended.
    is_its_turn = knows_turns and at_work.stops == 1
    # The hub does not know which prompt led to an onward question: for the limit of depth the longest chain
    # counts. An owner's prompt counts only if its asker waits for the reply: otherwise no cycle can arise.
    counted = [one.prompt.chain for one in drives if not one.prompt.is_own or one.is_waited_for(now)]
    asker = AskingUser(
        user_id=prompt.asker_id,
        login=prompt.asker,
        chain=max(counted, key=len, default=prompt.chain[-1:]),
        traceparent=prompt.traceparent,
        parent=at_work.turn,
        passed_by_stranger=not all(one.prompt.is_own for one in drives),
    )
    return replace(
        owner,
        asker=asker,
        isolated=any(one.prompt.isolated for one in drives) or is_mixed,
        is_certain=chat_id in driving or (not others and is_its_turn),
    )


def _most_likely(drives: list[OpenPrompt], now: float, *, has_hooks: bool) -> OpenPrompt:
    """Find the prompt, among several, that the agent most likely works on."""
    if has_hooks:  # a program with hooks works on one prompt after the other
        return drives[0]
    waited_for = [one for one in drives if not one.is_answered and one.waited_until > now]
    return (waited_for or drives)[-1]


@dataclass(frozen=True, slots=True)
class RegisteredAgent:
    """A registered connection. `unfinished`: see `find_unfinished`."""

    registered: Registered
    unfinished: Sequence[PostedPrompt]


@transaction.atomic
def register_agents(
    registrations: Sequence[AgentRegistration], *, process_id: str
) -> list[RegisteredAgent | Refusal]:
    """Register connections, and read the unfinished prompts of their sessions. See `register_connections`."""
    outcomes = register_connections(registrations, process_id=process_id)
    known = [one.session_id for one in outcomes if isinstance(one, Registered) and not one.is_new]
    # Most sessions come back without a question of late.
    asked = set(_find_recent(known).values_list("session_id", flat=True).distinct()) if known else set()
    return [
        RegisteredAgent(one, find_unfinished(one.session_id) if one.session_id in asked else ())
        if isinstance(one, Registered)
        else one
        for one in outcomes
    ]


def find_unfinished(session_id: int) -> list[PostedPrompt]:
    """The questions of the last 15 minutes that the agent has neither answered nor reported as ended.

    The `wait_s` of each is the time left to work on it. A program that lost its socket continues to work on a
    stranger's question, and must not act for its owner meanwhile. A program that reports the ends of its turns
    may also continue after its answer to a stranger.
    """
    stops = Event.objects.filter(session_id=session_id, kind="tail", type="Stop").order_by("-pk")
    last_stop = stops.values_list("ts", flat=True).first()
    recent = _find_recent([session_id])
    not_over: QuerySet[Any] = recent.annotate(is_own=is_own_turn()).filter(_not_over(last_stop))
    newest = not_over.select_related("agent", "caller").order_by("-asked_at")
    # The newest turns, the oldest of these first: `Prompts` needs them in the order in which the prompts were
    # sent.
    now = db_now()
    return [_unfinished(turn, now, is_own=turn.is_own) for turn in reversed(newest[:MAX_UNFINISHED])]


def _find_recent(session_ids: Sequence[int]) -> QuerySet[Any]:
    """The turns of the last 15 minutes that were sent to the agents of these sessions."""
    since = db_now() - timedelta(seconds=LONGEST_TURN_S)
    lately = Turn.objects.filter(session_id__in=session_ids, asked_at__gt=since)
    owners = Session.objects.filter(pk__in=session_ids).values("owner_id")
    # Of any agent of the owner: an agent that was asked in this session may have moved to another one since.
    of_agents = lately.filter(agent__in=Agent.objects.filter(owner__in=owners)).values("pk")
    of_session = lately.filter(agent=None).values("pk")
    found: QuerySet[Any] = Turn.objects.filter(
        pk__in=of_agents.union(of_session, all=True), connection_id__isnull=False, caller__isnull=False
    ).exclude(reason=TurnFailure.NOT_DELIVERED)
    return found


def _not_over(last_stop: datetime | None) -> Q:
    """A condition: turns that the agent did not answer; if its program reports ends, also unreported turns of
    strangers.

    The agent may still work on a turn that the hub ended without it, as when a process died.
    """
    is_unanswered = Q(settled_at=None) | ~(Q(outcome=Outcome.COMPLETED) | Q(reason__in=AGENTS_OWN_WORDS))
    if last_stop is None:
        return is_unanswered
    not_reported = Q(settled_at=None) | Q(settled_at__gt=last_stop)
    return not_reported & (is_unanswered | Q(is_own=False))


def _unfinished(turn: Turn, now: datetime, *, is_own: bool) -> PostedPrompt:
    """Make a prompt of a stored turn. A turn stores only the last session of its chain, so the agent may not pass
    on a stranger's question that came through other sessions.
    """
    is_isolated_agent = turn.agent is not None and turn.agent.isolated
    return PostedPrompt(
        chat_id=turn.chat_id,
        connection_id=0,
        home="",
        asker=turn.caller.login if turn.caller else "",
        text="",
        wait_s=LONGEST_TURN_S - (now - turn.asked_at).total_seconds(),
        asker_id=turn.caller_id or 0,
        isolated=isolates(is_own=is_own, is_isolated_agent=is_isolated_agent, is_chain_lost=turn.depth > 0),
        is_own=is_own,
        chain=(turn.session_id,),
        traceparent=turn.traceparent,
    )
