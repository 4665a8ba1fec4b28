"""Invariants in every order of calls and replies: one driver, within the cap, within the budget, one end."""

from collections import Counter

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agents.core.errors import Busy, OverBudget, OverCap
from agents.core.ledger.batch import commit
from agents.core.ledger.work import Admit, Settle, Work
from agents.core.types import OpenTurn, TurnEnding
from agents.models import Turn
from agents.models.choices import Outcome, TurnFailure
from tests.contracts.rows import COMPLETED, HOME, Published, ask, published, release

pytestmark = [pytest.mark.django_db, pytest.mark.ledger]

CAP, BUDGET = 2, 6
ENDINGS = {
    "answer": COMPLETED,
    "time out": TurnEnding(outcome=Outcome.FAILED, reason=TurnFailure.TIMEOUT, keeps_claim=True),
    "lose": TurnEnding(outcome=Outcome.FAILED, reason=TurnFailure.CHANNEL_LOST),
    "not deliver": TurnEnding(outcome=Outcome.FAILED, reason=TurnFailure.NOT_DELIVERED, returns_budget=True),
}
asks = st.tuples(st.just("ask"), st.lists(st.sampled_from(["alice", "bob"]), min_size=1, max_size=4))
ends = st.tuples(st.sampled_from([*ENDINGS, "reply late", "stop"]), st.integers(0, 7))


class Model:
    """The expected state, kept beside the state of the hub."""

    def __init__(self) -> None:
        self.agent: Published = published(concurrency_cap=CAP, daily_budget=BUDGET)
        self.turns: list[OpenTurn] = []
        self.ended: set[str] = set()
        self.held: Counter[str] = Counter()
        self.lingering: dict[str, str] = {}
        self.spent = 0

    def ask(self, callers: list[str]) -> None:
        for caller, result in zip(callers, commit(self._admits(callers), home=HOME).results, strict=True):
            others = sum(count for who, count in self.held.items() if who != caller)
            if others:
                assert isinstance(result, Busy)
            elif self.held[caller] >= CAP:
                assert isinstance(result, OverCap)
            elif self.spent >= BUDGET:
                assert isinstance(result, OverBudget)
            else:
                assert isinstance(result, OpenTurn)
                self.turns.append(result)
                self.held[caller] += 1
                self.spent += 1

    def end(self, how: str, which: int) -> None:
        if not self.turns:
            return
        turn = self.turns[which % len(self.turns)]
        chat_id, caller = turn.ask.chat_id, turn.ask.caller_login
        commit([Settle(turn, ENDINGS[how])], home=HOME)
        if chat_id in self.ended:
            return
        self.ended.add(chat_id)
        if ENDINGS[how].keeps_claim:
            self.lingering[chat_id] = caller
        else:
            self.held[caller] -= 1
        self.spent -= ENDINGS[how].returns_budget

    def reply_late(self, which: int) -> None:
        if self.turns:
            chat_id = self.turns[which % len(self.turns)].ask.chat_id
            release(chat_id=chat_id)
            self._freed(chat_id)

    def stop(self) -> None:
        release(session_id=self.agent.ref.session_id)
        for chat_id in list(self.lingering):
            self._freed(chat_id)

    def check(self) -> None:
        rows = Turn.objects.filter(agent=self.agent.agent).exclude(outcome="denied")
        holding = Counter(rows.filter(released_at=None).values_list("caller__login", flat=True))
        assert holding == +self.held
        assert self.agent.spent == self.spent == rows.exclude(usage_day=None).count()
        assert set(rows.exclude(outcome=None).values_list("chat_id", flat=True)) == self.ended

    def _freed(self, chat_id: str) -> None:
        if caller := self.lingering.pop(chat_id, None):
            self.held[caller] -= 1

    def _admits(self, callers: list[str]) -> list[Work]:
        return [Admit(ask(self.agent, caller)) for caller in callers]


@pytest.mark.slow
@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(steps=st.lists(asks | ends, max_size=25))
def test_claims_and_counts_are_as_the_rules_say_after_every_step(steps: list[tuple[str, object]]) -> None:
    model = Model()
    for name, detail in steps:
        if name == "ask" and isinstance(detail, list):
            model.ask(detail)
        elif name == "reply late" and isinstance(detail, int):
            model.reply_late(detail)
        elif name == "stop":
            model.stop()
        elif isinstance(detail, int):
            model.end(name, detail)
        model.check()
