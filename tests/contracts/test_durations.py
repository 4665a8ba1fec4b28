"""The factor on durations: read once, bounded, and 1 in what ships."""

import os

import pytest
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from a2a_bridge.service import responses
from a2a_bridge.service.push_delivery import PushOutbox
from a2a_bridge.service.streams import KEEPALIVE_S
from agents.core.ledger.database import GRACE
from agents.links.channel import connection, prompts
from agents.links.sockets import RECEIPT_WITHIN_S
from agents.models.session import PROCESS_DEAD_S
from gateway.wire import protocol
from hub import http_protocol, runtime, socket_protocol
from kit import env
from kit.asgi import BODY_WITHIN_S
from kit.durations import TIME_SCALE, seconds
from kit.outbox import LEASE
from kit.safe_http.client import TOTAL_S
from lab.hub_storage import run_command
from webhooks.service.sending import WebhookOutbox


def test_a_scale_is_a_number_up_to_one(monkeypatch: pytest.MonkeyPatch) -> None:
    for raw, scale in [("", 1.0), ("1", 1.0), ("0.25", 0.25), ("0.01", 0.01)]:
        monkeypatch.setenv("TEST_TIME_SCALE", raw)
        assert env.fraction("TEST_TIME_SCALE", 1, least=0.01) == scale, (raw, scale)


def test_another_scale_is_refused(monkeypatch: pytest.MonkeyPatch, subtests: pytest.Subtests) -> None:
    for raw in ["0", "0.009", "1.01", "-1", "nan", "inf", "quick", "1,0"]:
        with subtests.test(raw=raw):
            monkeypatch.setenv("TEST_TIME_SCALE", raw)
            with pytest.raises(ImproperlyConfigured, match=r"want a number from 0\.01 to 1"):
                env.fraction("TEST_TIME_SCALE", 1, least=0.01)


def test_nothing_is_shortened_without_the_variable() -> None:
    assert TIME_SCALE == 1
    assert (seconds(10.0), seconds(10.0, at_least_s=20.0)) == (10.0, 10.0)


SHIPPED = [
    (KEEPALIVE_S, 3),
    (connection.REGISTER_WITHIN_S, 10),
    (connection.PING_EVERY_S, 25),
    (connection.SILENT_AFTER_S, 60),
    (socket_protocol.PING_EVERY_S, 25),
    (socket_protocol.PONG_WITHIN_S, 20),
    (protocol.DEFAULT_HEARTBEAT_S, 30),
    (RECEIPT_WITHIN_S, 4),
    (prompts.REPLY_GRACE_S, 5),
    (prompts.LATE_REPLY_S, 60),
    (GRACE.total_seconds(), 60),
    (runtime.BEAT_EVERY_S, 5),
    (PROCESS_DEAD_S, 20),
    (http_protocol.HEAD_WITHIN_S, 10),
    (BODY_WITHIN_S, 30),
    (responses.SEND_WITHIN_S, 30),
    (http_protocol.TAKEN_WITHIN_S, 45),
    (TOTAL_S, 10),
    (LEASE.total_seconds(), 60),
    (settings.REPLY_WAIT_S, 60),
    (settings.DRAIN_S, 25),
    (settings.CELERY_BEAT_SCHEDULE["sweep"]["schedule"], 5),
]


def test_shipped_durations_are_those_of_the_contract() -> None:
    for is_s, contract_s in SHIPPED:
        assert is_s == contract_s, (is_s, contract_s)


def test_retries_come_when_the_documents_say() -> None:
    assert WebhookOutbox.retry_after_s == (10, 60, 300, 1800, 7200, 21600)
    assert PushOutbox.retry_after_s == (5, 30, 120, 600, 1800)


def test_a_duration_is_shortened_to_its_lower_bound() -> None:
    assert seconds(10.0, scale=0.25) == 2.5
    assert seconds(10.0, at_least_s=4.0, scale=0.25) == 4.0
    assert seconds(3.0, at_least_s=4.0, scale=0.25) == 3.0


def test_a_bad_scale_stops_the_start_with_one_line() -> None:
    done = run_command({"TEST_TIME_SCALE": "soon", "DATA_DIR": os.devnull}, "check")
    assert done.returncode == 1
    assert done.stderr.splitlines() == ["TEST_TIME_SCALE='soon': want a number from 0.01 to 1"]
