"""The usage of a turn, as its agent reports it: kept with the end, counted once, on the day of the question."""

import datetime
from pathlib import Path

import msgspec
import pytest
from django.db import connection

from agents.core.ledger.batch import commit
from agents.core.ledger.work import Release, Settle
from agents.core.types import SettledTurn, TurnEnding
from agents.models import CallerBudget, DailyUsage, Turn
from agents.models.choices import Outcome, TurnFailure
from agents.transcript.pieces import ReportedUsage, Usage, find_usage, show_usage
from kit.money import format_usd, to_microusd, to_usd
from tests.contracts.rows import HOME, Published, admitted, ask, end, published
from tests.contracts.test_round_trips import counting

USED = Usage(1200, 80, 42_000)
ANSWERED = TurnEnding(outcome=Outcome.COMPLETED, text="so", latency_ms=5, usage=USED)
TIMEOUT = TurnEnding(outcome=Outcome.FAILED, reason=TurnFailure.TIMEOUT, keeps_claim=True)


def read_costs(agent: Published) -> list[tuple[int | None, int | None, int | None]]:
    return [(turn.input_tokens, turn.output_tokens, turn.cost_microusd) for turn in agent.turns]


def read_cost_of_day(agent: Published) -> int:
    return DailyUsage.objects.get(agent=agent.agent).cost_microusd


@pytest.mark.django_db
@pytest.mark.ledger
def test_usage_is_kept_with_the_end_and_counted_for_the_agent_and_its_caller() -> None:
    agent = published(caller_budget=9, concurrency_cap=20)
    assert end(admitted(ask(agent)), ANSWERED) == SettledTurn(Outcome.COMPLETED, "", "so", usage=USED)
    end(admitted(ask(agent, "bob")), msgspec.structs.replace(ANSWERED, usage=Usage(cost_microusd=8_000)))
    end(admitted(ask(agent)))
    assert read_costs(agent) == [(1200, 80, 42_000), (None, None, 8_000), (None, None, None)]
    assert read_cost_of_day(agent) == 50_000
    by_caller = CallerBudget.objects.order_by("pk").values_list("caller__login", "cost_microusd")
    assert list(by_caller) == [("alice", 42_000), ("bob", 8_000)]


@pytest.mark.django_db
@pytest.mark.ledger
def test_turns_that_end_in_one_batch_are_all_counted() -> None:
    agent, other = published(concurrency_cap=20), published()
    turns = [admitted(ask(agent)), admitted(ask(agent)), admitted(ask(other))]
    commit([Settle(turn, ANSWERED) for turn in turns], home=HOME)
    assert (read_cost_of_day(agent), read_cost_of_day(other)) == (84_000, 42_000)


@pytest.mark.django_db
@pytest.mark.ledger
def test_a_late_reply_is_paid_for_too_and_one_that_comes_twice_is_counted_once() -> None:
    agent = published()
    turn = admitted(ask(agent))
    end(turn, TIMEOUT)
    for _ in range(2):
        commit([Release(chat_id=turn.ask.chat_id, late="at last", usage=USED)], home=HOME)
    end(turn, ANSWERED)
    assert (read_costs(agent), read_cost_of_day(agent)) == ([(1200, 80, 42_000)], 42_000)
    assert Turn.objects.get().outcome == "failed"


@pytest.mark.django_db
@pytest.mark.ledger
def test_a_turn_over_midnight_counts_on_the_day_of_its_question() -> None:
    agent = published(caller_budget=9)
    turn = admitted(ask(agent))
    today = Turn.objects.get().usage_day
    yesterday = today - datetime.timedelta(days=1)
    Turn.objects.update(usage_day=yesterday)
    DailyUsage.objects.update(day=yesterday)
    admitted(ask(agent))
    end(turn, ANSWERED)
    days = dict(DailyUsage.objects.values_list("day", "cost_microusd"))
    assert days == {yesterday: 42_000, today: 0}
    assert CallerBudget.objects.get().cost_microusd == 0


@pytest.mark.django_db
@pytest.mark.ledger
def test_an_end_with_usage_takes_one_round_trip(tmp_path: Path) -> None:
    if connection.vendor != "postgresql":
        pytest.skip("SQLite has none")
    agent = published()
    end(admitted(ask(agent)), ANSWERED)
    turn = admitted(ask(agent))
    trips: list[int] = []
    with counting(tmp_path / "settle", trips):
        end(turn, ANSWERED)
    assert trips == [1]


def test_what_agents_write_is_checked_and_kept_in_millionths(subtests: pytest.Subtests) -> None:
    decode = msgspec.json.Decoder(ReportedUsage).decode
    assert decode(b'{"inputTokens": 3, "costUsd": 0.1}').kept == Usage(3, None, 100_000)
    assert decode(b'{"costUsd": 0.0000005}').kept == Usage(cost_microusd=1)
    assert decode(b'{"costUsd": 0, "other": 1}').kept == Usage(cost_microusd=0)
    assert decode(b"{}").kept is None
    for bad in (
        '"costUsd": -0.01',
        '"costUsd": 10001',
        '"costUsd": "1"',
        '"inputTokens": -1',
        '"inputTokens": 1.5',
    ):
        with subtests.test(usage=bad), pytest.raises(msgspec.ValidationError):
            decode(f"{{{bad}}}".encode())


def test_metadata_shows_what_was_reported_and_reads_it_again() -> None:
    shown = show_usage(USED)
    assert shown == {"inputTokens": 1200, "outputTokens": 80, "costUsd": 0.042}
    assert find_usage({"usage": shown, "other": 1}) == USED
    for metadata in (None, {}, [], {"usage": 5}, {"usage": {"costUsd": -1}}, {"usage": {}}):
        assert find_usage(metadata) is None


def test_dollars_are_exact_to_a_millionth() -> None:
    for usd, microusd, text in [
        (0.1, 100_000, "$0.10"),
        (0.3, 300_000, "$0.30"),
        (1250, 1_250_000_000, "$1,250.00"),
        (4.2e-05, 42, "$0.000042"),
    ]:
        assert (to_microusd(usd), to_usd(microusd), format_usd(microusd)) == (microusd, usd, text), (
            usd,
            microusd,
            text,
        )
