"""The known state of an event, while another process writes it."""

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from django.db import connection, transaction

from accounts.models import User
from agnt.models import ApiKey
from agnt.service.intake.events import RUNNING, KnownEvent, hold
from agnt.service.keys import mint_key
from agnt.wire.envelope import read_envelope
from kit import sql
from kit.clock import db_now
from tests.agnt.network_rows import found_key
from tests.agnt.wire import envelope

pytestmark = pytest.mark.django_db(transaction=True)
WAITS_FOR_A_LOCK = "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
WITHIN_S = 20


@pytest.mark.skipif(connection.vendor == "sqlite", reason="SQLite has one writer")
def test_an_event_that_is_finished_while_another_request_finds_it_expired_stays() -> None:
    minted = mint_key(User.objects.create(login="ana"), "k", tier=ApiKey.Tier.PRO, scope=ApiKey.Scope.FULL)
    key = found_key(minted.token)
    order, now = read_envelope(envelope("booking.confirm", {"venue_id": "v"})), db_now()
    claim = KnownEvent(key, order, "", now - timedelta(hours=1)).claim()
    is_held = threading.Event()

    def finish() -> None:
        with transaction.atomic():
            assert hold(claim)
            is_held.set()
            while not sql.rows(WAITS_FOR_A_LOCK):
                pass
            KnownEvent(key, order, "", now).store('{"payload":{}}', claim)
        connection.close()

    def find() -> str:
        assert is_held.wait(WITHIN_S)
        with transaction.atomic():
            seen = KnownEvent(key, order, "", now).find(may_name=True)
        connection.close()
        return seen.state if seen else ""

    with ThreadPoolExecutor(2) as pool:
        finishing, finding = pool.submit(finish), pool.submit(find)
        finishing.result(WITHIN_S)
        assert finding.result(WITHIN_S) not in ("", RUNNING)
