"""The round trips of the ledger to PostgreSQL, by the messages that libpq sends."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from django.db import connection

from accounts.models import Credential
from accounts.tokens import mint
from agents.core.ledger.batch import commit
from agents.core.ledger.state import LookUp, look_up
from agents.core.ledger.work import Settle
from agents.core.types import SettledTurn, TurnEnding
from agents.models import Event, Turn
from agents.models.choices import Outcome, TurnFailure
from kit import sql
from tests.contracts.rows import COMPLETED, HOME, admitted, ask, end, published, user
from tests.webhooks.subscriptions import subscribed
from webhooks.models import Delivery

pytestmark = [pytest.mark.django_db, pytest.mark.ledger]


@contextmanager
def counting(log: Path, trips: list[int]) -> Iterator[None]:
    """Each Sync ends what goes out together."""
    raw = connection.connection.pgconn
    with log.open("w") as file:
        raw.trace(file.fileno())
        yield
        raw.untrace()
    trips.append(sum("\tSync" in line for line in log.read_text().splitlines()))


def test_an_ask_alone_takes_four_round_trips(tmp_path: Path) -> None:
    if connection.vendor != "postgresql":
        pytest.skip("SQLite has none")
    agent = published()
    digest = mint(user("alice"), Credential.Kind.SESSION, "test").credential.digest
    trips: list[int] = []
    for _ in range(2):
        with counting(tmp_path / "look-up", trips):
            look_up([LookUp(digest, agent.ref.handle)])
        one = ask(agent)
        with counting(tmp_path / "admit", trips):
            turn = admitted(one)
        with counting(tmp_path / "settle", trips):
            end(turn)
    assert trips == [1, 2, 1] * 2


def test_what_a_surface_writes_with_an_end_takes_no_more(tmp_path: Path) -> None:
    if connection.vendor != "postgresql":
        pytest.skip("SQLite has none")
    turn = admitted(ask(published()))
    later = "UPDATE agents_turn SET traceparent = %s WHERE chat_id = %s AND reason <> '100%%'"
    extra_writes = [sql.Query(later, [text, turn.ask.chat_id]) for text in ("one", "two")]
    trips: list[int] = []
    with counting(tmp_path / "settle", trips):
        commit([Settle(turn, COMPLETED, lambda _: extra_writes)], home=HOME)
    assert trips == [1]
    assert Turn.objects.get().traceparent == "two"


def test_an_end_that_others_were_before_costs_round_trips_and_writes_what_stands(tmp_path: Path) -> None:
    if connection.vendor != "postgresql":
        pytest.skip("SQLite has none")
    turn, other = admitted(ask(published())), admitted(ask(published()))
    end(turn, TurnEnding(outcome=Outcome.FAILED, reason=TurnFailure.CHANNEL_LOST))
    told: list[SettledTurn] = []

    def extra_writes(settled: SettledTurn) -> list[sql.Query]:
        told.append(settled)
        return [sql.Query("UPDATE agents_turn SET traceparent = %s", [settled.reason or "none"])]

    trips: list[int] = []
    with counting(tmp_path / "settle", trips):
        done = commit([Settle(turn, COMPLETED, extra_writes), Settle(other, COMPLETED)], home=HOME)
    assert trips[0] > 2
    assert [one.outcome for one in done.results if isinstance(one, SettledTurn)] == ["failed", "completed"]
    assert told[-1].reason == TurnFailure.CHANNEL_LOST
    assert Turn.objects.get(chat_id=turn.ask.chat_id).traceparent == TurnFailure.CHANNEL_LOST
    assert list(Event.objects.filter(type="reply").values_list("session_id", flat=True)) == [
        other.ask.target.session_id
    ]


def test_a_webhook_that_was_subscribed_meanwhile_gets_its_delivery() -> None:
    agent = published()
    turn = admitted(ask(agent))
    subscribed(agent.agent.owner, events="agent.replied")
    end(turn)
    assert [one.type for one in Delivery.objects.all()] == ["agent.replied"]


def test_what_django_asks_on_that_connection_is_not_kept_to_be_prepared() -> None:
    """psycopg would keep the last hundred texts, a file of megabytes in each."""
    if connection.vendor != "postgresql":
        pytest.skip("SQLite keeps texts without values")
    end(admitted(ask(published())))
    assert connection.connection.prepare_threshold is None
