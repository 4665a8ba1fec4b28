"""How often the ledger waits for PostgreSQL, by the messages that libpq sends."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from django.db import connection

from accounts.models import Credential
from accounts.tokens import mint
from agents.ledger.state import LookUp, look_up
from tests.contracts.house import admitted, ask, end, published, user

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


def test_an_ask_alone_takes_five_round_trips(tmp_path: Path) -> None:
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
    assert trips == [1, 2, 2] * 2


def test_what_django_asks_on_that_connection_is_not_kept_to_be_prepared() -> None:
    """psycopg would keep the last hundred texts, a file of megabytes in each."""
    if connection.vendor != "postgresql":
        pytest.skip("SQLite keeps texts without values")
    end(admitted(ask(published())))
    assert connection.connection.prepare_threshold is None
