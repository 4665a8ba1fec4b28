"""The caller for whom an agent works: the caller drives the session until the turn is over (section 6.3)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Self

from django.db.models import Q, QuerySet
from msgspec import Struct

from agents.core.ask_starter import AskingUser
from agents.core.post import PostedPrompt
from agents.core.presence import AgentRegistration, Registered, register_connection
from agents.core.trust import is_own_turn, isolates
from agents.models import Agent, Event, Session, Turn
from agents.models.choices import AGENTS_OWN_WORDS, Outcome, TurnFailure
from agents.transcript.pieces import Usage
from kit.clock import db_now
from kit.durations import seconds

LONGEST_TURN_S = seconds(900.0)
MAX_UNFINISHED = 100


class OpenPrompt(Struct):
    """A prompt of a connection: what has come of its reply, and until when the agent works for its caller.

    `waited_until`: when its caller stops waiting. `taken_until`: the same for the reply, which may come a minute
    later also when its caller canceled. `drives_until`: when the agent works for its caller no more.

    `ends_with_turn`: the sender of a tell waits for no reply, so the end of the agent's turn ends its turn.
    `turn`: the chat id of its turn; empty when that turn ended before the agent came back to it.
    `stops`: how many `Stop` events end this prompt: one for each prompt given earlier, and its own.

    `is_failed`: the reply passed a cap and was reported as failed, but the agent has not finished it.
    `is_wanted`: its caller has not canceled it. `usage`: what the turn used, as a frame said last.
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
    open_artifacts: frozenset[str] = frozenset()  # mostly none: an empty set of its own would take 200 bytes

    def is_waited_for(self, now: float) -> bool:
        """True if the asker still waits for the reply; the sender of a tell never does."""
        return not self.prompt.tells and not self.is_answered and self.waited_until > now

    def is_over(self, now: float) -> bool:
        """True if the end of a turn ends the agent's work on it."""
        return self.is_answered or (self.stops <= 0 and (self.prompt.tells or self.waited_until <= now))


@dataclass(frozen=True, slots=True)
class ActingFor:
    """The user on whose behalf an agent acts now: the caller that drives its session, else its owner.

    `session_id`: its own session; `isolated`: it may reach no other. The asker's `parent` is the turn in which the
    agent acts. `is_certain`: the agent said for which prompt it acts, or its hooks say that it works on this
    prompt and on nothing else.
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
        """True if it acts for that owner, and no stranger passed the question on."""
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

    `chat_id`: the prompt for which the agent says that it asks. Without one it is that which a program with
    hooks works on, or the last that is waited for.
    Prompts of different callers at once, of which one is not over: it is unknown for whom the agent
    reaches out, so it is isolated. A prompt that the agent's owner told, or does not wait for, counts as over.
    """
    if not driving:
        return owner
    drives = list(driving.values())
    at_work = driving.get(chat_id) or _most_likely(drives, now, has_hooks=has_hooks)
    prompt = at_work.prompt
    others = [one for one in drives if one.prompt.asker_id != prompt.asker_id]
    is_mixed = any(not one.prompt.is_own or one.is_waited_for(now) for one in others)
    is_its_turn = knows_turns and at_work.stops == 1  # 2: another turn goes on; 0: its own has ended
    # The hub does not know which prompt led to an onward question: for the limit of depth the longest chain
    # counts. Of the owner's prompts only those whose askers wait count: others may be asked without a cycle.
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
    if has_hooks:  # such a program takes one prompt after the other
        return drives[0]
    waited_for = [one for one in drives if not one.is_answered and one.waited_until > now]
    return (waited_for or drives)[-1]


@dataclass(frozen=True, slots=True)
class RegisteredAgent:
    """A registered connection. `unfinished`: see `find_unfinished`."""

    registered: Registered
    unfinished: Sequence[PostedPrompt]


def register_agent(registration: AgentRegistration, *, process_id: str) -> RegisteredAgent:
    """Register a connection, and read the unfinished prompts of its session."""
    registered = register_connection(registration, process_id=process_id)
    if registered.is_new:
        return RegisteredAgent(registered, ())
    return RegisteredAgent(registered, find_unfinished(registered.session_id))


def find_unfinished(session_id: int) -> list[PostedPrompt]:
    """The questions of the last 15 minutes that the agent has neither answered nor reported as ended.

    The `wait_s` of each is the time left to work on it. A program that lost its socket continues
    with a stranger's question: it must not act for its owner then. A program that reports the ends of its turns
    may also continue after its answer to a stranger.
    """
    now = db_now()
    lately = Turn.objects.filter(session_id=session_id, asked_at__gt=now - timedelta(seconds=LONGEST_TURN_S))
    owner = Session.objects.filter(pk=session_id).values("owner_id")
    # Of any agent of the owner: the one that was asked here may have moved to another session since.
    of_agents = lately.filter(agent__in=Agent.objects.filter(owner__in=owner)).values("pk")
    of_session = lately.filter(agent=None).values("pk")
    recent = Turn.objects.filter(
        pk__in=of_agents.union(of_session, all=True), connection_id__isnull=False, caller__isnull=False
    ).exclude(reason=TurnFailure.NOT_DELIVERED)
    # Most sessions come back without a question of late: one query instead of three.
    if not recent.exists():
        return []
    stops = Event.objects.filter(session_id=session_id, kind="tail", type="Stop").order_by("-pk")
    last_stop = stops.values_list("ts", flat=True).first()
    not_over: QuerySet[Any] = recent.annotate(is_own=is_own_turn()).filter(_not_over(last_stop))
    newest = not_over.select_related("agent", "caller").order_by("-asked_at")
    # The newest ones, but the oldest of them first: `Prompts` goes by the order in which prompts went out.
    return [_unfinished(turn, now, is_own=turn.is_own) for turn in reversed(newest[:MAX_UNFINISHED])]


def _not_over(last_stop: datetime | None) -> Q:
    """Turns that the agent did not answer; if its program reports ends, also unreported turns of strangers.

    The agent may still work on a turn that the hub ended without it, as when a process died.
    """
    is_unanswered = Q(settled_at=None) | ~(Q(outcome=Outcome.COMPLETED) | Q(reason__in=AGENTS_OWN_WORDS))
    if last_stop is None:
        return is_unanswered
    not_reported = Q(settled_at=None) | Q(settled_at__gt=last_stop)
    return not_reported & (is_unanswered | Q(is_own=False))


def _unfinished(turn: Turn, now: datetime, *, is_own: bool) -> PostedPrompt:
    """Only the last session of a chain is stored, so a stranger's onward question may not be passed on."""
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
